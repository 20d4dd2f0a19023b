//! `SqliteArchive`: each call of the contract, given to the file that does it.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Params, Row, Transaction, TransactionBehavior, params};

use crate::contract::{SessionLock, Store};
use crate::error::StoreError;
use crate::rows::{
    CellRow, Commit, CounterRow, DocumentRow, FrameRow, JournalRow, MessageRow, NewSessionRow, SessionRow, VariableRow,
};
use crate::sqlite::error::Failure;
use crate::sqlite::lock::{self, FileLock};
use crate::sqlite::read::{
    CELL, CELLS, CELLS_TAIL, JOURNAL_OF, LAST_OF, SESSION, all, cell_row, journal_row, key_of, limit, message_row,
    session_row, variable_row,
};
use crate::sqlite::schema::BLOCK_BITS;
use crate::sqlite::write::{Count, count, key};
use crate::sqlite::{remove, write};

type Reader<T> = fn(&Row<'_>) -> rusqlite::Result<T>;

/// Whoever removes a session holds it under this name.
const REMOVAL: &str = "a deletion";

/// An archive in one SQLite file, made by [`crate::sqlite::open::open`].
///
/// Its calls do their work on the thread that polls them: a durable commit takes some 200 µs, and a way to another
/// thread and back would add a good part of that to each. So a call, once begun, is never given up half-way.
pub struct SqliteStore {
    connection: Mutex<Connection>,
    store: String,
    locks: PathBuf,
    read_only: bool,
}

impl SqliteStore {
    /// An archive on this connection. `store` is how the person calls the `file`.
    pub(crate) fn new(connection: Connection, store: String, file: &Path, read_only: bool) -> Self {
        Self { connection: Mutex::new(connection), store, locks: lock::directory(file), read_only }
    }

    /// A panic inside a transaction has rolled it back: the connection is as good as before.
    pub(crate) fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(&self, query: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        query(&self.connection()).map_err(|error| Failure::from(error).about(&self.store))
    }

    /// The row that `sql` gives, when there is one.
    fn one<T>(&self, sql: &str, of: impl Params, row: Reader<T>) -> Result<Option<T>, StoreError> {
        self.read(|connection| connection.prepare_cached(sql)?.query_row(of, row).optional())
    }

    fn all<T>(&self, sql: &str, of: impl Params, row: Reader<T>) -> Result<Vec<T>, StoreError> {
        self.read(|connection| all(connection, sql, of, row))
    }

    /// What `query` finds by the key of a session; nothing for one that is not there.
    fn within<T: Default>(
        &self,
        id: &str,
        query: impl FnOnce(&Connection, i64) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.read(|connection| match key_of(connection, id)? {
            Some(session) => query(connection, session),
            None => Ok(T::default()),
        })
    }

    /// At most `most` numbered rows of a session after number `after`.
    fn between<T>(&self, id: &str, after: u64, most: usize, sql: &str, row: Reader<T>) -> Result<Vec<T>, StoreError> {
        self.within(id, |connection, session| {
            all(connection, sql, params![key(session, after)?, key(session, u64::MAX)?, limit(most)], row)
        })
    }

    /// Runs `work` in one durable transaction, which its error rolls back.
    fn write<T>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, Failure>) -> Result<T, StoreError> {
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

    fn hold(&self, id: &str, holder: &str) -> Result<FileLock, StoreError> {
        if self.read_only {
            return Err(StoreError::ReadOnly { store: self.store.clone() });
        }
        lock::take(&self.store, &self.locks, id, holder)
    }

    /// Runs `work` so that nothing of what it deletes can be found in the file afterwards.
    fn erase<T>(&self, work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
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
impl Store for SqliteStore {
    async fn create(
        &self,
        session: &NewSessionRow,
        documents: &[DocumentRow],
        first: &Commit,
    ) -> Result<(), StoreError> {
        self.write(|transaction| write::create(transaction, &self.store, session, documents, first))
    }

    async fn commit(&self, id: &str, commit: &Commit) -> Result<(), StoreError> {
        self.write(|transaction| write::commit(transaction, &self.store, id, commit))
    }

    async fn session(&self, id: &str) -> Result<Option<SessionRow>, StoreError> {
        self.one(&format!("{SESSION} WHERE id = ?"), [id], session_row)
    }

    async fn sessions(&self) -> Result<Vec<SessionRow>, StoreError> {
        // Without its `Z`, a time orders rightly as text: `…:00` comes before `…:00.5`.
        self.all(&format!("{SESSION} ORDER BY rtrim(updated_at, 'Z') DESC, id"), [], session_row)
    }

    async fn frames(&self, id: &str) -> Result<Vec<FrameRow>, StoreError> {
        let sql =
            "SELECT f.key, state FROM frame AS f JOIN session AS s ON f.session = s.key WHERE s.id = ? ORDER BY f.key";
        self.all(sql, [id], |row| Ok(FrameRow { key: row.get(0)?, state: row.get(1)? }))
    }

    async fn variables(&self, id: &str) -> Result<Vec<VariableRow>, StoreError> {
        let sql = "SELECT scope, path, name, value, source, round, at, sensitive
                   FROM variable JOIN session AS s ON session = s.key WHERE s.id = ? ORDER BY scope, path, name";
        self.all(sql, [id], variable_row)
    }

    async fn user_variables(&self, user: &str) -> Result<Vec<VariableRow>, StoreError> {
        let sql = "SELECT scope, path, name, value, source, round, at, sensitive
                   FROM user_variable WHERE user = ? ORDER BY scope, path, name";
        self.all(sql, [user], variable_row)
    }

    async fn counters(&self, id: &str) -> Result<Vec<CounterRow>, StoreError> {
        let sql = "SELECT name, count FROM counter JOIN session AS s ON session = s.key WHERE s.id = ? ORDER BY name";
        self.all(sql, [id], |row| Ok(CounterRow { name: row.get(0)?, count: count(row, 1)? }))
    }

    async fn journal(&self, id: &str, after: u64, most: usize) -> Result<Vec<JournalRow>, StoreError> {
        let sql = "SELECT key, at, kind, body FROM journal WHERE key > ? AND key <= ? ORDER BY key LIMIT ?";
        self.between(id, after, most, sql, journal_row)
    }

    async fn journal_of(&self, id: &str, kind: &str, after: u64, most: usize) -> Result<Vec<JournalRow>, StoreError> {
        self.within(id, |connection, session| {
            let (first, after, block) = (key(session, 0)?, key(session, after)?, Count(after >> BLOCK_BITS));
            let parameters = params![first, BLOCK_BITS, session, kind, block, after, limit(most)];
            all(connection, JOURNAL_OF, parameters, journal_row)
        })
    }

    async fn last_of(&self, id: &str, kind: &str) -> Result<Option<JournalRow>, StoreError> {
        self.within(id, |connection, session| {
            let parameters = params![key(session, 0)?, BLOCK_BITS, session, kind];
            connection.prepare_cached(LAST_OF)?.query_row(parameters, journal_row).optional()
        })
    }

    async fn messages_tail(&self, id: &str, count: usize) -> Result<Vec<MessageRow>, StoreError> {
        let sql = "SELECT key, role, text, at, action_id, round, message_id FROM message
                   WHERE key > ? AND key <= ? ORDER BY key DESC LIMIT ?";
        let mut rows = self.between(id, 0, count, sql, message_row)?;
        rows.reverse();
        Ok(rows)
    }

    async fn messages(&self, id: &str, after: u64, most: usize) -> Result<Vec<MessageRow>, StoreError> {
        let sql = "SELECT key, role, text, at, action_id, round, message_id FROM message
                   WHERE key > ? AND key <= ? ORDER BY key LIMIT ?";
        self.between(id, after, most, sql, message_row)
    }

    async fn cell(&self, id: &str, cell_id: &str) -> Result<Option<CellRow>, StoreError> {
        self.within(id, |connection, session| {
            connection.prepare_cached(CELL)?.query_row(params![session, cell_id], cell_row).optional()
        })
    }

    async fn cells(&self, id: &str, after: u64, most: usize) -> Result<Vec<CellRow>, StoreError> {
        self.between(id, after, most, CELLS, cell_row)
    }

    async fn cells_tail(&self, id: &str, count: usize) -> Result<Vec<CellRow>, StoreError> {
        let mut rows = self.between(id, 0, count, CELLS_TAIL, cell_row)?;
        rows.reverse();
        Ok(rows)
    }

    async fn answer_taken(&self, id: &str, answer_id: &str) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM answer AS a JOIN session AS s ON a.session = s.key WHERE s.id = ? AND a.id = ?";
        self.read(|connection| connection.prepare_cached(sql)?.exists([id, answer_id]))
    }

    async fn document(&self, sha256: &str) -> Result<Option<String>, StoreError> {
        self.one("SELECT text FROM document WHERE sha256 = ?", [sha256], |row| row.get(0))
    }

    async fn delete(&self, id: &str) -> Result<bool, StoreError> {
        let _held = self.hold(id, REMOVAL)?;
        self.erase(|| self.write(|transaction| remove::session(transaction, id, None)))
    }

    async fn prune(&self, updated_before: &str) -> Result<Vec<String>, StoreError> {
        let old = self.read(|connection| remove::updated_before(connection, updated_before))?;
        self.erase(|| {
            let mut gone = Vec::new();
            for id in old {
                let _held = match self.hold(&id, REMOVAL) {
                    Err(StoreError::Held { .. }) => continue,
                    held => held?,
                };
                if self.write(|transaction| remove::session(transaction, &id, Some(updated_before)))? {
                    gone.push(id);
                }
            }
            Ok(gone)
        })
    }

    async fn lock(&self, id: &str, holder: &str) -> Result<Box<dyn SessionLock>, StoreError> {
        Ok(Box::new(self.hold(id, holder)?))
    }
}
