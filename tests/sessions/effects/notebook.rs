//! What a turn writes into the notebook is durable with the turn, told as events, and bounded.

use std::sync::Arc;

use bcc_runtime::run::session::SessionPause;
use bcc_store::contract::Store;
use bcc_store::memory::MemoryStore;
use serde_json::{Value, json};

use crate::effects::button::{begin, of_actions, press, program, told};
use crate::stage::{SESSION, journal};

fn named(action_id: &str, mut action: Value) -> Value {
    action["action_id"] = json!(action_id);
    action
}

#[tokio::test]
async fn a_cell_is_told_and_stored_and_found_after_a_resume() {
    let archive: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let actions = json!([
        named("one", press("cells", &json!({ "cell": "x = 1" }))),
        named("two", press("cells", &json!({ "cell": "x + 1" }))),
    ]);
    let program = program(&of_actions(&actions));
    let mut session = begin(&program, Arc::clone(&archive)).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    let told = told(archive.as_ref()).await;
    let expected = ["finished e5: pressed", "cell 1"];
    assert_eq!(told[1..3], expected, "after what the turn did, before its outcome: {told:?}");
    let events = journal(archive.as_ref()).await;
    let cell = events.iter().find(|event| event["type"] == "cell").unwrap();
    let fields = ["number", "cell_id", "cell_type", "content"].map(|name| cell[name].clone());
    assert_eq!(fields, [json!(1), json!("c1"), json!("code"), json!("x = 1")]);
    assert_eq!(cell["location"]["action_id"], "one");
    let bodies: Vec<Value> = archive
        .cells(SESSION, 0, 9)
        .await
        .unwrap()
        .iter()
        .map(|row| serde_json::from_str(&row.body).unwrap())
        .collect();
    assert_eq!(bodies[1], json!({ "number": 2, "id": "c2", "type": "code", "content": "x + 1" }));
}

#[tokio::test]
async fn the_state_of_the_notebook_is_written_when_it_changed_and_not_otherwise() {
    let archive: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let actions =
        json!([named("plain", press("state", &json!({}))), named("cell", press("state", &json!({ "cell": "1" })))]);
    let mut session = begin(&program(&of_actions(&actions)), Arc::clone(&archive)).await;
    session.advance().await.unwrap();
    let row = |rows: Vec<bcc_store::rows::VariableRow>| rows.into_iter().find(|row| row.scope == "notebook");
    let state = row(archive.variables(SESSION).await.unwrap()).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&state.value).unwrap()["cell_count"], 1);
    // A session that never used its notebook has none.
    let archive: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let only = json!([press("state", &json!({}))]);
    let mut session = begin(&program(&of_actions(&only)), Arc::clone(&archive)).await;
    session.advance().await.unwrap();
    assert_eq!(row(archive.variables(SESSION).await.unwrap()), None);
}

#[tokio::test]
async fn sensitive_values_are_masked_in_what_is_told_of_cells_but_not_in_the_cells() {
    let archive: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let mut session = of_actions(&json!([
        { "action_type": "set", "action_id": "know", "config": { "values": { "phone": "13800001111" } } },
        press("masked", &json!({ "cell": "call('13800001111')" })),
    ]));
    session["declare"].as_array_mut().unwrap().push(json!({ "var": "phone", "sensitive": true }));
    let mut session = begin(&program(&session), Arc::clone(&archive)).await;
    session.advance().await.unwrap();
    let events = journal(archive.as_ref()).await;
    let cell = events.iter().find(|event| event["type"] == "cell").unwrap();
    assert_eq!((&cell["content"], &cell["cell_id"]), (&json!("call('***')"), &json!("c1")));
    let stored = archive.cell(SESSION, "c1").await.unwrap().unwrap();
    assert!(stored.body.contains("13800001111"), "the kernel runs what was written");
    let export = bcc_engine::export::export(archive.as_ref(), SESSION, true).await.unwrap();
    assert_eq!(export["notebook"]["cells"][0]["content"], "call('***')");
    assert!(!export.to_string().contains("13800001111"));
    let notebook: Vec<&String> = export["notebook"].as_object().unwrap().keys().collect();
    for name in ["title", "cells", "todo_list", "section_progress", "location", "workflow", "effects"] {
        assert!(notebook.iter().any(|key| *key == name), "{name}");
    }
}

#[tokio::test]
async fn a_turn_that_would_flood_the_notebook_fails_and_writes_nothing() {
    let archive: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let mut session =
        begin(&program(&of_actions(&json!([press("flood", &json!({ "fault": "flood" }))]))), Arc::clone(&archive))
            .await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Failed);
    assert!(archive.cells(SESSION, 0, 9).await.unwrap().is_empty());
    assert!(told(archive.as_ref()).await.contains(&"error notebook-too-much".to_owned()));
}
