//! Triggers that fire after the turn that would announce an effect: it is announced when its action goes on.

use bcc_runtime::run::session::SessionPause;
use serde_json::{Value, json};

use crate::effects::button::{button, event_summaries, new_session, press_action, session_with_actions};
use crate::test_session::SESSION;

/// A session in which a trigger fires after the turn that would announce the effect of `name`; it inserts a skill with these actions.
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
async fn an_effect_is_announced_after_what_a_trigger_inserts() {
    let name = "stepped-in";
    let (store, _, mut session) = new_session(&session_with_trigger(name, &json!([note()]), "resume")).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    assert_eq!(button(name).presses(), 1);
    let summaries = event_summaries(store.as_ref()).await;
    assert!(summaries[0] == "triggered alarm" && summaries[1].starts_with("started"), "{summaries:?}");
    assert!(summaries[2].starts_with("finished") && summaries[2].ends_with(": pressed"), "{summaries:?}");
}

#[tokio::test]
async fn an_effect_in_what_a_trigger_inserts_leaves_the_other_one_due() {
    let (name, inner) = ("outer", "inner");
    let mut second = press_action(inner, &json!({}));
    second["action_id"] = json!("second");
    let (store, _, mut session) = new_session(&session_with_trigger(name, &json!([second]), "resume")).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    assert_eq!((button(name).presses(), button(inner).presses()), (1, 1));
    let summaries = event_summaries(store.as_ref()).await;
    assert!(!summaries.iter().any(|line| line.starts_with("waiting")), "{summaries:?}");
}

/// A process that ends while what a trigger inserted runs has not started the effect, and nobody is asked about it.
#[tokio::test]
async fn an_effect_before_which_a_trigger_fired_was_not_interrupted() {
    let name = "skipped-in";
    let ask = json!({ "action_type": "ai_ask", "action_id": "ask",
        "config": { "content": "Are you outside?", "delivery": "verbatim", "max_rounds": 1 } });
    let mut session = session_with_trigger(name, &json!([ask]), "resume");
    session["phases"][0]["topics"][0]["actions"][0]["on_interrupted"] = json!("skip");
    let (store, _, mut session) = new_session(&session).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
    drop(session);
    let frames = store.frames(SESSION).await.unwrap();
    assert!(frames.iter().all(|row| !row.state.contains("\"effect\"")), "{frames:?}");
    let summaries = event_summaries(store.as_ref()).await;
    assert_eq!(summaries, ["triggered alarm", "ai: Are you outside?", "waiting for input"]);
}

#[tokio::test]
async fn an_effect_that_a_trigger_prevents_is_not_announced() {
    let name = "never-began";
    let (store, _, mut session) = new_session(&session_with_trigger(name, &json!([note()]), "end")).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    assert_eq!(button(name).presses(), 0);
    assert_eq!(event_summaries(store.as_ref()).await, ["triggered alarm", "session_completed"]);
}

#[tokio::test]
async fn an_effect_whose_topic_is_left_is_not_announced() {
    let name = "left";
    let leaving = json!({ "action_type": "set", "action_id": "note", "config": { "values": { "seen": true } },
        "on_exit": { "exit_criteria_met": "skip_topic" } });
    let (store, _, mut session) = new_session(&session_with_trigger(name, &json!([leaving]), "resume")).await;
    session.advance().await.unwrap();
    let summaries = event_summaries(store.as_ref()).await;
    assert_eq!(button(name).presses(), 0, "{summaries:?}");
    assert!(!summaries.iter().any(|line| line.starts_with("started")), "{summaries:?}");
}
