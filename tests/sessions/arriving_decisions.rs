//! Decisions that arrive while a session runs.

use std::sync::Arc;

use bcc_engine::engine::{Engine, RunRequest};
use bcc_engine::environment::Environment;
use bcc_engine::project::Project;
use bcc_lang::value::exact::ExactValues;
use bcc_runtime::program::decision::DecisionKind;
use bcc_runtime::program::event::NoObserver;
use bcc_runtime::run::approval_decision::{ApprovalDecision, DecisionError};
use bcc_runtime::run::session::{Session, SessionPause};
use bcc_store::contract::Store;
use bcc_store::memory::MemoryStore;
use serde_json::{Value, json};

use crate::due_clock::DueClock;

/// An approval in a branch, with little time.
const SCRIPT: &str = "
session:
  session_id: s
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - action_type: parallel
              action_id: both
              config:
                branches:
                  - id: a
                    actions:
                      - { action_type: approval, action_id: short, config: { prompt: 'Short?', timeout: 1s, on_timeout: approve }, on_exit: { rejected: next } }
";

async fn started(store: &Arc<dyn Store>) -> Session {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("s.yaml");
    std::fs::write(&file, SCRIPT).unwrap();
    let environment = Environment::default();
    let project = Project::of(&file, None, false, &environment).unwrap();
    let clock = DueClock::new(true);
    let engine = Engine::new(project, environment, Arc::clone(store)).with_clock(Arc::new(clock));
    let request = RunRequest { file, session: Some("one".to_owned()), ..RunRequest::default() };
    engine.run(&request, Arc::new(NoObserver)).await.unwrap().session
}

fn rejection(request: Option<&str>) -> ApprovalDecision {
    ApprovalDecision {
        request: request.map(str::to_owned),
        decision: DecisionKind::Reject,
        by: None,
        comment: None,
        values: ExactValues::new(),
    }
}

/// What was decided.
async fn decided(store: &Arc<dyn Store>) -> Vec<Value> {
    let rows = store.journal_by_kind("one", "request_answered", 0, 10).await.unwrap();
    rows.iter().map(|row| serde_json::from_str::<Value>(&row.body).unwrap()["decision"].clone()).collect()
}

#[tokio::test]
async fn a_decision_that_has_arrived_comes_before_a_time_that_is_over() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let mut session = started(&store).await;
    let (inbox, unknown) = (session.inbox(), rejection(Some("r999")));
    // The first names no request: it waits until one is open.
    let (mut meant, mut refused) = (inbox.put(rejection(None)), inbox.put(unknown));
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    assert_eq!(decided(&store).await, [json!("reject")]);
    let before = meant.try_recv().unwrap().unwrap();
    let asked = store.journal_by_kind("one", "request_opened", 0, 10).await.unwrap();
    assert!(before >= asked[0].seq, "{before}");
    let error = refused.try_recv().unwrap().unwrap_err();
    assert!(matches!(error, DecisionError::Refused { code: "request-unknown", .. }), "{error}");
}

#[tokio::test]
async fn a_decision_that_no_branch_can_take_is_not_taken() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let mut session = started(&store).await;
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    assert_eq!(decided(&store).await, [Value::Null]);
    let inbox = session.inbox();
    let mut result = inbox.put(rejection(None));
    assert!(result.try_recv().is_err());
    inbox.clear();
    assert!(result.await.is_err(), "nobody takes it any more");
    assert_eq!(decided(&store).await.len(), 1);
}
