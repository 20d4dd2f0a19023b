//! What is wrong with an action on the notebook, and why one is refused.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ToMessage)]
#[error("{message}")]
pub struct ActionFieldError {
    /// The field, where it is one.
    pub field: Option<&'static str>,
    /// What is wrong. Holds nothing that a model said beyond names of fields and kinds.
    pub message: Message,
}

pub(crate) fn fault(field: &'static str, message: Message) -> ActionFieldError {
    ActionFieldError { field: Some(field), message }
}

/// Why an action was refused. It changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ToMessage)]
#[error("{message}")]
pub struct ActionRejection {
    /// A stable slug: `no-such-cell`, `not-a-code-cell`, `unknown-step`, …
    pub code: &'static str,
    /// What is wrong. Holds nothing that anybody sent.
    pub message: Message,
}

impl ActionRejection {
    pub fn new(code: &'static str, message: impl Into<Message>) -> Self {
        Self { code, message: message.into() }
    }
}
