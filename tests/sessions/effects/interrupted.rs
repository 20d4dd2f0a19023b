//! How a session handles an effect whose end was not recorded.

use std::sync::Arc;

use bcc_llm::providers::offline::Offline;
use bcc_runtime::program::program::Program;
use bcc_runtime::run::session::{SessionPause, TakenAnswer};
use bcc_runtime::run::take_back::TakenBack;
use bcc_store::contract::Store;
use bcc_store::memory::MemoryStore;
use serde_json::{Value, json};

use crate::effects::button::{
    button, drop_during_press, event_summaries, press_action, program, resume, session_with_actions, start_pressing,
    start_session,
};
use crate::test_session::{self, FixedModels, SESSION, journal, start_conversation};

/// A session that was dropped with its process during its first press.
async fn interrupted(name: &str, extra_fields: &Value) -> (Arc<Program>, Arc<dyn Store>) {
    let (store, program, mut session) = start_pressing(name, extra_fields).await;
    drop_during_press(name, &mut session).await;
    (program, store)
}

async fn last(store: &dyn Store, kind: &str) -> Value {
    serde_json::from_str(&store.last_by_kind(SESSION, kind).await.unwrap().unwrap().body).unwrap()
}

async fn waiting(store: &dyn Store) -> Value {
    last(store, "waiting").await
}

#[tokio::test]
async fn a_turn_that_was_dropped_during_an_effect_is_not_repeated_silently() {
    let name = "dropped";
    let (store, _program, mut session) = start_pressing(name, &json!({})).await;
    drop_during_press(name, &mut session).await;
    // The same process continues.
    assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
    assert_eq!(button(name).presses(), 1);
    assert_eq!(event_summaries(store.as_ref()).await, ["started e5", "waiting for interrupted_effect"]);
}

#[tokio::test]
async fn the_answer_of_the_person_decides() {
    let done = |effect: &str| format!("finished {effect}: pressed");
    for (answer, presses, pressed, end) in [
        (
            "again",
            2,
            json!(2),
            vec!["finished e5: interrupted; it is run again", "started e9", "…", "session_completed"],
        ),
        (
            "  重试！",
            2,
            json!(2),
            vec!["finished e5: interrupted; it is run again", "started e9", "…", "session_completed"],
        ),
        ("Skip.", 1, json!(null), vec!["finished e5: interrupted; it is skipped", "session_completed"]),
        ("跳过", 1, json!(null), vec!["finished e5: interrupted; it is skipped", "session_completed"]),
        (
            "`fail`",
            1,
            json!(null),
            vec!["finished e5: the action failed", "error effect-interrupted", "session_failed"],
        ),
        ("失败", 1, json!(null), vec!["finished e5: the action failed", "error effect-interrupted", "session_failed"]),
    ] {
        let name = format!("word-{answer}");
        let (program, store) = interrupted(&name, &json!({})).await;
        let mut session = resume(&program, Arc::clone(&store)).await;
        assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
        assert_eq!(session.answer(answer, None).await.unwrap(), TakenAnswer::Yes);
        session.advance().await.unwrap();
        assert_eq!(button(&name).presses(), presses, "{answer}");
        let summaries = event_summaries(store.as_ref()).await;
        let end: Vec<String> =
            end.iter().map(|line| if *line == "…" { done("e9") } else { (*line).to_owned() }).collect();
        assert_eq!(summaries[..3], ["started e5", "session_resumed", "waiting for interrupted_effect"]);
        assert_eq!(summaries[3..], end, "{answer}");
        let variables = store.variables(SESSION).await.unwrap();
        let value = variables.iter().find(|row| row.name == "pressed").map_or("null", |row| &row.value);
        assert_eq!(value, pressed.to_string(), "{answer}");
    }
}

#[tokio::test]
async fn the_author_may_decide_in_the_script() {
    for (choice, presses, last) in
        [("retry", 2, "session_completed"), ("skip", 1, "session_completed"), ("fail", 1, "session_failed")]
    {
        let name = format!("choice-{choice}");
        let (program, store) = interrupted(&name, &json!({ "on_interrupted": choice })).await;
        let mut session = resume(&program, Arc::clone(&store)).await;
        session.advance().await.unwrap();
        let summaries = event_summaries(store.as_ref()).await;
        assert_eq!((button(&name).presses(), summaries.last().unwrap().as_str()), (presses, last), "{summaries:?}");
        assert!(!summaries.iter().any(|line| line.starts_with("waiting")), "{summaries:?}");
    }
}

/// How often the session said that an answer was not expected.
async fn unexpected_answers(store: &dyn Store) -> usize {
    journal(store).await.iter().filter(|event| event["code"] == "unexpected-answer").count()
}

#[tokio::test]
async fn the_question_is_repeated_unchanged_and_an_answer_counts_once() {
    let name = "asked-again";
    let (program, store) = interrupted(name, &json!({})).await;
    let mut session = resume(&program, Arc::clone(&store)).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
    let first = waiting(store.as_ref()).await;
    drop(session);
    let mut session = resume(&program, Arc::clone(&store)).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
    assert_eq!(waiting(store.as_ref()).await, first, "it waits as it did");
    let id = first["answer_id"].as_str().unwrap();
    // After any other text the question is repeated, under another id.
    assert_eq!(session.answer("again and again", Some(id)).await.unwrap(), TakenAnswer::Yes);
    assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
    let second = waiting(store.as_ref()).await;
    assert_ne!(second["answer_id"], first["answer_id"]);
    assert_eq!(second["prompt"], first["prompt"], "the question says nothing of the answer");
    assert_eq!(unexpected_answers(store.as_ref()).await, 1);
    assert_eq!(session.answer("again", Some(id)).await.unwrap(), TakenAnswer::AlreadyUsed);
    assert_eq!(button(name).presses(), 1);
    let id = second["answer_id"].as_str().unwrap();
    assert_eq!(session.answer("again", Some(id)).await.unwrap(), TakenAnswer::Yes);
    // The process dies again during the effect; the answer is already used.
    drop_during_press(name, &mut session).await;
    drop(session);
    let mut session = resume(&program, Arc::clone(&store)).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
    assert_eq!(button(name).presses(), 2);
    assert_eq!(session.answer("again", Some(id)).await.unwrap(), TakenAnswer::AlreadyUsed);
}

#[tokio::test]
async fn the_question_names_the_interrupted_operation_in_the_language_of_the_script() {
    for (extra_fields, prefix) in [
        (json!({}), "This operation was interrupted: the red button (press)."),
        (json!({ "x-note": "按按钮" }), "这项操作中途被打断：the red button（press），无法确定完成了多少。"),
    ] {
        let (program, store) = interrupted(&format!("language-{prefix}"), &extra_fields).await;
        let mut session = resume(&program, Arc::clone(&store)).await;
        session.advance().await.unwrap();
        let prompt = waiting(store.as_ref()).await["prompt"].as_str().unwrap().to_owned();
        assert!(prompt.starts_with(prefix), "{prompt}");
        session.answer("什么？", None).await.unwrap();
        session.advance().await.unwrap();
        assert_eq!(waiting(store.as_ref()).await["prompt"].as_str().unwrap(), prompt);
        assert_eq!(unexpected_answers(store.as_ref()).await, 1);
    }
}

#[tokio::test]
async fn an_answer_about_an_effect_is_not_part_of_the_conversation() {
    let name = "no-conversation";
    let mut session = session_with_actions(&json!([press_action(name, &json!({}))]));
    session["skills"] = json!([{ "skill_id": "help", "actions": [
        { "action_type": "set", "action_id": "note", "config": { "values": { "pressed": 99 } } }] }]);
    session["triggers"] = json!([{ "trigger_id": "words", "when": "last_user_message is regex('skip')", "insert": "help", "then": "resume" }]);
    let program = program(&session);
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let mut session = start_session(&program, Arc::clone(&store)).await;
    drop_during_press(name, &mut session).await;
    session.advance().await.unwrap();
    session.answer("skip", None).await.unwrap();
    session.advance().await.unwrap();
    let messages = store.messages(SESSION, 0, 9).await.unwrap();
    assert!(messages.is_empty(), "{messages:?}");
    assert_eq!(store.session(SESSION).await.unwrap().unwrap().answers, 0);
    let journal = journal(store.as_ref()).await;
    assert!(!journal.iter().any(|event| event["type"] == "triggered" || event.to_string().contains("\"skip\"")));
}

#[tokio::test]
async fn an_answer_that_is_taken_back_closes_the_effect_that_followed_and_does_not_undo_it() {
    let name = "taken-back";
    let ask = json!({ "action_type": "ai_ask", "action_id": "ask", "config": { "content": "Press it?" } });
    let program = program(&session_with_actions(&json!([ask, press_action(name, &json!({}))])));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let models = || FixedModels::without_monitors(Some(Arc::new(Offline)));
    let mut session = start_conversation(&program, Arc::clone(&store), models()).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
    session.answer("yes", None).await.unwrap();
    drop_during_press(name, &mut session).await;
    drop(session);
    let mut session = test_session::resume(&program, Arc::clone(&store), models()).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
    assert_eq!(session.take_back().await.unwrap(), TakenBack::Yes);
    let effect = last(store.as_ref(), "effect_started").await;
    let closed = last(store.as_ref(), "effect_finished").await;
    assert_eq!(closed["effect_id"], effect["effect_id"]);
    assert_eq!(closed["summary"], "abandoned; it is not known how far it got");
    let taken_back = last(store.as_ref(), "taken_back").await;
    assert_eq!(taken_back["effects"], 1);
    assert_eq!(waiting(store.as_ref()).await["prompt"], "Press it?");
    let open = store.open_requests(None).await.unwrap();
    assert_eq!(open.iter().map(|open| open.request.kind.as_str()).collect::<Vec<_>>(), ["input"]);
    session.answer("yes", None).await.unwrap();
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    assert_eq!(button(name).presses(), 2);
}

#[tokio::test]
async fn an_unreachable_model_leaves_the_effect_to_be_decided() {
    let name = "no-model";
    let (store, program, mut session) = start_pressing(name, &json!({ "fault": "model" })).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Stopped);
    drop(session);
    let mut session = resume(&program, Arc::clone(&store)).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
    session.answer("skip", None).await.unwrap();
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    assert_eq!(button(name).presses(), 1);
}
