//! [`SqliteStore`]: implements [`Store`] on one SQLite connection.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension, Params, Row, Transaction, TransactionBehavior, params};

use crate::contract::{SessionLock, Store};
use crate::error::StoreError;
use crate::rows::{
    CellRow, Commit, CounterRow, DocumentRow, EarlierState, FrameRow, JournalRow, MessageRow, NewSessionRow,
    OpenRequest, RequestRow, SessionCursor, SessionFilter, SessionRow, VariableRow,
};
use crate::sqlite::blobs::Blobs;
use crate::sqlite::error::Failure;
use crate::sqlite::group::{Change, GroupWriter};
use crate::sqlite::in_use::InUse;
use crate::sqlite::lock::{self, FileLock, SessionLocks};
use crate::sqlite::packed::{StoredEvent, stored_event, unpacked};
use crate::sqlite::presence::Presence;
use crate::sqlite::read::{
    CELL, CELLS, CELLS_TAIL, JOURNAL_OF, LAST_OF, SESSION, all, cell_row, key_of, message_row, session_row, sql_limit,
    variable_row,
};
use crate::sqlite::schema::BLOCK_BITS;
use crate::sqlite::write::{Count, count, key};
use crate::sqlite::{pages, remove, replaced, requests, write};

type RowReader<T> = fn(&Row<'_>) -> rusqlite::Result<T>;

/// The holder name of the lock while a session is deleted.
const DELETION_HOLDER: &str = "a deletion";

/// A store in one SQLite file, opened by [`crate::sqlite::open::open`].
///
/// Its calls do their work on the thread that polls them: a durable commit takes about 200 µs, and switching to another
/// thread and back would add a considerable part of that. So a call that has started always runs to completion. Commits of a process with
/// many sessions are grouped instead ([`SqliteStore::with_group_commits`]).
pub struct SqliteStore {
    connection: Mutex<Connection>,
    store: String,
    file: PathBuf,
    locks: Arc<SessionLocks>,
    /// None for reading only.
    open_files: Option<Arc<OpenFiles>>,
    /// Writes commits, if they are grouped.
    pub(crate) group: Option<GroupWriter>,
}

/// The files of a store that is open for writing.
pub(crate) struct OpenFiles {
    pub(crate) presence: Presence,
    _in_use: InUse,
}

impl SqliteStore {
    /// A store for reading on this connection. `store` is the path of `file` as the user wrote it.
    pub(crate) fn new(connection: Connection, store: String, file: &Path) -> Self {
        let locks = Arc::new(SessionLocks::new(&store, &lock::directory(file)));
        Self { connection: Mutex::new(connection), store, file: file.to_owned(), locks, open_files: None, group: None }
    }

    /// The same store for writing.
    pub(crate) fn for_writing(mut self, presence: Presence, in_use: InUse) -> Self {
        self.open_files = Some(Arc::new(OpenFiles { presence, _in_use: in_use }));
        self
    }

    /// The same store, which writes the commits of many sessions together, in a thread of its own. For a process with many sessions: the
    /// way to another thread and back takes longer than it saves for a single one.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`]; the file cannot be opened once more; the system gives no thread.
    pub fn with_group_commits(mut self) -> Result<Self, StoreError> {
        let files = self.open_files.as_ref().ok_or_else(|| StoreError::ReadOnly { store: self.store.clone() })?;
        self.group = Some(GroupWriter::start(&self.file, &self.store, Arc::clone(files))?);
        Ok(self)
    }

    /// The path of the store as the user wrote it.
    pub(crate) fn name(&self) -> &str {
        &self.store
    }

    /// Ignores poisoning: a panic inside a transaction rolls it back, so the connection stays usable.
    pub(crate) fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn read<T>(&self, query: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let connection = self.connection();
        query(&connection).map_err(|error| self.failed(&connection, error.into()))
    }

    /// The error for a failure.
    fn failed(&self, connection: &Connection, failure: Failure) -> StoreError {
        let error = failure.into_store_error(&self.store);
        if matches!(error, StoreError::Corrupt { .. } | StoreError::Gone { .. }) {
            keep_log(connection);
        }
        error
    }

    /// The row that `sql` returns, if any.
    fn one<T>(&self, sql: &str, parameters: impl Params, row: RowReader<T>) -> Result<Option<T>, StoreError> {
        self.read(|connection| connection.prepare_cached(sql)?.query_row(parameters, row).optional())
    }

    fn all<T>(&self, sql: &str, parameters: impl Params, row: RowReader<T>) -> Result<Vec<T>, StoreError> {
        self.read(|connection| all(connection, sql, parameters, row))
    }

    /// The result of `query` for the key of a session; the default value if the session does not exist.
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

    /// At most `limit` numbered rows of a session after number `after`.
    fn between<T>(
        &self,
        id: &str,
        after: u64,
        limit: usize,
        sql: &str,
        row: RowReader<T>,
    ) -> Result<Vec<T>, StoreError> {
        self.within(id, |connection, session| {
            all(connection, sql, params![key(session, after)?, key(session, u64::MAX)?, sql_limit(limit)], row)
        })
    }

    /// The rows with their texts, which may have parts in other rows, completed.
    fn complete<R>(&self, mut rows: Vec<R>, text: fn(&mut R) -> &mut String) -> Result<Vec<R>, StoreError> {
        self.read(|connection| {
            let blobs = Blobs { connection };
            rows.iter_mut().try_for_each(|row| blobs.complete(text(row)))
        })?;
        Ok(rows)
    }

    fn complete_journal(&self, rows: Vec<StoredEvent>) -> Result<Vec<JournalRow>, StoreError> {
        self.read(|connection| unpacked(connection, rows))
    }

    fn complete_cells(&self, rows: Vec<CellRow>) -> Result<Vec<CellRow>, StoreError> {
        self.complete(rows, |row| &mut row.body)
    }

    /// Runs `work` in one durable transaction, which is rolled back if `work` fails.
    pub(crate) fn write<T>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, Failure>) -> Result<T, StoreError> {
        let mut connection = self.connection();
        let run = || {
            // Takes the write lock immediately, so that the values read here are still valid when the transaction writes.
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let result = work(&transaction)?;
            self.check_presence()?;
            transaction.commit()?;
            // Only now is it certain that the commit is in the files that the next process finds.
            self.check_presence()?;
            Ok(result)
        };
        run().map_err(|failure: Failure| self.failed(&connection, failure))
    }

    fn check_presence(&self) -> Result<(), StoreError> {
        self.open_files.as_ref().map_or(Ok(()), |files| files.presence.check())
    }

    fn acquire_lock(&self, id: &str, holder: &str) -> Result<FileLock, StoreError> {
        if self.open_files.is_none() {
            return Err(StoreError::ReadOnly { store: self.store.clone() });
        }
        self.locks.acquire(id, holder)
    }

    /// Runs `work` so that the data it deletes cannot be found in the file afterwards.
    pub(crate) fn with_secure_delete<T>(&self, work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.read(|connection| connection.execute_batch("PRAGMA secure_delete = ON"))?;
        let result = work();
        self.read(|connection| {
            connection.execute_batch("PRAGMA secure_delete = FAST")?;
            // Erases the log as well. If another process is reading, a later checkpoint does this; that is not an error.
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        })
        .unwrap_or_else(|error| tracing::debug!(%error, "the log was not folded in after a deletion"));
        result
    }
}

/// Keeps the log when the connection is closed: a damaged file must not get its content, and the path of the log may lead to
/// the log of another store.
pub(crate) fn keep_log(connection: &Connection) {
    if let Err(error) = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true) {
        tracing::warn!(%error, "the log of the store may be folded in when it is closed");
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        if self.check_presence().is_err() {
            keep_log(&self.connection());
        }
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
        match &self.group {
            None => self.write(|transaction| write::create(transaction, &self.store, session, documents, first)),
            Some(group) => {
                let (session, documents, first) = (session.clone(), documents.to_vec(), first.clone());
                group.write(Change::Create { session, documents, first }).await
            }
        }
    }

    async fn commit(&self, id: &str, commit: &Commit) -> Result<(), StoreError> {
        match &self.group {
            None => self.write(|transaction| write::commit(transaction, &self.store, id, commit)),
            Some(group) => group.write(Change::Commit { id: id.to_owned(), commit: commit.clone() }).await,
        }
    }

    async fn session(&self, id: &str) -> Result<Option<SessionRow>, StoreError> {
        self.one(&format!("{SESSION} WHERE id = ?"), [id], session_row)
    }

    async fn sessions(&self) -> Result<Vec<SessionRow>, StoreError> {
        // Without its `Z`, a time sorts correctly as text: `…:00` comes before `…:00.5`.
        self.all(&format!("{SESSION} ORDER BY rtrim(updated_at, 'Z') DESC, id"), [], session_row)
    }

    async fn sessions_page(
        &self,
        filter: &SessionFilter,
        after: Option<&SessionCursor>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, StoreError> {
        self.read(|connection| pages::page(connection, filter, after, limit))
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

    async fn journal(&self, id: &str, after: u64, limit: usize) -> Result<Vec<JournalRow>, StoreError> {
        let sql = "SELECT key, at, kind, body, packed, dictionary FROM journal WHERE key > ? AND key <= ? ORDER BY key LIMIT ?";
        self.complete_journal(self.between(id, after, limit, sql, stored_event)?)
    }

    async fn journal_by_kind(
        &self,
        id: &str,
        kind: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<JournalRow>, StoreError> {
        let rows = self.within(id, |connection, session| {
            let (first, after, block) = (key(session, 0)?, key(session, after)?, Count(after >> BLOCK_BITS));
            let parameters = params![first, BLOCK_BITS, session, kind, block, after, sql_limit(limit)];
            all(connection, JOURNAL_OF, parameters, stored_event)
        })?;
        self.complete_journal(rows)
    }

    async fn last_by_kind(&self, id: &str, kind: &str) -> Result<Option<JournalRow>, StoreError> {
        let row = self.within(id, |connection, session| {
            let parameters = params![key(session, 0)?, BLOCK_BITS, session, kind];
            connection.prepare_cached(LAST_OF)?.query_row(parameters, stored_event).optional()
        })?;
        Ok(self.complete_journal(row.into_iter().collect())?.pop())
    }

    async fn messages_tail(&self, id: &str, count: usize) -> Result<Vec<MessageRow>, StoreError> {
        let sql = "SELECT key, role, text, at, action_id, round, message_id FROM message
                   WHERE key > ? AND key <= ? ORDER BY key DESC LIMIT ?";
        let mut rows = self.between(id, 0, count, sql, message_row)?;
        rows.reverse();
        Ok(rows)
    }

    async fn messages(&self, id: &str, after: u64, limit: usize) -> Result<Vec<MessageRow>, StoreError> {
        let sql = "SELECT key, role, text, at, action_id, round, message_id FROM message
                   WHERE key > ? AND key <= ? ORDER BY key LIMIT ?";
        self.between(id, after, limit, sql, message_row)
    }

    async fn cell(&self, id: &str, cell_id: &str) -> Result<Option<CellRow>, StoreError> {
        let row = self.within(id, |connection, session| {
            connection.prepare_cached(CELL)?.query_row(params![session, cell_id], cell_row).optional()
        })?;
        Ok(self.complete_cells(row.into_iter().collect())?.pop())
    }

    async fn cells(&self, id: &str, after: u64, limit: usize) -> Result<Vec<CellRow>, StoreError> {
        self.complete_cells(self.between(id, after, limit, CELLS, cell_row)?)
    }

    async fn cells_tail(&self, id: &str, count: usize) -> Result<Vec<CellRow>, StoreError> {
        let mut rows = self.complete_cells(self.between(id, 0, count, CELLS_TAIL, cell_row)?)?;
        rows.reverse();
        Ok(rows)
    }

    async fn answer_accepted(&self, id: &str, answer_id: &str) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM answer AS a JOIN session AS s ON a.session = s.key WHERE s.id = ? AND a.id = ?";
        self.read(|connection| connection.prepare_cached(sql)?.exists([id, answer_id]))
    }

    async fn revision_with(&self, id: &str, status: &str, answers: u64) -> Result<Option<u64>, StoreError> {
        self.within(id, |connection, session| replaced::revision_with(connection, session, status, answers))
    }

    async fn earlier_state(&self, id: &str, revision: u64) -> Result<Option<EarlierState>, StoreError> {
        self.within(id, |connection, session| replaced::earlier_state(connection, session, revision))
    }

    async fn requests(&self, id: &str) -> Result<Vec<RequestRow>, StoreError> {
        self.within(id, requests::of_session)
    }

    async fn open_requests(&self, due_before: Option<&str>) -> Result<Vec<OpenRequest>, StoreError> {
        self.read(|connection| requests::open(connection, due_before))
    }

    async fn text(&self, id: &str, sha256: &str) -> Result<Option<String>, StoreError> {
        self.within(id, |connection, session| Blobs { connection }.text_of(session, sha256))
    }

    async fn document(&self, sha256: &str) -> Result<Option<String>, StoreError> {
        self.one("SELECT text FROM document WHERE sha256 = ?", [sha256], |row| row.get(0))
    }

    async fn delete(&self, id: &str) -> Result<bool, StoreError> {
        let _lock = self.acquire_lock(id, DELETION_HOLDER)?;
        self.with_secure_delete(|| self.write(|transaction| remove::session(transaction, id, None)))
    }

    async fn prune(&self, updated_before: &str) -> Result<Vec<String>, StoreError> {
        let outdated = self.read(|connection| remove::updated_before(connection, updated_before))?;
        self.with_secure_delete(|| {
            let mut deleted = Vec::new();
            for id in outdated {
                let _lock = match self.acquire_lock(&id, DELETION_HOLDER) {
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

    async fn lock(&self, id: &str, holder: &str) -> Result<Box<dyn SessionLock>, StoreError> {
        Ok(Box::new(self.acquire_lock(id, holder)?))
    }

    async fn check_files(&self) -> Result<(), StoreError> {
        self.check_presence()
    }
}
