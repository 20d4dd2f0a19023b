//! Errors of the engine, by their exit code.

use crate::shell::quoted;
use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::template::error::TemplateError;
use bcc_llm::model::error::ModelError;
use bcc_runtime::run::error::RunError;
use bcc_store::error::StoreError;
use std::path::Path;

/// An error with optional help.
#[derive(Debug, thiserror::Error, ToMessage)]
pub enum EngineError {
    /// Invalid usage: exit code 2.
    #[error("{message}")]
    Usage { message: Message, help: Option<Message> },
    /// The script has errors: exit code 2.
    #[error("the script has errors")]
    Invalid(Vec<Diagnostic>),
    /// The requested session has already ended: exit code 4.
    #[error("{message}")]
    Ended { message: Message, help: Option<Message> },
    /// A failure: exit code 1.
    #[error("{message}")]
    Failed { message: Message, help: Option<Message> },
    /// Another process runs the session: exit code 1.
    #[error("{message}")]
    Held { session: String, message: Message },
    /// The store cannot be used at the moment, or another process has changed the session: exit code 1.
    #[error("{message}")]
    StoreUnavailable { message: Message },
    /// A newer release has written the store, perhaps while this process had it open: exit code 1.
    #[error("{message}")]
    StoreNewer { message: Message },
    /// The store went away while a session ran, which can be resumed when it is back: exit code 3.
    #[error("{message}")]
    StoreGone { message: Message },
}

impl EngineError {
    pub fn usage(message: impl Into<Message>) -> Self {
        Self::Usage { message: message.into(), help: None }
    }

    pub fn failed(message: impl Into<Message>) -> Self {
        Self::Failed { message: message.into(), help: None }
    }

    #[must_use]
    pub fn with_help(self, text: impl Into<Message>) -> Self {
        match self {
            Self::Usage { message, .. } => Self::Usage { message, help: Some(text.into()) },
            Self::Ended { message, .. } => Self::Ended { message, help: Some(text.into()) },
            Self::Failed { message, .. } => Self::Failed { message, help: Some(text.into()) },
            other @ (Self::Invalid(_)
            | Self::Held { .. }
            | Self::StoreUnavailable { .. }
            | Self::StoreNewer { .. }
            | Self::StoreGone { .. }) => other,
        }
    }

    pub fn help(&self) -> Option<&Message> {
        match self {
            Self::Usage { help, .. } | Self::Ended { help, .. } | Self::Failed { help, .. } => help.as_ref(),
            Self::Invalid(_)
            | Self::Held { .. }
            | Self::StoreUnavailable { .. }
            | Self::StoreNewer { .. }
            | Self::StoreGone { .. } => None,
        }
    }
}

impl From<RunError> for EngineError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Store(error) => error.into(),
            RunError::CommitInterrupted(_) => Self::failed(error.to_message()),
            RunError::Unreadable { .. } => Self::failed(error.to_message())
                .with_help("it was written by another release, or the store is damaged; nothing was changed"),
            RunError::NotFound(_) => {
                Self::usage(error.to_message()).with_help("run `bcc-script sessions list` to list the sessions")
            }
            RunError::Final { .. } => Self::Ended {
                message: error.to_message(),
                help: Some("start a new one, with another id or without an id".into()),
            },
            RunError::BudgetTooSmall { .. } => Self::usage(error.to_message())
                .with_help("`--budget` sets the total budget, not an additional amount"),
            RunError::Recording(message) => Self::failed(message).with_help(
                "the session is saved as it was after its last turn: resume it with `--record` and another file, or without `--record`",
            ),
            RunError::Halted(message) => Self::failed(message),
            RunError::Variable(message) => Self::usage(message),
        }
    }
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        let message = error.to_message();
        match error {
            StoreError::Gone { .. } => Self::StoreGone { message },
            StoreError::Held { id, .. } => Self::Held { session: id, message },
            StoreError::Newer { .. } => Self::StoreNewer { message },
            StoreError::Unreachable { .. }
            | StoreError::Busy { .. }
            | StoreError::Full { .. }
            | StoreError::LeaseLost { .. }
            | StoreError::Conflict { .. } => Self::StoreUnavailable { message },
            StoreError::Damaged { store, .. } => Self::failed(message).with_help(msg!(
                "`bcc-script store recover --store {path}` saves what can be read in a new store",
                path = quoted(Path::new(&store))
            )),
            _ => Self::failed(message),
        }
    }
}

impl From<TemplateError> for EngineError {
    fn from(error: TemplateError) -> Self {
        let help = error.help.clone();
        Self::Usage { message: error.to_message(), help }
    }
}

impl From<ModelError> for EngineError {
    fn from(error: ModelError) -> Self {
        Self::usage(error.to_message())
    }
}
