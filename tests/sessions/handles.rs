//! Session handles: commands in, events out, with many sessions on a multi-threaded runtime.

use std::path::PathBuf;
use std::sync::Arc;

use bcc_engine::engine::{Engine, ResumeRequest, RunRequest};
use bcc_engine::environment::Environment;
use bcc_engine::handle::{SessionEvent, SessionHandle};
use bcc_engine::project::Project;
use bcc_lang::value::exact::ExactValues;
use bcc_runtime::program::decision::DecisionKind;
use bcc_runtime::program::event::{Event, Speaker};
use bcc_runtime::run::approval_decision::ApprovalDecision;
use bcc_runtime::run::session::{SessionPause, TakenAnswer};
use bcc_store::memory::MemoryStore;

/// The number of concurrent sessions.
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

/// Gives these answers until none is left. Returns the sequence numbers of the events and the messages of the assistant.
async fn talk(session: &mut SessionHandle, answers: &[&str]) -> (Vec<u64>, Vec<String>) {
    let (mut numbers, mut messages, mut answers) = (Vec::new(), Vec::new(), answers.iter());
    while let Some(event) = session.next().await {
        let SessionEvent::Committed { seq, event, line, .. } = event else { continue };
        assert!(line.contains(&format!("\"type\":\"{}\"", event.kind())), "{line}");
        numbers.push(seq);
        match *event {
            Event::Message { role: Speaker::Ai, text, .. } => messages.push(text),
            Event::Waiting { answer_id, .. } => {
                let Some(answer) = answers.next() else { break };
                assert_eq!(session.answer(answer, Some(&answer_id)).await.unwrap(), TakenAnswer::Yes);
            }
            _ => {}
        }
    }
    (numbers, messages)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_sessions_run_on_many_threads_and_none_receives_events_of_another() {
    let engine = Arc::new(engine());
    let tasks: Vec<_> = (0..SESSIONS)
        .map(|number| {
            let engine = Arc::clone(&engine);
            tokio::spawn(async move {
                let name = format!("Guest{number}");
                let mut session = engine.start(&request(&format!("s{number}"))).await.unwrap();
                let (numbers, messages) = talk(&mut session, &[&name, "3 times"]).await;
                let last = numbers.len() as u64;
                assert_eq!(numbers, (1..=last).collect::<Vec<_>>());
                assert_eq!(session.close().await.unwrap(), SessionPause::Completed);
                let others = messages.iter().filter(|text| text.contains("Guest")).filter(|text| !text.contains(&name));
                assert_eq!(others.count(), 0, "{messages:?}");
                messages.iter().filter(|text| text.contains(&name)).count()
            })
        })
        .collect();
    for task in tasks {
        assert!(task.await.unwrap() > 0, "each is called by its own name");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_whose_handle_is_closed_can_be_resumed_where_it_stopped() {
    let engine = engine();
    let mut session = engine.start(&request("s")).await.unwrap();
    assert_eq!(session.id(), "s");
    assert!(session.notices().iter().any(|notice| notice.to_string().contains("offline")), "{:?}", session.notices());
    let (earlier_numbers, _) = talk(&mut session, &["Ann"]).await;
    assert_eq!(session.close().await.unwrap(), SessionPause::Waiting);

    let mut session = engine.start_resumed("s", &ResumeRequest::default()).await.unwrap();
    let (numbers, messages) = talk(&mut session, &["3 times"]).await;
    assert!(numbers[0] == earlier_numbers.last().unwrap() + 1 && !messages.is_empty());
    let closed_error = session.answer("more", None).await.unwrap_err().to_string();
    assert!(closed_error.contains("no longer accepts answers"), "{closed_error}");
    assert_eq!(session.close().await.unwrap(), SessionPause::Completed);
    let completed_error = engine.start_resumed("s", &ResumeRequest::default()).await.unwrap_err().to_string();
    assert!(completed_error.contains("complete"), "{completed_error}");
}

#[tokio::test]
async fn an_answer_that_is_sent_twice_is_accepted_once() {
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
    assert_eq!(session.answer("Ann", Some(&id)).await.unwrap(), TakenAnswer::AlreadyUsed);
    assert_eq!(session.close().await.unwrap(), SessionPause::Waiting);
}

/// An approval, and a time to wait after it.
const ORDER: &str = "
session:
  session_id: order
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: approval, action_id: check, config: { prompt: 'Right?', approvers: [ann] } }
            - { action_type: wait, action_id: pause, config: { for: 10ms } }
            - { action_type: ai_say, action_id: bye, config: { content: 'Bye.', delivery: verbatim } }
";

#[tokio::test]
async fn a_handle_decides_and_a_time_comes_due() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("order.yaml");
    std::fs::write(&file, ORDER).unwrap();
    let environment = Environment::default();
    let project = Project::of(&file, None, false, &environment).unwrap();
    let engine = Engine::new(project, environment, Arc::new(MemoryStore::default()));
    let mut session = engine.start(&RunRequest { file, ..RunRequest::default() }).await.unwrap();
    let decision = |by: &str| ApprovalDecision {
        request: None,
        decision: DecisionKind::Approve,
        by: Some(by.to_owned()),
        comment: None,
        values: ExactValues::new(),
    };
    let mut said = Vec::new();
    while let Some(event) = session.next().await {
        let SessionEvent::Committed { event, .. } = event else { continue };
        match *event {
            Event::Waiting { r#for: "approval", .. } => {
                let refused = session.decide(decision("ben")).await.unwrap_err();
                assert!(refused.to_string().contains("decided by others"), "{refused}");
                session.decide(decision("ann")).await.unwrap();
            }
            Event::Message { role: Speaker::Ai, text, .. } => said.push(text),
            _ => {}
        }
    }
    assert_eq!(said, ["Bye."]);
    assert_eq!(session.close().await.unwrap(), SessionPause::Completed);
}

/// Runs a script in a project that may write files. Returns the lines of its events, and the directory.
async fn run_alone(fields: &str, action: &str) -> (String, tempfile::TempDir) {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("bcc-script.toml"), "[project]\nallow = [\"write_file\"]\n").unwrap();
    let file = home.path().join("s.yaml");
    let script = format!(
        "session:\n  session_id: s\n  {fields}\n  phases: [{{ phase_id: p, topics: [{{ topic_id: t, actions: [{action}] }}] }}]\n"
    );
    std::fs::write(&file, script).unwrap();
    let environment = Environment::default();
    let project = Project::of(&file, None, true, &environment).unwrap();
    let engine = Engine::new(project, environment, Arc::new(MemoryStore::default()));
    let mut session = engine.start(&RunRequest { file, ..RunRequest::default() }).await.unwrap();
    let mut lines = String::new();
    while let Some(event) = session.next().await {
        let SessionEvent::Committed { line, .. } = event else { continue };
        lines.push_str(&line);
    }
    session.close().await.unwrap();
    (lines, home)
}

#[tokio::test]
async fn the_report_that_a_script_names_is_written_before_the_handle_is_closed() {
    let action = "{ action_type: ai_say, action_id: a, config: { content: Hello, delivery: verbatim } }";
    let (_, home) = run_alone("report: { out: report.md }", action).await;
    assert_ne!(std::fs::read_to_string(home.path().join("report.md")).unwrap(), "");
}

#[tokio::test]
async fn a_tool_of_an_engine_without_tools_is_refused_with_the_reason() {
    let action = "{ action_type: tool, action_id: a, config: { name: graph_rag, arguments: { query: x } } }";
    let (lines, _home) = run_alone("tools: [graph_rag]", action).await;
    assert!(lines.contains("made its engine without tools; see `Engine::with_tools`"), "{lines}");
}
