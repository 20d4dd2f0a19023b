//! `SqliteArchive`: each call of the contract, given to the file that does it.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::contract::{Archive, SessionLock};
use crate::error::ArchiveError;
use crate::rows::{
    CellRow, Commit, CounterRow, DocumentRow, FrameRow, JournalRow, MessageRow, NewSession, SessionRow, VariableRow,
};
use crate::sqlite::fault::Failure;
use crate::sqlite::lock::{self, FileLock};
use crate::sqlite::{read, remove, write};

/// Whoever removes a session holds it under this name.
const REMOVAL: &str = "a deletion";

/// An archive in one SQLite file, made by [`crate::sqlite::open::open`].
///
/// Its calls do their work on the thread that polls them: a durable commit takes some 200 µs, and a way to another
/// thread and back would add a good part of that to each. So a call, once begun, is never given up half-way.
pub struct SqliteArchive {
    connection: Mutex<Connection>,
    store: String,
    locks: PathBuf,
    read_only: bool,
}

impl SqliteArchive {
    /// An archive on this connection. `store` is how the person calls the `file`.
    pub(crate) fn new(connection: Connection, store: String, file: &Path, read_only: bool) -> Self {
        Self { connection: Mutex::new(connection), store, locks: lock::directory(file), read_only }
    }

    /// A panic inside a transaction has rolled it back: the connection is as good as before.
    pub(crate) fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one query.
    fn read<T>(&self, query: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, ArchiveError> {
        query(&self.connection()).map_err(|error| Failure::from(error).about(&self.store))
    }

    /// Runs `work` in one durable transaction, which its error rolls back.
    fn write<T>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, Failure>) -> Result<T, ArchiveError> {
        let mut connection = self.connection();
        let run = || {
            // Takes the write lock at once, so that what is read here is still true when it is written.
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = work(&transaction)?;
            transaction.commit()?;
            Ok(done)
        };
        run().map_err(|failure: Failure| failure.about(&self.store))
    }

    fn hold(&self, id: &str, holder: &str) -> Result<FileLock, ArchiveError> {
        if self.read_only {
            return Err(ArchiveError::ReadOnly { store: self.store.clone() });
        }
        lock::take(&self.store, &self.locks, id, holder)
    }

    /// Runs `work` so that nothing of what it deletes can be found in the file afterwards.
    fn erase<T>(&self, work: impl FnOnce() -> Result<T, ArchiveError>) -> Result<T, ArchiveError> {
        self.read(|connection| connection.execute_batch("PRAGMA secure_delete = ON"))?;
        let done = work();
        self.read(|connection| {
            connection.execute_batch("PRAGMA secure_delete = FAST")?;
            // The log too. Where another process is reading this is left for later, and no error.
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        })
        .unwrap_or_else(|error| tracing::debug!(%error, "the log was not folded in after a deletion"));
        done
    }
}

#[async_trait]
impl Archive for SqliteArchive {
    async fn create(
        &self,
        session: &NewSession,
        documents: &[DocumentRow],
        first: &Commit,
    ) -> Result<(), ArchiveError> {
        self.write(|transaction| write::create(transaction, &self.store, session, documents, first))
    }

    async fn commit(&self, id: &str, commit: &Commit) -> Result<(), ArchiveError> {
        self.write(|transaction| write::commit(transaction, &self.store, id, commit))
    }

    async fn session(&self, id: &str) -> Result<Option<SessionRow>, ArchiveError> {
        self.read(|connection| read::session(connection, id))
    }

    async fn sessions(&self) -> Result<Vec<SessionRow>, ArchiveError> {
        self.read(read::sessions)
    }

    async fn frames(&self, id: &str) -> Result<Vec<FrameRow>, ArchiveError> {
        self.read(|connection| read::frames(connection, id))
    }

    async fn variables(&self, id: &str) -> Result<Vec<VariableRow>, ArchiveError> {
        self.read(|connection| read::variables(connection, id))
    }

    async fn user_variables(&self, user: &str) -> Result<Vec<VariableRow>, ArchiveError> {
        self.read(|connection| read::user_variables(connection, user))
    }

    async fn counters(&self, id: &str) -> Result<Vec<CounterRow>, ArchiveError> {
        self.read(|connection| read::counters(connection, id))
    }

    async fn journal(&self, id: &str, after: u64, limit: usize) -> Result<Vec<JournalRow>, ArchiveError> {
        self.read(|connection| read::journal(connection, id, after, limit))
    }

    async fn journal_of(
        &self,
        id: &str,
        kind: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<JournalRow>, ArchiveError> {
        self.read(|connection| read::journal_of(connection, id, kind, after, limit))
    }

    async fn last_of(&self, id: &str, kind: &str) -> Result<Option<JournalRow>, ArchiveError> {
        self.read(|connection| read::last_of(connection, id, kind))
    }

    async fn messages_tail(&self, id: &str, count: usize) -> Result<Vec<MessageRow>, ArchiveError> {
        self.read(|connection| read::messages_tail(connection, id, count))
    }

    async fn messages(&self, id: &str, after: u64, limit: usize) -> Result<Vec<MessageRow>, ArchiveError> {
        self.read(|connection| read::messages(connection, id, after, limit))
    }

    async fn cell(&self, id: &str, cell_id: &str) -> Result<Option<CellRow>, ArchiveError> {
        self.read(|connection| read::cell(connection, id, cell_id))
    }

    async fn cells(&self, id: &str, after: u64, limit: usize) -> Result<Vec<CellRow>, ArchiveError> {
        self.read(|connection| read::cells(connection, id, after, limit))
    }

    async fn cells_tail(&self, id: &str, count: usize) -> Result<Vec<CellRow>, ArchiveError> {
        self.read(|connection| read::cells_tail(connection, id, count))
    }

    async fn answer_taken(&self, id: &str, answer_id: &str) -> Result<bool, ArchiveError> {
        self.read(|connection| read::answer_taken(connection, id, answer_id))
    }

    async fn document(&self, sha256: &str) -> Result<Option<String>, ArchiveError> {
        self.read(|connection| read::document(connection, sha256))
    }

    async fn delete(&self, id: &str) -> Result<bool, ArchiveError> {
        let _held = self.hold(id, REMOVAL)?;
        self.erase(|| self.write(|transaction| remove::session(transaction, id, None)))
    }

    async fn prune(&self, updated_before: &str) -> Result<Vec<String>, ArchiveError> {
        let old = self.read(|connection| remove::updated_before(connection, updated_before))?;
        self.erase(|| {
            let mut gone = Vec::new();
            for id in old {
                let _held = match self.hold(&id, REMOVAL) {
                    Err(ArchiveError::Held { .. }) => continue,
                    held => held?,
                };
                if self.write(|transaction| remove::session(transaction, &id, Some(updated_before)))? {
                    gone.push(id);
                }
            }
            Ok(gone)
        })
    }

    async fn lock(&self, id: &str, holder: &str) -> Result<Box<dyn SessionLock>, ArchiveError> {
        Ok(Box::new(self.hold(id, holder)?))
    }
}
