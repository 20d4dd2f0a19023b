//! Why a session cannot be driven any further by this process.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_store::error::StoreError;

/// What ends a drive from outside the script. The session at rest is whole: what was committed stays.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The store refused or failed.
    #[error(transparent)]
    Archive(#[from] StoreError),
    /// What is stored cannot be read as a session of this release.
    #[error("session `{id}` cannot be read from the store: {what}")]
    Unreadable {
        id: String,
        /// What does not fit.
        what: Message,
    },
    #[error("there is no session `{0}` in this store")]
    NotFound(String),
    /// The session is completed or failed.
    #[error("session `{id}` is {status}; it cannot continue")]
    Final { id: String, status: &'static str },
    /// A commit of this session failed or was interrupted, so what this process knows may not be what is stored.
    #[error("session `{0}` was interrupted during a commit; open it again")]
    Ahead(String),
    /// It was to be resumed with a budget that is used up already.
    #[error("session `{id}` cannot continue with this budget: {what} are already used")]
    BudgetTooSmall {
        id: String,
        /// What was used, and of how much.
        what: Message,
    },
    /// What was said to a model could not be written down, so nothing of it was committed.
    #[error("{0}")]
    Recording(Message),
    /// A value given for a variable does not fit it.
    #[error("{0}")]
    Variable(Message),
}

impl ToMessage for RunError {
    fn to_message(&self) -> Message {
        match self {
            Self::Archive(error) => error.to_message(),
            Self::Unreadable { id, what } => {
                msg!("session `{id}` cannot be read from the store: {what}", what = what.clone())
            }
            Self::NotFound(id) => msg!("there is no session `{0}` in this store", id),
            Self::Final { id, status } => {
                msg!("session `{id}` is {status}; it cannot continue", status = Message::word(status))
            }
            Self::Ahead(id) => msg!("session `{0}` was interrupted during a commit; open it again", id),
            Self::BudgetTooSmall { id, what } => {
                msg!("session `{id}` cannot continue with this budget: {what} are already used", what = what.clone())
            }
            Self::Recording(message) | Self::Variable(message) => message.clone(),
        }
    }
}
