//! Tests of compatibility with release 0.1: its store with unfinished sessions, its export, its recording, and its `--json` output.
//! `tests/fixtures/release_0_1/` was written by that release; the store is saved as SQL.

use std::fs;
use std::path::Path;

use serde_json::Value;

use bcc_store::contract::Store;
use bcc_store::sqlite::open::open;

use crate::process::{Finished, Home};
use crate::pseudo_terminal::Terminal;

fn release_file(name: &str) -> String {
    fs::read_to_string(Path::new(crate::ROOT).join("tests/fixtures/release_0_1").join(name)).unwrap()
}

/// The project of that release, without its store.
fn project() -> Home {
    let home = Home::new();
    fs::create_dir(home.path().join("scripts")).unwrap();
    for name in ["bcc-script.toml", "scripts/all_kinds.yaml", "scripts/effect.yaml", "scripts/loop.yaml"] {
        home.file(name, &release_file(name));
    }
    home.file("recording.jsonl", &release_file("recording.jsonl"));
    home
}

fn with_store() -> Home {
    let home = project();
    let sql =
        release_file("sessions.sql").replace("{project}", &home.path().canonicalize().unwrap().display().to_string());
    rusqlite::Connection::open(home.store()).unwrap().execute_batch(&sql).unwrap();
    home
}

fn successful_output(finished: Finished) -> String {
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.out, finished.err);
    finished.out
}

fn export(home: &Home, id: &str) -> Value {
    serde_json::from_str(&successful_output(home.finish(["sessions", "export", id], ""))).unwrap()
}

/// Role and text of every message.
fn messages(export: &Value) -> Vec<(String, String)> {
    let text = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
    export["transcript"].as_array().unwrap().iter().map(|line| (text(line, "role"), text(line, "text"))).collect()
}

#[test]
fn an_unfinished_session_continues_to_the_same_end() {
    let home = with_store();
    let answers = release_file("answers.txt");
    let full_export: Value = serde_json::from_str(&release_file("whole.export.json")).unwrap();
    // Before the first answer; in an element of a list, in a skill; in an inserted skill of a trigger; at the last question.
    for answered in [0, 3, 4, 6] {
        let id = format!("after_{answered}");
        let rest: String = answers.lines().skip(answered).map(|answer| format!("{answer}\n")).collect();
        successful_output(home.finish(["sessions", "resume", &id], rest));
        let export = export(&home, &id);
        assert_eq!(messages(&export), messages(&full_export), "{id}");
        for scope in ["session", "global"] {
            let values = |export: &Value| -> Vec<(String, Value)> {
                let scope_variables = export["variables"][scope].as_object().unwrap();
                scope_variables.iter().map(|(name, set)| (name.clone(), set["value"].clone())).collect()
            };
            assert_eq!(values(&export), values(&full_export), "{id}, {scope}");
        }
    }
}

#[test]
fn an_unfinished_effect_is_asked_about_and_a_loop_stopped_by_a_budget_continues() {
    let home = with_store();
    let effect = successful_output(home.finish(["sessions", "resume", "effect_open", "--trust"], "skip\nyes\n"));
    assert!(effect.contains("Answer `again` to run it again, `skip`"), "{effect}");
    assert!(effect.contains("Shall we go on after no minutes?"), "{effect}");
    let looped = successful_output(home.finish(["sessions", "resume", "loop_stopped", "--budget", "turns=200"], ""));
    assert!(looped.contains("### advice") && looped.contains("The report is done."), "{looped}");
    assert!(!looped.contains("### background"), "what was done before is not done again:\n{looped}");
}

#[test]
fn a_session_that_waits_has_its_request_after_the_migration_and_only_new_answers_can_be_taken_back() {
    let home = with_store();
    let mut terminal = Terminal::start(&home, &["sessions", "resume", "after_3"], false);
    terminal.answers("/back");
    terminal.until("this answer cannot be taken back");
    terminal.answers(release_file("answers.txt").lines().nth(3).unwrap());
    terminal.answers("/back");
    terminal.until("(your last answer was taken back)");
    terminal.answers("/quit");
    assert_eq!(terminal.end(), Some(3));
    let store = open(&home.store()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let requests = runtime.block_on(store.open_requests(None)).unwrap();
    for answered in [0, 3, 4, 6] {
        let id = format!("after_{answered}");
        let of_session: Vec<_> = requests.iter().filter(|open| open.session == id).map(|open| &open.request).collect();
        let [request] = of_session.as_slice() else { panic!("{id} {of_session:?}") };
        let messages = messages(&export(&home, &id));
        assert_eq!((request.kind.as_str(), &request.prompt), ("input", &messages.last().unwrap().1), "{id}");
    }
}

#[test]
fn an_export_is_the_same_as_in_the_earlier_release() {
    let home = with_store();
    assert_eq!(export(&home, "whole"), serde_json::from_str::<Value>(&release_file("whole.export.json")).unwrap());
    let listed = successful_output(home.finish(["sessions", "list"], ""));
    assert_eq!(listed.lines().count(), 7, "{listed}");
}

#[test]
fn a_recording_of_the_earlier_release_is_replayed_by_order_because_its_prompts_differ() {
    let home = project();
    let replay = ["run", "scripts/all_kinds.yaml", "--replay", "recording.jsonl"];
    let by_prompt = home.finish(replay, release_file("answers.txt"));
    assert_eq!(by_prompt.code, Some(3), "{}\n{}", by_prompt.out, by_prompt.err);
    assert!(by_prompt.err.contains("the prompt of `greet`, call 1"), "{}", by_prompt.err);
    assert!(by_prompt.err.contains("use `--replay-by order`, which accepts other prompts"), "{}", by_prompt.err);
    let home = project();
    let by_order = [&replay[..], &["--replay-by", "order"]].concat();
    assert_eq!(successful_output(home.finish(by_order, release_file("answers.txt"))), release_file("recorded.out"));
}

/// Asserts that `new` has all fields of `old`, with the same types.
fn assert_compatible(old: &Value, new: &Value, at: &str) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in old {
                let new_value = new.get(key).unwrap_or_else(|| panic!("{at}.{key} is gone"));
                assert_compatible(value, new_value, &format!("{at}.{key}"));
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            old.iter().zip(new).for_each(|(old, new)| assert_compatible(old, new, &format!("{at}[]")));
        }
        (Value::String(_), Value::String(_))
        | (Value::Number(_), Value::Number(_))
        | (Value::Bool(_), Value::Bool(_))
        | (Value::Null, Value::Null) => {}
        _ => panic!("{at} was {old} and is {new}"),
    }
}

#[test]
fn json_lines_are_compatible_with_the_earlier_release() {
    let home = project();
    let fixed =
        ["--session", "events", "--model", "offline", "--json", "--clock", "2026-11-01T08:00:00Z", "--seed", "7"];
    let arguments = [["run", "scripts/all_kinds.yaml"].as_slice(), &fixed].concat();
    let finished = home.finish(arguments, release_file("answers.txt"));
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    let old: Vec<Value> =
        release_file("events.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let new = finished.events();
    let kinds = |events: &[Value]| -> Vec<String> {
        events.iter().map(|event| format!("{} {}", event["type"], event["seq"])).collect()
    };
    assert_eq!(kinds(&old), kinds(&new));
    for (old, new) in old.iter().zip(&new) {
        assert_compatible(old, new, &format!("{} {}", old["type"], old["seq"]));
        for exact in ["seq", "at", "session_id", "location", "text", "role", "message_id", "answer_id", "for", "name"] {
            assert_eq!(old.get(exact), new.get(exact), "{exact} of {old}");
        }
    }
}
