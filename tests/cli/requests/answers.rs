//! Tests of answers that are none, that come from somewhere else, or that must not be shown.

use rusqlite::Connection;
use serde_json::json;

use crate::process::Home;
use crate::requests::{call, command, plain, requests, run, status, variable};
use crate::session_output::journal;

#[test]
fn a_rejection_in_a_skill_stops_what_needs_it() {
    let script = "
session:
  session_id: s
  skills:
    - skill_id: gate
      actions:
        - { action_type: approval, action_id: ask, config: { prompt: 可以吗？ } }
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: use_skill, action_id: use, config: { skill: gate } }
            - { action_type: ai_say, action_id: deploy, config: { content: DEPLOYING, delivery: verbatim } }
";
    for (input, code, deploys) in [("no\n", 1, false), ("yes\n", 0, true)] {
        let home = Home::new();
        let ran = run(&home, script, input);
        assert_eq!((ran.code, ran.stdout.contains("DEPLOYING")), (code, deploys), "{input}: {ran:?}");
    }
}

#[test]
fn the_id_of_a_decision_never_answers_a_question() {
    let home = Home::new();
    let script = plain("prompt: x").replace(
        "{ action_type: set, action_id: end,",
        "{ action_type: ai_ask, action_id: ask2, config: { content: 名字？ } }\n            - { action_type: set, action_id: end,",
    );
    run(&home, &script, "");
    let id = requests(&home)[0]["request_id"].as_str().unwrap().to_owned();
    assert_eq!(call(&home, &format!("approve s/{id} --run")).code, 3);
    for request in [id.as_str(), "r3", "zzz"] {
        let refused = call(&home, &format!("requests answer s/{request} reject"));
        assert_eq!(refused.code, 2, "{request}: {refused:?}");
    }
    let said = home.export("s")["transcript"].clone();
    assert!(said.as_array().unwrap().iter().all(|message| message["role"] == "ai"), "{said}");
    // Who decided is told without an id, too.
    let again = call(&home, "approve s");
    assert!(again.code == 2 && again.stderr.contains("was answered at"), "{again:?}");
}

#[test]
fn a_program_that_sends_no_decision_is_told() {
    let home = Home::new();
    let file = home.file("script.yaml", &plain("prompt: x")).display().to_string();
    let mut running = home.start(["run", &file, "--session", "s", "--json"]);
    let waiting = running.event_of("waiting");
    for line in [json!({ "user": "blah" }), json!({ "user": "approve", "answer_id": "mine" })] {
        running.send(&line.to_string());
        assert_eq!(running.event_of("error")["code"], "decision-expected", "{line}");
    }
    running.send(&json!({ "user": "approve", "answer_id": waiting["answer_id"] }).to_string());
    running.event_of("request_answered");
    running.end_input();
    assert_eq!(running.finish().code, Some(0));
}

#[test]
fn sensitive_values_are_masked_in_requests() {
    let home = Home::new();
    let script = plain("prompt: '用 {{ key }} 吗？', approvers: ['{{ key }}']").replace(
        "session_id: plain\n",
        "session_id: plain\n  declare: [{ var: key, value: TOPSECRET, sensitive: true }]\n",
    );
    run(&home, &script, "");
    let listed = requests(&home);
    assert_eq!(listed[0]["prompt"], "用 *** 吗？");
    let bad = call(&home, "approve s --by x --set TOPSECRET");
    assert!(bad.code == 2 && !bad.stderr.contains("TOPSECRET"), "{bad:?}");
    assert_eq!(call(&home, "approve s --by TOPSECRET").code, 0);
    call(&home, "sessions resume s");
    for event in journal(&home, "s") {
        assert!(!event.to_string().contains("TOPSECRET"), "{event}");
    }
}

#[test]
fn sentences_are_no_decisions() {
    for line in ["no problem, go ahead", "yes but not before Monday", "不同意", "同意吗"] {
        let home = Home::new();
        assert_eq!(run(&home, &plain("prompt: x"), &format!("{line}\n")).code, 3, "{line}");
    }
    for line in ["批准！", "同意。", "Yes.", "approve"] {
        let home = Home::new();
        assert_eq!(run(&home, &plain("prompt: x"), &format!("{line}\n")).code, 0, "{line}");
    }
}

#[test]
fn lists_are_given_as_json_and_the_printed_command_works() {
    let home = Home::new();
    let store = home.path().join("other.db").display().to_string();
    let script = plain("prompt: x, form: [{ get: hosts, type: list, required: true }], decisions: [approve, reject]");
    let file = home.file("script.yaml", &script).display().to_string();
    let ran = command(&home, &["run", &file, "--session", "s", "--store", &store], "");
    assert_eq!(ran.code, 3);
    let printed = ran.stderr.lines().find(|line| line.contains("bcc-script approve")).unwrap();
    assert!(
        printed.contains("--store") && printed.contains("--set hosts=VALUE") && !printed.contains("push-back"),
        "{printed}"
    );
    let refused = command(&home, &["approve", "s", "--store", &store, "--set", "hosts=a"], "");
    assert!(refused.code == 2 && refused.stderr.contains("its JSON"), "{refused:?}");
    let done = command(&home, &["approve", "s", "--store", &store, "--set", "hosts=[\"a\", \"b\"]", "--run"], "");
    assert_eq!(done.code, 0, "{done:?}");
}

#[test]
fn tick_continues_what_was_decided_or_killed_if_it_is_asked_to() {
    let home = Home::new();
    run(&home, &plain("prompt: x"), "");
    assert_eq!(call(&home, "approve s").code, 0);
    assert_eq!(call(&home, "tick").stdout, "");
    assert_eq!(call(&home, "tick --unfinished").stdout, "s\tcompleted\n");
}

/// Not knowing who may decide does not mean that anybody may.
#[test]
fn a_request_whose_approvers_cannot_be_read_is_not_decided() {
    let home = Home::new();
    run(&home, &plain("prompt: x, approvers: [a]"), "");
    let store = Connection::open(home.store()).unwrap();
    assert_eq!(store.execute("UPDATE request SET approvers = '[\"a\"' WHERE approvers IS NOT NULL", []).unwrap(), 1);
    drop(store);
    let refused = call(&home, "approve s --by a");
    assert!(refused.code == 2 && refused.stderr.contains("cannot be read from the store"), "{refused:?}");
    // Nor does a conversation take the decision of whoever sits there.
    let resumed = command(&home, &["sessions", "resume", "s"], "approve\n");
    assert_eq!((resumed.code, status(&home)), (3, json!("waiting_approval")));
}

#[test]
fn a_field_with_append_adds_to_its_list() {
    let home = Home::new();
    let script = plain("prompt: x, form: [{ get: notes, append: true }]")
        .replace("session_id: plain\n", "session_id: plain\n  declare: [{ var: notes, type: list, value: [first] }]\n");
    run(&home, &script, "");
    assert_eq!(call(&home, "approve s --set notes=second --run").code, 0);
    assert_eq!(variable(&home, "notes"), json!(["first", "second"]));
}

/// After another error, the session would go on as if somebody had approved.
#[test]
fn an_approval_that_cannot_be_asked_for_or_stored_fails_the_session() {
    let home = Home::new();
    let ran = run(&home, &plain("prompt: x, approvers: ['{{ last_user_message }}']"), "");
    assert_eq!((ran.code, status(&home)), (1, json!("failed")), "{ran:?}");
    assert!(ran.stderr.contains("a name in `approvers` is empty"), "{}", ran.stderr);
    let home = Home::new();
    let script = plain("prompt: x, form: [{ get: mood, type: string }]").replace(
        "session_id: plain\n",
        "session_id: plain\n  declare: [{ var: mood, type: string, enum: [好, 一般] }]\n",
    );
    run(&home, &script, "");
    assert_eq!(call(&home, "reject s --set mood=bad --run").code, 2, "the form has the choices of the variable");
}

#[test]
fn an_approval_that_is_retried_after_an_error_asks_again() {
    let home = Home::new();
    let script = plain("prompt: 几台？, form: [{ get: count, define: 台数, type: string }]")
        .replace("session_id: plain\n", "session_id: plain\n  declare: [{ var: count, type: integer, value: 1 }]\n")
        .replace("action_id: ask,", "action_id: ask, on_exit: { error: retry },");
    run(&home, &script, "");
    let first = requests(&home)[0]["request_id"].clone();
    let retried = call(&home, "approve s --set count=几台 --run");
    assert_eq!((retried.code, status(&home)), (3, json!("waiting_approval")), "{retried:?}");
    let open = requests(&home);
    assert!(open.len() == 1 && open[0]["request_id"] != first, "{open:?}");
    assert_eq!(call(&home, "approve s --set count=3 --run").code, 0);
    assert_eq!(variable(&home, "count"), 3);
}

/// What the trigger inserted runs before anybody is asked, and the decision is that of the approval.
#[test]
fn a_decision_after_a_trigger_belongs_to_its_approval() {
    let home = Home::new();
    let script = plain("prompt: x").replace(
        "session_id: plain\n",
        "session_id: plain\n  declare: [{ var: vip, type: boolean, value: true }]\n  \
         triggers: [{ trigger_id: t, when: vip == true, insert: greet, once: true }]\n  \
         skills: [{ skill_id: greet, actions: [{ action_type: ai_say, action_id: hi, config: { content: 您好, delivery: verbatim } }] }]\n",
    );
    let started = run(&home, &script, "");
    assert_eq!((started.code, started.stdout.starts_with("您好\n")), (3, true), "{started:?}");
    let approved = call(&home, "approve s --run");
    assert_eq!(approved.code, 0, "{approved:?}");
    assert_eq!(variable(&home, "result"), "approve ");
    let paths: Vec<_> = journal(&home, "s").into_iter().filter(|event| event["type"] == "request_answered").collect();
    assert_eq!(paths.len(), 1, "{paths:?}");
    assert_eq!(paths[0]["location"]["path"], "t/ask");
}

/// A clock that was ahead when the session ran, and was set back since then.
#[test]
fn a_clock_that_goes_back_loses_no_decision_and_makes_nothing_due() {
    let home = Home::new();
    let waits = plain("prompt: x, timeout: 1h");
    assert_eq!(run(&home, &waits, "").code, 3);
    let store = Connection::open(home.store()).unwrap();
    let ahead = "UPDATE head SET updated_at = '2091-01-01T00:00:00Z';
                 UPDATE session SET started_at = '2091-01-01T00:00:00Z';
                 UPDATE journal SET at = '2091-01-01T00:00:00Z';
                 UPDATE request SET opened_at = '2091-01-01T00:00:00Z', due_at = '2091-01-01T01:00:00Z'";
    store.execute_batch(ahead).unwrap();
    drop(store);
    // Nothing is due before the stored time, and the decision counts now.
    let ticked = call(&home, "tick");
    assert_eq!((ticked.code, ticked.stdout.as_str()), (0, ""), "{ticked:?}");
    assert_eq!(requests(&home).len(), 1);
    let approved = call(&home, "approve s --by Ann --run");
    assert_eq!(approved.code, 0, "{approved:?}");
    assert_eq!(status(&home), "completed");
    assert_eq!(variable(&home, "result"), "approve ");
    let again = call(&home, "approve s");
    assert_ne!(again.code, 0, "{again:?}");
}

#[test]
fn an_answer_gives_the_values_of_a_form() {
    let home = Home::new();
    let form = plain("prompt: x, form: [{ get: window, define: when, required: true }]");
    assert_eq!(run(&home, &form, "").code, 3);
    let missing = call(&home, "requests answer s approve");
    assert_eq!(missing.code, 2, "{missing:?}");
    let answered = call(&home, "requests answer s approve --set window=22:00");
    assert_eq!(answered.code, 0, "{answered:?}");
    assert_eq!(call(&home, "sessions resume s").code, 0);
    assert_eq!(variable(&home, "window"), "22:00");
    // A question of the conversation has no form.
    let home = Home::new();
    let ask = "session: { session_id: s, phases: [{ phase_id: p, topics: [{ topic_id: t, actions: [{ action_type: ai_ask, action_id: ask, config: { content: who } }] }] }] }";
    assert_eq!(run(&home, ask, "").code, 3);
    let none = call(&home, "requests answer s Ann --set window=22:00");
    assert_eq!((none.code, none.stderr.contains("but this request has none")), (2, true), "{none:?}");
}
