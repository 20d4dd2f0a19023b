//! What every archive does (docs/sessions.md, docs/architecture.md), whatever it is made of.

use async_trait::async_trait;

use crate::error::ArchiveError;
use crate::rows::{
    CellRow, Commit, CounterRow, DocumentRow, FrameRow, JournalRow, MessageRow, NewSession, SessionRow, VariableRow,
};

/// Sessions at rest. A call that returned `Ok` is durable; one that returned an error has changed nothing (but see
/// [`Archive::prune`]). Every call may refuse with the variants of [`ArchiveError`] that concern the store itself.
#[async_trait]
pub trait Archive: Send + Sync {
    /// Creates a session together with the documents that its manifest names (all of them: those that another session
    /// has brought already are kept as they are) and its first commit, which expects revision 0.
    /// Errors: [`ArchiveError::Exists`]; [`ArchiveError::Conflict`], [`ArchiveError::Gap`] and [`ArchiveError::CellMixedUp`] for the
    /// first commit.
    async fn create(&self, session: &NewSession, documents: &[DocumentRow], first: &Commit)
    -> Result<(), ArchiveError>;

    /// Writes one commit, all or nothing. Its cost depends on the rows that it brings, not on those that are there.
    /// Errors: [`ArchiveError::NotFound`]; [`ArchiveError::Conflict`] when the revision is not the expected one;
    /// [`ArchiveError::Gap`]; [`ArchiveError::CellMixedUp`]; [`ArchiveError::AnswerTaken`].
    async fn commit(&self, id: &str, commit: &Commit) -> Result<(), ArchiveError>;

    async fn session(&self, id: &str) -> Result<Option<SessionRow>, ArchiveError>;

    /// Every session, the one updated last first; equals by id.
    async fn sessions(&self) -> Result<Vec<SessionRow>, ArchiveError>;

    /// The frames of a session, by key. Empty for a session that is not there, as in all that follows.
    async fn frames(&self, id: &str) -> Result<Vec<FrameRow>, ArchiveError>;

    /// The variables of a session, by scope, path and name.
    async fn variables(&self, id: &str) -> Result<Vec<VariableRow>, ArchiveError>;

    /// The variables of a user, by scope, path and name. They outlive sessions.
    async fn user_variables(&self, user: &str) -> Result<Vec<VariableRow>, ArchiveError>;

    /// The counters of a session, by name.
    async fn counters(&self, id: &str) -> Result<Vec<CounterRow>, ArchiveError>;

    /// At most `limit` events after `after`, in order.
    async fn journal(&self, id: &str, after: u64, limit: usize) -> Result<Vec<JournalRow>, ArchiveError>;

    /// At most `limit` events of one kind after `after`, in order, without reading through the others.
    async fn journal_of(&self, id: &str, kind: &str, after: u64, limit: usize)
    -> Result<Vec<JournalRow>, ArchiveError>;

    /// The last event of one kind, without reading through the others.
    async fn last_of(&self, id: &str, kind: &str) -> Result<Option<JournalRow>, ArchiveError>;

    /// The last `count` messages, oldest first.
    async fn messages_tail(&self, id: &str, count: usize) -> Result<Vec<MessageRow>, ArchiveError>;

    /// At most `limit` messages after number `after`, in order.
    async fn messages(&self, id: &str, after: u64, limit: usize) -> Result<Vec<MessageRow>, ArchiveError>;

    /// The cell with this id, in a session's notebook.
    async fn cell(&self, id: &str, cell_id: &str) -> Result<Option<CellRow>, ArchiveError>;

    /// At most `limit` cells after number `after`, in order.
    async fn cells(&self, id: &str, after: u64, limit: usize) -> Result<Vec<CellRow>, ArchiveError>;

    /// The last `count` cells, in order.
    async fn cells_tail(&self, id: &str, count: usize) -> Result<Vec<CellRow>, ArchiveError>;

    async fn answer_taken(&self, id: &str, answer_id: &str) -> Result<bool, ArchiveError>;

    /// The document with this hash, while some session needs it.
    async fn document(&self, sha256: &str) -> Result<Option<String>, ArchiveError>;

    /// Deletes a session with all its rows, and the documents that no other session needs. The variables of its user
    /// stay. Says whether it was there.
    /// Errors: [`ArchiveError::Held`] while anybody, the caller included, holds the session.
    async fn delete(&self, id: &str) -> Result<bool, ArchiveError>;

    /// Deletes, as [`Archive::delete`] does, every session that was last updated before this time and that nobody
    /// holds; gives their ids, oldest first. Sessions go one by one: an error leaves those that are gone gone.
    async fn prune(&self, updated_before: &str) -> Result<Vec<String>, ArchiveError>;

    /// Takes hold of a session, which need not be there yet, until the lock is dropped or its process dies. `holder`
    /// is what others are told.
    /// Errors: [`ArchiveError::Held`], at once: this does not wait.
    async fn lock(&self, id: &str, holder: &str) -> Result<Box<dyn SessionLock>, ArchiveError>;
}

/// The hold on a session. Dropping it lets go.
pub trait SessionLock: Send + Sync {}
