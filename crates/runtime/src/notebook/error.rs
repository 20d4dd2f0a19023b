//! Errors in the fields of a notebook action, and rejections of an action.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ToMessage)]
#[error("{message}")]
pub struct ActionFieldError {
    /// The field, if the error concerns one.
    pub field: Option<&'static str>,
    /// The error. Contains no text of a model except names of fields and kinds.
    pub message: Message,
}

pub(crate) fn field_error(field: &'static str, message: Message) -> ActionFieldError {
    ActionFieldError { field: Some(field), message }
}

/// Why an action was rejected. It changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ToMessage)]
#[error("{message}")]
pub struct ActionRejection {
    /// A stable slug: `no-such-cell`, `not-a-code-cell`, `unknown-step`, …
    pub code: &'static str,
    /// The reason. Contains nothing that was sent.
    pub message: Message,
}

impl ActionRejection {
    pub fn new(code: &'static str, message: impl Into<Message>) -> Self {
        Self { code, message: message.into() }
    }
}
