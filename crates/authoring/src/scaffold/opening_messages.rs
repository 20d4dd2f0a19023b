//! Determines the opening messages of a script: runs it in memory with the built-in responder, up to the first question.

use bcc_lang::message::msg;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use bcc_engine::engine::{Engine, RunRequest};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::project::Project;
use bcc_llm::providers::offline;
use bcc_runtime::program::event::{Delta, Observer};
use bcc_runtime::run::head::SessionStatus;
use bcc_runtime::run::session::SessionPause;
use bcc_store::contract::Store;
use bcc_store::memory::MemoryStore;

/// The id of the temporary session.
const SESSION: &str = "opening";

/// The default start of the clock in tests (docs/tests.md): messages may contain the time.
const CLOCK: &str = "2026-01-01T09:00:00Z";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The messages of the AI.
    pub messages: Vec<String>,
    /// What the session then waits for, or that it has ended.
    pub status: SessionStatus,
}

struct IgnoreDeltas;

impl Observer for IgnoreDeltas {
    fn delta(&self, _delta: &Delta<'_>) {}
}

/// Runs the opening of the script at `file`.
/// Errors: as [`Engine::run`] if it cannot be started; `Failed` if it fails before the first message.
pub async fn opening(project: Project, file: &Path, environment: &Environment) -> Result<Opening, EngineError> {
    let store = Arc::new(MemoryStore::default());
    let engine = Engine::new(project, environment.clone(), Arc::clone(&store) as Arc<dyn Store>);
    let request = RunRequest {
        file: file.to_path_buf(),
        session: Some(SESSION.to_owned()),
        model: Some(offline::NAME.to_owned()),
        clock: Some(CLOCK.to_owned()),
        ..RunRequest::default()
    };
    let mut session = engine.run(&request, Arc::new(IgnoreDeltas)).await?.session;
    let pause = session.advance().await?;
    let status = session.status();
    drop(session);
    let rows = store.journal(SESSION, 0, usize::MAX).await?;
    let events: Vec<Value> = rows.iter().filter_map(|row| serde_json::from_str(&row.body).ok()).collect();
    let text = |event: &Value, name: &str| event.get(name).and_then(Value::as_str).map(str::to_owned);
    match pause {
        SessionPause::Waiting | SessionPause::Completed => {
            let messages = events.iter().filter(|event| text(event, "type").as_deref() == Some("message"));
            let messages = messages.filter(|event| text(event, "role").as_deref() == Some("ai"));
            let messages = messages.filter_map(|event| text(event, "text")).collect();
            Ok(Opening { messages, status })
        }
        SessionPause::Failed | SessionPause::Stopped | SessionPause::Cancelled => {
            let reason = events
                .iter()
                .rev()
                .find_map(|event| text(event, "message").filter(|_| text(event, "type").as_deref() == Some("error")));
            let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            Err(EngineError::failed(msg!("the script fails before the first message{reason}"))
                .with_help("`bcc-script run` shows the details; a test can be created once the script starts"))
        }
    }
}
