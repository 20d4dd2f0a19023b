//! Gives a session the decisions that somebody made by editing its state file.

use bcc_lang::message::msg;
use bcc_lang::value::exact::ExactValues;
use bcc_lang::workflow::compare::FileDecision;
use bcc_runtime::program::decision::DecisionKind;
use bcc_runtime::run::approval_decision::{ApprovalDecision, DecisionError};
use bcc_runtime::run::session::Session;
use serde_json::Value;

use crate::error::EngineError;
use crate::state_file::keeper::{FileEvent, StateFileKeeper};

/// Takes a decision that was made in the file.
///
/// # Errors
/// The decision is not permitted, or the file was changed so that the session cannot go on.
pub async fn take(session: &mut Session, keeper: &StateFileKeeper, event: FileEvent) -> Result<(), EngineError> {
    let FileDecision { step, request, is_approved, by, comment, values } = match event {
        FileEvent::Decision(decision) => decision,
        FileEvent::Halted(reason) => return Err(EngineError::failed(reason)),
    };
    // Nothing is recorded, so that the file stays what it is.
    if let Err(late) = session.check_in_time(&request) {
        let help = "set the `status` of the step back to `waiting_approval`; if nothing else was edited, what its `on_timeout` says applies";
        return Err(rejection(keeper, late).with_help(help));
    }
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
    session.decide(decision).await.map_err(|error| rejection(keeper, error))
}

fn rejection(keeper: &StateFileKeeper, error: DecisionError) -> EngineError {
    match error {
        DecisionError::Run(error) => error.into(),
        DecisionError::Refused { message, help, .. } => {
            let error = EngineError::failed(keeper.rejected_decision(&message));
            match help {
                Some(help) => error.with_help(help),
                None => error,
            }
        }
    }
}

/// Takes all decisions that are in the file.
///
/// # Errors
/// As [`take`].
pub async fn take_all(session: &mut Session, keeper: &StateFileKeeper) -> Result<(), EngineError> {
    while let Some(event) = keeper.look() {
        take(session, keeper, event).await?;
    }
    Ok(())
}
