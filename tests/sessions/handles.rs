//! Sessions behind handles: commands in, events out, many of them on a runtime with several threads.

use std::path::PathBuf;
use std::sync::Arc;

use bcc_engine::engine::{Engine, ResumeRequest, RunRequest};
use bcc_engine::environment::Environment;
use bcc_engine::handle::{SessionEvent, SessionHandle};
use bcc_engine::project::Project;
use bcc_runtime::program::event::{Event, Speaker};
use bcc_runtime::run::session::{SessionPause, TakenAnswer};
use bcc_store::memory::MemoryStore;

/// How many sessions run at once.
const SESSIONS: usize = 200;

fn file() -> PathBuf {
    PathBuf::from(crate::ROOT).join("examples/embed.yaml")
}

fn engine() -> Engine {
    let environment = Environment::default();
    let project = Project::of(&file(), None, false, &environment).unwrap();
    Engine::new(project, environment, Arc::new(MemoryStore::default()))
}

fn request(id: &str) -> RunRequest {
    RunRequest { file: file(), session: Some(id.to_owned()), ..RunRequest::default() }
}

/// Answers with these until there are none left; gives the numbers of the events and what the AI said.
async fn talk(session: &mut SessionHandle, answers: &[&str]) -> (Vec<u64>, Vec<String>) {
    let (mut numbers, mut said, mut answers) = (Vec::new(), Vec::new(), answers.iter());
    while let Some(event) = session.next().await {
        let SessionEvent::Committed { seq, event, line, .. } = event else { continue };
        assert!(line.contains(&format!("\"type\":\"{}\"", event.kind())), "{line}");
        numbers.push(seq);
        match *event {
            Event::Message { role: Speaker::Ai, text, .. } => said.push(text),
            Event::Waiting { answer_id, .. } => {
                let Some(answer) = answers.next() else { break };
                assert_eq!(session.answer(answer, Some(&answer_id)).await.unwrap(), TakenAnswer::Yes);
            }
            _ => {}
        }
    }
    (numbers, said)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_sessions_run_on_many_threads_and_none_hears_another() {
    let engine = Arc::new(engine());
    let tasks: Vec<_> = (0..SESSIONS)
        .map(|number| {
            let engine = Arc::clone(&engine);
            tokio::spawn(async move {
                let name = format!("Guest{number}");
                let mut session = engine.start(&request(&format!("s{number}"))).await.unwrap();
                let (numbers, said) = talk(&mut session, &[&name, "3 times"]).await;
                let last = numbers.len() as u64;
                assert_eq!(numbers, (1..=last).collect::<Vec<_>>());
                assert_eq!(session.close().await.unwrap(), SessionPause::Completed);
                let others = said.iter().filter(|text| text.contains("Guest")).filter(|text| !text.contains(&name));
                assert_eq!(others.count(), 0, "{said:?}");
                said.iter().filter(|text| text.contains(&name)).count()
            })
        })
        .collect();
    for task in tasks {
        assert!(task.await.unwrap() > 0, "each is called by its own name");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_whose_handle_is_closed_rests_and_is_taken_up_where_it_was() {
    let engine = engine();
    let mut session = engine.start(&request("s")).await.unwrap();
    assert_eq!(session.id(), "s");
    assert!(session.notices().iter().any(|notice| notice.to_string().contains("offline")), "{:?}", session.notices());
    let (seen, _) = talk(&mut session, &["Ann"]).await;
    assert_eq!(session.close().await.unwrap(), SessionPause::Waiting);

    let mut session = engine.take_up("s", &ResumeRequest::default()).await.unwrap();
    let (numbers, said) = talk(&mut session, &["3 times"]).await;
    assert!(numbers[0] == seen.last().unwrap() + 1 && !said.is_empty());
    let late = session.answer("more", None).await.unwrap_err().to_string();
    assert!(late.contains("no longer accepts answers"), "{late}");
    assert_eq!(session.close().await.unwrap(), SessionPause::Completed);
    let over = engine.take_up("s", &ResumeRequest::default()).await.unwrap_err().to_string();
    assert!(over.contains("complete"), "{over}");
}

#[tokio::test]
async fn an_answer_is_taken_once_however_often_it_is_sent() {
    let engine = engine();
    let mut session = engine.start(&request("s")).await.unwrap();
    let id = loop {
        if let SessionEvent::Committed { event, .. } = session.next().await.unwrap()
            && let Event::Waiting { answer_id, .. } = *event
        {
            break answer_id;
        }
    };
    assert_eq!(session.answer("Ann", Some(&id)).await.unwrap(), TakenAnswer::Yes);
    assert_eq!(session.answer("Ann", Some(&id)).await.unwrap(), TakenAnswer::Before);
    assert_eq!(session.close().await.unwrap(), SessionPause::Waiting);
}
