//! What a script says before anybody answers: it is run with the built-in responder, in memory, up to its first question.

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
use bcc_runtime::run::session::SessionPause;
use bcc_store::contract::Store;
use bcc_store::memory::MemoryStore;

/// The id of the session, which nobody keeps.
const SESSION: &str = "opening";

/// Where the clock of tests stands at first (docs/tests.md): texts may say the time.
const CLOCK: &str = "2026-01-01T09:00:00Z";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// What the AI says, message by message.
    pub said: Vec<String>,
    /// Whether it then waits for an answer; else it is over.
    pub waits: bool,
}

struct Nobody;

impl Observer for Nobody {
    fn delta(&self, _delta: &Delta<'_>) {}
}

/// The opening of the script at `file`.
/// Errors: as [`Engine::run`] when it cannot be begun; `Failed` when it fails before anybody has said anything.
pub async fn opening(project: Project, file: &Path, environment: &Environment) -> Result<Opening, EngineError> {
    let archive = Arc::new(MemoryStore::default());
    let engine = Engine::new(project, environment.clone(), Arc::clone(&archive) as Arc<dyn Store>);
    let request = RunRequest {
        file: file.to_path_buf(),
        session: Some(SESSION.to_owned()),
        model: Some(offline::NAME.to_owned()),
        clock: Some(CLOCK.to_owned()),
        ..RunRequest::default()
    };
    let mut session = engine.run(&request, Arc::new(Nobody)).await?.session;
    let pause = session.advance().await?;
    drop(session);
    let rows = archive.journal(SESSION, 0, usize::MAX).await?;
    let events: Vec<Value> = rows.iter().filter_map(|row| serde_json::from_str(&row.body).ok()).collect();
    let text = |event: &Value, name: &str| event.get(name).and_then(Value::as_str).map(str::to_owned);
    match pause {
        SessionPause::Waiting | SessionPause::Completed => {
            let said = events.iter().filter(|event| text(event, "type").as_deref() == Some("message"));
            let said = said.filter(|event| text(event, "role").as_deref() == Some("ai"));
            let said = said.filter_map(|event| text(event, "text")).collect();
            Ok(Opening { said, waits: pause == SessionPause::Waiting })
        }
        SessionPause::Failed | SessionPause::Stopped => {
            let why = events
                .iter()
                .rev()
                .find_map(|event| text(event, "message").filter(|_| text(event, "type").as_deref() == Some("error")));
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            Err(EngineError::failed(msg!("the script fails before the first message{why}"))
                .with_help("`bcc-script run` shows the details; a test can be created once the script starts"))
        }
    }
}
