//! What `run` does with a workflow state file (docs/workflows.md): it waits for decisions that are made in the file, and begins again when
//! the steps that are still to run were changed.

use std::sync::Arc;

use bcc_engine::error::EngineError;
use bcc_engine::state_file::keeper::{FileEvent, StateFileKeeper};
use bcc_lang::message::msg;
use bcc_lang::value::exact::ExactValues;
use bcc_lang::workflow::compare::FileDecision;
use bcc_runtime::program::decision::DecisionKind;
use bcc_runtime::run::approval_decision::{ApprovalDecision, DecisionError};
use bcc_runtime::run::session::Session;
use serde_json::Value;

/// The state file of the session that is driven.
#[derive(Clone)]
pub struct WatchedFile {
    pub keeper: Arc<StateFileKeeper>,
    /// Whether the process stays while the session waits for a decision.
    pub waits: bool,
}

/// Waits until somebody changes the file; forever without a file.
pub async fn changed(watched: Option<&WatchedFile>) -> FileEvent {
    match watched {
        Some(watched) => watched.keeper.changed().await,
        None => std::future::pending().await,
    }
}

/// Takes a decision that was made in the file.
///
/// # Errors
/// The decision is not permitted, or the file was changed so that the session cannot go on.
pub async fn take(session: &mut Session, keeper: &StateFileKeeper, event: FileEvent) -> Result<(), EngineError> {
    let FileDecision { step, request, is_approved, by, comment, values } = match event {
        FileEvent::Decision(decision) => decision,
        FileEvent::Halted(reason) => return Err(EngineError::failed(reason)),
    };
    let decision = if is_approved { DecisionKind::Approve } else { DecisionKind::Reject };
    let values = match values {
        Value::Null => ExactValues::new(),
        Value::Object(values) => values.into_iter().map(|(name, value)| (name, value.into())).collect(),
        _ => {
            let why = msg!("`values` in the `result` of the step `{step}` is no mapping of names to values");
            return Err(EngineError::failed(keeper.rejected_decision(&why)));
        }
    };
    let decision = ApprovalDecision { request: Some(request), decision, by, comment, values };
    session.decide(decision).await.map_err(|error| match error {
        DecisionError::Run(error) => error.into(),
        DecisionError::Refused { message, help, .. } => {
            let error = EngineError::failed(keeper.rejected_decision(&message));
            match help {
                Some(help) => error.with_help(help),
                None => error,
            }
        }
    })
}
