//! What the release before the workspace wrote still works: its store with unfinished sessions, its export, its recording, and what a
//! reader of its `--json` relies on. `tests/fixtures/release_0_1/` was written by that binary; the store is kept as SQL.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::process::{Finished, Home};

fn kept(name: &str) -> String {
    fs::read_to_string(Path::new(crate::ROOT).join("tests/fixtures/release_0_1").join(name)).unwrap()
}

/// The project as it was, without its store.
fn project() -> Home {
    let home = Home::new();
    fs::create_dir(home.path().join("scripts")).unwrap();
    for name in ["bcc-script.toml", "scripts/all_kinds.yaml", "scripts/effect.yaml", "scripts/loop.yaml"] {
        home.file(name, &kept(name));
    }
    home.file("recording.jsonl", &kept("recording.jsonl"));
    home
}

fn with_store() -> Home {
    let home = project();
    let sql = kept("sessions.sql").replace("{project}", &home.path().canonicalize().unwrap().display().to_string());
    rusqlite::Connection::open(home.store()).unwrap().execute_batch(&sql).unwrap();
    home
}

fn done(finished: Finished) -> String {
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.out, finished.err);
    finished.out
}

fn export(home: &Home, id: &str) -> Value {
    serde_json::from_str(&done(home.finish(["sessions", "export", id], ""))).unwrap()
}

/// Everything that was said, by whom.
fn talk(export: &Value) -> Vec<(String, String)> {
    let text = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
    export["transcript"].as_array().unwrap().iter().map(|line| (text(line, "role"), text(line, "text"))).collect()
}

#[test]
fn a_session_that_was_left_anywhere_goes_on_to_the_end_that_it_would_have_had() {
    let home = with_store();
    let answers = kept("answers.txt");
    let whole: Value = serde_json::from_str(&kept("whole.export.json")).unwrap();
    // Before the first answer; among the elements of a list, in a skill; in what a trigger inserted; in the last question.
    for taken in [0, 3, 4, 6] {
        let id = format!("after_{taken}");
        let rest: String = answers.lines().skip(taken).map(|answer| format!("{answer}\n")).collect();
        done(home.finish(["sessions", "resume", &id], rest));
        let export = export(&home, &id);
        assert_eq!(talk(&export), talk(&whole), "{id}");
        for scope in ["session", "global"] {
            let values = |export: &Value| -> Vec<(String, Value)> {
                let of = export["variables"][scope].as_object().unwrap();
                of.iter().map(|(name, set)| (name.clone(), set["value"].clone())).collect()
            };
            assert_eq!(values(&export), values(&whole), "{id}, {scope}");
        }
    }
}

#[test]
fn an_effect_that_was_open_is_asked_about_and_a_loop_that_a_budget_stopped_goes_on() {
    let home = with_store();
    let effect = done(home.finish(["sessions", "resume", "effect_open", "--trust"], "skip\nyes\n"));
    assert!(effect.contains("Answer `again` to run it again, `skip`"), "{effect}");
    assert!(effect.contains("Shall we go on after no minutes?"), "{effect}");
    let looped = done(home.finish(["sessions", "resume", "loop_stopped", "--budget", "turns=200"], ""));
    assert!(looped.contains("### advice") && looped.contains("The report is done."), "{looped}");
    assert!(!looped.contains("### background"), "what was done before is not done again:\n{looped}");
}

#[test]
fn what_was_exported_is_exported_alike() {
    let home = with_store();
    assert_eq!(export(&home, "whole"), serde_json::from_str::<Value>(&kept("whole.export.json")).unwrap());
    let listed = done(home.finish(["sessions", "list"], ""));
    assert_eq!(listed.lines().count(), 7, "{listed}");
}

#[test]
fn a_recording_of_then_is_replayed_prompt_by_prompt() {
    let home = project();
    let arguments = ["run", "scripts/all_kinds.yaml", "--replay", "recording.jsonl"];
    assert_eq!(done(home.finish(arguments, kept("answers.txt"))), kept("recorded.out"));
}

/// Whether `new` has all that `old` has, with the same types.
fn as_before(old: &Value, new: &Value, at: &str) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in old {
                let now = new.get(key).unwrap_or_else(|| panic!("{at}.{key} is gone"));
                as_before(value, now, &format!("{at}.{key}"));
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            old.iter().zip(new).for_each(|(old, new)| as_before(old, new, &format!("{at}[]")));
        }
        (Value::String(_), Value::String(_))
        | (Value::Number(_), Value::Number(_))
        | (Value::Bool(_), Value::Bool(_))
        | (Value::Null, Value::Null) => {}
        _ => panic!("{at} was {old} and is {new}"),
    }
}

#[test]
fn a_reader_of_json_lines_finds_what_it_found() {
    let home = project();
    let fixed =
        ["--session", "events", "--model", "offline", "--json", "--clock", "2026-11-01T08:00:00Z", "--seed", "7"];
    let arguments = [["run", "scripts/all_kinds.yaml"].as_slice(), &fixed].concat();
    let finished = home.finish(arguments, kept("answers.txt"));
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    let old: Vec<Value> = kept("events.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let new = finished.events();
    let kinds = |events: &[Value]| -> Vec<String> {
        events.iter().map(|event| format!("{} {}", event["type"], event["seq"])).collect()
    };
    assert_eq!(kinds(&old), kinds(&new));
    for (old, new) in old.iter().zip(&new) {
        as_before(old, new, &format!("{} {}", old["type"], old["seq"]));
        for exact in ["seq", "at", "session_id", "location", "text", "role", "message_id", "answer_id", "for", "name"] {
            assert_eq!(old.get(exact), new.get(exact), "{exact} of {old}");
        }
    }
}
