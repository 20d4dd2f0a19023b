//! Tests of what sessions wait for outside of their conversation: approvals, times, and the commands that answer them (docs/requests.md).

mod answers;
mod times;

use std::sync::{Arc, Barrier};

use serde_json::{Value, json};

use crate::process::Home;
use crate::session_output::journal;

const RELEASE: &str = "
session:
  session_id: release
  declare:
    - { var: version, value: '1.4' }
    - { var: window, type: string }
    - { var: servers, type: integer, sensitive: true }
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - action_type: set
              action_id: prepare
              config: { values: { notes: \"{{ approval.iteration }}: {{ approval.comment or '-' }}\" } }
            - action_type: approval
              action_id: release
              on_exit: { rejected: { set: { notes: 被拒绝 }, then: end } }
              config:
                prompt: '部署 {{ version }}？（{{ notes }}）'
                approvers: [王主管, \"{{ who }}\"]
                form:
                  - { get: window, define: 部署时间, required: true }
                  - { get: servers }
                rewind_to: prepare
                timeout: 2days
            - action_type: set
              action_id: end
              config: { values: { result: '{{ approval.by }} {{ window }} {{ servers + 1 }}' } }
";

/// A script with one approval that anybody may decide.
fn plain(config: &str) -> String {
    format!(
        "session:\n  session_id: plain\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions:\n            \
         - {{ action_type: approval, action_id: ask, config: {{ {config} }} }}\n            \
         - {{ action_type: set, action_id: end, config: {{ values: {{ result: '{{{{ approval.decision }}}} {{{{ approval.comment }}}}' }} }} }}\n"
    )
}

/// What a command did.
#[derive(Debug)]
struct Ran {
    code: i32,
    stdout: String,
    stderr: String,
}

fn command(home: &Home, arguments: &[&str], input: &str) -> Ran {
    let finished = home.finish(arguments, input);
    Ran { code: finished.code.unwrap(), stdout: finished.out, stderr: finished.err }
}

fn run(home: &Home, script: &str, input: &str) -> Ran {
    let file = home.file("script.yaml", script).display().to_string();
    command(home, &["run", &file, "--session", "s"], input)
}

fn call(home: &Home, line: &str) -> Ran {
    command(home, &line.split(' ').collect::<Vec<_>>(), "")
}

fn requests(home: &Home) -> Vec<Value> {
    let listed = call(home, "requests list --json");
    assert_eq!(listed.code, 0, "{listed:?}");
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    listed["requests"].as_array().unwrap().clone()
}

fn variable(home: &Home, name: &str) -> Value {
    home.export("s")["variables"]["session"][name]["value"].clone()
}

fn status(home: &Home) -> Value {
    home.export("s")["session"]["status"].clone()
}

#[test]
fn an_approval_waits_is_pushed_back_and_approved_with_a_form() {
    let home = Home::new();
    let started = run(&home, RELEASE, "");
    assert_eq!((started.code, started.stdout.as_str()), (3, "部署 1.4？（0: -）\n"));
    assert!(started.stderr.contains("bcc-script approve s --by NAME"), "{}", started.stderr);
    assert_eq!(status(&home), "waiting_approval");
    let open = requests(&home);
    assert_eq!(open.len(), 1);
    let request = &open[0];
    assert_eq!(
        (&request["kind"], &request["decisions"]),
        (&json!("approval"), &json!(["approve", "reject", "push_back"]))
    );
    assert_eq!(request["approvers"], json!(["王主管", "咨询师"]));
    assert_eq!(request["schema"]["required"], json!(["window"]));
    assert_eq!(request["schema"]["properties"]["servers"]["type"], "integer");
    assert!(request["due_at"].as_str().unwrap() > request["opened_at"].as_str().unwrap());

    assert_eq!(call(&home, "push-back s release --by 王主管 --comment 先补测试").code, 0);
    // The decision is stored; nothing runs until somebody continues the session.
    assert_eq!((status(&home), variable(&home, "notes")), (json!("running"), json!("0: -")));
    let resumed = call(&home, "sessions resume s");
    assert_eq!((resumed.code, resumed.stdout.as_str()), (3, "部署 1.4？（1: 先补测试）\n"));

    let done = call(&home, "approve s --by 王主管 --set window=今晚 --set servers=3 --run");
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(variable(&home, "result"), "王主管 今晚 4");
    let answered: Vec<Value> = events(&home, "request_answered");
    let facts = |event: &Value| {
        (event["decision"].clone(), event["by"].clone(), event["comment"].clone(), event["iteration"].clone())
    };
    assert_eq!(
        answered.iter().map(facts).collect::<Vec<_>>(),
        [
            (json!("push_back"), json!("王主管"), json!("先补测试"), json!(1)),
            (json!("approve"), json!("王主管"), json!(null), json!(2)),
        ]
    );
    assert_eq!(answered[1]["values"], json!({ "window": "今晚", "servers": "***" }));
    assert!(requests(&home).is_empty());
}

/// The stored events of a kind.
fn events(home: &Home, kind: &str) -> Vec<Value> {
    journal(home, "s").into_iter().filter(|event| event["type"] == kind).collect()
}

#[test]
fn what_is_not_permitted_is_refused_and_changes_nothing() {
    let home = Home::new();
    run(&home, RELEASE, "");
    let before = journal(&home, "s").len();
    for (line, expected) in [
        ("approve s --set window=x", "no name was given"),
        ("approve s --by 李 --set window=x", "is decided by others"),
        ("approve s --by 王主管", "needs a value for `window`"),
        ("approve s --by 王主管 --set window=x --set servers=many", "`servers` does not fit"),
        ("approve s --by 王主管 --set colour=x", "no field `colour`"),
        ("approve s --by 王主管 --set window", "has no `=`"),
        ("approve s prepare --by 王主管 --set window=x", "is not at `prepare`, but at `release`"),
        ("approve s/r1 --by 王主管 --set window=x", "has no request `r1`"),
        ("approve nobody --by 王主管", "nobody"),
        ("requests answer s perhaps", "none"),
    ] {
        let refused = call(&home, line);
        assert_eq!(refused.code, 2, "{line}: {refused:?}");
        assert!(refused.stderr.contains(expected), "{line}: {}", refused.stderr);
    }
    let only_resumes = journal(&home, "s").split_off(before).iter().all(|event| event["type"] == "session_resumed");
    assert!(only_resumes && status(&home) == "waiting_approval");
    // A rejection needs no values.
    assert_eq!(call(&home, "reject s --by 咨询师 --run").code, 0);
    assert_eq!(variable(&home, "notes"), "被拒绝");
    let late = call(&home, "approve s --by 王主管 --set window=x");
    assert_eq!(late.code, 4, "{late:?}");
}

#[test]
fn the_second_answer_is_told_who_decided() {
    let home = Home::new();
    run(&home, RELEASE, "");
    let id = requests(&home)[0]["request_id"].as_str().unwrap().to_owned();
    assert_eq!(call(&home, &format!("approve s/{id} --by 王主管 --set window=x")).code, 0);
    let second = call(&home, &format!("reject s/{id} --by 咨询师"));
    assert_eq!(second.code, 2);
    assert!(
        second.stderr.contains("was answered by 王主管 at ") && second.stderr.contains("approve"),
        "{}",
        second.stderr
    );
}

#[test]
fn of_many_decisions_at_once_one_counts() {
    let home = Arc::new(Home::new());
    run(&home, &plain("prompt: x"), "");
    let barrier = Arc::new(Barrier::new(6));
    let deciders: Vec<_> = (0..6)
        .map(|number| {
            let (home, barrier) = (Arc::clone(&home), Arc::clone(&barrier));
            std::thread::spawn(move || {
                barrier.wait();
                call(&home, &format!("{} s --by p{number}", if number % 2 == 0 { "approve" } else { "reject" })).code
            })
        })
        .collect();
    let codes: Vec<i32> = deciders.into_iter().map(|decider| decider.join().unwrap()).collect();
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
    assert_eq!(events(&home, "request_answered").len(), 1);
}

#[test]
fn a_rejection_without_a_route_fails_the_session() {
    let home = Home::new();
    run(&home, &plain("prompt: x"), "");
    assert_eq!(call(&home, "reject s --comment 不行 --run").code, 1);
    assert_eq!(status(&home), "failed");
}

#[test]
fn lines_are_decisions_while_anybody_may_decide() {
    for (input, code, result) in [
        ("what?\napprove 好\n", 0, json!("approve 好")),
        ("批准：可以\n", 0, json!("approve 可以")),
        ("", 3, Value::Null),
        ("驳回\n", 1, Value::Null),
    ] {
        let home = Home::new();
        let ran = run(&home, &plain("prompt: 可以吗？"), input);
        assert_eq!(ran.code, code, "{input:?}: {ran:?}");
        assert!(ran.stdout.starts_with("可以吗？\n"), "{ran:?}");
        assert_eq!(variable(&home, "result"), result, "{input:?}");
        if input.starts_with("what") {
            assert!(ran.stderr.contains("this is a decision: write `approve`, `reject`"), "{}", ran.stderr);
        }
    }
}

#[test]
fn a_program_sends_decisions_as_objects() {
    let home = Home::new();
    let file = home.file("script.yaml", RELEASE).display().to_string();
    let input = [
        json!({ "decision": "perhaps" }),
        json!({ "decision": "approve", "by": "王主管" }),
        json!({ "decision": "approve", "by": "王主管", "values": { "window": "今晚", "servers": 2 } }),
    ];
    let input: String = input.iter().map(|line| format!("{line}\n")).collect();
    let ran = command(&home, &["run", &file, "--session", "s", "--json"], &input);
    assert_eq!(ran.code, 0, "{ran:?}");
    let written: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let codes: Vec<&Value> =
        written.iter().filter(|event| event["type"] == "error").map(|event| &event["code"]).collect();
    assert_eq!(codes, ["answer-not-readable", "form-field-missing"]);
    let waiting = written.iter().find(|event| event["type"] == "waiting").unwrap();
    assert_eq!((&waiting["for"], waiting["request_id"].is_string()), (&json!("approval"), true));
    assert_eq!(variable(&home, "result"), "王主管 今晚 3");
}

#[test]
fn an_approval_that_is_due_follows_on_timeout() {
    for (on_timeout, code, status_after) in
        [("approve", 0, "completed"), ("reject", 0, "failed"), ("wait", 0, "waiting_approval")]
    {
        let home = Home::new();
        // Restricted, so that no process stays for it.
        run(&home, &plain(&format!("prompt: x, approvers: [a], timeout: 300ms, on_timeout: {on_timeout}")), "");
        assert_eq!(requests(&home).len(), 1);
        let tick = std::iter::repeat_with(|| call(&home, "tick")).find(|tick| !tick.stdout.is_empty()).unwrap();
        assert_eq!((tick.code, tick.stdout.trim_end()), (code, format!("s\t{status_after}").as_str()), "{tick:?}");
        assert_eq!(call(&home, "tick").stdout, "", "{on_timeout}: it is due once");
        let warned = events(&home, "warning").iter().any(|event| event["code"] == "approval-overdue");
        assert_eq!(warned, on_timeout == "wait");
    }
}

#[test]
fn a_wait_rests_until_its_time_and_tick_continues_it() {
    let script = |wait: &str| {
        format!(
            "session:\n  session_id: w\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions:\n            \
             - {{ action_type: wait, action_id: rest, config: {{ {wait} }} }}\n            \
             - {{ action_type: ai_say, action_id: say, config: {{ content: 到了, delivery: verbatim }} }}\n"
        )
    };
    let home = Home::new();
    let long = run(&home, &script("for: 2h"), "");
    assert_eq!((long.code, long.stdout.as_str()), (3, ""));
    assert!(long.stderr.contains("waits until") && long.stderr.contains("bcc-script tick"), "{}", long.stderr);
    assert_eq!(status(&home), "waiting_time");
    assert_eq!(call(&home, "tick").stdout, "");
    // A short one is waited for.
    let home = Home::new();
    let short = run(&home, &script("for: 50ms"), "");
    assert_eq!((short.code, short.stdout.as_str()), (0, "到了\n"));
    // One that is over ends at once, and what is no time is an error of the action.
    let home = Home::new();
    assert_eq!(run(&home, &script("until: '2020-01-01 09:00'"), "").stdout, "到了\n");
    let home = Home::new();
    let none = run(&home, &script("until: \"{{ 'soon' }}\""), "");
    assert!(none.stderr.contains("`until` is not a point in time"), "{}", none.stderr);
}

#[test]
fn a_cancelled_session_is_over() {
    let home = Home::new();
    run(&home, RELEASE, "");
    assert_eq!(call(&home, "cancel s --comment 不再需要").code, 0);
    assert_eq!(status(&home), "cancelled");
    assert_eq!(events(&home, "session_cancelled")[0]["summary"]["reason"], "不再需要");
    assert!(requests(&home).is_empty());
    for line in ["cancel s", "approve s --by 王主管", "sessions resume s"] {
        assert_eq!(call(&home, line).code, 4, "{line}");
    }
}

#[test]
fn a_question_of_the_conversation_is_a_request_too() {
    let home = Home::new();
    let script = home.script("two_phases.yaml").display().to_string();
    assert_eq!(command(&home, &["run", &script, "--session", "s"], "").code, 3);
    let open = requests(&home);
    assert_eq!((&open[0]["kind"], &open[0]["request_id"]), (&json!("input"), &json!("a1")));
    assert_eq!(call(&home, "requests answer s/a1 小林").code, 0);
    let again = call(&home, "requests answer s/a1 小王");
    assert_eq!(again.code, 2);
    let resumed = call(&home, "sessions resume s");
    assert_eq!(resumed.code, 3);
    let transcript = home.export("s")["transcript"].clone();
    let said = transcript.as_array().unwrap().iter().find(|message| message["role"] == "user").unwrap();
    assert_eq!(said["text"], "小林");
}

#[test]
fn a_wait_is_until_a_time_in_the_named_time_zone() {
    if !std::path::Path::new("/usr/share/zoneinfo/Asia/Shanghai").exists() {
        println!("this system has no time zones");
        return;
    }
    let home = Home::new();
    let wait = "{ action_type: wait, action_id: ask, config: { until: '2100-12-01 09:00' } }";
    let script = plain("prompt: x").replace("{ action_type: approval, action_id: ask, config: { prompt: x } }", wait);
    home.file("script.yaml", &script);
    for (zone, due) in [("Asia/Shanghai", "2100-12-01T01:00:00"), ("America/New_York", "2100-12-01T14:00:00")] {
        let mut run = home.command(["run", "script.yaml", "--session", &zone.replace('/', "-")]);
        run.env("TZ", zone);
        let ran = crate::process::finished(run, "");
        assert_eq!(ran.code, Some(3), "{ran:?}");
        let due_at = requests(&home).pop().unwrap()["due_at"].clone();
        assert!(due_at.as_str().unwrap().starts_with(due), "{zone}: {due_at}");
        call(&home, &format!("cancel {}", zone.replace('/', "-")));
    }
}

#[test]
fn a_session_that_runs_elsewhere_is_left_to_its_process() {
    let home = Home::new();
    let file = home.file("script.yaml", &plain("prompt: x")).display().to_string();
    let mut running = home.start(["run", &file, "--session", "s", "--json"]);
    running.event_of("waiting");
    let refused = call(&home, "approve s");
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("pid"), "{}", refused.stderr);
    running.send(r#"{"decision": "approve"}"#);
    running.end_input();
    assert_eq!(running.finish().code, Some(0));
}

#[test]
fn a_killed_process_loses_no_decision_and_repeats_none() {
    let home = Home::new();
    let file = home.file("script.yaml", &plain("prompt: x")).display().to_string();
    let mut running = home.start(["run", &file, "--session", "s", "--json"]);
    running.event_of("waiting");
    running.kill();
    let mut running = home.start(["sessions", "resume", "s", "--json"]);
    let waiting = running.event_of("waiting");
    assert_eq!(waiting["for"], "approval");
    running.send(r#"{"decision": "approve", "comment": "好"}"#);
    running.event_of("request_answered");
    running.kill();
    let resumed = call(&home, "sessions resume s");
    assert_eq!((resumed.code, variable(&home, "result")), (if resumed.code == 4 { 4 } else { 0 }, json!("approve 好")));
    assert_eq!(events(&home, "request_answered").len(), 1);
}

#[test]
fn mistakes_of_approvals_and_waits_are_reported() {
    let home = Home::new();
    let script = "
session:
  session_id: s
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: approval, action_id: a, config: { prompt: x, rewind_to: b, decisions: [approve] } }
            - { action_type: approval, action_id: b, config: { prompt: x, decisions: [approve, push_back, maybe], on_timeout: wait } }
            - { action_type: approval, action_id: c, config: { prompt: x, rewind_to: bb, decisions: [reject, push_back] } }
            - { action_type: wait, action_id: d, config: { for: 2h, until: x } }
            - { action_type: wait, action_id: e, config: {} }
            - { action_type: wait, action_id: f, config: { for: soon } }
            - { action_type: wait, action_id: h, config: { until: '2026-12-01 09:00[Nowhere/Else]' } }
            - { action_type: set, action_id: g, config: { values: { approval: 1 } } }
";
    let file = home.file("script.yaml", script).display().to_string();
    let checked = command(&home, &["validate", &file], "");
    assert_eq!(checked.code, 1);
    insta::assert_snapshot!(checked.stdout.replace(&file, "script.yaml"));
}
