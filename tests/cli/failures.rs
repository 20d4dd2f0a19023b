//! Tests of what happens when actions fail and when sessions end, with real programs: `on_failure`, `goto` to an action, `finally`,
//! `compensate` and `cancel` (docs/failures.md).

use std::collections::BTreeSet;
use std::fs;
use std::time::Instant;

use serde_json::{Value, json};

use crate::process::{Finished, Home, POLL_INTERVAL, TIMEOUT};

const RUN: [&str; 6] = ["run", "s.yaml", "--json", "--trust", "--session", "one"];

/// A project with a script with one topic.
fn project(topic: &Value) -> Home {
    let home = Home::new();
    home.file("bcc-script.toml", "[project]\nallow = [\"command\"]\n");
    let mut topic = topic.clone();
    topic["topic_id"] = json!("t");
    let script = json!({ "session": {
        "session_id": "s", "declare": [{ "var": "n", "value": 0 }], "phases": [{ "phase_id": "p", "topics": [topic] }],
    } });
    home.file("s.yaml", &script.to_string());
    home
}

/// An action that adds its id to the file `log`, and then runs `then`.
fn logs(id: &str, then: &str, more: Value) -> Value {
    let command = format!("echo {id} >> log; {then}");
    let mut action =
        json!({ "action_type": "command", "action_id": id, "config": { "shell": true, "command": command } });
    action.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    action
}

fn undone_by(id: &str) -> Value {
    json!({ "compensate": [logs(id, "true", json!({}))] })
}

fn log(home: &Home) -> Vec<String> {
    let text = fs::read_to_string(home.path().join("log")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn events(home: &Home, kind: &str) -> Vec<Value> {
    crate::session_output::journal(home, "one").into_iter().filter(|event| event["type"] == kind).collect()
}

fn command(home: &Home, arguments: &[&str]) -> Finished {
    home.finish(arguments, "")
}

#[test]
fn on_failure_decides_what_follows_a_failure() {
    let cases = [
        (json!({}), 1, vec!["a", "bad"]),
        (json!({ "on_failure": "stop" }), 1, vec!["a", "bad"]),
        (json!({ "on_failure": "continue" }), 0, vec!["a", "bad", "b", "c"]),
        (json!({ "on_failure": { "goto": "c" } }), 0, vec!["a", "bad", "c"]),
        (json!({ "on_failure": { "goto": "c" }, "on_exit": { "exit_criteria_met": "end" } }), 0, vec!["a", "bad", "c"]),
    ];
    for (more, code, expected) in cases {
        let actions = [
            logs("a", "true", json!({})),
            logs("bad", "exit 3", more.clone()),
            logs("b", "true", json!({})),
            logs("c", "true", json!({})),
        ];
        let home = project(&json!({ "actions": actions }));
        let finished = home.finish(RUN, "");
        assert_eq!(
            (finished.code, log(&home)),
            (Some(code), expected.iter().map(ToString::to_string).collect()),
            "{more}: {finished:?}"
        );
    }
}

#[test]
fn what_runs_again_after_a_goto_is_a_new_effect() {
    let count = json!({ "action_type": "set", "action_id": "count", "config": { "values": { "n": "{{ n + 1 }}" } } });
    let again = json!({ "action_type": "condition", "action_id": "again",
        "config": { "cases": [{ "when": "n < 3", "goto": "count" }] } });
    let home = project(&json!({ "actions": [count, logs("work", "true", json!({})), again] }));
    let finished = home.finish(RUN, "");
    assert_eq!((finished.code, log(&home).len()), (Some(0), 3), "{finished:?}");
    let ids = events(&home, "effect_started").into_iter().map(|event| event["effect_id"].to_string());
    assert_eq!(ids.collect::<BTreeSet<_>>().len(), 3);
}

/// Three steps that can be undone, of which the last one fails with `end`, and a `finally`.
fn deployment(end: &Value) -> Value {
    json!({
        "actions": [
            logs("build", "true", undone_by("undo_build")),
            logs("migrate", "true", undone_by("undo_migrate")),
            end,
        ],
        "finally": [logs("unlock", "true", json!({}))],
    })
}

#[test]
fn a_session_that_fails_runs_finally_and_undoes_the_completed_actions() {
    let home = project(&deployment(&logs("start", "exit 1", undone_by("undo_start"))));
    let finished = home.finish(RUN, "");
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert_eq!(log(&home), ["build", "migrate", "start", "unlock", "undo_migrate", "undo_build"]);
    // Every effect is announced and closed.
    assert_eq!((events(&home, "effect_started").len(), events(&home, "effect_finished").len()), (6, 6));
    let failed = events(&home, "session_failed");
    let [end] = failed.as_slice() else { panic!("{failed:?}") };
    assert!(
        end["summary"]["reason"].to_string().contains("exit code 1") || !end["summary"]["reason"].is_null(),
        "{end}"
    );
    let place = &events(&home, "effect_started")[4]["location"];
    assert_eq!(place["path"], "t/migrate/undo_migrate", "{place}");
}

#[test]
fn a_compensation_that_fails_is_named_and_the_others_run() {
    let bad = json!({ "compensate": [logs("undo_b", "exit 7", json!({})), logs("never", "true", json!({}))] });
    let home = project(&json!({ "actions": [
        logs("a", "true", undone_by("undo_a")), logs("b", "true", bad), logs("c", "exit 1", json!({})),
    ] }));
    let finished = home.finish(RUN, "");
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert_eq!(log(&home), ["a", "b", "c", "undo_b", "undo_a"]);
    let failed = events(&home, "session_failed");
    let reason = failed[0]["summary"]["reason"].as_str().unwrap_or_default();
    assert!(reason.ends_with("these could not be undone completely: `b`"), "{reason}");
    // What failed first comes first.
    let errors: Vec<String> = events(&home, "error").iter().map(|event| event["message"].to_string()).collect();
    assert_eq!(errors.len(), 2, "{errors:?}");
}

fn approval() -> Value {
    json!({ "action_type": "approval", "action_id": "ask", "config": { "prompt": "Go on?" } })
}

#[test]
fn cancel_undoes_what_was_done_unless_it_is_told_not_to() {
    let undone = ["build", "migrate", "unlock", "undo_migrate", "undo_build"];
    for (more, expected) in [(None, &undone[..]), (Some("--no-compensate"), &undone[..3])] {
        let home = project(&deployment(&approval()));
        assert_eq!(home.finish(RUN, "").code, Some(3));
        let arguments: Vec<&str> =
            ["cancel", "one", "--trust", "--comment", "not today"].into_iter().chain(more).collect();
        let finished = command(&home, &arguments);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert!(finished.out.contains("session one is cancelled"), "{finished:?}");
        assert_eq!(log(&home), expected);
        assert_eq!(events(&home, "session_cancelled")[0]["summary"]["reason"], "not today");
        assert_eq!(command(&home, &["cancel", "one"]).code, Some(4));
    }
}

#[test]
fn cancel_reports_what_could_not_be_undone() {
    let bad = json!({ "compensate": [logs("undo_b", "exit 7", json!({}))] });
    let home =
        project(&json!({ "actions": [logs("a", "true", undone_by("undo_a")), logs("b", "true", bad), approval()] }));
    assert_eq!(home.finish(RUN, "").code, Some(3));
    let finished = command(&home, &["cancel", "one", "--trust"]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.err.contains("error: ") && finished.out.contains("session one is cancelled"), "{finished:?}");
    assert_eq!(log(&home), ["a", "b", "undo_b", "undo_a"]);
}

#[test]
fn a_rejected_approval_undoes_what_was_done() {
    let home = project(&deployment(&approval()));
    assert_eq!(home.finish(RUN, "").code, Some(3));
    let finished = command(&home, &["reject", "one", "--comment", "no", "--run", "--trust"]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert_eq!(log(&home), ["build", "migrate", "unlock", "undo_migrate", "undo_build"]);
}

/// Waits until the file `log` ends with this line.
fn wait_for_line(home: &Home, line: &str) {
    let deadline = Instant::now() + TIMEOUT;
    while log(home).last().is_none_or(|last| last != line) {
        assert!(Instant::now() < deadline, "{line} does not come: {:?}", log(home));
        std::thread::sleep(POLL_INTERVAL);
    }
}

#[test]
fn a_session_that_is_killed_while_it_ends_goes_on_there() {
    const WAIT: &str = "while [ ! -e go ]; do sleep 0.01; done";
    for slow in ["unlock", "undo_b", "undo_a"] {
        let wait = |id: &str| if id == slow { WAIT } else { "true" };
        let undo = |id: &str| json!({ "compensate": [logs(id, wait(id), json!({}))] });
        let home = project(&json!({
            "actions": [logs("a", "true", undo("undo_a")), logs("b", "true", undo("undo_b")), logs("c", "exit 1", json!({}))],
            "finally": [logs("unlock", wait("unlock"), json!({}))],
        }));
        let mut running = home.start(RUN);
        running.event_of("effect_started");
        wait_for_line(&home, slow);
        running.kill();
        home.file("go", "");
        // It is not known how far the program got: the session asks, and nothing that is over runs again.
        let mut running = home.start(["sessions", "resume", "one", "--json", "--trust"]);
        assert_eq!(running.event_of("waiting")["for"], "interrupted_effect", "{slow}");
        assert!(running.send(&json!({ "user": "skip" }).to_string()));
        let finished = running.finish();
        assert_eq!(finished.code, Some(1), "{slow}: {finished:?}");
        assert_eq!(log(&home), ["a", "b", "c", "unlock", "undo_b", "undo_a"], "{slow}");
        assert_eq!(events(&home, "session_failed").len(), 1, "{slow}");
    }
}

#[test]
fn a_session_that_cannot_be_undone_now_can_be_ended_at_once() {
    let undo = json!({ "compensate": [logs("undo_a", "while [ ! -e go ]; do sleep 0.01; done", json!({}))] });
    let home = project(&json!({ "actions": [logs("a", "true", undo), approval()] }));
    assert_eq!(home.finish(RUN, "").code, Some(3));
    let mut running = home.start(["cancel", "one", "--trust"]);
    wait_for_line(&home, "undo_a");
    running.kill();
    home.file("go", "");
    // The question about the interrupted program is open: without an answer, nothing is final.
    let finished = command(&home, &["cancel", "one", "--trust"]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.out.contains("waiting_input") && finished.out.contains("sessions resume one"), "{finished:?}");
    let finished = command(&home, &["cancel", "one", "--trust", "--no-compensate"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(log(&home), ["a", "undo_a"]);
    assert_eq!(events(&home, "session_cancelled").len(), 1);
}

#[test]
fn what_branches_did_is_undone_with_the_variables_of_each_branch() {
    let branch = |id: &str, value: &str, then: Value| {
        let undo = json!({ "action_type": "command", "action_id": format!("undo_{id}"),
            "config": { "command": ["/bin/sh", "-c", "echo undo $1 >> log", "sh", format!("{{{{ of_{id} }}}}")] } });
        let make = json!({ "action_type": "command", "action_id": format!("make_{id}"), "compensate": [undo],
            "config": { "command": ["/bin/sh", "-c", format!("echo {value}")], "output": { format!("of_{id}"): "stdout" } } });
        json!({ "id": id, "actions": [make, then] })
    };
    let ask = approval();
    let branches = json!([
        branch("a", "1", ask),
        branch(
            "b",
            "2",
            json!({ "action_type": "set", "action_id": "last",
        "config": { "values": { "x": 1 } } })
        )
    ]);
    let home = project(&json!({
        "actions": [{ "action_type": "parallel", "action_id": "both", "config": { "branches": branches } }],
        "finally": [logs("unlock", "true", json!({}))],
    }));
    assert_eq!(home.finish(RUN, "").code, Some(3));
    let finished = command(&home, &["cancel", "one", "--trust"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let mut lines = log(&home);
    assert_eq!(lines.remove(0), "unlock");
    // The branches run at the same time, so either can be completed first.
    lines.sort();
    assert_eq!(lines, ["undo 1", "undo 2"]);
    // What the branch waited for is not open any more.
    let listed = command(&home, &["requests", "list"]);
    assert!(format!("{listed:?}").contains("no session waits"), "{listed:?}");
}

/// A script whose second action has this condition.
fn conditional(condition: &str) -> String {
    format!(
        "session:
  session_id: s
  declare: [{{ var: age, type: integer, value: 20 }}]
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - {{ action_type: ai_ask, action_id: one, config: {{ content: One, delivery: verbatim }} }}
            - action_type: ai_say
              action_id: two
              condition: {condition}
              config: {{ content: Two, delivery: verbatim }}
            - {{ action_type: ai_say, action_id: three, config: {{ content: Three, delivery: verbatim }} }}
"
    )
}

#[test]
fn a_mistake_that_validate_reports_fails_the_session_until_it_is_corrected() {
    let home = Home::new();
    home.file("s.yaml", &conditional("age > '18'"));
    let checked = command(&home, &["validate", "s.yaml"]);
    assert!(
        checked.err.contains("error[type-mismatch]") || checked.out.contains("error[type-mismatch]"),
        "{checked:?}"
    );
    let failed = home.finish(["run", "s.yaml", "--session", "one"], "Fine.\n");
    assert_eq!((failed.code, failed.out.as_str()), (Some(1), "One\n"), "{failed:?}");
    for part in ["the condition of `two`, `age > '18'`, cannot be evaluated", "`bcc-script validate` shows where"] {
        assert!(failed.err.contains(part), "{part}: {}", failed.err);
    }
    assert!(!failed.err.contains("(action `one`)"), "{}", failed.err);

    home.file("s.yaml", &conditional("age > 18"));
    let retry = ["sessions", "retry", "one", "--script", "s.yaml"];
    let at_the_end = command(&home, &retry);
    assert!(at_the_end.err.contains("`--from t/one` begins with the step before it"), "{at_the_end:?}");
    let corrected = home.finish([retry.as_slice(), &["--from", "t/one"]].concat(), "Fine.\n");
    assert_eq!((corrected.code, corrected.out.contains("Two\nThree")), (Some(0), true), "{corrected:?}");

    // The same text elsewhere, where `validate` reports it and no session comes, is another expression.
    let never = "        - topic_id: never
          condition: age < 5
          actions:
            - { action_type: ai_say, action_id: four, condition: \"age > '18'\", config: { content: No, delivery: verbatim } }
";
    home.file("s.yaml", &(conditional("age > '18'   # bcc: allow(type-mismatch)") + never));
    assert!(command(&home, &["validate", "s.yaml"]).out.contains("s.yaml:18:"));
    let allowed_once = home.finish(["run", "s.yaml"], "Fine.\n");
    assert_eq!((allowed_once.code, allowed_once.out.as_str()), (Some(0), "One\nThree\n"), "{allowed_once:?}");

    // The author says that it is meant, so `validate` reports nothing.
    home.file("s.yaml", &conditional("age > '18'   # bcc: allow(type-mismatch)"));
    let allowed = home.finish(["run", "s.yaml"], "Fine.\n");
    assert_eq!((allowed.code, allowed.out.as_str()), (Some(0), "One\nThree\n"), "{allowed:?}");
}

#[test]
fn a_session_that_failed_before_a_topic_names_where_a_retry_can_begin() {
    let home = Home::new();
    let topic = |condition: &str| {
        let before = conditional("age > 18");
        format!(
            "{before}        - {{ topic_id: u, condition: \"{condition}\", actions: [{{ action_type: ai_say, action_id: four, config: {{ content: Four, delivery: verbatim }} }}] }}\n"
        )
    };
    home.file("s.yaml", &topic("age > '18'"));
    let failed = home.finish(["run", "s.yaml", "--session", "one"], "Fine.\n");
    assert_eq!((failed.code, failed.out.as_str()), (Some(1), "One\nTwo\nThree\n"), "{failed:?}");
    home.file("s.yaml", &topic("age > 18"));
    let retry = ["sessions", "retry", "one", "--script", "s.yaml"];
    let refused = command(&home, &retry);
    assert!(refused.err.contains("`--from t/three` begins with the last step that ran"), "{refused:?}");
    let corrected = home.finish([retry.as_slice(), &["--from", "t/one"]].concat(), "Fine.\n");
    assert_eq!((corrected.code, corrected.out.contains("Three\nFour")), (Some(0), true), "{corrected:?}");
}
