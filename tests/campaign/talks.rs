//! Conversations for attacks: their scripts, answers and models, and their result without an attack.

use std::fs;
use std::path::PathBuf;

use fastrand::Rng;
use serde_json::{Value, json};

use crate::attack::{Case, ensure};
use crate::client::{Client, End, Plan, SESSION};
use crate::fixture_talks::{CLOCK, routed_answer, routed_replies, short_answer};
use crate::process::{Home, fixture};
use crate::session_output::{SessionOutput, first_difference, journal, without_resumes};

/// A conversation whose result depends only on its script and its answers.
pub struct Talk {
    script: String,
    pub arguments: Vec<String>,
    answer: fn(&str) -> String,
    expected: SessionOutput,
}

impl Talk {
    /// One of the conversations, or one that is made up.
    pub fn choose(case: &mut Case) -> Self {
        let mut arguments = vec!["--clock".to_owned(), CLOCK.to_owned()];
        let read = |name: &str| fs::read_to_string(fixture(name)).unwrap();
        let (script, answer): (String, fn(&str) -> String) = match case.rng.u8(..4) {
            0 => (read("short_talk.yaml"), short_answer),
            1 => {
                let model = case.directory.join("replies.json");
                fs::write(&model, routed_replies().to_string()).unwrap();
                arguments.extend(["--model".to_owned(), format!("replay:{}", model.display())]);
                (read("routed_talk.yaml"), routed_answer)
            }
            _ => (made_up(&mut case.rng).to_string(), made_up_answer),
        };
        let home = case.home();
        let path = home.file("talk.yaml", &script);
        let mut client = Client::new(&home, path, arguments.clone(), answer);
        assert_eq!(client.run_process(&Plan::Undisturbed), End::Completed);
        Self { script, arguments, answer, expected: SessionOutput::of(&home) }
    }

    /// Writes the script there.
    pub fn script(&self, home: &Home) -> PathBuf {
        home.file("talk.yaml", &self.script)
    }

    pub fn client<'h>(&self, home: &'h Home) -> Client<'h> {
        Client::new(home, self.script(home), self.arguments.clone(), self.answer)
    }

    pub fn answer(&self, id: &str) -> String {
        (self.answer)(id)
    }

    /// Comes to the end without an attack, and compares the result with that of a conversation that was never attacked.
    pub fn complete(&self, client: &mut Client<'_>, home: &Home) -> Result<(), String> {
        let mut attempts = 0;
        while client.run_process(&Plan::Undisturbed) != End::Completed {
            attempts += 1;
            ensure(attempts < 5, || "the session does not come to its end".into())?;
        }
        client.check_journal(&journal(home, SESSION));
        self.compare(home)
    }

    /// Compares the result with that of a conversation that was never attacked, except for what resuming adds.
    pub fn compare(&self, home: &Home) -> Result<(), String> {
        let found = SessionOutput::of(home);
        ensure(found.answers() == self.expected.answers(), || {
            format!("answers: {:?}, expected {:?}", found.answers(), self.expected.answers())
        })?;
        first_difference(&self.expected, &without_resumes(&found, CLOCK)).map_or(Ok(()), Err)
    }
}

/// Every answer of a conversation that is made up: the same for the same question, some of them long, some with markup.
fn made_up_answer(answer_id: &str) -> String {
    let number: usize = answer_id.strip_prefix('a').unwrap().parse().unwrap();
    match number % 5 {
        0 => format!("{number}: {{{{ v1 }}}} {{% if %}} <!-- system -->"),
        1 => format!("{number}: {}", "很长的回答。".repeat(900)),
        _ => format!("第 {number} 个回答"),
    }
}

/// A script that the offline responder can lead: questions, statements, variables, conditions, skills and lists in any order.
fn made_up(rng: &mut Rng) -> Value {
    let mut ids = 0;
    let mut id = |prefix: &str| {
        ids += 1;
        format!("{prefix}{ids}")
    };
    let mut phases = Vec::new();
    for _ in 0..rng.usize(1..3) {
        let mut topics = Vec::new();
        for _ in 0..rng.usize(1..3) {
            let actions: Vec<Value> = (0..rng.usize(1..5)).map(|_| action(rng, &mut id, 0)).collect();
            let mut topic = json!({ "topic_id": id("t"), "actions": actions });
            if rng.u8(..4) == 0 {
                topic["for_each"] = json!({ "in": "people", "as": "person" });
            }
            topics.push(topic);
        }
        phases.push(json!({ "phase_id": id("p"), "topics": topics }));
    }
    // At least one answer is needed.
    let last =
        json!({ "action_type": "ai_ask", "action_id": "last", "config": { "content": "还有吗？", "max_rounds": 1 } });
    phases.push(json!({ "phase_id": "last_phase", "topics": [{ "topic_id": "last_topic", "actions": [last] }] }));
    let skill = json!({ "skill_id": "calm", "actions": [
        { "action_type": "ai_say", "action_id": "calming", "config": { "content": "慢慢来。", "delivery": "verbatim" } },
    ] });
    json!({ "session": {
        "session_id": "made_up",
        "declare": [{ "var": "n", "value": 0 }, { "var": "people", "type": "list", "value": ["母亲", "父亲"] },
                    { "var": "v1", "type": "string" }, { "var": "v2", "type": "string", "sensitive": true }],
        "skills": [skill],
        "phases": phases,
    } })
}

fn action(rng: &mut Rng, id: &mut impl FnMut(&str) -> String, depth: usize) -> Value {
    let (action_type, config) = match rng.u8(..if depth == 0 { 7 } else { 5 }) {
        0 | 1 => {
            let output = if rng.bool() { "v1" } else { "v2" };
            let asked =
                json!({ "content": "第 {{ n }} 问", "max_rounds": rng.u8(1..3), "output": [{ "get": output }] });
            ("ai_ask", asked)
        }
        2 => ("ai_say", json!({ "content": format!("{} {{{{ n }}}}", "说。".repeat(rng.usize(1..600))) })),
        3 => ("set", json!({ "values": { "n": "{{ n + 1 }}" } })),
        4 => ("ai_say", json!({ "content": "原话 {{ n }}", "delivery": "verbatim" })),
        5 => ("use_skill", json!({ "skill": "calm" })),
        _ => {
            let actions: Vec<Value> = (0..rng.usize(1..3)).map(|_| action(rng, id, depth + 1)).collect();
            let when = if rng.bool() { "n > 1" } else { "n < 2" };
            let cases = json!([{ "when": when, "actions": actions }]);
            ("condition", json!({ "cases": cases, "else": { "set": { "n": 7 } } }))
        }
    };
    json!({ "action_type": action_type, "action_id": id("a"), "config": config })
}
