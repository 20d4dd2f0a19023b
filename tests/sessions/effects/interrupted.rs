//! What becomes of an effect that nobody saw come to its end.

use std::sync::Arc;

use bcc_runtime::program::program::Program;
use bcc_runtime::run::session::{SessionPause, TakenAnswer};
use bcc_store::contract::Store;
use bcc_store::memory::MemoryStore;
use serde_json::{Value, json};

use crate::effects::button::{begin, button, drop_in_the_middle, of_actions, press, pressing, program, resume, told};
use crate::stage::{SESSION, journal};

/// A session whose first press is under way, dropped with its process.
async fn interrupted(name: &str, more: &Value) -> (Arc<Program>, Arc<dyn Store>) {
    let (archive, program, mut session) = pressing(name, more).await;
    drop_in_the_middle(name, &mut session).await;
    (program, archive)
}

async fn waiting(archive: &dyn Store) -> Value {
    serde_json::from_str(&archive.last_of(SESSION, "waiting").await.unwrap().unwrap().body).unwrap()
}

#[tokio::test]
async fn a_turn_that_was_dropped_in_the_middle_is_not_taken_again_silently() {
    let name = "dropped";
    let (archive, _program, mut session) = pressing(name, &json!({})).await;
    drop_in_the_middle(name, &mut session).await;
    // The same process goes on.
    assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
    assert_eq!(button(name).presses(), 1);
    assert_eq!(told(archive.as_ref()).await, ["started e5", "waiting for interrupted_effect"]);
}

#[tokio::test]
async fn the_word_of_the_person_decides() {
    let done = |effect: &str| format!("finished {effect}: pressed");
    for (word, presses, pressed, end) in [
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
        let name = format!("word-{word}");
        let (program, archive) = interrupted(&name, &json!({})).await;
        let mut session = resume(&program, Arc::clone(&archive)).await;
        assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
        assert_eq!(session.answer(word, None).await.unwrap(), TakenAnswer::Yes);
        session.advance().await.unwrap();
        assert_eq!(button(&name).presses(), presses, "{word}");
        let told = told(archive.as_ref()).await;
        let end: Vec<String> =
            end.iter().map(|line| if *line == "…" { done("e9") } else { (*line).to_owned() }).collect();
        assert_eq!(told[..3], ["started e5", "session_resumed", "waiting for interrupted_effect"]);
        assert_eq!(told[3..], end, "{word}");
        let variables = archive.variables(SESSION).await.unwrap();
        let value = variables.iter().find(|row| row.name == "pressed").map_or("null", |row| &row.value);
        assert_eq!(value, pressed.to_string(), "{word}");
    }
}

#[tokio::test]
async fn the_author_may_have_decided() {
    for (choice, presses, last) in
        [("retry", 2, "session_completed"), ("skip", 1, "session_completed"), ("fail", 1, "session_failed")]
    {
        let name = format!("choice-{choice}");
        let (program, archive) = interrupted(&name, &json!({ "on_interrupted": choice })).await;
        let mut session = resume(&program, Arc::clone(&archive)).await;
        session.advance().await.unwrap();
        let told = told(archive.as_ref()).await;
        assert_eq!((button(&name).presses(), told.last().unwrap().as_str()), (presses, last), "{told:?}");
        assert!(!told.iter().any(|line| line.starts_with("waiting")), "{told:?}");
    }
}

#[tokio::test]
async fn the_question_is_told_again_as_it_was_and_a_word_counts_once() {
    let name = "asked-again";
    let (program, archive) = interrupted(name, &json!({})).await;
    let mut session = resume(&program, Arc::clone(&archive)).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
    let first = waiting(archive.as_ref()).await;
    drop(session);
    let mut session = resume(&program, Arc::clone(&archive)).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
    assert_eq!(waiting(archive.as_ref()).await, first, "it waits as it did");
    let id = first["answer_id"].as_str().unwrap();
    // Anything else than one of the words is asked again, under another id.
    assert_eq!(session.answer("again and again", Some(id)).await.unwrap(), TakenAnswer::Yes);
    assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
    let second = waiting(archive.as_ref()).await;
    assert_ne!(second["answer_id"], first["answer_id"]);
    assert!(second["prompt"].as_str().unwrap().starts_with("That was not one of the expected answers."), "{second}");
    assert_eq!(session.answer("again", Some(id)).await.unwrap(), TakenAnswer::Before);
    assert_eq!(button(name).presses(), 1);
    let id = second["answer_id"].as_str().unwrap();
    assert_eq!(session.answer("again", Some(id)).await.unwrap(), TakenAnswer::Yes);
    // The process dies in the middle of it once more: the word is used up.
    drop_in_the_middle(name, &mut session).await;
    drop(session);
    let mut session = resume(&program, Arc::clone(&archive)).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
    assert_eq!(button(name).presses(), 2);
    assert_eq!(session.answer("again", Some(id)).await.unwrap(), TakenAnswer::Before);
}

#[tokio::test]
async fn the_question_names_what_was_under_way_in_the_language_of_the_script() {
    for (more, begins) in [
        (json!({}), "The program was stopped during this operation: the red button (press)."),
        (json!({ "x-note": "按按钮" }), "程序中断时正在执行：the red button（press），无法确定完成了多少。"),
    ] {
        let (program, archive) = interrupted(&format!("language-{begins}"), &more).await;
        let mut session = resume(&program, Arc::clone(&archive)).await;
        session.advance().await.unwrap();
        let prompt = waiting(archive.as_ref()).await["prompt"].as_str().unwrap().to_owned();
        assert!(prompt.starts_with(begins), "{prompt}");
        session.answer("什么？", None).await.unwrap();
        session.advance().await.unwrap();
        assert_ne!(waiting(archive.as_ref()).await["prompt"].as_str().unwrap(), prompt);
    }
}

#[tokio::test]
async fn a_word_about_an_effect_is_no_part_of_the_conversation() {
    let name = "no-conversation";
    let mut session = of_actions(&json!([press(name, &json!({}))]));
    session["skills"] = json!([{ "skill_id": "help", "actions": [
        { "action_type": "set", "action_id": "note", "config": { "values": { "pressed": 99 } } }] }]);
    session["triggers"] = json!([{ "trigger_id": "words", "when": "last_user_message is regex('skip')", "insert": "help", "then": "resume" }]);
    let program = program(&session);
    let archive: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let mut session = begin(&program, Arc::clone(&archive)).await;
    drop_in_the_middle(name, &mut session).await;
    session.advance().await.unwrap();
    session.answer("skip", None).await.unwrap();
    session.advance().await.unwrap();
    let said = archive.messages(SESSION, 0, 9).await.unwrap();
    assert!(said.is_empty(), "{said:?}");
    assert_eq!(archive.session(SESSION).await.unwrap().unwrap().answers, 0);
    let journal = journal(archive.as_ref()).await;
    assert!(!journal.iter().any(|event| event["type"] == "triggered" || event.to_string().contains("\"skip\"")));
}

#[tokio::test]
async fn a_model_that_cannot_be_reached_leaves_the_effect_to_be_decided() {
    let name = "no-model";
    let (archive, program, mut session) = pressing(name, &json!({ "fault": "model" })).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Stopped);
    drop(session);
    let mut session = resume(&program, Arc::clone(&archive)).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
    session.answer("skip", None).await.unwrap();
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    assert_eq!(button(name).presses(), 1);
}
