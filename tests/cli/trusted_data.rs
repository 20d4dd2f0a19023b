//! Tests of what a trusted project makes and what its commands use: data is no change of trust, and what a person says never runs.

use serde_json::{Value, json};

use crate::process::{Finished, Home};

/// A trusted project that may run `sh`, `cat` and `cp`, with these actions.
fn project(actions: &Value) -> Home {
    let home = Home::new();
    let allow = "[project]\nallow = [\"command:sh\", \"command:cat\", \"command:cp\", \"write_file\", \"read_file\"]\n";
    home.file("bcc-script.toml", allow);
    let topics = json!([{ "topic_id": "t", "actions": actions }]);
    let phases = json!([{ "phase_id": "p", "topics": topics }]);
    home.file("s.yaml", &json!({ "session": { "session_id": "s", "phases": phases } }).to_string());
    home.file("a.txt", "a");
    let trusted = home.finish(["trust"], "");
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    home
}

fn ask() -> Value {
    json!({ "action_type": "ai_ask", "action_id": "ask", "config": { "content": "well?", "delivery": "verbatim", "max_rounds": 1 } })
}

fn write(path: &str) -> Value {
    json!({ "action_type": "write_file", "action_id": "save", "config": { "path": path, "content": "{{ last_user_message }}" } })
}

fn command(id: &str, words: &Value) -> Value {
    json!({ "action_type": "command", "action_id": id, "config": { "command": words } })
}

/// Runs the script, in which a person answers with a command of a shell.
fn run(home: &Home) -> Finished {
    home.finish(["run", "s.yaml", "--json"], format!("{}\n", json!({ "user": "echo x > ran" })))
}

#[test]
fn an_answer_is_not_written_to_a_file_that_a_command_runs() {
    for (path, commands, is_constant) in [
        ("data/job.txt", json!([["sh", "data/job.txt"]]), true),
        ("data/{{ 'job' }}.txt", json!([["sh", "data/job.txt"]]), false),
        ("data/staged.txt", json!([["cp", "data/staged.txt", "job"], ["sh", "job"]]), true),
        ("data/job.txt", json!([["sh", "data/{{ 'job' }}.txt"]]), true),
    ] {
        let commands = commands.as_array().unwrap().iter().enumerate();
        let commands = commands.map(|(number, words)| command(&format!("c{number}"), words));
        let actions: Vec<Value> = [ask(), write(path)].into_iter().chain(commands).collect();
        let home = project(&json!(actions));
        let finished = run(&home);
        assert_eq!(finished.code, Some(1), "{path}: {finished:?}");
        assert!(finished.out.contains("a command of the project may run this file"), "{path}: {finished:?}");
        assert!(!home.path().join("ran").exists() && !home.path().join("data").exists(), "{path}");
        let checked = home.finish(["validate", "s.yaml"], "");
        let is_reported = checked.out.contains("warning[path-not-permitted]");
        assert_eq!(is_reported, is_constant, "{path}: {checked:?}");
    }
}

#[test]
fn data_that_a_run_makes_is_no_change_of_trust() {
    let home = project(&json!([
        ask(),
        write("data/in.csv"),
        command("show", &json!(["cat", "data/in.csv"])),
        command("copy", &json!(["cp", "a.txt", "out.txt"])),
    ]));
    let checked = home.finish(["validate", "s.yaml"], "");
    assert!(!checked.out.contains("path-not-permitted"), "{checked:?}");
    for number in 1..=2 {
        let finished = run(&home);
        assert_eq!(finished.code, Some(0), "run {number}: {finished:?}");
    }
    assert!(home.path().join("out.txt").exists() && home.path().join("data/in.csv").exists());
}

#[test]
fn a_new_file_that_a_command_runs_ends_the_trust() {
    let home = project(&json!([ask(), command("run", &json!(["sh", "job.txt"]))]));
    home.file("job.txt", "echo x > ran");
    let finished = run(&home);
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(!home.path().join("ran").exists());
}
