//! A decision that somebody gives, and why one is not taken (docs/requests.md).

use bcc_lang::message::message::Message;
use bcc_lang::value::exact::ExactValues;

use crate::program::decision::DecisionKind;
use crate::run::error::RunError;

/// A decision about the request that a session waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalDecision {
    /// The request; the one that is open if not set.
    pub request: Option<String>,
    pub decision: DecisionKind,
    /// Who decides, as that person gives their name: nothing here verifies it.
    pub by: Option<String>,
    pub comment: Option<String>,
    /// The values of the form. A text is read as the type of its field.
    pub values: ExactValues,
}

/// Why a decision was not taken. Nothing changed.
#[derive(Debug, thiserror::Error)]
pub enum DecisionError {
    #[error("{message}")]
    Refused { code: &'static str, message: Message, help: Option<Message> },
    #[error(transparent)]
    Run(#[from] RunError),
}
