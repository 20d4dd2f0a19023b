//! An archive under which a process dies at every commit, just before it or just after it: what a session must survive.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bcc_store::contract::{Archive, SessionLock};
use bcc_store::error::ArchiveError;
use bcc_store::memory::MemoryArchive;
use bcc_store::rows::{
    CellRow, Commit, CounterRow, DocumentRow, FrameRow, JournalRow, MessageRow, NewSession, SessionRow, VariableRow,
};
use tokio::sync::Notify;

/// When the process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    /// Not at all.
    Never,
    /// At each commit, before it is written: all that the turn did is lost and done again.
    Before,
    /// At each commit, after it is written: nothing in memory outlives a turn.
    After,
    /// At some of the commits, before or after, as this seed has it.
    #[allow(dead_code, reason = "conversations die at every commit")]
    Sometimes(u64),
}

/// What the deaths have come to.
#[derive(Debug, Default)]
struct Fate {
    mortal: bool,
    /// Whether the commit that comes was already tried once.
    tried: bool,
    /// Commits so far.
    commits: u64,
}

/// An archive in memory that tells when the process that writes to it is to die.
pub(crate) struct MortalArchive {
    inner: MemoryArchive,
    death: Death,
    fate: Mutex<Fate>,
    died: Notify,
}

impl MortalArchive {
    /// An empty archive.
    pub(crate) fn new(death: Death) -> Arc<Self> {
        Arc::new(Self { inner: MemoryArchive::default(), death, fate: Mutex::default(), died: Notify::new() })
    }

    /// Runs `work` until it is done, or until it dies at a commit; then `None`, and all that it held is dropped.
    pub(crate) async fn mortal<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let _mortal = Mortal::new(&self.fate);
        tokio::select! {
            biased;
            () = self.died.notified() => None,
            done = work => Some(done),
        }
    }

    async fn die(&self) {
        self.died.notify_one();
        std::future::pending().await
    }

    async fn written<W: Future<Output = Result<(), ArchiveError>> + Send>(&self, write: W) -> Result<(), ArchiveError> {
        let death = {
            let mut fate = self.fate.lock().unwrap();
            match self.death {
                _ if !fate.mortal => Death::Never,
                Death::Before => {
                    fate.tried = !fate.tried;
                    if fate.tried { Death::Before } else { Death::Never }
                }
                Death::Sometimes(seed) => {
                    fate.commits += 1;
                    match fastrand::Rng::with_seed(seed ^ fate.commits << 32).u8(..20) {
                        0 => Death::Before,
                        1 => Death::After,
                        _ => Death::Never,
                    }
                }
                other => other,
            }
        };
        if death == Death::Before {
            self.die().await;
        }
        write.await?;
        if death == Death::After {
            self.die().await;
        }
        Ok(())
    }
}

/// As long as it is there, commits may be deadly: also work that is given up half-way is mortal no more.
struct Mortal<'a>(&'a Mutex<Fate>);

impl<'a> Mortal<'a> {
    fn new(fate: &'a Mutex<Fate>) -> Self {
        fate.lock().unwrap().mortal = true;
        Self(fate)
    }
}

impl Drop for Mortal<'_> {
    fn drop(&mut self) {
        self.0.lock().unwrap().mortal = false;
    }
}

#[async_trait]
impl Archive for MortalArchive {
    async fn create(
        &self,
        session: &NewSession,
        documents: &[DocumentRow],
        first: &Commit,
    ) -> Result<(), ArchiveError> {
        self.written(self.inner.create(session, documents, first)).await
    }

    async fn commit(&self, id: &str, commit: &Commit) -> Result<(), ArchiveError> {
        self.written(self.inner.commit(id, commit)).await
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
