//! An effect is durable before it starts, and closed when it ends.

use std::sync::Arc;

use bcc_runtime::run::session::SessionPause;
use serde_json::{Value, json};

use crate::effects::button::{
    button, drop_during_press, event_summaries, new_session, press_action, resume, session_with_actions,
    start_pressing, start_session,
};
use crate::test_session::{SESSION, journal};

#[tokio::test]
async fn an_effect_is_announced_in_its_own_commit() {
    let name = "announced";
    let (store, _program, mut session) = start_pressing(name, &json!({})).await;
    drop_during_press(name, &mut session).await;
    // While the effect runs, its announcement and the frame that contains it are stored.
    assert_eq!(event_summaries(store.as_ref()).await, ["started e5"]);
    let frames = store.frames(SESSION).await.unwrap();
    let open: Vec<Value> = frames
        .iter()
        .map(|row| serde_json::from_str::<Value>(&row.state).unwrap()["effect"].clone())
        .filter(|effect| !effect.is_null())
        .collect();
    assert_eq!(open, [json!({ "id": "e5", "kind": "press", "summary": { "word": "the red button" } })]);
}

#[tokio::test]
async fn an_uninterrupted_effect_happens_once_and_leaves_nothing_open() {
    let name = "uninterrupted";
    let (store, _program, mut session) = start_pressing(name, &json!({})).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    assert_eq!(button(name).presses(), 1);
    assert_eq!(event_summaries(store.as_ref()).await, ["started e5", "finished e5: pressed", "session_completed"]);
    let started = journal(store.as_ref()).await.into_iter().find(|event| event["type"] == "effect_started").unwrap();
    assert_eq!(started["location"]["path"], "t/it");
    assert_eq!((&started["kind"], &started["summary"]), (&json!("press"), &json!("the red button")));
}

#[tokio::test]
async fn an_effect_that_its_action_leaves_open_is_closed_with_it() {
    for (injected_error, end) in [
        ("unclosed", ["finished e5: the action is done", "session_completed"].as_slice()),
        ("broken", &["finished e5: the action failed", "error button-broken", "session_completed"]),
    ] {
        let name = format!("open-{injected_error}");
        let (store, _program, mut session) = start_pressing(&name, &json!({ "fault": injected_error })).await;
        session.advance().await.unwrap();
        let summaries = event_summaries(store.as_ref()).await;
        assert_eq!(
            (summaries[0].as_str(), &summaries[1..]),
            ("started e5", end.iter().map(|end| (*end).to_owned()).collect::<Vec<_>>().as_slice())
        );
    }
}

#[tokio::test]
async fn a_route_that_retries_announces_again() {
    let name = "retried";
    let failing = press_action(name, &json!({ "fault": "broken", "on_exit": { "error": "retry" } }));
    let (store, _, mut session) = new_session(&session_with_actions(&json!([failing]))).await;
    session.advance().await.unwrap();
    let summaries = event_summaries(store.as_ref()).await;
    let count = |prefix: &str| summaries.iter().filter(|line| line.starts_with(prefix)).count();
    assert_eq!((button(name).presses(), count("started"), count("finished")), (3, 3, 3), "{summaries:?}");
    assert_eq!(count("waiting"), 0);
}

#[tokio::test]
async fn onward_turns_do_not_count_toward_the_limit_of_turns_in_a_row() {
    let name = "onward";
    let (_store, _program, mut session) = start_pressing(name, &json!({ "onward": 250 })).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    assert_eq!(button(name).turns.load(std::sync::atomic::Ordering::SeqCst), 252);
}

#[tokio::test]
async fn a_session_with_an_open_effect_is_deleted_like_any_other() {
    let name = "deleted";
    let (store, program, mut session) = start_pressing(name, &json!({ "fault": "model" })).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Stopped);
    drop(session);
    assert!(store.delete(SESSION).await.unwrap());
    // The id can be used again, and the effect of the new session is independent.
    let again = start_session(&program, Arc::clone(&store)).await;
    drop(again);
    let mut session = resume(&program, Arc::clone(&store)).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Stopped);
    assert_eq!(button(name).presses(), 2);
}
