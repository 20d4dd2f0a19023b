//! Calls of the tools of a server through the program: their progress, and a kill while one runs (docs/tools.md).

use serde_json::{Value, json};

use crate::process::Home;
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
