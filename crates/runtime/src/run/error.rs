//! Errors that prevent this process from running a session.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_store::error::StoreError;

/// An error from outside the script that ends a run. The stored session is intact: what was committed stays.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The stored data cannot be read as a session of this release.
    #[error("session `{id}` cannot be read from the store: {what}")]
    Unreadable {
        id: String,
        /// The problem.
        what: Message,
    },
    #[error("there is no session `{0}` in this store")]
    NotFound(String),
    /// The session is completed or failed.
    #[error("session `{id}` cannot continue: its status is `{status}`")]
    Final { id: String, status: &'static str },
    /// A commit of this session failed or was interrupted, so this process's state may differ from the stored one.
    #[error("session `{0}` was interrupted during a commit; open it again")]
    CommitInterrupted(String),
    /// The session was to be resumed with a budget that is already used up.
    #[error("session `{id}` cannot continue with this budget: {what} are already used")]
    BudgetTooSmall {
        id: String,
        /// The use and the limit.
        what: Message,
    },
    /// An exchange with a model could not be recorded, so nothing of it was committed.
    #[error("{0}")]
    Recording(Message),
    /// An observer stopped the session. It can be resumed.
    #[error("{0}")]
    Halted(Message),
    /// A given value does not fit its variable.
    #[error("{0}")]
    Variable(Message),
}

impl ToMessage for RunError {
    fn to_message(&self) -> Message {
        match self {
            Self::Store(error) => error.to_message(),
            Self::Unreadable { id, what } => {
                msg!("session `{id}` cannot be read from the store: {what}", what = what.clone())
            }
            Self::NotFound(id) => msg!("there is no session `{0}` in this store", id),
            Self::Final { id, status } => {
                msg!("session `{id}` cannot continue: its status is `{status}`", status = Message::word(status))
            }
            Self::CommitInterrupted(id) => msg!("session `{0}` was interrupted during a commit; open it again", id),
            Self::BudgetTooSmall { id, what } => {
                msg!("session `{id}` cannot continue with this budget: {what} are already used", what = what.clone())
            }
            Self::Recording(message) | Self::Variable(message) | Self::Halted(message) => message.clone(),
        }
    }
}
