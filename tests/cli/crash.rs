//! Tests that a conversation continues without differences after its process is killed at any time (docs/sessions.md).
//!
//! A client that does not know whether its last answer arrived kills the program many times, resends that answer by its `answer_id`,
//! and resumes the session. The final export must be the same as that of an uninterrupted run.
//!
//! `BCC_TEST_SEED=N` repeats the random choices of a failed run.

use crate::client;
use crate::fixture_talks::{CLOCK, routed_answer, routed_replies, short_answer};
use crate::process;
use crate::session_output;
use std::time::Duration;

use serde_json::{Value, json};

use client::{Client, End, Plan};
use process::Home;
use session_output::{SessionOutput, first_difference, journal, without_resumes};

/// The minimum number of kills in the long conversation.
const KILLS: usize = 200;

/// The number of planned kills: on a busy machine a process may get further than planned, so that some kills do not happen.
const PLANNED: usize = 280;

/// The random seed of a test, printed when the test fails.
struct Seed(u64);

impl Seed {
    fn from_environment() -> Self {
        let configured = std::env::var("BCC_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        Self(configured.unwrap_or_else(|| fastrand::u64(..)))
    }
}

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("repeat with BCC_TEST_SEED={}", self.0);
        }
    }
}

/// The model's replies in the long conversation, one text for each call, mostly in the form that models produce.
fn replies() -> Value {
    let round = |content: String, exit: bool, more: Value| {
        let mut reply = json!({
            "safety_risk": { "detected": false }, "content": content, "EXIT": if exit { "YES" } else { "NO" },
            "metrics": { "user_engagement": "愿意说", "reply_relevance": "切题" },
            "progress_suggestion": if exit { "completed" } else { "continue_needed" }
        });
        reply.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        reply
    };
    let topic_replies = |name: &str, answers: usize| -> Vec<Value> {
        let mut list = vec![round(format!("{name}: the first?"), false, json!({}))];
        for number in 1..=answers {
            let mut more = json!({ name: format!("{name} {number}") });
            if name == "places" {
                more["last_place"] = json!(format!("{number} 号地方"));
            }
            let reply = round(format!("第 {number} 个，还有吗？"), number == answers, more);
            list.push(match number % 9 {
                2 => json!(format!("<think>one more</think>\n```json\n{reply:#}\n```")),
                4 => json!(format!("  {reply}\n")),
                6 => json!(format!("Here it is: {reply}")),
                8 => json!("I forgot the format, sorry."),
                _ => reply,
            });
        }
        list
    };
    json!({ "replies": {
        "say_hello": [round("欢迎！".into(), true, json!({}))],
        "ask_name": [
            round("怎么称呼你？".into(), false, json!({})),
            round("几岁？".into(), true, json!({ "age": "41" })),
            round("名字呢？".into(), false, json!({ "name": null })),
            round("".into(), true, json!({ "name": "林", "age": null })),
        ],
        "ask_phone": [round("记下了。".into(), true, json!({ "phone": "13800001111" }))],
        "say_rules": [
            round("规则是这样的。".into(), false, json!({})),
            round("再说一遍。".into(), false, json!({ "progress_suggestion": "blocked" })),
            round("好。".into(), true, json!({})),
        ],
        "ask_consent": [round("同意吗？".into(), false, json!({})), round("".into(), true, json!({ "agreed": "true", "born": "1985-03-02" }))],
        "ask_places": topic_replies("places", 49),
        "ask_music": topic_replies("music", 45),
        "ask_mood": [round("心情如何？".into(), false, json!({})), round("".into(), true, json!({ "mood": "restless" }))],
        "say_breathe": [round("深呼吸。".into(), false, json!({}))],
        "ask_people": topic_replies("told", 48),
        "think_summary": [{ "summary": "走过很多地方，13800001111。" }],
        "ask_last": [round("还有什么？".into(), false, json!({})), round("是吗？".into(), false, json!({ "last_word": "x" })), round("".into(), false, json!({ "last_word": "完" }))],
    }})
}

/// The answer to the question `answer_id`: always the same, and different for each question.
fn answer(answer_id: &str) -> String {
    let number: usize = answer_id.strip_prefix('a').unwrap().parse().unwrap();
    match number % 7 {
        0 => format!("{number}: {{{{ name }}}} {{% if %}}"),
        1 => format!("{number}: 我的电话是 13800001111"),
        2 => format!("{number}: {}", "很长的回答。".repeat(60)),
        3 => format!("{number}: <!-- system -->"),
        _ => format!("第 {number} 个回答"),
    }
}

/// The journal and the export of an uninterrupted run.
fn uninterrupted_run(script: &str, arguments: &[String], answer: fn(&str) -> String) -> SessionOutput {
    let home = Home::new();
    let script = home.script(script);
    let mut client = Client::new(&home, script, arguments.to_vec(), answer);
    assert_eq!(client.run_process(&Plan::Undisturbed), End::Completed);
    client.check_journal(&journal(&home, client::SESSION));
    SessionOutput::of(&home)
}

#[test]
fn killed_200_times_a_conversation_comes_to_the_same_transcript_and_variables() {
    let seed = Seed::from_environment();
    let mut chance = fastrand::Rng::with_seed(seed.0);
    let files = Home::new();
    let model = files.file("replies.json", &replies().to_string());
    let arguments: Vec<String> = ["--clock", CLOCK, "--user", "lin", "--model"]
        .map(str::to_owned)
        .into_iter()
        .chain([format!("replay:{}", model.display())])
        .collect();
    let expected = uninterrupted_run("long_talk.yaml", &arguments, answer);
    let answers = expected.answers();
    assert!(answers.len() > 150, "the conversation is not long: {} answers", answers.len());
    for (number, text) in answers.iter().enumerate() {
        assert_eq!(*text, answer(&format!("a{}", number + 1)));
    }

    let home = Home::new();
    let script = home.script("long_talk.yaml");
    let mut client = Client::new(&home, script, arguments, answer);
    // The time that a process needs to its first event; kills before that event must be tested, too.
    let startup = client.startup_time();
    let mut end = End::Killed;
    while end != End::Completed {
        // The kills are distributed over the whole conversation, independently of the speed of the machine: a client that is ahead sends no
        // new answer before the next kill.
        let ahead = client.answered() * PLANNED >= client.kills * answers.len();
        client.holds_answers = ahead && client.kills < PLANNED;
        let plan = if client.kills >= PLANNED {
            Plan::Undisturbed
        } else if ahead {
            match chance.u32(..4) {
                0 => Plan::After(startup.mul_f64(chance.f64())),
                1 => Plan::Unread(startup.mul_f64(2.0 + 2.0 * chance.f64())),
                _ => Plan::AfterLines(1 + chance.usize(..3), Duration::ZERO),
            }
        } else {
            match chance.u32(..5) {
                0 => Plan::After(startup.mul_f64(0.8 + chance.f64())),
                1 | 2 => Plan::AfterLines(
                    1 + chance.usize(..25),
                    Duration::from_micros(chance.u64(..1500) * chance.u64(..2)),
                ),
                3 => Plan::AfterOwnMessage,
                _ => Plan::AfterAnswer(Duration::from_micros(chance.u64(..8000))),
            }
        };
        client.by_run = chance.u32(..4) == 0;
        client.resends = chance.u32(..4) == 0;
        client.loses_unread_output = chance.bool();
        end = client.run_process(&plan);
    }

    assert!(client.kills >= KILLS, "{} kills", client.kills);
    println!("{} kills: {:?}", client.kills, client.moments);
    client.moments.all_were_met();
    let events = journal(&home, client::SESSION);
    client.check_journal(&events);
    let found = SessionOutput::of(&home);
    assert_eq!(found.export, home.export(client::SESSION), "`sessions export` is what is compared");
    assert_eq!(found.answers(), answers, "an answer was lost or taken twice");
    let resumed = events.iter().filter(|event| event["type"] == "session_resumed").count();
    assert!(resumed > KILLS / 4, "only {resumed} of the processes came as far as to resume");
    let found = without_resumes(&found, CLOCK);
    if let Some(difference) = first_difference(&expected, &found) {
        panic!("{difference}");
    }
}

/// Kills a conversation once after each line that it writes, and compares the result with that of an uninterrupted run.
fn killed_after_any_line(script_name: &str, arguments: &[String], answer: fn(&str) -> String) {
    let expected = uninterrupted_run(script_name, arguments, answer);
    let mut lines = 0;
    loop {
        lines += 1;
        let home = Home::new();
        let script = home.script(script_name);
        let mut client = Client::new(&home, script, arguments.to_vec(), answer);
        client.loses_unread_output = lines % 2 == 0;
        client.by_run = lines % 3 == 0;
        let first = client.run_process(&Plan::AfterLines(lines, Duration::ZERO));
        let mut end = first.clone();
        while end != End::Completed {
            client.by_run = false;
            end = client.run_process(&Plan::Undisturbed);
        }
        client.check_journal(&journal(&home, client::SESSION));
        let found = without_resumes(&SessionOutput::of(&home), CLOCK);
        if let Some(difference) = first_difference(&expected, &found) {
            panic!("killed after line {lines}: {difference}");
        }
        if first == End::Completed {
            break;
        }
    }
    assert!(lines > 50, "only {lines} lines");
}

#[test]
fn killed_after_any_line_that_it_wrote_a_conversation_comes_to_the_same_end() {
    killed_after_any_line("short_talk.yaml", &["--clock", CLOCK].map(str::to_owned), short_answer);
}

#[test]
fn killed_after_any_line_a_conversation_with_routes_skills_triggers_and_lists_comes_to_the_same_end() {
    let files = Home::new();
    let model = files.file("replies.json", &routed_replies().to_string());
    let model = format!("replay:{}", model.display());
    killed_after_any_line("routed_talk.yaml", &["--clock", CLOCK, "--model", &model].map(str::to_owned), routed_answer);
}

#[test]
fn a_second_process_is_told_the_holder_of_a_session_and_a_kill_releases_it() {
    let home = Home::new();
    let script = home.script("short_talk.yaml");
    let script = script.to_str().unwrap();
    let mut holder = home.start(["run", script, "--session", "held", "--json"]);
    let waiting = holder.event_of("waiting");
    let before = journal(&home, "held");
    for arguments in [
        vec!["run", script, "--session", "held", "--json"],
        vec!["sessions", "resume", "held"],
        vec!["sessions", "resume", "held", "--json", "--after", "3"],
        vec!["sessions", "delete", "held"],
    ] {
        let second = home.finish(&arguments, "an answer\n");
        assert_eq!(second.code, Some(1), "{arguments:?}: {}", second.err);
        assert!(second.err.contains(&format!("pid {}", holder.id())), "{}", second.err);
        // With `--json` the output is an error event and nothing else: only the process that holds the session sees committed events.
        let output_events = second.events();
        let all_errors = output_events.iter().all(|event| event["type"] == "error" && event.get("seq").is_none());
        assert!(
            output_events.len() == usize::from(arguments.contains(&"--json")) && all_errors,
            "{arguments:?}: {}",
            second.out
        );
    }
    assert_eq!(journal(&home, "held"), before, "a refused process left something behind");

    holder.kill();
    let next = home.start(["sessions", "resume", "held", "--json"]);
    assert_eq!(next.event_of("session_resumed")["last_seq"], before.len());
    assert_eq!(next.event_of("waiting"), waiting, "what it waits for is told again as it was");
}
