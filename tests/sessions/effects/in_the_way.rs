//! What steps between the announcement of an effect and its beginning.

use bcc_runtime::run::session::SessionPause;
use serde_json::{Value, json};

use crate::effects::button::{begun, button, of_actions, press, told};
use crate::stage::SESSION;

/// A session in which a trigger fires as soon as the effect of `name` is announced; it inserts a skill with these actions.
fn stepped_in(name: &str, actions: &Value, then: &str) -> Value {
    let mut session = of_actions(&json!([press(name, &json!({ "raises": "raised" }))]));
    session["skills"] = json!([{ "skill_id": "help", "actions": actions }]);
    session["triggers"] =
        json!([{ "trigger_id": "alarm", "when": "raised", "insert": "help", "then": then, "once": true }]);
    session
}

fn note() -> Value {
    json!({ "action_type": "set", "action_id": "note", "config": { "values": { "seen": true } } })
}

#[tokio::test]
async fn a_trigger_steps_in_and_the_effect_is_still_due() {
    let name = "stepped-in";
    let (archive, _, mut session) = begun(&stepped_in(name, &json!([note()]), "resume")).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    assert_eq!(button(name).presses(), 1);
    let told = told(archive.as_ref()).await;
    assert!(told[0].starts_with("started") && told[1] == "triggered alarm", "{told:?}");
    assert!(told[2].starts_with("finished") && told[2].ends_with(": pressed"), "{told:?}");
}

#[tokio::test]
async fn an_effect_inside_of_another_leaves_both_due() {
    let (name, inner) = ("outer", "inner");
    let mut second = press(inner, &json!({}));
    second["action_id"] = json!("second");
    let (archive, _, mut session) = begun(&stepped_in(name, &json!([second]), "resume")).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    assert_eq!((button(name).presses(), button(inner).presses()), (1, 1));
    let told = told(archive.as_ref()).await;
    assert!(!told.iter().any(|line| line.starts_with("waiting")), "{told:?}");
}

#[tokio::test]
async fn an_effect_that_never_began_is_closed_before_its_session_ends() {
    let name = "never-began";
    let (archive, _, mut session) = begun(&stepped_in(name, &json!([note()]), "end")).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    assert_eq!(button(name).presses(), 0);
    let told = told(archive.as_ref()).await;
    assert_eq!(
        told[1..],
        ["triggered alarm", "finished e5: not started", "session_completed"]
            .map(|line| line.replace("e5", &told[0]["started ".len()..]))
    );
    let frames = archive.frames(SESSION).await.unwrap();
    assert!(frames.iter().all(|row| !row.state.contains("\"effect\"")));
}

#[tokio::test]
async fn an_effect_whose_topic_is_left_is_closed() {
    let name = "left";
    let leaves = json!({ "action_type": "set", "action_id": "note", "config": { "values": { "seen": true } },
        "on_exit": { "exit_criteria_met": "skip_topic" } });
    let (archive, _, mut session) = begun(&stepped_in(name, &json!([leaves]), "resume")).await;
    session.advance().await.unwrap();
    let told = told(archive.as_ref()).await;
    assert_eq!(button(name).presses(), 0, "{told:?}");
    assert!(told.iter().any(|line| line.ends_with(": not started")), "{told:?}");
    let count = |what: &str| told.iter().filter(|line| line.starts_with(what)).count();
    assert_eq!(count("started"), count("finished"), "{told:?}");
}
