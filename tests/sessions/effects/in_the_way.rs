//! Triggers that run between the announcement of an effect and its start.

use bcc_runtime::run::session::SessionPause;
use serde_json::{Value, json};

use crate::effects::button::{button, event_summaries, new_session, press_action, session_with_actions};
use crate::test_session::SESSION;

/// A session in which a trigger fires as soon as the effect of `name` is announced; it inserts a skill with these actions.
fn session_with_trigger(name: &str, actions: &Value, then: &str) -> Value {
    let mut session = session_with_actions(&json!([press_action(name, &json!({ "raises": "raised" }))]));
    session["skills"] = json!([{ "skill_id": "help", "actions": actions }]);
    session["triggers"] =
        json!([{ "trigger_id": "alarm", "when": "raised", "insert": "help", "then": then, "once": true }]);
    session
}

fn note() -> Value {
    json!({ "action_type": "set", "action_id": "note", "config": { "values": { "seen": true } } })
}

#[tokio::test]
async fn an_effect_is_still_due_after_a_trigger() {
    let name = "stepped-in";
    let (store, _, mut session) = new_session(&session_with_trigger(name, &json!([note()]), "resume")).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    assert_eq!(button(name).presses(), 1);
    let summaries = event_summaries(store.as_ref()).await;
    assert!(summaries[0].starts_with("started") && summaries[1] == "triggered alarm", "{summaries:?}");
    assert!(summaries[2].starts_with("finished") && summaries[2].ends_with(": pressed"), "{summaries:?}");
}

#[tokio::test]
async fn an_effect_inside_another_one_leaves_both_due() {
    let (name, inner) = ("outer", "inner");
    let mut second = press_action(inner, &json!({}));
    second["action_id"] = json!("second");
    let (store, _, mut session) = new_session(&session_with_trigger(name, &json!([second]), "resume")).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    assert_eq!((button(name).presses(), button(inner).presses()), (1, 1));
    let summaries = event_summaries(store.as_ref()).await;
    assert!(!summaries.iter().any(|line| line.starts_with("waiting")), "{summaries:?}");
}

#[tokio::test]
async fn an_effect_that_never_started_is_closed_before_its_session_ends() {
    let name = "never-began";
    let (store, _, mut session) = new_session(&session_with_trigger(name, &json!([note()]), "end")).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    assert_eq!(button(name).presses(), 0);
    let summaries = event_summaries(store.as_ref()).await;
    assert_eq!(
        summaries[1..],
        ["triggered alarm", "finished e5: not started", "session_completed"]
            .map(|line| line.replace("e5", &summaries[0]["started ".len()..]))
    );
    let frames = store.frames(SESSION).await.unwrap();
    assert!(frames.iter().all(|row| !row.state.contains("\"effect\"")));
}

#[tokio::test]
async fn an_effect_whose_topic_is_left_is_closed() {
    let name = "left";
    let leaving = json!({ "action_type": "set", "action_id": "note", "config": { "values": { "seen": true } },
        "on_exit": { "exit_criteria_met": "skip_topic" } });
    let (store, _, mut session) = new_session(&session_with_trigger(name, &json!([leaving]), "resume")).await;
    session.advance().await.unwrap();
    let summaries = event_summaries(store.as_ref()).await;
    assert_eq!(button(name).presses(), 0, "{summaries:?}");
    assert!(summaries.iter().any(|line| line.ends_with(": not started")), "{summaries:?}");
    let count = |prefix: &str| summaries.iter().filter(|line| line.starts_with(prefix)).count();
    assert_eq!(count("started"), count("finished"), "{summaries:?}");
}
