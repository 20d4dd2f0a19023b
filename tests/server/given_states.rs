//! Sessions from states that clients send, and the large outputs of their notebooks, one by one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};

use crate::access::tokens;
use crate::process::Home;
use crate::served::{Serving, TALK};

/// A picture of one point, with so much after its end that it is stored on its own.
pub fn large_png() -> Vec<u8> {
    let point = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let mut bytes = STANDARD.decode(point).unwrap();
    bytes.resize(70_000, 0);
    bytes
}

/// Markup that is stored on its own.
fn large_html() -> String {
    format!("<script>alert(1)</script>{}", "<p>one</p>".repeat(8_000))
}

/// A state with a picture, a page and a small output, in today's form.
pub fn state() -> Value {
    let data = json!({ "image/png": STANDARD.encode(large_png()), "text/plain": "<Figure>" });
    let svg = format!("<svg xmlns=\"http://www.w3.org/2000/svg\">{}</svg>", "<g/>".repeat(20_000));
    let large = json!({ "text/html": large_html(), "image/svg+xml": svg, "application/x-own": "y".repeat(70_000) });
    json!({"observation": {
        "location": {
            "current_stage_id": "read", "current_step_id": "load", "behavior_id": null, "behavior_iteration": 0,
            "progress": {
                "stages": {"completed": [], "current": "read", "remaining": []},
                "steps": {"completed": [], "current": "load", "remaining": []},
                "behaviors": {"completed": [], "current": null, "iteration": 0},
            },
            "goals": {"stage": "Read the gauges", "step": null, "behavior": null},
        },
        "context": {
            "variables": {}, "todo_list": ["units"], "effects": {"current": [], "history": []},
            "notebook": {"title": "Rivers", "cells": [
                {"id": "draw", "type": "code", "content": "plot()", "execution_count": 7, "outputs": [
                    {"output_type": "display_data", "data": data, "metadata": {}},
                    {"output_type": "display_data", "data": large, "metadata": {}},
                    {"output_type": "stream", "name": "stdout", "text": "3\n"},
                ]},
            ]},
            "workflow": {"name": "Rivers", "stages": [
                {"id": "read", "name": "Read", "goal": "Read the gauges", "steps": [{"id": "load", "name": "Load"}]},
            ]},
        },
    }})
}

/// The same state in the older form.
fn older_state() -> Value {
    let mut state = state();
    let mut context = state["observation"].as_object_mut().unwrap().shift_remove("context").unwrap();
    let todo = context.as_object_mut().unwrap().shift_remove("todo_list").unwrap();
    context["toDoList"] = todo;
    let stage = json!({"stage_id": "read", "title": "Read", "goal": "Read the gauges"});
    let location = json!({
        "current": {"stage_id": "read", "step_id": "load", "behavior_id": null, "behavior_iteration": 0},
        "progress": {
            "stages": {"completed": [], "current": stage, "remaining": [], "focus": ""},
            "steps": {"completed": [], "current": {"step_id": "load", "title": "Load"}, "remaining": [], "focus": ""},
            "behaviors": {"completed": [], "current": null, "iteration": 0, "focus": ""},
        },
        "goals": "",
    });
    json!({ "observation": { "location": location }, "state": context })
}

pub async fn session_of(serving: &Serving, state: Value) -> String {
    let created = serving.post("/v1/sessions", json!({ "state": state })).await;
    assert_eq!(created.status, 201, "{}", created.text);
    created.json()["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_session_begins_from_a_state_of_either_form() {
    let home = Home::new();
    let serving = Serving::with(&home, &["--model", "offline"]);
    for state in [state(), older_state()] {
        let id = session_of(&serving, state).await;
        assert!(id.starts_with("state-"), "{id}");
        let notebook = serving.get(&format!("/v1/sessions/{id}/notebook")).await.json()["notebook"].clone();
        assert_eq!(notebook["title"], "Rivers");
        assert_eq!(notebook["cells"][0]["id"], "draw");
        assert_eq!(notebook["cells"][0]["outputs"][2]["text"], "3\n");
        assert_eq!(notebook["cells"][0]["outputs"][0]["data"]["image/png"], STANDARD.encode(large_png()));
    }
}

#[tokio::test]
async fn a_state_that_is_too_large_is_refused_with_that_reason() {
    let serving = Serving::with(&Home::new(), &["--model", "offline"]);
    let large = json!({ "location": {}, "state": { "x": "a".repeat(9 << 20) } });
    let refused = serving.post("/v1/sessions", json!({ "state": large })).await;
    assert_eq!(refused.status, 422, "{}", refused.text);
    assert_eq!(refused.json()["diagnostics"][0]["rule"], "file-too-large", "{}", refused.text);
}

#[tokio::test]
async fn what_is_no_state_or_may_not_be_sent_starts_nothing() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::with(&home, &["--model", "offline"]);
    let mut broken = state();
    broken["observation"]["context"]["notebook"]["cells"][0]["type"] = json!("drawing");
    let mut over = state();
    over["observation"]["context"]["FSM"] = json!({ "state": "WORKFLOW_COMPLETED" });
    let script = json!({ "session": { "session_id": "s", "phases": [] } });
    let cases = [
        (json!({ "state": script }), 400, "`state` is not a state of the behavior protocol"),
        (json!({ "state": state(), "script": "talk" }), 400, "a `script` or a `state`, and not both"),
        (json!({}), 400, "a `script` or a `state`, and not both"),
        (json!({ "script": "talk", "behavior_server": "b" }), 400, "`behavior_server` is for a `state`"),
        (json!({ "state": state(), "behavior_server": "b" }), 400, "there is no behavior server `b`"),
        (json!({ "state": broken }), 422, "the script has errors"),
        (json!({ "state": over }), 409, "no step is left"),
    ];
    for (body, status, detail) in cases {
        let reply = serving.post("/v1/sessions", body).await;
        assert_eq!(reply.status, status, "{reply:?}");
        assert!(reply.json()["detail"].as_str().unwrap().contains(detail), "{reply:?}");
    }
    assert_eq!(serving.get("/v1/sessions").await.json()["sessions"], json!([]));
    drop(serving);
    home.put("bcc-script.toml", "[project]\nallow = [\"exec\"]\n");
    let reply = Serving::with(&home, &["--model", "offline", "--trust"])
        .post("/v1/sessions", json!({ "state": state() }))
        .await;
    assert_eq!(reply.status, 403, "somebody has to look at what it does: {reply:?}");
}

#[tokio::test]
async fn a_state_needs_the_role_of_an_author() {
    let home = Home::new();
    let tokens = tokens(&home);
    let serving = Serving::with(&home, &["--trust", "--model", "offline"]);
    for (number, (role, token)) in tokens.iter().enumerate() {
        let reply = serving.as_caller(token).post("/v1/sessions", json!({ "state": state() })).await;
        assert_eq!(reply.status, if number < 2 { 403 } else { 201 }, "{role}: {}", reply.text);
    }
    // Who may not send it may not send so much either.
    let large = json!({ "state": "x".repeat(2_000_000) });
    assert_eq!(serving.as_caller(&tokens[0].1).post("/v1/sessions", large.clone()).await.status, 413);
    assert_eq!(serving.as_caller(&tokens[2].1).post("/v1/sessions", large).await.status, 400);
}

#[tokio::test]
async fn a_notebook_names_the_addresses_of_its_pictures() {
    let home = Home::new();
    let serving = Serving::with(&home, &["--model", "offline"]);
    let id = session_of(&serving, state()).await;
    let notebook = serving.get(&format!("/v1/sessions/{id}/notebook?outputs=linked")).await;
    assert!(notebook.text.len() < 20_000, "{} bytes", notebook.text.len());
    let outputs = notebook.json()["notebook"]["cells"][0]["outputs"].clone();
    assert_eq!((&outputs[0]["data"], &outputs[0]["kept"]), (&json!({ "text/plain": "<Figure>" }), &Value::Null));
    assert_eq!(outputs[2]["text"], "3\n");
    let link = |output: usize, kind: &str| outputs[output]["links"][kind]["href"].as_str().unwrap().to_owned();
    let png = link(0, "image/png");
    assert!(png.starts_with(&format!("/v1/sessions/{id}/outputs/")), "{png}");

    let url = format!("{}{png}", serving.url);
    let picture = reqwest::get(&url).await.unwrap();
    let header = |name: &str| picture.headers()[name].to_str().unwrap().to_owned();
    let expected =
        [("content-type", "image/png"), ("x-content-type-options", "nosniff"), ("cache-control", "private, no-cache")];
    expected.iter().for_each(|(name, value)| assert_eq!(header(name), *value, "{name}"));
    assert!(header("content-disposition").starts_with("inline; filename=\""));
    assert!(header("content-security-policy").contains("sandbox"));
    let version = header("etag");
    assert_eq!(picture.bytes().await.unwrap(), large_png());
    let again = serving.send(Method::GET, &png, &[("if-none-match", &version)], None).await;
    assert_eq!((again.status, again.header("etag"), again.text.as_str()), (304, version.as_str(), ""));

    for (output, kind, sent, disposition) in [
        (1, "text/html", "text/html; charset=utf-8", "attachment"),
        (1, "image/svg+xml", "image/svg+xml", "inline"),
        (1, "application/x-own", "application/octet-stream", "attachment"),
    ] {
        let reply = serving.get(&link(output, kind)).await;
        assert_eq!((reply.status, reply.header("content-type")), (200, sent));
        assert!(reply.header("content-disposition").starts_with(disposition), "{kind}");
        assert!(reply.header("content-security-policy").contains("default-src 'none'"), "{kind}");
        assert!(reply.header("content-security-policy").contains("sandbox"), "{kind}");
        assert_eq!(reply.header("cache-control"), "private, no-cache", "{kind}: it is masked");
    }
    assert_eq!(serving.get(&link(1, "text/html")).await.text, large_html());
}

#[tokio::test]
async fn only_hashes_of_the_own_notebook_are_answered() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let tokens = tokens(&home);
    let serving = Serving::with(&home, &["--trust", "--model", "offline"]);
    let author = serving.as_caller(&tokens[2].1);
    let created = author.post("/v1/sessions", json!({ "state": state() })).await.json();
    let id = created["id"].as_str().unwrap();
    let other = author.post("/v1/sessions", json!({ "script": "talk" })).await.json();
    let other = other["id"].as_str().unwrap();
    let notebook = author.get(&format!("/v1/sessions/{id}/notebook?outputs=linked")).await.json();
    let own = notebook["notebook"]["cells"][0]["outputs"][0]["links"]["image/png"]["href"].as_str().unwrap();
    let hash = own.rsplit('/').next().unwrap();
    for (number, (role, token)) in tokens.iter().enumerate() {
        let status = serving.as_caller(token).get(own).await.status;
        assert_eq!(status, if number < 2 { 403 } else { 200 }, "{role}");
    }
    for path in [
        format!("/v1/sessions/{other}/outputs/{hash}"),
        format!("/v1/sessions/none/outputs/{hash}"),
        format!("/v1/sessions/{id}/outputs/{}", "0".repeat(64)),
        format!("/v1/sessions/{id}/outputs/{}", hash.to_uppercase()),
        format!("/v1/sessions/{id}/outputs/x"),
        format!("/v1/sessions/{id}/outputs/..%2Fnotebook"),
    ] {
        let reply = author.get(&path).await;
        assert_eq!((reply.status, reply.header("content-type")), (404, "application/problem+json"), "{path}");
    }
}
