//! The open file of a store: its connection, its locks, and whether it is still there. Its calls block their thread.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::contract::{LockReply, LockRequest};
use crate::error::StoreError;
use crate::sqlite::error::Failure;
use crate::sqlite::in_use::InUse;
use crate::sqlite::locks::lock::{self, FileLock, SessionLocks};
use crate::sqlite::presence::Presence;
use crate::sqlite::remove;
use crate::sqlite::schema::refuse_newer;

/// The holder name of the lock while a session is deleted.
const DELETION_HOLDER: &str = "a deletion";

/// How long the erasure of the log waits for a checkpoint of another connection, and how often it tries.
const MAX_CHECKPOINT_WAIT: Duration = Duration::from_secs(10);
const CHECKPOINT_PAUSE: Duration = Duration::from_millis(2);

pub(crate) struct SqliteFile {
    connection: Mutex<Connection>,
    /// The path of the store as the user wrote it.
    pub(crate) store: String,
    pub(crate) path: PathBuf,
    locks: SessionLocks,
    /// None for reading only.
    pub(crate) open_files: Option<Arc<OpenFiles>>,
}

/// The files of a store that is open for writing.
pub(crate) struct OpenFiles {
    pub(crate) presence: Presence,
    /// Whether a connection has found that the log must not be copied to the file any more.
    keeps_log: AtomicBool,
    _in_use: InUse,
}

impl OpenFiles {
    pub(crate) fn new(presence: Presence, in_use: InUse) -> Self {
        Self { presence, keeps_log: AtomicBool::new(false), _in_use: in_use }
    }

    /// From now on, the log is not copied to the file: it is damaged, or another one ([`needs_log`]).
    pub(crate) fn keep_log(&self) {
        self.keeps_log.store(true, Ordering::Release);
    }

    /// Whether the log must not be copied to the file.
    pub(crate) fn must_keep_log(&self) -> bool {
        self.keeps_log.load(Ordering::Acquire) || self.presence.check().is_err()
    }
}

impl SqliteFile {
    /// The file at `path`, open with this connection; for reading only without `open_files`.
    pub(crate) fn new(connection: Connection, store: String, path: &Path, open_files: Option<OpenFiles>) -> Self {
        let locks = SessionLocks::new(&store, &lock::directory(path));
        let connection = Mutex::new(connection);
        Self { connection, store, path: path.to_owned(), locks, open_files: open_files.map(Arc::new) }
    }

    /// Ignores poisoning: a panic inside a transaction rolls it back, so the connection stays usable.
    pub(crate) fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn read<T>(&self, query: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let connection = self.connection();
        let run = || -> Result<T, Failure> {
            refuse_newer(&connection, &self.store)?;
            Ok(query(&connection)?)
        };
        run().map_err(|failure| self.failed(&connection, failure))
    }

    /// The error for a failure.
    fn failed(&self, connection: &Connection, failure: Failure) -> StoreError {
        let error = failure.into_store_error(&self.store);
        if needs_log(&error) {
            keep_log(connection);
            self.keep_log();
        }
        error
    }

    /// From now on, no connection copies the log to the file.
    pub(crate) fn keep_log(&self) {
        self.open_files.iter().for_each(|files| files.keep_log());
    }

    fn must_keep_log(&self) -> bool {
        self.open_files.as_ref().is_some_and(|files| files.must_keep_log())
    }

    /// Runs `work` in one durable transaction, which is rolled back if `work` fails.
    pub(crate) fn write<T>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, Failure>) -> Result<T, StoreError> {
        let mut connection = self.connection();
        let run = || {
            // Takes the write lock immediately, so that the values read here are still valid when the transaction writes.
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            refuse_newer(&transaction, &self.store)?;
            let result = work(&transaction)?;
            self.check_presence()?;
            transaction.commit()?;
            // Only now is it certain that the commit is in the files that the next process finds.
            self.check_presence()?;
            Ok(result)
        };
        run().map_err(|failure: Failure| self.failed(&connection, failure))
    }

    pub(crate) fn check_presence(&self) -> Result<(), StoreError> {
        self.open_files.as_ref().map_or(Ok(()), |files| files.presence.check())
    }

    /// The files of a store that is open for writing.
    /// Errors: [`StoreError::ReadOnly`].
    pub(crate) fn writable(&self) -> Result<&Arc<OpenFiles>, StoreError> {
        self.open_files.as_ref().ok_or_else(|| StoreError::ReadOnly { store: self.store.clone() })
    }

    pub(crate) fn lock(&self, id: &str, holder: &str) -> Result<FileLock, StoreError> {
        self.writable()?;
        self.locks.acquire(id, holder)
    }

    /// From now on, other processes can ask this one for the sessions that it has locked.
    pub(crate) fn listen(&self) {
        self.locks.listen();
    }

    /// Asks the process that has locked a session for it.
    pub(crate) fn ask_for(&self, id: &str, request: LockRequest) -> Result<LockReply, StoreError> {
        self.locks.ask_for(id, request)
    }

    /// Leaves it to the thread that writes to copy the log, unless that writes nothing while the log grows long.
    pub(crate) fn leave_log_to_others(&self) -> Result<(), StoreError> {
        self.read(|connection| connection.execute_batch("PRAGMA wal_autocheckpoint = 16000"))
    }

    /// Runs `work` so that the data it deletes cannot be found in the file afterwards.
    pub(crate) fn with_secure_delete<T>(&self, work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.read(|connection| connection.execute_batch("PRAGMA secure_delete = ON"))?;
        let result = work();
        let keeps_log = result.as_ref().is_err_and(needs_log) || self.must_keep_log();
        self.read(|connection| {
            connection.execute_batch("PRAGMA secure_delete = FAST")?;
            if keeps_log { Ok(()) } else { erase_log(connection) }
        })
        .unwrap_or_else(|error| tracing::debug!(%error, "the log was not folded in after a deletion"));
        result
    }

    /// Deletes a session. Returns whether it existed.
    pub(crate) fn delete(&self, id: &str) -> Result<bool, StoreError> {
        let _lock = self.lock(id, DELETION_HOLDER)?;
        self.with_secure_delete(|| self.write(|transaction| remove::session(transaction, id, None)))
    }

    /// Deletes the sessions that were last updated before this time. Returns their ids.
    pub(crate) fn prune(&self, updated_before: &str) -> Result<Vec<String>, StoreError> {
        let outdated = self.read(|connection| remove::updated_before(connection, updated_before))?;
        self.with_secure_delete(|| {
            let mut deleted = Vec::new();
            for id in outdated {
                let _lock = match self.lock(&id, DELETION_HOLDER) {
                    Err(StoreError::Held { .. }) => continue,
                    other => other?,
                };
                if self.write(|transaction| remove::session(transaction, &id, Some(updated_before)))? {
                    deleted.push(id);
                }
            }
            Ok(deleted)
        })
    }
}

/// Erases the log. If others read or copy it for long, what was deleted stays in it until new pages take its place, or the last program closes
/// the store.
fn erase_log(connection: &Connection) -> rusqlite::Result<()> {
    let began = Instant::now();
    loop {
        let is_busy: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if !is_busy {
            return Ok(());
        }
        // SQLite waits for readers by itself, but not for another checkpoint.
        if began.elapsed() > MAX_CHECKPOINT_WAIT {
            tracing::warn!("what was deleted is still in the log of the store, which others use");
            return Ok(());
        }
        std::thread::sleep(CHECKPOINT_PAUSE);
    }
}

/// Whether the log must be kept after this error ([`keep_log`]).
pub(crate) fn needs_log(error: &StoreError) -> bool {
    matches!(error, StoreError::Corrupt { .. } | StoreError::Gone { .. })
}

/// Keeps the log when the connection is closed: a damaged file must not get its content, and the path of the log may lead to
/// the log of another store.
pub(crate) fn keep_log(connection: &Connection) {
    if let Err(error) = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true) {
        tracing::warn!(%error, "the log of the store may be folded in when it is closed");
    }
}

impl Drop for SqliteFile {
    fn drop(&mut self) {
        if self.must_keep_log() {
            keep_log(&self.connection());
        }
    }
}
