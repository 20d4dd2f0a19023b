//! Commands that are interrupted: by SIGKILL, during a pause between attempts, and by Ctrl-C.

use std::fs;
use std::path::Path;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{ALLOWED, RUN, command, count, gone, outcome, project, text, variable};
use crate::process::{Home, POLL_INTERVAL, Running, TIMEOUT};

/// Adds a line to `count`, and waits for the file `go`.
const COUNTS: &str = "echo line >> count; echo $$ > group; while [ ! -e go ]; do sleep 0.01; done; echo 5";

fn counting(more: Value) -> Home {
    let counts = command("c", json!({ "shell": true, "command": COUNTS, "output": { "n": "stdout" } }), more);
    let last = json!({ "action_type": "ai_say", "action_id": "last", "config": { "content": "n is {{ n }}", "delivery": "verbatim" } });
    project(ALLOWED, &json!([counts, last]))
}

fn wait_for(path: &Path) {
    let deadline = Instant::now() + TIMEOUT;
    while fs::read_to_string(path).unwrap_or_default().is_empty() {
        assert!(Instant::now() < deadline, "{} does not come", path.display());
        std::thread::sleep(POLL_INTERVAL);
    }
}

fn killed(more: Value) -> Home {
    let home = counting(more);
    let mut running = home.start(RUN);
    running.event_of("effect_started");
    wait_for(&home.path().join("group"));
    running.kill();
    home.file("go", "");
    home
}

fn resumed(home: &Home) -> Running {
    home.start(["sessions", "resume", "one", "--json", "--trust"])
}

#[test]
fn an_interrupted_command_is_decided_by_on_interrupted() {
    for (choice, lines, said, code) in
        [("retry", 2, "n is 5", 0), ("skip", 1, "n is ", 0), ("fail", 1, "was interrupted", 1)]
    {
        let home = killed(json!({ "on_interrupted": choice }));
        let finished = resumed(&home).finish();
        assert_eq!(finished.code, Some(code), "{choice}: {finished:?}");
        assert_eq!(text(&home, "count").lines().count(), lines, "{choice}");
        assert!(home.export("one").to_string().contains(said), "{choice}: {finished:?}");
    }
}

#[test]
fn an_interrupted_command_is_asked_about() {
    for (answer, lines, code) in [("again", 2, 0), ("跳过", 1, 0), ("fail", 1, 1)] {
        let home = killed(json!({}));
        let mut running = resumed(&home);
        assert_eq!(running.event_of("waiting")["for"], "interrupted_effect");
        assert!(running.send(&json!({ "user": answer }).to_string()));
        let finished = running.finish();
        assert_eq!(finished.code, Some(code), "{answer}: {finished:?}");
        assert_eq!(text(&home, "count").lines().count(), lines, "{answer}");
    }
}

#[test]
fn that_an_answer_was_not_expected_is_said_once_and_a_resumed_session_only_asks() {
    let home = killed(json!({}));
    let mut running = resumed(&home);
    let question = running.event_of("waiting")["prompt"].clone();
    assert!(running.send(&json!({ "user": "what?" }).to_string()));
    let warning = running.event_of("warning");
    assert_eq!(
        (&warning["code"], &warning["message"]),
        (&json!("unexpected-answer"), &json!("that was not one of the expected answers"))
    );
    assert_eq!(running.event_of("waiting")["prompt"], question);
    assert_eq!(running.finish().code, Some(3));
    for _ in 0..2 {
        let asked = home.finish(["sessions", "resume", "one", "--trust"], "");
        assert_eq!((asked.code, asked.out.trim_end()), (Some(3), question.as_str().unwrap()), "{}", asked.err);
        assert!(!asked.err.contains("expected"), "{}", asked.err);
    }
    // In a pipe, it is said as well.
    let repeated = home.finish(["sessions", "resume", "one", "--trust"], "what?\n");
    assert!(repeated.err.contains("warning: that was not one of the expected answers"), "{}", repeated.err);
}

#[test]
fn a_session_that_is_killed_in_a_pause_continues_with_the_next_attempt() {
    let attempts = "echo line >> count; [ $(wc -l < count) -ge 2 ] && echo done || exit 75";
    let more = json!({ "retry": { "times": 1, "backoff": "1h", "max_backoff": "1h" } });
    let home = project(
        ALLOWED,
        &json!([command("c", json!({ "shell": true, "command": attempts, "output": { "n": "stdout" } }), more)]),
    );
    let mut running = home.start(RUN);
    running.event_of("effect_finished");
    running.kill();
    assert_eq!(text(&home, "count").lines().count(), 1);
    // It waits again, and does not ask: nothing was interrupted.
    let mut running = resumed(&home);
    running.event_of("session_resumed");
    running.kill();
    let export = home.export("one").to_string();
    assert!(!export.contains("interrupted"), "{export}");
    assert_eq!(text(&home, "count").lines().count(), 1);
}

#[test]
fn ctrl_c_ends_the_program_and_its_children_and_the_session_asks_later() {
    let home = counting(json!({}));
    let running = home.start(RUN);
    running.event_of("effect_started");
    wait_for(&home.path().join("group"));
    kill_process(Pid::from_raw(running.id().cast_signed()).unwrap(), Signal::INT).unwrap();
    let finished = running.finish();
    assert_eq!(finished.code, Some(130), "{finished:?}");
    gone(&home, "group");
    home.file("go", "");
    let mut running = resumed(&home);
    assert_eq!(running.event_of("waiting")["for"], "interrupted_effect");
    running.send(&json!({ "user": "again" }).to_string());
    let finished = running.finish();
    assert_eq!((finished.code, variable(&finished, "n")), (Some(0), json!("5")), "{finished:?}");
    assert_eq!(outcome(&finished, "c")["metadata"]["attempts"], 1);
    assert_eq!(count(&finished, "effect_started"), 1);
}
