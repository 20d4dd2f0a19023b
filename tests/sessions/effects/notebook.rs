//! What a turn writes into the notebook is durable with the turn, reported as events, and limited.

use std::sync::Arc;

use bcc_runtime::run::session::SessionPause;
use bcc_store::contract::Store;
use bcc_store::memory::MemoryStore;
use serde_json::{Value, json};

use crate::effects::button::{event_summaries, press_action, program, session_with_actions, start_session};
use crate::test_session::{SESSION, journal};

fn with_id(action_id: &str, mut action: Value) -> Value {
    action["action_id"] = json!(action_id);
    action
}

#[tokio::test]
async fn a_cell_is_reported_and_stored() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let actions = json!([
        with_id("one", press_action("cells", &json!({ "cell": "x = 1" }))),
        with_id("two", press_action("cells", &json!({ "cell": "x + 1" }))),
    ]);
    let program = program(&session_with_actions(&actions));
    let mut session = start_session(&program, Arc::clone(&store)).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    let summaries = event_summaries(store.as_ref()).await;
    let expected = ["finished e5: pressed", "cell 1"];
    assert_eq!(summaries[1..3], expected, "after what the turn did, before its outcome: {summaries:?}");
    let events = journal(store.as_ref()).await;
    let cell = events.iter().find(|event| event["type"] == "cell").unwrap();
    let fields = ["number", "cell_id", "cell_type", "content"].map(|name| cell[name].clone());
    assert_eq!(fields, [json!(1), json!("c1"), json!("code"), json!("x = 1")]);
    assert_eq!(cell["location"]["action_id"], "one");
    let bodies: Vec<Value> =
        store.cells(SESSION, 0, 9).await.unwrap().iter().map(|row| serde_json::from_str(&row.body).unwrap()).collect();
    assert_eq!(bodies[1], json!({ "number": 2, "id": "c2", "type": "code", "content": "x + 1" }));
}

#[tokio::test]
async fn the_state_of_the_notebook_is_written_only_when_it_changed() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let actions = json!([
        with_id("plain", press_action("state", &json!({}))),
        with_id("cell", press_action("state", &json!({ "cell": "1" })))
    ]);
    let mut session = start_session(&program(&session_with_actions(&actions)), Arc::clone(&store)).await;
    session.advance().await.unwrap();
    let row = |rows: Vec<bcc_store::rows::VariableRow>| rows.into_iter().find(|row| row.scope == "notebook");
    let state = row(store.variables(SESSION).await.unwrap()).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&state.value).unwrap()["cell_count"], 1);
    // A session that never used its notebook has none.
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let only = json!([press_action("state", &json!({}))]);
    let mut session = start_session(&program(&session_with_actions(&only)), Arc::clone(&store)).await;
    session.advance().await.unwrap();
    assert_eq!(row(store.variables(SESSION).await.unwrap()), None);
}

#[tokio::test]
async fn sensitive_values_are_masked_in_cell_events_but_not_in_the_cells() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let mut session = session_with_actions(&json!([
        { "action_type": "set", "action_id": "know", "config": { "values": { "phone": "13800001111" } } },
        press_action("masked", &json!({ "cell": "call('13800001111')" })),
    ]));
    session["declare"].as_array_mut().unwrap().push(json!({ "var": "phone", "sensitive": true }));
    let mut session = start_session(&program(&session), Arc::clone(&store)).await;
    session.advance().await.unwrap();
    let events = journal(store.as_ref()).await;
    let cell = events.iter().find(|event| event["type"] == "cell").unwrap();
    assert_eq!((&cell["content"], &cell["cell_id"]), (&json!("call('***')"), &json!("c1")));
    let stored = store.cell(SESSION, "c1").await.unwrap().unwrap();
    assert!(stored.body.contains("13800001111"), "the kernel runs what was written");
    let export = bcc_engine::export::export(store.as_ref(), SESSION, true).await.unwrap();
    assert_eq!(export["notebook"]["cells"][0]["content"], "call('***')");
    assert!(!export.to_string().contains("13800001111"));
    let notebook: Vec<&String> = export["notebook"].as_object().unwrap().keys().collect();
    for name in ["title", "cells", "todo_list", "section_progress", "location", "workflow", "effects"] {
        assert!(notebook.iter().any(|key| *key == name), "{name}");
    }
}

#[tokio::test]
async fn a_turn_that_would_flood_the_notebook_fails_and_writes_nothing() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let mut session = start_session(
        &program(&session_with_actions(&json!([press_action("flood", &json!({ "fault": "flood" }))]))),
        Arc::clone(&store),
    )
    .await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    assert!(store.cells(SESSION, 0, 9).await.unwrap().is_empty());
    assert!(event_summaries(store.as_ref()).await.contains(&"error notebook-too-much".to_owned()));
}
