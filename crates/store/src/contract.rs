//! What every archive does (docs/sessions.md, docs/architecture.md), whatever it is made of.

use async_trait::async_trait;

use crate::error::StoreError;
use crate::rows::{
    CellRow, Commit, CounterRow, DocumentRow, FrameRow, JournalRow, MessageRow, NewSessionRow, SessionRow, VariableRow,
};

/// Sessions at rest. A call that returned `Ok` is durable; one that returned an error has changed nothing (but see
/// [`Store::prune`]). Every call may refuse with the variants of [`StoreError`] that concern the store itself.
#[async_trait]
pub trait Store: Send + Sync {
    /// Creates a session together with the documents that its manifest names (all of them: those that another session
    /// has brought already are kept as they are) and its first commit, which expects revision 0.
    /// Errors: [`StoreError::Exists`]; [`StoreError::Conflict`], [`StoreError::Gap`] and [`StoreError::CellMixedUp`] for the
    /// first commit.
    async fn create(
        &self,
        session: &NewSessionRow,
        documents: &[DocumentRow],
        first: &Commit,
    ) -> Result<(), StoreError>;

    /// Writes one commit, all or nothing. Its cost depends on the rows that it brings, not on those that are there.
    /// Errors: [`StoreError::NotFound`]; [`StoreError::Conflict`] when the revision is not the expected one;
    /// [`StoreError::Gap`]; [`StoreError::CellMixedUp`]; [`StoreError::AnswerTaken`].
    async fn commit(&self, id: &str, commit: &Commit) -> Result<(), StoreError>;

    async fn session(&self, id: &str) -> Result<Option<SessionRow>, StoreError>;

    /// Every session, the one updated last first; equals by id.
    async fn sessions(&self) -> Result<Vec<SessionRow>, StoreError>;

    /// The frames of a session, by key. Empty for a session that is not there, as in all that follows.
    async fn frames(&self, id: &str) -> Result<Vec<FrameRow>, StoreError>;

    /// The variables of a session, by scope, path and name.
    async fn variables(&self, id: &str) -> Result<Vec<VariableRow>, StoreError>;

    /// The variables of a user, by scope, path and name. They outlive sessions.
    async fn user_variables(&self, user: &str) -> Result<Vec<VariableRow>, StoreError>;

    /// The counters of a session, by name.
    async fn counters(&self, id: &str) -> Result<Vec<CounterRow>, StoreError>;

    /// At most `limit` events after `after`, in order.
    async fn journal(&self, id: &str, after: u64, limit: usize) -> Result<Vec<JournalRow>, StoreError>;

    /// At most `limit` events of one kind after `after`, in order, without reading through the others.
    async fn journal_of(&self, id: &str, kind: &str, after: u64, limit: usize) -> Result<Vec<JournalRow>, StoreError>;

    /// The last event of one kind, without reading through the others.
    async fn last_of(&self, id: &str, kind: &str) -> Result<Option<JournalRow>, StoreError>;

    /// The last `count` messages, oldest first.
    async fn messages_tail(&self, id: &str, count: usize) -> Result<Vec<MessageRow>, StoreError>;

    /// At most `limit` messages after number `after`, in order.
    async fn messages(&self, id: &str, after: u64, limit: usize) -> Result<Vec<MessageRow>, StoreError>;

    /// The cell with this id, in a session's notebook.
    async fn cell(&self, id: &str, cell_id: &str) -> Result<Option<CellRow>, StoreError>;

    /// At most `limit` cells after number `after`, in order.
    async fn cells(&self, id: &str, after: u64, limit: usize) -> Result<Vec<CellRow>, StoreError>;

    /// The last `count` cells, in order.
    async fn cells_tail(&self, id: &str, count: usize) -> Result<Vec<CellRow>, StoreError>;

    async fn answer_taken(&self, id: &str, answer_id: &str) -> Result<bool, StoreError>;

    /// The document with this hash, while some session needs it.
    async fn document(&self, sha256: &str) -> Result<Option<String>, StoreError>;

    /// Deletes a session with all its rows, and the documents that no other session needs. The variables of its user
    /// stay. Says whether it was there.
    /// Errors: [`StoreError::Held`] while anybody, the caller included, holds the session.
    async fn delete(&self, id: &str) -> Result<bool, StoreError>;

    /// Deletes, as [`Store::delete`] does, every session that was last updated before this time and that nobody
    /// holds; gives their ids, oldest first. Sessions go one by one: an error leaves those that are gone gone.
    async fn prune(&self, updated_before: &str) -> Result<Vec<String>, StoreError>;

    /// Takes hold of a session, which need not be there yet, until the lock is dropped or its process dies. `holder`
    /// is what others are told.
    /// Errors: [`StoreError::Held`], at once: this does not wait.
    async fn lock(&self, id: &str, holder: &str) -> Result<Box<dyn SessionLock>, StoreError>;
}

/// The hold on a session. Dropping it lets go.
pub trait SessionLock: Send + Sync {}
