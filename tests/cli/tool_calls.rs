//! Calls of the tools of a server through the program: their progress, and a kill while one runs (docs/tools.md).

use std::time::Instant;

use serde_json::{Value, json};

use crate::process::{Home, POLL_INTERVAL, TIMEOUT};
use crate::pseudo_terminal::Terminal;
use crate::session_output::journal;
use crate::tool_server::{calls, project};

const RUN: [&str; 6] = ["run", "s.yaml", "--json", "--session", "s", "--trust"];

fn call(tool: &str, arguments: Value, more: Value) -> Value {
    let config = json!({ "name": tool, "arguments": arguments, "output": { "got": "result", "how": "status" } });
    let mut action = json!({ "action_type": "tool", "action_id": "call", "config": config });
    action.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    action
}

fn tell() -> Value {
    json!({ "action_type": "ai_say", "action_id": "tell", "config": { "content": "{{ how }}: {{ got }}", "delivery": "verbatim" } })
}

/// The events of the session that have this type.
fn events(home: &Home, kind: &str) -> Vec<Value> {
    journal(home, "s").into_iter().filter(|event| event["type"] == kind).collect()
}

#[test]
fn progress_of_a_call_is_an_event_without_a_number_that_is_not_stored() {
    let home = project(&json!(["mcp.s.*"]), &json!([call("mcp.s.slow_write", json!({}), json!({})), tell()]));
    let running = home.start(RUN);
    let started = running.event_of("effect_started");
    let progress = running.event_of("tool_progress");
    assert_eq!(progress["tool"], "mcp.s.slow_write");
    assert_eq!((&progress["done"], &progress["total"]), (&json!(1.0), &json!(4.0)));
    assert_eq!(progress["effect_id"], started["effect_id"]);
    assert_eq!(progress["location"]["action_id"], "call");
    assert_eq!((&progress["seq"], &progress["session_id"]), (&Value::Null, &json!("s")));
    home.file("go", "");
    let ended = running.finish();
    assert!(ended.code == Some(0) && ended.out.contains("success: slow_write is done"), "{ended:?}");
    assert!(events(&home, "tool_progress").is_empty());
    assert_eq!(events(&home, "tool_called").len(), 1);
}

#[test]
fn a_terminal_shows_how_far_a_call_is() {
    let home = project(&json!(["mcp.s.*"]), &json!([call("mcp.s.slow_write", json!({}), json!({})), tell()]));
    let mut terminal = Terminal::start(&home, &["run", "s.yaml", "--session", "s", "--trust"], false);
    terminal.until(" call  25%  ");
    home.file("go", "");
    terminal.until("✓ call  ");
    terminal.until("success: slow_write is done");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn the_model_s_call_has_a_line_of_its_own_while_it_reports_progress() {
    let reply = json!({ "llm_reply": { "message": "I look." },
        "actions": [{ "kind": "tool_operation", "name": "mcp.s.slow_read", "parameters": {}, "blocking": true, "order": 1 }] });
    let after = json!({ "llm_reply": { "message": "Found." }, "actions": [] });
    let act = json!({ "action_type": "ai_act", "action_id": "act", "config": { "content": "x" } });
    let home = project(&json!(["mcp.s.*"]), &json!([act]));
    home.file("replies.json", &json!({ "replies": { "act": [reply, after] } }).to_string());
    let mut terminal = Terminal::start(&home, &["run", "s.yaml", "--session", "s", "--trust"], false);
    terminal.until(" mcp.s.slow_read  25%  ");
    home.file("go", "");
    terminal.until("Found.");
    assert_eq!(terminal.end(), Some(0));
    assert_eq!(calls(&home), ["slow_read {}"]);
}

#[test]
fn a_result_from_the_cache_is_marked_and_the_server_is_not_called() {
    let read = |id: &str, n: u32| {
        let mut action = call("mcp.s.read", json!({ "n": n }), json!({}));
        action["action_id"] = json!(id);
        action
    };
    let rules = json!([{ "name": "mcp.s.read", "cache": "10m" }]);
    let home = project(&rules, &json!([read("first", 1), read("again", 1), read("other", 2)]));
    let ended = home.finish(RUN, "");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let called = events(&home, "tool_called");
    assert_eq!(called.iter().map(|event| event["cached"] == true).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!(called[0]["result"], called[1]["result"]);
    assert_eq!(calls(&home), ["read {\"n\":1}", "read {\"n\":2}"]);
    // Another process asks the server again.
    let again = home.finish(["run", "s.yaml", "--session", "t", "--trust"], "");
    assert_eq!((again.code, calls(&home).len()), (Some(0), 4), "{again:?}");
}

/// A session whose process was killed while its server worked on `slow_write`: by a script, or wanted by a model.
fn killed(action: &Value) -> Home {
    let home = project(&json!(["mcp.s.*"]), &json!([action]));
    let reply = json!({ "llm_reply": { "message": "I write." },
        "actions": [{ "kind": "tool_operation", "name": "mcp.s.slow_write", "parameters": { "n": 1 }, "blocking": true, "order": 1 }] });
    let after = json!({ "llm_reply": { "message": "That is all." }, "actions": [] });
    home.file("replies.json", &json!({ "replies": { "act": [reply, after] } }).to_string());
    let mut running = home.start(RUN);
    // The server has noted the call before it reports progress.
    running.event_of("tool_progress");
    running.kill();
    assert_eq!(calls(&home), ["slow_write {\"n\":1}"]);
    home.file("go", "");
    home
}

#[test]
fn a_call_that_changes_something_is_never_repeated_silently_after_a_kill() {
    let resume = ["sessions", "resume", "s", "--json", "--trust"];
    let by_script = call("mcp.s.slow_write", json!({ "n": 1 }), json!({ "on_exit": { "failed": "next" } }));
    let by_model = json!({ "action_type": "ai_act", "action_id": "act", "config": { "content": "x" } });
    for (action, is_model) in [(&by_script, false), (&by_model, true)] {
        for (answer, status, made) in [("skip", "interrupted", 1), ("fail", "interrupted", 1), ("again", "success", 2)]
        {
            let home = killed(action);
            // Without an answer, nothing happens, however often it is resumed.
            for _ in 0..2 {
                let asked = home.finish(resume, "");
                assert_eq!(asked.code, Some(3), "{asked:?}");
                let waiting = asked.events().into_iter().find(|event| event["type"] == "waiting").unwrap();
                assert_eq!(waiting["for"], "interrupted_effect");
                let prompt = waiting["prompt"].as_str().unwrap();
                assert!(prompt.contains("calls the tool mcp.s.slow_write (tool)"), "{prompt}");
                assert_eq!(calls(&home).len(), 1);
            }
            let resumed = home.finish(resume, format!("{answer}\n"));
            assert_eq!(resumed.code, Some(0), "{answer}: {resumed:?}");
            assert_eq!(calls(&home).len(), made, "{answer}: {resumed:?}");
            let called = events(&home, "tool_called");
            assert_eq!((called.len(), &called[0]["status"]), (1, &json!(status)), "{answer}: {called:?}");
            assert_eq!(called[0]["arguments"], json!({ "n": 1 }));
            assert_eq!(events(&home, "effect_started").len(), made, "{answer}");
            assert_eq!(events(&home, "effect_finished").len(), made, "{answer}");
            assert!(resumed.out.contains("That is all.") == is_model, "{answer}: {resumed:?}");
        }
    }
}

#[test]
fn on_interrupted_decides_about_a_call_that_was_killed() {
    for (choice, made) in [("retry", 2), ("skip", 1), ("fail", 1)] {
        let more = json!({ "on_interrupted": choice, "on_exit": { "failed": "next" } });
        let home = killed(&call("mcp.s.slow_write", json!({ "n": 1 }), more));
        let resumed = home.finish(["sessions", "resume", "s", "--trust"], "");
        assert_eq!((resumed.code, calls(&home).len()), (Some(0), made), "{choice}: {resumed:?}");
    }
}

#[test]
fn a_call_that_only_reads_is_simply_made_again() {
    let home = project(&json!(["mcp.s.*"]), &json!([call("mcp.s.slow_read", json!({}), json!({})), tell()]));
    let mut running = home.start(RUN);
    running.event_of("tool_progress");
    running.kill();
    home.file("go", "");
    let resumed = home.finish(["sessions", "resume", "s", "--trust"], "");
    assert!(resumed.code == Some(0) && resumed.out.contains("success: slow_read is done"), "{resumed:?}");
    assert_eq!(calls(&home).len(), 2);
    assert!(events(&home, "effect_started").is_empty());
}

/// Whether somebody decides about a call of `write`.
fn approved_writes() -> Value {
    json!([{ "name": "mcp.s.write", "approve": "always" }, "mcp.s.change"])
}

fn requested(home: &Home) -> Vec<Value> {
    events(home, "request_opened")
}

#[test]
fn a_decision_about_a_tool_that_has_changed_since_is_requested_again() {
    let write = call("mcp.s.write", json!({ "n": 1 }), json!({}));
    let home = project(&approved_writes(), &json!([write, tell()]));
    assert_eq!(home.finish(RUN, "").code, Some(3));
    // In the meantime, the server describes its tool in another way.
    home.file("changed", "");
    let decided = home.finish(["approve", "s", "--by", "ann", "--run", "--trust"], "");
    assert_eq!(decided.code, Some(3), "{decided:?}");
    assert_eq!(calls(&home), [""; 0]);
    let asked = requested(&home);
    assert_eq!(asked.len(), 2, "{asked:?}");
    let prompt = |number: usize| asked[number]["prompt"].as_str().unwrap();
    assert!(
        !prompt(0).contains("has changed") && prompt(1).contains("has changed since the last question"),
        "{asked:?}"
    );
    // Arguments are checked against the schema as it is now.
    let edit = |arguments: &str| {
        let set = format!("arguments={arguments}");
        home.finish(["requests", "answer", "s", "edit", "--set", &set, "--by", "ann"], "")
    };
    let resume = || home.finish(["sessions", "resume", "s", "--trust"], "");
    let wrong = edit("{\"n\": \"x\"}");
    let resumed = resume();
    assert!(wrong.code != Some(0) || resumed.code == Some(3), "{wrong:?} {resumed:?}");
    assert_eq!(calls(&home), [""; 0]);
    let edited = edit("{\"n\": 2}");
    assert_eq!(edited.code, Some(0), "{edited:?}");
    let ended = resume();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(calls(&home), ["write {\"n\":2}"]);
    assert_eq!(requested(&home).len(), 2);
}

#[test]
fn a_decision_about_a_tool_that_is_the_same_is_requested_once() {
    let write = call("mcp.s.write", json!({ "n": 1 }), json!({}));
    let home = project(&approved_writes(), &json!([write, tell()]));
    assert_eq!(home.finish(RUN, "").code, Some(3));
    let decided = home.finish(["approve", "s", "--by", "ann", "--run", "--trust"], "");
    assert_eq!(decided.code, Some(0), "{decided:?}");
    assert_eq!((calls(&home).len(), requested(&home).len()), (1, 1));
}

#[test]
fn a_call_that_holds_up_nothing_is_made_while_others_are() {
    let operation = |order: u32, blocking: bool, n: u32| {
        json!({ "kind": "tool_operation", "name": "mcp.s.slow_read",
        "parameters": { "n": n }, "blocking": blocking, "order": order })
    };
    let reply = json!({ "llm_reply": { "message": "I look." },
        "actions": [operation(1, false, 1), operation(2, true, 2), operation(3, true, 3)] });
    let after = json!({ "llm_reply": { "message": "That is all." }, "actions": [] });
    let act = json!({ "action_type": "ai_act", "action_id": "act", "config": { "content": "x" } });
    let home = project(&json!(["mcp.s.*"]), &json!([act]));
    home.file("replies.json", &json!({ "replies": { "act": [reply, after] } }).to_string());
    let running = home.start(RUN);
    // Both calls are at the server, and neither has been answered.
    let deadline = Instant::now() + TIMEOUT;
    while calls(&home).len() < 2 {
        assert!(Instant::now() < deadline, "the calls are not made at the same time: {:?}", calls(&home));
        std::thread::sleep(POLL_INTERVAL);
    }
    home.file("go", "");
    let ended = running.finish();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mut made = calls(&home);
    made.sort();
    assert_eq!(made, ["slow_read {\"n\":1}", "slow_read {\"n\":2}", "slow_read {\"n\":3}"]);
    let called = events(&home, "tool_called");
    assert_eq!(called.len(), 3);
    assert!(called.iter().all(|call| call["status"] == "success"), "{called:?}");
}

/// A plan with a task for a tool and one for the model, which wait for nothing.
fn import_plan(home: &Home) {
    let plan = json!({ "bcc_plan": 1, "plan_id": 7, "title": "Work", "goal": "g", "tasks": [
        { "id": 1, "name": "Look", "metadata": { "tool": { "name": "mcp.s.slow_write", "arguments": { "n": 1 } } } },
        { "id": 2, "name": "Think", "dependencies": [1] },
    ] });
    home.file("plan.json", &plan.to_string());
    let imported = home.finish(["plans", "import", "plan.json"], "");
    assert_eq!(imported.code, Some(0), "{imported:?}");
}

/// The plan and its tasks, with their statuses and errors.
fn statuses(home: &Home) -> (String, Vec<(String, String)>) {
    let exported = home.finish(["plans", "export", "7"], "");
    let plan: Value = serde_json::from_str(&exported.out).unwrap_or_else(|_| panic!("{exported:?}"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let tasks = plan["tasks"].as_array().unwrap().iter().map(|task| (text(&task["status"]), text(&task["error"])));
    (text(&plan["status"]), tasks.collect())
}

#[test]
fn a_task_whose_session_is_gone_does_not_stay_running() {
    let execute = json!({ "action_type": "execute_plan", "action_id": "work", "config": { "plan_id": 7, "output": { "how": "status" } } });
    for end in [&["sessions", "delete", "s"][..], &["cancel", "s", "--trust"]] {
        let home = project(&json!(["mcp.s.*"]), &json!([execute]));
        import_plan(&home);
        let mut running = home.start(RUN);
        running.event_of("tool_progress");
        running.kill();
        // Its session can still end it.
        let (plan, tasks) = statuses(&home);
        assert_eq!((plan.as_str(), tasks[0].0.as_str()), ("running", "running"));
        let other = home.finish(["run", "s.yaml", "--session", "other", "--trust"], "");
        assert_eq!(calls(&home).len(), 1, "{other:?}");
        let ended = home.finish(end, "");
        assert!(matches!(ended.code, Some(0 | 4)), "{end:?}: {ended:?}");
        let (plan, tasks) = statuses(&home);
        assert_eq!(plan, "pending", "{end:?}");
        assert_eq!(tasks[0].0, "failed", "{end:?}");
        assert!(tasks[0].1.contains("session s ended during this task"), "{tasks:?}");
        assert_eq!(tasks[1].0, "pending", "{end:?}");
    }
}
