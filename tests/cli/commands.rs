//! Tests of the action type `command` through the program: arguments, results, limits, interruptions, repetitions, permissions.

mod bad_input;
mod children;
mod interrupted;
mod output;
mod permission;

use std::fs;
use std::time::Instant;

use crate::process;
use process::{Finished, Home, POLL_INTERVAL, Running, TIMEOUT};
use serde_json::{Value, json};

const ALLOWED: &str = "[project]\nallow = [\"command\"]\n";

const RUN: [&str; 6] = ["run", "s.yaml", "--json", "--trust", "--session", "one"];

/// A project with this configuration and a script with these actions. JSON is YAML.
fn project(configuration: &str, actions: &Value) -> Home {
    let home = Home::new();
    home.file("bcc-script.toml", configuration);
    let script = json!({ "session": { "session_id": "s", "phases": [{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": actions }] }] } });
    home.file("s.yaml", &script.to_string());
    home
}

/// An action of the type `command`, with these keys next to `config`.
fn command(id: &str, config: Value, more: Value) -> Value {
    let mut action = json!({ "action_type": "command", "action_id": id, "config": config });
    action.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    action
}

fn run_one(config: Value, more: Value) -> (Home, Finished) {
    let home = project(ALLOWED, &json!([command("c", config, more)]));
    let finished = home.finish(RUN, "");
    (home, finished)
}

/// The last outcome of an action.
fn outcome(finished: &Finished, action: &str) -> Value {
    let is_outcome = |event: &Value| event["type"] == "outcome" && event["location"]["action_id"] == action;
    finished.events().into_iter().rfind(is_outcome).unwrap_or_else(|| panic!("no outcome: {finished:?}"))
}

fn variable(finished: &Finished, name: &str) -> Value {
    let is_set = |event: &Value| event["type"] == "variable_set" && event["name"] == name;
    finished.events().into_iter().rfind(is_set).unwrap_or_else(|| panic!("{name} is not set: {finished:?}"))["value"]
        .clone()
}

fn count(finished: &Finished, kind: &str) -> usize {
    finished.events().iter().filter(|event| event["type"] == kind).count()
}

fn text(home: &Home, file: &str) -> String {
    fs::read_to_string(home.path().join(file)).unwrap_or_default()
}

/// Prints each argument in brackets.
const SHOW: &str = "for a in \"$@\"; do printf '[%s]' \"$a\"; done";

#[test]
fn each_item_is_one_argument_whatever_it_contains() {
    let answers = [
        "a b",
        "'; touch evil; '",
        "\"$(touch evil)\" `touch evil`",
        "*",
        "-n",
        "{{ 1 + 1 }} {% raw %}",
        "a && touch evil | cat > evil",
        "好 🙂",
    ];
    for answer in answers {
        let ask = json!({ "action_type": "ai_ask", "action_id": "ask", "config": { "content": "what?", "delivery": "verbatim", "max_rounds": 1 } });
        let show = command(
            "show",
            json!({ "command": ["/bin/sh", "-c", SHOW, "sh", "{{ last_user_message }}", "x{{ last_user_message }}y", "", 5, true, "$HOME"], "output": { "shown": "stdout" } }),
            json!({}),
        );
        let home = project(ALLOWED, &json!([ask, show]));
        let finished = home.finish(RUN, format!("{}\n", json!({ "user": answer })));
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let expected = format!("[{answer}][x{answer}y][][5][true][$HOME]");
        assert_eq!(variable(&finished, "shown"), expected.as_str());
        assert!(!home.path().join("evil").exists(), "{answer}");
    }
}

#[test]
fn line_breaks_and_long_text_reach_the_program_unchanged() {
    let long = format!("{}\nlast \u{1f642}\n\n", "长 ".repeat(5_000));
    let set = json!({ "action_type": "set", "action_id": "set", "config": { "values": { "long": long } } });
    let save = command(
        "save",
        json!({ "command": ["/bin/sh", "-c", "printf %s \"$1\" > argument; cat > input; printf %s \"$LONG\" > variable", "sh", "{{ long }}"],
            "input": "{{ long }}", "env": { "LONG": "{{ long }}" } }),
        json!({}),
    );
    let home = project(ALLOWED, &json!([set, save]));
    let finished = home.finish(RUN, "");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    // A text of the author that is not an expression loses its last line end, as everywhere.
    let value = variable(&finished, "long");
    for file in ["argument", "input", "variable"] {
        assert_eq!(text(&home, file), value.as_str().unwrap(), "{file}");
    }
    // The end of the author's own text is kept as well.
    let (home, _) = run_one(json!({ "command": ["/bin/sh", "-c", "cat > input"], "input": "one\ntwo\n" }), json!({}));
    assert_eq!(text(&home, "input"), "one\ntwo\n");
}

#[test]
fn the_result_is_in_the_outcome_and_in_variables() {
    let (_, finished) = run_one(
        json!({ "command": ["/bin/sh", "-c", "echo out; echo err >&2; exit 3"], "ok_codes": [0, 3],
            "output": { "code": "exit_code", "out": "stdout", "err": "stderr" } }),
        json!({}),
    );
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let metadata = &outcome(&finished, "c")["metadata"];
    let expected = json!({ "exit_code": 3, "stdout": "out\n", "stderr": "err\n", "stdout_bytes": 4, "stderr_bytes": 4, "attempts": 1, "success": true });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&metadata[name], value, "{name}");
    }
    assert!(metadata["duration_ms"].is_u64());
    let variables = ["code", "out", "err"].map(|name| variable(&finished, name));
    assert_eq!(variables, [json!(3), json!("out"), json!("err")]);
    assert_eq!((count(&finished, "effect_started"), count(&finished, "effect_finished")), (1, 1));
}

#[test]
fn a_failure_follows_its_route_with_its_results_and_else_fails_the_session() {
    let config = json!({ "command": ["/bin/sh", "-c", "echo why >&2; exit 4"], "output": { "why": "stderr" } });
    let (_, finished) = run_one(config.clone(), json!({}));
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let outcome = outcome(&finished, "c");
    assert_eq!((&outcome["exit_reason"], &outcome["metadata"]["exit_code"]), (&json!("failed"), &json!(4)));
    assert_eq!(outcome["metadata"]["error"], "the command of `c` ended with exit code 4");
    let (_, finished) = run_one(config, json!({ "on_exit": { "failed": "next" } }));
    assert_eq!((finished.code, variable(&finished, "why")), (Some(0), json!("why")));
    let home = project(ALLOWED, &json!([command("c", json!({ "command": ["/bin/sh", "-c", "exit 4"] }), json!({}))]));
    let chinese = home.finish(["--lang", "zh", "run", "s.yaml", "--trust"], "");
    assert!(chinese.err.contains("`c` 的命令以退出码 4 结束"), "{chinese:?}");
    // A signal, a program that does not exist, and one that is not executable.
    let table = [
        (json!(["/bin/sh", "-c", "kill -9 $$"]), "terminated by signal 9"),
        (json!(["no-such-program-anywhere"]), "was not found"),
        (json!(["./s.yaml"]), "no permission to run"),
    ];
    for (line, expected) in table {
        let (_, finished) = run_one(json!({ "command": line }), json!({ "on_exit": { "failed": "next" } }));
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert!(finished.out.contains(expected), "{expected}: {finished:?}");
        assert_eq!(count(&finished, "effect_started"), count(&finished, "effect_finished"));
    }
}

#[test]
fn requires_is_checked_before_anything_starts() {
    let config = json!({ "command": ["/bin/sh", "-c", "echo ran >> log"], "requires": "approved" });
    for (approved, code) in [(json!(true), 0), (json!(false), 1), (Value::Null, 1)] {
        let set = json!({ "action_type": "set", "action_id": "set", "config": { "values": { "approved": approved } } });
        let home = project(ALLOWED, &json!([set, command("c", config.clone(), json!({}))]));
        let finished = home.finish(RUN, "");
        assert_eq!(finished.code, Some(code), "{finished:?}");
        assert_eq!(text(&home, "log").is_empty(), code == 1);
        assert_eq!(finished.out.contains("`requires` is not true: `approved`"), code == 1, "{finished:?}");
        assert_eq!(count(&finished, "effect_started"), usize::from(code == 0));
    }
}

#[test]
fn the_environment_is_the_usual_one_and_env() {
    let show = "echo $LC_ALL ${SHOP_KEY:-none} ${STAGE:-none}; pwd -P";
    let home = project(
        ALLOWED,
        &json!([command(
            "c",
            json!({ "shell": true, "command": show, "env": { "STAGE": "{{ 1 + 1 }}" }, "cwd": "build", "output": { "shown": "stdout" } }),
            json!({})
        )]),
    );
    fs::create_dir(home.path().join("build")).unwrap();
    let mut process = home.command(RUN);
    process.envs([("SHOP_KEY", "sk-shop"), ("LC_ALL", "C")]);
    let finished = Running::start(process).finish();
    let build = fs::canonicalize(home.path().join("build")).unwrap();
    assert_eq!(variable(&finished, "shown"), format!("C none 2\n{}", build.display()), "{finished:?}");
}

#[test]
fn folders_outside_the_project_are_refused() {
    for cwd in ["..", "build/../..", "/tmp", "{{ '..' }}", "{{ '/tmp' }}", "link", "missing", "s.yaml"] {
        let home = project(
            ALLOWED,
            &json!([command("c", json!({ "command": ["/bin/sh", "-c", "echo ran > log"], "cwd": cwd }), json!({}))]),
        );
        fs::create_dir(home.path().join("build")).unwrap();
        std::os::unix::fs::symlink("/tmp", home.path().join("link")).unwrap();
        let finished = home.finish(RUN, "");
        assert_ne!(finished.code, Some(0), "{cwd}: {finished:?}");
        assert!(finished.out.contains("cwd") || finished.err.contains("cwd"), "{cwd}: {finished:?}");
        assert!(!home.path().join("log").exists(), "{cwd}");
    }
}

#[test]
fn a_program_that_takes_too_long_is_stopped_with_its_children() {
    let script =
        "trap '' TERM; (trap '' TERM; echo $$ > group; while :; do sleep 0.05; done) & while :; do sleep 0.05; done";
    let (home, finished) = run_one(json!({ "shell": true, "command": script }), json!({ "timeout": "500ms" }));
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let outcome = outcome(&finished, "c");
    assert_eq!(outcome["exit_reason"], "timed_out");
    assert_eq!(outcome["metadata"]["error"], "the command of `c` took longer than 500ms and was stopped");
    gone(&home, "group");
}

/// Waits until the process whose id is in this file has ended.
fn gone(home: &Home, file: &str) {
    let id: i32 = text(home, file).trim().parse().unwrap();
    let deadline = Instant::now() + TIMEOUT;
    let is_running = || {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    while is_running() {
        assert!(Instant::now() < deadline, "the process {id} still runs");
        std::thread::sleep(POLL_INTERVAL);
    }
}

#[test]
fn a_failed_attempt_is_repeated_as_an_effect_of_its_own() {
    let count_to = |last: u32, code: u32| {
        format!("echo line >> count; [ $(wc -l < count) -ge {last} ] && echo done || exit {code}")
    };
    let retry = |on: Value| json!({ "retry": { "times": 2, "backoff": "1ms", "on": on } });
    let table = [
        (count_to(3, 75), retry(json!([75])), 3, "exit_criteria_met"),
        (count_to(4, 75), retry(json!(["failed"])), 3, "failed"),
        (count_to(3, 76), retry(json!([75, "timed_out"])), 1, "failed"),
        (
            "echo line >> count; sleep 100".to_owned(),
            json!({ "timeout": "100ms", "retry": { "times": 1, "backoff": "1ms" } }),
            2,
            "timed_out",
        ),
    ];
    for (script, more, attempts, reason) in table {
        let (home, finished) = run_one(json!({ "shell": true, "command": script }), more);
        assert_eq!(text(&home, "count").lines().count(), attempts, "{script}");
        let outcome = outcome(&finished, "c");
        assert_eq!((&outcome["exit_reason"], &outcome["metadata"]["attempts"]), (&json!(reason), &json!(attempts)));
        let events = finished.events();
        let ids = |kind: &str| -> Vec<Value> {
            events.iter().filter(|event| event["type"] == kind).map(|event| event["effect_id"].clone()).collect()
        };
        let started = ids("effect_started");
        assert_eq!((started.len(), &started), (attempts, &ids("effect_finished")));
        assert!((1..started.len()).all(|number| started[number] != started[number - 1]), "{started:?}");
        let warnings = events.iter().filter(|event| event["code"] == "command-retried").count();
        assert_eq!(warnings, attempts - 1);
    }
}
