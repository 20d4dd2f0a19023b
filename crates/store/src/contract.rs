//! The traits that every session store implements (docs/sessions.md, docs/architecture.md).

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use crate::error::StoreError;
use crate::link_contract::LinkStore;
use crate::plan_contract::PlanStore;
use crate::rows::{
    CellRow, Commit, CounterRow, DocumentRow, EarlierState, FrameRow, JournalRow, MessageRow, NewSessionRow,
    OpenRequest, RequestRow, SessionCursor, SessionFilter, SessionRow, VariableRow,
};

/// A store of sessions. A call that returned `Ok` is durable; one that returned an error has changed nothing (but see
/// [`Store::prune`]). Every call may fail with the variants of [`StoreError`] that concern the store itself.
#[async_trait]
pub trait Store: PlanStore + LinkStore {
    /// Creates a session with all documents that its manifest names and its first commit, which expects revision 0. A
    /// document that another session has already stored stays unchanged.
    /// Errors: [`StoreError::Exists`]; [`StoreError::Conflict`], [`StoreError::Gap`] and [`StoreError::CellIdMismatch`] for the
    /// first commit; [`StoreError::NotFound`] for the session of [`SharedTexts`](crate::rows::SharedTexts).
    async fn create(
        &self,
        session: &NewSessionRow,
        documents: &[DocumentRow],
        first: &Commit,
    ) -> Result<(), StoreError>;

    /// Writes one commit, all or nothing. Its cost depends on the rows of the commit, not on the rows already stored.
    /// The rows that it replaces or removes are kept for [`Store::earlier_state`].
    /// Errors: [`StoreError::NotFound`]; [`StoreError::Conflict`] when the revision is not the expected one;
    /// [`StoreError::Gap`]; [`StoreError::CellIdMismatch`]; [`StoreError::AnswerTaken`].
    async fn commit(&self, id: &str, commit: &Commit) -> Result<(), StoreError>;

    /// Writes commits of a session, which follow each other, as [`Store::commit`] writes each. A store writes all of them or none where it
    /// can; one that writes them one by one stops at the first error. They are shared because a store may hand them to another thread.
    /// Errors: as [`Store::commit`].
    async fn commit_all(&self, id: &str, commits: &Arc<Vec<Commit>>) -> Result<(), StoreError> {
        for commit in commits.iter() {
            self.commit(id, commit).await?;
        }
        Ok(())
    }

    async fn session(&self, id: &str) -> Result<Option<SessionRow>, StoreError>;

    /// All sessions, the most recently updated first; sessions with the same time are sorted by id.
    async fn sessions(&self) -> Result<Vec<SessionRow>, StoreError>;

    /// At most `limit` of these sessions, in the order of [`Store::sessions`], after the cursor. A session that changes while a list is
    /// read page by page moves to its beginning, so it may be missing in the rest of the list.
    async fn sessions_page(
        &self,
        filter: &SessionFilter,
        after: Option<&SessionCursor>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, StoreError>;

    /// The frames of a session, sorted by key. This and the methods below return nothing for a session that does not exist.
    async fn frames(&self, id: &str) -> Result<Vec<FrameRow>, StoreError>;

    /// The variables of a session, sorted by scope, path and name.
    async fn variables(&self, id: &str) -> Result<Vec<VariableRow>, StoreError>;

    /// The variables of a user, sorted by scope, path and name. They outlive sessions.
    async fn user_variables(&self, user: &str) -> Result<Vec<VariableRow>, StoreError>;

    /// The counters of a session, sorted by name.
    async fn counters(&self, id: &str) -> Result<Vec<CounterRow>, StoreError>;

    /// At most `limit` events after event number `after`, in order.
    async fn journal(&self, id: &str, after: u64, limit: usize) -> Result<Vec<JournalRow>, StoreError>;

    /// At most `limit` events of one kind after event number `after`, in order, without reading the other kinds.
    async fn journal_by_kind(
        &self,
        id: &str,
        kind: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<JournalRow>, StoreError>;

    /// The last event of one kind, without reading the other kinds.
    async fn last_by_kind(&self, id: &str, kind: &str) -> Result<Option<JournalRow>, StoreError>;

    /// The last `count` messages, oldest first.
    async fn messages_tail(&self, id: &str, count: usize) -> Result<Vec<MessageRow>, StoreError>;

    /// At most `limit` messages after number `after`, in order.
    async fn messages(&self, id: &str, after: u64, limit: usize) -> Result<Vec<MessageRow>, StoreError>;

    /// The cell with this id in the notebook of a session.
    async fn cell(&self, id: &str, cell_id: &str) -> Result<Option<CellRow>, StoreError>;

    /// At most `limit` cells after number `after`, in order.
    async fn cells(&self, id: &str, after: u64, limit: usize) -> Result<Vec<CellRow>, StoreError>;

    /// The last `count` cells, in order.
    async fn cells_tail(&self, id: &str, count: usize) -> Result<Vec<CellRow>, StoreError>;

    async fn answer_accepted(&self, id: &str, answer_id: &str) -> Result<bool, StoreError>;

    /// The newest earlier revision at which a session had this status and this number of answers. `None` if there is none
    /// since the session was created or its store was migrated to a layout that keeps what commits replace.
    async fn revision_with(&self, id: &str, status: &str, answers: u64) -> Result<Option<u64>, StoreError>;

    /// What a session was at an earlier revision; `None` if that is not kept, as in [`Store::revision_with`]. The cost
    /// depends on the rows that were replaced since then.
    async fn earlier_state(&self, id: &str, revision: u64) -> Result<Option<EarlierState>, StoreError>;

    /// The requests of a session, open or answered, sorted by id.
    async fn requests(&self, id: &str) -> Result<Vec<RequestRow>, StoreError>;

    /// The open requests of all sessions, sorted by session and id; with `due_before`, only those that are due before this
    /// time, the earliest first. No session is loaded for this.
    async fn open_requests(&self, due_before: Option<&str>) -> Result<Vec<OpenRequest>, StoreError>;

    /// At most `limit` sessions with an open request that is due before this time, the earliest first. Of several processes on one store,
    /// one gets each session; if that process does not continue it soon, another one gets it.
    async fn claim_due(&self, before: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        let mut ids: Vec<String> = vec![];
        for open in self.open_requests(Some(before)).await? {
            if !ids.contains(&open.session) && ids.len() < limit {
                ids.push(open.session);
            }
        }
        Ok(ids)
    }

    /// The text with this hash that a commit of this session stored ([`Commit::texts`]).
    async fn text(&self, id: &str, sha256: &str) -> Result<Option<String>, StoreError>;

    /// Whether a commit of this session stored the text with this hash.
    async fn has_text(&self, id: &str, sha256: &str) -> Result<bool, StoreError> {
        Ok(self.text(id, sha256).await?.is_some())
    }

    /// The document with this hash, as long as a session needs it.
    async fn document(&self, sha256: &str) -> Result<Option<String>, StoreError>;

    /// The documents with these hashes, by hash, without those that are not there.
    async fn documents(&self, hashes: &[String]) -> Result<BTreeMap<String, String>, StoreError> {
        let mut found = BTreeMap::new();
        for sha256 in hashes {
            if let Some(text) = self.document(sha256).await? {
                found.insert(sha256.clone(), text);
            }
        }
        Ok(found)
    }

    /// Deletes a session with all its rows, and the documents that no other session needs. The variables of its user
    /// stay. Returns whether the session existed.
    /// Errors: [`StoreError::Held`] while the session is locked, also by the caller.
    async fn delete(&self, id: &str) -> Result<bool, StoreError>;

    /// Deletes, as [`Store::delete`] does, every session that was last updated before this time and is not locked.
    /// Returns their ids, oldest first. Sessions are deleted one by one: an error does not restore those already deleted.
    async fn prune(&self, updated_before: &str) -> Result<Vec<String>, StoreError>;

    /// Locks a session, which need not exist yet, until the lock is dropped or its process dies. `holder` describes the
    /// owner of the lock to others: if it starts with `pid` and the number of a process, the lock of a process that is ending
    /// is waited for.
    /// Errors: [`StoreError::Held`] immediately: this does not wait for a process that runs.
    async fn lock(&self, id: &str, holder: &str) -> Result<Arc<dyn SessionLock>, StoreError>;

    /// Asks the process that has locked a session for it. Whoever asks tries to lock the session afterwards, and asks again after a
    /// while: a process may end without having read the request.
    async fn ask_for(&self, _id: &str, _request: LockRequest) -> Result<LockReply, StoreError> {
        Ok(LockReply::Impossible)
    }

    /// Checks that the store works: that what was stored can still be found by the next process.
    /// Errors: [`StoreError::Gone`], [`StoreError::Unreachable`].
    async fn check_files(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// What a process asks the one that has locked a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockRequest {
    /// To release it as soon as the session rests ([`LockNotice::Wanted`]).
    Release,
    /// The same, unless a turn runs ([`SessionLock::set_busy`]).
    ReleaseIfIdle,
    /// To end the turn that runs ([`SessionLock::interrupted`]), and to release it.
    Interrupt,
}

/// The reply to a [`LockRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockReply {
    /// The process that has the lock cannot be asked.
    Impossible,
    /// It was asked, or the session is free.
    Asked,
    /// A turn runs, so that the session is not released ([`LockRequest::ReleaseIfIdle`]).
    Busy,
}

/// What the owner of a lock is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockNotice {
    /// Nothing yet.
    None,
    /// Another process waits for the session: the owner should release it as soon as the session rests.
    Wanted,
    /// The lock may be lost: another process may run the session, and commits of the owner are rejected.
    Lost,
}

/// The lock of a session. Dropping it releases the lock.
#[async_trait]
pub trait SessionLock: Send + Sync {
    /// Waits until there is something to say about the lock, and returns it. A lock that cannot be asked for or lost waits forever.
    async fn notice(&self) -> LockNotice {
        std::future::pending().await
    }

    /// Waits until another process wants the turn of the session to end.
    async fn interrupted(&self) {
        std::future::pending().await
    }

    /// Says whether a turn of the session runs, for processes that ask ([`LockRequest::ReleaseIfIdle`]). It costs no call to the store.
    fn set_busy(&self, _is_busy: bool) {}
}
