//! A finding of `doctor` and its state.

use bcc_lang::message::message::Message;
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckState {
    Ok,
    Note,
    Problem,
}

impl CheckState {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Problem => "problem",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoctorFinding {
    /// A stable identifier, `about` in JSON.
    pub subject: &'static str,
    pub state: CheckState,
    /// The result. It contains no keys and no text of a conversation.
    pub message: Message,
    pub help: Option<Message>,
}

impl DoctorFinding {
    pub fn ok(subject: &'static str, message: impl Into<Message>) -> Self {
        Self { subject, state: CheckState::Ok, message: message.into(), help: None }
    }

    pub fn note(subject: &'static str, message: impl Into<Message>) -> Self {
        Self { subject, state: CheckState::Note, message: message.into(), help: None }
    }

    pub fn problem(subject: &'static str, message: impl Into<Message>) -> Self {
        Self { subject, state: CheckState::Problem, message: message.into(), help: None }
    }

    #[must_use]
    pub fn with_help(self, help: impl Into<Message>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// Sets the help text, if there is one.
    #[must_use]
    pub(crate) fn with_any_help(self, help: Option<Message>) -> Self {
        Self { help, ..self }
    }

    pub fn json(&self) -> Value {
        json!({ "about": self.subject, "state": self.state.name(), "message": self.message, "help": self.help })
    }
}
