//! An archive that remembers every commit that it is given.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bcc_store::contract::{Archive, SessionLock};
use bcc_store::error::ArchiveError;
use bcc_store::memory::MemoryArchive;
use bcc_store::rows::{
    CellRow, Commit, CounterRow, DocumentRow, FrameRow, JournalRow, MessageRow, NewSession, SessionRow, VariableRow,
};

/// What a session gave to its archive.
#[derive(Default)]
pub(crate) struct Recorded {
    /// The session and its documents.
    pub(crate) created: Vec<(NewSession, Vec<DocumentRow>)>,
    /// The commits, the first one of the session included.
    pub(crate) commits: Vec<Commit>,
}

/// A [`MemoryArchive`] that records.
#[derive(Default)]
pub(crate) struct Recorder {
    inner: MemoryArchive,
    recorded: Arc<Mutex<Recorded>>,
}

impl Recorder {
    /// What was recorded since the last call.
    pub(crate) fn take(&self) -> Recorded {
        std::mem::take(&mut self.recorded())
    }

    fn recorded(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Archive for Recorder {
    async fn create(&self, new: &NewSession, documents: &[DocumentRow], first: &Commit) -> Result<(), ArchiveError> {
        self.recorded().created.push((new.clone(), documents.to_vec()));
        self.recorded().commits.push(first.clone());
        self.inner.create(new, documents, first).await
    }

    async fn commit(&self, id: &str, commit: &Commit) -> Result<(), ArchiveError> {
        self.recorded().commits.push(commit.clone());
        self.inner.commit(id, commit).await
    }

    async fn session(&self, id: &str) -> Result<Option<SessionRow>, ArchiveError> {
        self.inner.session(id).await
    }

    async fn sessions(&self) -> Result<Vec<SessionRow>, ArchiveError> {
        self.inner.sessions().await
    }

    async fn frames(&self, id: &str) -> Result<Vec<FrameRow>, ArchiveError> {
        self.inner.frames(id).await
    }

    async fn variables(&self, id: &str) -> Result<Vec<VariableRow>, ArchiveError> {
        self.inner.variables(id).await
    }

    async fn user_variables(&self, user: &str) -> Result<Vec<VariableRow>, ArchiveError> {
        self.inner.user_variables(user).await
    }

    async fn counters(&self, id: &str) -> Result<Vec<CounterRow>, ArchiveError> {
        self.inner.counters(id).await
    }

    async fn journal(&self, id: &str, after: u64, limit: usize) -> Result<Vec<JournalRow>, ArchiveError> {
        self.inner.journal(id, after, limit).await
    }

    async fn journal_of(
        &self,
        id: &str,
        kind: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<JournalRow>, ArchiveError> {
        self.inner.journal_of(id, kind, after, limit).await
    }

    async fn last_of(&self, id: &str, kind: &str) -> Result<Option<JournalRow>, ArchiveError> {
        self.inner.last_of(id, kind).await
    }

    async fn messages_tail(&self, id: &str, count: usize) -> Result<Vec<MessageRow>, ArchiveError> {
        self.inner.messages_tail(id, count).await
    }

    async fn messages(&self, id: &str, after: u64, limit: usize) -> Result<Vec<MessageRow>, ArchiveError> {
        self.inner.messages(id, after, limit).await
    }

    async fn cell(&self, id: &str, cell_id: &str) -> Result<Option<CellRow>, ArchiveError> {
        self.inner.cell(id, cell_id).await
    }

    async fn cells(&self, id: &str, after: u64, limit: usize) -> Result<Vec<CellRow>, ArchiveError> {
        self.inner.cells(id, after, limit).await
    }

    async fn cells_tail(&self, id: &str, count: usize) -> Result<Vec<CellRow>, ArchiveError> {
        self.inner.cells_tail(id, count).await
    }

    async fn answer_taken(&self, id: &str, answer_id: &str) -> Result<bool, ArchiveError> {
        self.inner.answer_taken(id, answer_id).await
    }

    async fn document(&self, sha256: &str) -> Result<Option<String>, ArchiveError> {
        self.inner.document(sha256).await
    }

    async fn delete(&self, id: &str) -> Result<bool, ArchiveError> {
        self.inner.delete(id).await
    }

    async fn prune(&self, updated_before: &str) -> Result<Vec<String>, ArchiveError> {
        self.inner.prune(updated_before).await
    }

    async fn lock(&self, id: &str, holder: &str) -> Result<Box<dyn SessionLock>, ArchiveError> {
        self.inner.lock(id, holder).await
    }
}
