//! An archive in memory with a hook around everything that a session writes.

use std::pin::Pin;

use async_trait::async_trait;
use bcc_store::contract::{Archive, SessionLock};
use bcc_store::error::ArchiveError;
use bcc_store::memory::MemoryArchive;
use bcc_store::rows::{
    CellRow, Commit, CounterRow, DocumentRow, FrameRow, JournalRow, MessageRow, NewSession, SessionRow, VariableRow,
};

/// A session that is made, and its documents.
pub(crate) type Birth<'a> = (&'a NewSession, &'a [DocumentRow]);

/// The writing itself, which happens when it is awaited.
pub(crate) type Writing<'a> = Pin<Box<dyn Future<Output = Result<(), ArchiveError>> + Send + 'a>>;

#[async_trait]
pub(crate) trait Hook: Send + Sync {
    /// Called in the place of each write; with `birth` for the first one of a session.
    async fn around(&self, birth: Option<Birth<'_>>, commit: &Commit, write: Writing<'_>) -> Result<(), ArchiveError>;
}

#[derive(Default)]
pub(crate) struct Hooked<H> {
    inner: MemoryArchive,
    pub(crate) hook: H,
}

impl<H> Hooked<H> {
    pub(crate) fn with(hook: H) -> Self {
        Self { inner: MemoryArchive::default(), hook }
    }
}

#[async_trait]
impl<H: Hook> Archive for Hooked<H> {
    async fn create(&self, new: &NewSession, documents: &[DocumentRow], first: &Commit) -> Result<(), ArchiveError> {
        self.hook.around(Some((new, documents)), first, self.inner.create(new, documents, first)).await
    }

    async fn commit(&self, id: &str, commit: &Commit) -> Result<(), ArchiveError> {
        self.hook.around(None, commit, self.inner.commit(id, commit)).await
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
