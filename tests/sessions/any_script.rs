//! Scripts and conversations of chance: whatever routes, skills, triggers and lists are put together, a session comes to a
//! status that it may have, with an error that an author can use, and dying at every commit changes nothing.
//!
//! `BCC_TEST_SEED=N` runs the one script of that seed, and prints it when it fails.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fastrand::Rng;
use serde_json::{Map, Value, json};

use crate::conversation::{Case, run};
use crate::mortal::Death;

/// How many scripts are made.
const SCRIPTS: u64 = 32;

/// The longest conversation that is run again with deaths.
const MOST_EVENTS: usize = 80;

/// More answers than these nobody gives.
const MOST_ANSWERS: usize = 6;

/// What a session of these scripts may fail with: what their authors wrote, or what bounds them.
const ERRORS: [&str; 7] = [
    "endless-routes",
    "routed-to-fail",
    "action-error",
    "expression-failed",
    "trigger-failed",
    "too-deep",
    "type-misfit",
];

struct Chance {
    rng: Rng,
    ids: usize,
    topics: Vec<String>,
}

impl Chance {
    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.rng.usize(..all.len())].clone()
    }

    fn id(&mut self, what: &str) -> String {
        self.ids += 1;
        format!("{what}{}", self.ids)
    }

    fn route(&mut self, skill: bool) -> Value {
        let words = ["next", "resume", "retry", "skip_topic", "skip_phase", "end", "fail"];
        let mut route = Map::new();
        if self.rng.u8(..3) == 0 {
            route.insert("set".into(), json!({ "n": self.one_of(&["{{ n + 1 }}", "{{ n * 2 }}", "0"]) }));
        }
        if self.rng.u8(..2) == 0 {
            // A skill inserts only the skills behind it, so that few scripts are refused for their circles.
            let all: &[&str] = if skill { &["soothe"] } else { &["soothe", "listen", "stumble"] };
            route.insert("insert".into(), json!(self.one_of(all)));
        }
        match self.rng.u8(..6) {
            0 if !skill => drop(route.insert("goto".into(), json!(self.one_of(&self.topics.clone())))),
            5 if !route.is_empty() => {}
            _ => drop(route.insert("then".into(), json!(self.one_of(&words)))),
        }
        json!(route)
    }

    fn table(&mut self, reasons: &[&str], skill: bool) -> Option<Value> {
        let mut table = Map::new();
        for reason in reasons {
            if self.rng.u8(..3) == 0 {
                let route = self.route(skill);
                table.insert((*reason).into(), route);
            }
        }
        (!table.is_empty()).then(|| json!(table))
    }

    fn action(&mut self, skill: bool, depth: usize) -> Value {
        let talks = ["exit_criteria_met", "max_rounds_reached", "user_blocked", "off_topic", "error"];
        let kind = self.rng.u8(..if depth > 1 { 4 } else { 6 });
        let (what, config, reasons): (&str, Value, &[&str]) = match kind {
            0 | 1 => (
                "ai_ask",
                json!({ "content": "问 {{ n }}", "delivery": "verbatim", "max_rounds": self.rng.u8(2..4) }),
                &talks,
            ),
            2 => {
                ("ai_say", json!({ "content": "说 {{ n }}", "delivery": "verbatim" }), &["exit_criteria_met", "error"])
            }
            3 => {
                let value = self.one_of(&["{{ n + 1 }}", "{{ n + nothing }}", "1"]);
                ("set", json!({ "values": { "n": value } }), &["error"])
            }
            4 => {
                let when = self.one_of(&["n > 2", "n < 3", "nothing", "nothing < 1"]);
                let actions: Vec<Value> = (0..self.rng.usize(1..3)).map(|_| self.action(skill, depth + 1)).collect();
                let case = match self.rng.bool() && !skill {
                    true => json!({ "when": when, "goto": self.one_of(&self.topics.clone()) }),
                    false => json!({ "when": when, "actions": actions }),
                };
                ("condition", json!({ "cases": [case], "else": { "set": { "n": "{{ n + 1 }}" } } }), &["error"])
            }
            _ => {
                let to = if skill { "soothe" } else { self.one_of(&["soothe", "listen", "stumble"]) };
                ("use_skill", json!({ "skill": to }), &["error", "exit_criteria_met"])
            }
        };
        let mut action = json!({ "action_type": what, "action_id": self.id("a"), "config": config });
        if let Some(table) = self.table(reasons, skill) {
            action["on_exit"] = table;
        }
        if self.rng.u8(..6) == 0 {
            action["condition"] = json!(self.one_of(&["n < 4", "nothing > 1", "true"]));
        }
        action
    }

    fn actions(&mut self, skill: bool) -> Vec<Value> {
        (0..self.rng.usize(1..4)).map(|_| self.action(skill, 0)).collect()
    }

    fn skill(&mut self, id: &str) -> Value {
        let inputs = json!([{ "var": "n", "value": 0 }, { "var": "nothing", "value": "x" }]);
        let actions = match id {
            "soothe" => vec![json!({
                "action_type": "ai_say", "action_id": "soothing", "config": { "content": "抱抱", "delivery": "verbatim" },
            })],
            _ => self.actions(true),
        };
        json!({ "skill_id": id, "inputs": inputs, "actions": actions })
    }

    fn script(&mut self) -> Value {
        let reasons = ["max_rounds_reached", "user_blocked", "off_topic", "error"];
        let phases = self.rng.usize(1..3);
        let counts: Vec<usize> = (0..phases).map(|_| self.rng.usize(1..4)).collect();
        self.topics = (0..counts.iter().sum()).map(|number: usize| format!("t{number}")).collect();
        let mut names = self.topics.clone().into_iter();
        let mut session = json!({
            "declare": [{ "var": "n", "value": 0 }, { "var": "nothing", "type": "number" },
                        { "var": "list", "type": "list", "value": [1, "b", { "name": "c" }] }],
            "skills": [self.skill("soothe"), self.skill("listen"), self.skill("stumble")],
            "phases": [],
        });
        for (number, topics) in counts.into_iter().enumerate() {
            let topics: Vec<Value> = names.by_ref().take(topics).map(|id| self.topic(&id, &reasons)).collect();
            let mut phase = json!({ "phase_id": format!("p{number}"), "topics": topics });
            if let Some(table) = self.table(&reasons, false) {
                phase["on_exit"] = table;
            }
            session["phases"].as_array_mut().unwrap().push(phase);
        }
        if let Some(table) = self.table(&reasons, false) {
            session["on_exit"] = table;
        }
        let whens = [
            "n > 3",
            "metadata.crisis_signal",
            "last_user_message == \"危\"",
            "last_user_message == \"好\" and nothing > 1",
        ];
        let triggers: Vec<Value> = (0..self.rng.usize(..3))
            .map(|number| {
                let insert = self.one_of(&["soothe", "listen", "stumble"]);
                let then = self.one_of(&["resume", "resume", "end"]);
                json!({ "trigger_id": format!("g{number}"), "when": self.one_of(&whens), "insert": insert, "then": then, "once": self.rng.bool() })
            })
            .collect();
        if !triggers.is_empty() {
            session["triggers"] = json!(triggers);
        }
        session
    }

    fn topic(&mut self, id: &str, reasons: &[&str]) -> Value {
        let mut topic = json!({ "topic_id": id, "actions": self.actions(false) });
        if let Some(table) = self.table(reasons, false) {
            topic["on_exit"] = table;
        }
        if self.rng.u8(..3) == 0 {
            topic["for_each"] = json!({ "in": "list", "as": "one" });
        }
        topic
    }

    /// As many replies for each action as it may need in one visit, retries included.
    fn replies(&mut self) -> Value {
        let mut replies = Map::new();
        for id in 1..=self.ids {
            let list: Vec<Value> = (0..20)
                .map(|number| {
                    let reply = json!({
                        "content": format!("第 {number} 句"), "EXIT": self.one_of(&["NO", "NO", "YES"]),
                        "progress_suggestion": self.one_of(&["continue_needed", "blocked", "off_topic"]),
                        "metadata": { "crisis_signal": self.rng.u8(..5) == 0 },
                    });
                    if self.rng.u8(..8) == 0 { json!("no JSON at all") } else { json!({ "$ask": reply }) }
                })
                .collect();
            replies.insert(format!("a{id}"), json!(list));
        }
        json!(replies)
    }
}

/// Gives how the session ended; nothing for a script that is refused.
fn comes_to_an_end(seed: u64) -> Option<String> {
    let mut chance = Chance { rng: Rng::with_seed(seed), ids: 0, topics: vec![] };
    let session = chance.script();
    let replies = chance.replies();
    let answers: Vec<&str> = (0..MOST_ANSWERS).map(|_| chance.one_of(&["好", "不", "危"])).collect();
    let case =
        json!({ "session": session, "replies": replies, "answers": answers, "spare_answers": true, "expect": null });
    let case: Case = serde_json::from_value(case).unwrap();
    let looked = catch_unwind(AssertUnwindSafe(|| {
        let record = run(&case, Death::Never).ok()?;
        assert!(["completed", "failed", "waiting_input"].contains(&record.status.as_str()), "{}", record.status);
        for error in record.events.iter().filter(|event| event["type"] == "error") {
            assert!(ERRORS.contains(&error["code"].as_str().unwrap()), "{error}");
        }
        // A long loop dies too often to be run twice more.
        if record.events.len() < MOST_EVENTS {
            let death = if seed.is_multiple_of(2) { Death::Before } else { Death::After };
            let again = run(&case, death).unwrap_or_else(|refused| panic!("{}", refused.0));
            record.is_that_of(&again, &format!("{death:?}"));
        }
        Some(record.status)
    }));
    looked.unwrap_or_else(|_| panic!("repeat with BCC_TEST_SEED={seed}\n{session:#}"))
}

#[test]
fn whatever_script_chance_makes_it_comes_to_an_end_that_dying_does_not_change() {
    if let Some(seed) = std::env::var("BCC_TEST_SEED").ok().and_then(|seed| seed.parse().ok()) {
        comes_to_an_end(seed);
        return;
    }
    let ends: Vec<Option<String>> = (0..SCRIPTS).map(comes_to_an_end).collect();
    let count = |status: &str| ends.iter().filter(|end| end.as_deref() == Some(status)).count();
    let [completed, failed, waiting] = ["completed", "failed", "waiting_input"].map(count);
    let ran = completed + failed + waiting;
    assert!(ran * 2 > ends.len(), "only {ran} scripts were not refused");
    assert!(completed > 0 && failed > 0 && waiting > 0, "{completed} completed, {failed} failed, {waiting} waiting");
}
