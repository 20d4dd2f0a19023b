//! Killed at any moment, a conversation goes on as if nothing had happened (docs/sessions.md).
//!
//! A client that does not know whether its last answer arrived kills the program again and again, resends that answer
//! by its `answer_id`, and resumes. In the end the whole export must be that of a run that nobody disturbed.
//!
//! `BCC_TEST_SEED=N` repeats the chance of a run that failed.

use crate::client;
use crate::process;
use crate::undisturbed;
use std::time::Duration;

use serde_json::{Value, json};

use client::{Client, End, Plan};
use process::Home;
use undisturbed::{Told, first_difference, journal, without_resumes};

/// How often the long conversation is killed at least.
const KILLS: usize = 200;

/// How many are planned: on a busy machine a process may come further than its plan meant it to, and those are missing then.
const PLANNED: usize = 280;

/// Where the clock of every run starts. It moves 1 ms an event, so that all times can be compared.
const CLOCK: &str = "2026-11-21T20:00:00Z";

/// The seed of a test, told when it fails.
struct Seed(u64);

impl Seed {
    fn of_this_run() -> Self {
        let given = std::env::var("BCC_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        Self(given.unwrap_or_else(|| fastrand::u64(..)))
    }
}

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("repeat with BCC_TEST_SEED={}", self.0);
        }
    }
}

/// What the model says in the long conversation: a text for each call, most of them as models write them.
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
    let many = |name: &str, answers: usize| -> Vec<Value> {
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
        "ask_places": many("places", 49),
        "ask_music": many("music", 45),
        "ask_mood": [round("心情如何？".into(), false, json!({})), round("".into(), true, json!({ "mood": "restless" }))],
        "say_breathe": [round("深呼吸。".into(), false, json!({}))],
        "ask_people": many("told", 48),
        "think_summary": [{ "summary": "走过很多地方，13800001111。" }],
        "ask_last": [round("还有什么？".into(), false, json!({})), round("是吗？".into(), false, json!({ "last_word": "x" })), round("".into(), false, json!({ "last_word": "完" }))],
    }})
}

/// The answer of the person to the question `answer_id`: always the same, and no two alike.
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

/// A run that nobody disturbs, as its journal and its export tell it.
fn undisturbed_run(script: &str, arguments: &[String], answer: fn(&str) -> String) -> Told {
    let home = Home::new();
    let script = home.script(script);
    let mut client = Client::new(&home, script, arguments.to_vec(), answer);
    assert_eq!(client.live(&Plan::Undisturbed), End::Completed);
    client.told_everything(&journal(&home, client::SESSION));
    Told::of(&home)
}

#[test]
fn killed_200_times_a_conversation_comes_to_the_same_transcript_and_variables() {
    let seed = Seed::of_this_run();
    let mut chance = fastrand::Rng::with_seed(seed.0);
    let files = Home::new();
    let model = files.file("replies.json", &replies().to_string());
    let arguments: Vec<String> = ["--clock", CLOCK, "--user", "lin", "--model"]
        .map(str::to_owned)
        .into_iter()
        .chain([format!("replay:{}", model.display())])
        .collect();
    let expected = undisturbed_run("long_talk.yaml", &arguments, answer);
    let answers = expected.answers();
    assert!(answers.len() > 150, "the conversation is not long: {} answers", answers.len());
    for (number, text) in answers.iter().enumerate() {
        assert_eq!(*text, answer(&format!("a{}", number + 1)));
    }

    let home = Home::new();
    let script = home.script("long_talk.yaml");
    let mut client = Client::new(&home, script, arguments, answer);
    // How long a process needs to its first event: the moments before it must be met too.
    let start = client.time_to_start();
    let mut end = End::Killed;
    while end != End::Completed {
        // The kills are spread over the whole conversation, however fast the machine is: who is ahead of them asks and
        // answers nothing new before the next kill.
        let ahead = client.answered() * PLANNED >= client.kills * answers.len();
        client.holds_back = ahead && client.kills < PLANNED;
        let plan = if client.kills >= PLANNED {
            Plan::Undisturbed
        } else if ahead {
            match chance.u32(..4) {
                0 => Plan::After(start.mul_f64(chance.f64())),
                1 => Plan::Unread(start.mul_f64(2.0 + 2.0 * chance.f64())),
                _ => Plan::AfterLines(1 + chance.usize(..3), Duration::ZERO),
            }
        } else {
            match chance.u32(..5) {
                0 => Plan::After(start.mul_f64(0.8 + chance.f64())),
                1 | 2 => Plan::AfterLines(
                    1 + chance.usize(..25),
                    Duration::from_micros(chance.u64(..1500) * chance.u64(..2)),
                ),
                3 => Plan::AfterOwnMessage,
                _ => Plan::AfterAnswer(Duration::from_micros(chance.u64(..8000))),
            }
        };
        client.by_run = chance.u32(..4) == 0;
        client.sends_twice = chance.u32(..4) == 0;
        client.loses_what_it_had_not_read = chance.bool();
        end = client.live(&plan);
    }

    assert!(client.kills >= KILLS, "{} kills", client.kills);
    println!("{} kills: {:?}", client.kills, client.moments);
    client.moments.all_were_met();
    let events = journal(&home, client::SESSION);
    client.told_everything(&events);
    let found = Told::of(&home);
    assert_eq!(found.export, home.export(client::SESSION), "`sessions export` is what is compared");
    assert_eq!(found.answers(), answers, "an answer was lost or taken twice");
    let resumed = events.iter().filter(|event| event["type"] == "session_resumed").count();
    assert!(resumed > KILLS / 4, "only {resumed} of the processes came as far as to resume");
    let found = without_resumes(&found, CLOCK);
    if let Some(difference) = first_difference(&expected, &found) {
        panic!("{difference}");
    }
}

/// The answers of the short conversation, which the offline responder takes the variables from.
fn short_answer(answer_id: &str) -> String {
    let texts = ["小林", "不告诉你", "35", "茶、咖啡", "?", "?"];
    let number: usize = answer_id.strip_prefix('a').unwrap().parse().unwrap();
    texts[number - 1].to_owned()
}

/// Kills a conversation once after each line that it writes, and looks whether it comes to the same end.
fn killed_after_any_line(script_name: &str, arguments: &[String], answer: fn(&str) -> String) {
    let expected = undisturbed_run(script_name, arguments, answer);
    let mut lines = 0;
    loop {
        lines += 1;
        let home = Home::new();
        let script = home.script(script_name);
        let mut client = Client::new(&home, script, arguments.to_vec(), answer);
        client.loses_what_it_had_not_read = lines % 2 == 0;
        client.by_run = lines % 3 == 0;
        let first = client.live(&Plan::AfterLines(lines, Duration::ZERO));
        let mut end = first;
        while end != End::Completed {
            client.by_run = false;
            end = client.live(&Plan::Undisturbed);
        }
        client.told_everything(&journal(&home, client::SESSION));
        let found = without_resumes(&Told::of(&home), CLOCK);
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

/// What is answered in the conversation with routes: a person who is stuck, then in danger, then well again.
fn routed_answer(answer_id: &str) -> String {
    let texts = ["小林", "不想说", "好吧", "有时候不想活了", "安全", "母亲还好", "父亲也好", "很好", "谢谢"];
    let number: usize = answer_id.strip_prefix('a').unwrap().parse().unwrap();
    texts[number - 1].to_owned()
}

/// What the model writes in it.
fn routed_replies() -> Value {
    let reply = |content: &str, exit: bool, suggestion: &str| {
        json!({
            "safety_risk": { "detected": false }, "content": content, "EXIT": if exit { "YES" } else { "NO" }, "BRIEF": "",
            "metrics": { "information_completeness": "一般", "user_engagement": "投入", "emotional_intensity": "平静", "reply_relevance": "切题" },
            "progress_suggestion": suggestion, "metadata": { "emotional_tone": "平静", "crisis_signal": false },
        })
    };
    let go_on = "continue_needed";
    let named = |name: &str| {
        let mut reply = reply("记下了", true, go_on);
        reply["name"] = json!(name);
        reply
    };
    json!({ "replies": {
        "ask_name": [named("小林")],
        "ask_family": [reply("没关系，慢慢来", false, "blocked"), reply("谢谢", true, go_on)],
        "ask_person": [reply("嗯", false, go_on), reply("好", true, go_on), reply("嗯", false, go_on), reply("好", true, go_on)],
        "ask_safe": [reply("我们在这里", true, go_on)],
        "ask_last": [reply("再见", true, go_on)],
    }})
}

#[test]
fn killed_after_any_line_a_conversation_with_routes_skills_triggers_and_lists_comes_to_the_same_end() {
    let files = Home::new();
    let model = files.file("replies.json", &routed_replies().to_string());
    let model = format!("replay:{}", model.display());
    killed_after_any_line("routed_talk.yaml", &["--clock", CLOCK, "--model", &model].map(str::to_owned), routed_answer);
}

#[test]
fn who_drives_a_held_session_is_told_who_holds_it_and_a_killed_holder_holds_nothing() {
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
        assert!(second.err.contains(&format!("process {}", holder.id())), "{}", second.err);
        // It tells a program so too, and nothing else: what is committed is for the one who holds the session.
        let told = second.events();
        let refusal = told.iter().all(|event| event["type"] == "error" && event.get("seq").is_none());
        assert!(told.len() == usize::from(arguments.contains(&"--json")) && refusal, "{arguments:?}: {}", second.out);
    }
    assert_eq!(journal(&home, "held"), before, "a refused process left something behind");

    holder.kill();
    let next = home.start(["sessions", "resume", "held", "--json"]);
    assert_eq!(next.event_of("session_resumed")["last_seq"], before.len());
    assert_eq!(next.event_of("waiting"), waiting, "what it waits for is told again as it was");
}
