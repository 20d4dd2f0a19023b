//! An effect is durable before it begins, and closed when it ends.

use std::sync::Arc;

use bcc_runtime::run::session::SessionPause;
use serde_json::{Value, json};

use crate::effects::button::{begin, begun, button, drop_in_the_middle, of_actions, press, pressing, resume, told};
use crate::stage::{SESSION, journal};

#[tokio::test]
async fn it_is_announced_in_a_commit_of_its_own_and_closed_after() {
    let name = "announced";
    let (archive, _program, mut session) = pressing(name, &json!({})).await;
    drop_in_the_middle(name, &mut session).await;
    // While it runs, the announcement is at rest, and so is the frame that remembers it.
    assert_eq!(told(archive.as_ref()).await, ["started e5"]);
    let frames = archive.frames(SESSION).await.unwrap();
    let open: Vec<Value> = frames
        .iter()
        .map(|row| serde_json::from_str::<Value>(&row.state).unwrap()["effect"].clone())
        .filter(|effect| !effect.is_null())
        .collect();
    assert_eq!(open, [json!({ "id": "e5", "kind": "press", "summary": { "word": "the red button" } })]);
}

#[tokio::test]
async fn an_undisturbed_effect_happens_once_and_leaves_nothing_open() {
    let name = "undisturbed";
    let (archive, _program, mut session) = pressing(name, &json!({})).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    assert_eq!(button(name).presses(), 1);
    assert_eq!(told(archive.as_ref()).await, ["started e5", "finished e5: pressed", "session_completed"]);
    let started = journal(archive.as_ref()).await.into_iter().find(|event| event["type"] == "effect_started").unwrap();
    assert_eq!(started["location"]["path"], "t/it");
    assert_eq!((&started["kind"], &started["summary"]), (&json!("press"), &json!("the red button")));
}

#[tokio::test]
async fn an_effect_that_its_action_leaves_open_is_closed_with_it() {
    for (fault, end) in [
        ("unclosed", ["finished e5: the action is done", "session_completed"].as_slice()),
        ("broken", &["finished e5: the action failed", "error button-broken", "session_failed"]),
    ] {
        let name = format!("open-{fault}");
        let (archive, _program, mut session) = pressing(&name, &json!({ "fault": fault })).await;
        session.advance().await.unwrap();
        let told = told(archive.as_ref()).await;
        assert_eq!(
            (told[0].as_str(), &told[1..]),
            ("started e5", end.iter().map(|end| (*end).to_owned()).collect::<Vec<_>>().as_slice())
        );
    }
}

#[tokio::test]
async fn a_route_that_retries_announces_anew() {
    let name = "retried";
    let failing = press(name, &json!({ "fault": "broken", "on_exit": { "error": "retry" } }));
    let (archive, _, mut session) = begun(&of_actions(&json!([failing]))).await;
    session.advance().await.unwrap();
    let told = told(archive.as_ref()).await;
    let count = |what: &str| told.iter().filter(|line| line.starts_with(what)).count();
    assert_eq!((button(name).presses(), count("started"), count("finished")), (3, 3, 3), "{told:?}");
    assert_eq!(count("waiting"), 0);
}

#[tokio::test]
async fn turns_that_go_onward_are_not_counted_against_those_in_a_row() {
    let name = "onward";
    let (_archive, _program, mut session) = pressing(name, &json!({ "onward": 250 })).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    assert_eq!(button(name).turns.load(std::sync::atomic::Ordering::SeqCst), 252);
}

#[tokio::test]
async fn a_session_with_an_open_effect_is_deleted_like_any_other() {
    let name = "deleted";
    let (archive, program, mut session) = pressing(name, &json!({ "fault": "model" })).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Stopped);
    drop(session);
    assert!(archive.delete(SESSION).await.unwrap());
    // The id is free again, and its effect is as new.
    let again = begin(&program, Arc::clone(&archive)).await;
    drop(again);
    let mut session = resume(&program, Arc::clone(&archive)).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Stopped);
    assert_eq!(button(name).presses(), 2);
}
