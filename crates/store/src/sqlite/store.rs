//! [`SqliteStore`]: implements [`Store`] on one SQLite file.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use crate::contract::{LockReply, LockRequest, SessionLock, Store};
use crate::error::StoreError;
use crate::rows::{
    CellRow, Commit, CounterRow, DocumentRow, EarlierState, FrameRow, JournalRow, MessageRow, NewSessionRow,
    OpenRequest, RequestRow, SessionCursor, SessionFilter, SessionRow, VariableRow,
};
use crate::sqlite::blobs::Blobs;
use crate::sqlite::file::{OpenFiles, SqliteFile, needs_log};
use crate::sqlite::group::{Change, GroupWriter};
use crate::sqlite::in_use::InUse;
use crate::sqlite::packed::{stored_event, unpacked};
use crate::sqlite::presence::Presence;
use crate::sqlite::read::{
    CELL, CELLS, CELLS_TAIL, JOURNAL_OF, LAST_OF, SESSION, all, cell_row, key_of, message_row, session_row, sql_limit,
    variable_row,
};
use crate::sqlite::readers::{ReadSize, Readers};
use crate::sqlite::schema::BLOCK_BITS;
use crate::sqlite::threads::BlockingThreads;
use crate::sqlite::write::{Count, count, key};
use crate::sqlite::{pages, replaced, requests, write};

/// The maximum number of locks that are acquired at a time.
const MAX_LOCKING: usize = 16;

type RowReader<T> = fn(&Row<'_>) -> rusqlite::Result<T>;

/// A store in one SQLite file, opened by [`crate::sqlite::open::open`].
///
/// Its calls do their work on the thread that polls them: a durable commit takes about 200 µs, and switching to another
/// thread and back would add a considerable part of that. So a call that has started always runs to completion. In a process with
/// many sessions ([`SqliteStore::with_group_commits`]), other threads do the work: one writes the commits, and a few read.
pub struct SqliteStore {
    /// Read, if other threads do the work. Dropped first, so that the log is folded in when the last connection is closed.
    readers: Option<Readers>,
    /// Writes commits, if they are grouped.
    pub(crate) group: Option<GroupWriter>,
    pub(crate) file: Arc<SqliteFile>,
    /// For what uses the connection of `file`, which only one can at a time.
    pub(crate) threads: BlockingThreads,
    /// For locks, which may wait for the end of a process.
    lock_threads: BlockingThreads,
}

impl SqliteStore {
    /// A store for reading on this connection. `store` is the path of `file` as the user wrote it.
    pub(crate) fn new(connection: Connection, store: String, file: &Path) -> Self {
        Self::with(SqliteFile::new(connection, store, file, None))
    }

    /// A store for writing.
    pub(crate) fn for_writing(
        connection: Connection,
        store: String,
        file: &Path,
        presence: Presence,
        in_use: InUse,
    ) -> Self {
        Self::with(SqliteFile::new(connection, store, file, Some(OpenFiles::new(presence, in_use))))
    }

    fn with(file: SqliteFile) -> Self {
        let threads = BlockingThreads::new(&file.store, 1);
        let lock_threads = BlockingThreads::new(&file.store, MAX_LOCKING);
        Self { readers: None, group: None, file: Arc::new(file), threads, lock_threads }
    }

    /// The same store for a process with many sessions: a thread of its own writes the commits of many sessions together, and others read.
    /// For a single session, the way to another thread and back takes longer than it saves.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`]; the file cannot be opened once more; the system gives no thread.
    pub fn with_group_commits(mut self) -> Result<Self, StoreError> {
        let files = Arc::clone(self.file.writable()?);
        self.group = Some(GroupWriter::start(&self.file.path, &self.file.store, files)?);
        self.file.leave_log_to_others()?;
        self.readers = Readers::of(&self.file)?;
        self.file.listen();
        Ok(self)
    }

    /// The connection that does what neither the readers nor the group writer do.
    #[cfg(test)]
    pub(crate) fn connection(&self) -> std::sync::MutexGuard<'_, Connection> {
        self.file.connection()
    }

    /// Runs `work`, which may block, on a thread of its own if other threads do the work.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SqliteFile) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.run_on(&self.threads, work).await
    }

    async fn run_on<T: Send + 'static>(
        &self,
        threads: &BlockingThreads,
        work: impl FnOnce(&SqliteFile) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        if self.group.is_none() {
            return work(&self.file);
        }
        let file = Arc::clone(&self.file);
        threads.run(move || work(&file)).await
    }

    pub(crate) async fn read<T: Send + 'static>(
        &self,
        size: ReadSize,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let Some(readers) = &self.readers else { return self.run(move |file| file.read(query)).await };
        let result = readers.read(size, query).await;
        if result.as_ref().is_err_and(needs_log) {
            self.file.keep_log();
        }
        result
    }

    /// The row that `sql` returns, if any.
    async fn one<T: Send + 'static>(
        &self,
        sql: impl Into<Cow<'static, str>>,
        parameters: impl Params + Send + 'static,
        row: RowReader<T>,
    ) -> Result<Option<T>, StoreError> {
        let sql = sql.into();
        let query =
            move |connection: &Connection| connection.prepare_cached(&sql)?.query_row(parameters, row).optional();
        self.read(ReadSize::Few, query).await
    }

    async fn all<T: Send + 'static>(
        &self,
        size: ReadSize,
        sql: impl Into<Cow<'static, str>>,
        parameters: impl Params + Send + 'static,
        row: RowReader<T>,
    ) -> Result<Vec<T>, StoreError> {
        let sql = sql.into();
        self.read(size, move |connection| all(connection, &sql, parameters, row)).await
    }

    /// The result of `query` for the key of a session; the default value if the session does not exist.
    pub(crate) async fn within<T: Default + Send + 'static>(
        &self,
        id: &str,
        size: ReadSize,
        query: impl FnOnce(&Connection, i64) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let id = id.to_owned();
        self.read(size, move |connection| match key_of(connection, &id)? {
            Some(session) => query(connection, session),
            None => Ok(T::default()),
        })
        .await
    }

    /// At most `limit` numbered rows of a session after number `after`, each with its text completed.
    async fn between<T: Send + 'static>(
        &self,
        id: &str,
        after: u64,
        limit: usize,
        sql: &'static str,
        row: RowReader<T>,
        complete: fn(&Blobs<'_>, &mut T) -> rusqlite::Result<()>,
    ) -> Result<Vec<T>, StoreError> {
        self.within(id, ReadSize::of(limit), move |connection, session| {
            let mut rows = numbered(connection, session, after, limit, sql, row)?;
            let blobs = Blobs { connection };
            rows.iter_mut().try_for_each(|row| complete(&blobs, row))?;
            Ok(rows)
        })
        .await
    }
}

/// At most `limit` numbered rows of a session after number `after`.
fn numbered<T>(
    connection: &Connection,
    session: i64,
    after: u64,
    limit: usize,
    sql: &str,
    row: RowReader<T>,
) -> rusqlite::Result<Vec<T>> {
    all(connection, sql, params![key(session, after)?, key(session, u64::MAX)?, sql_limit(limit)], row)
}

/// Completes the text of a cell, which may have parts in other rows.
fn complete_cell(blobs: &Blobs<'_>, cell: &mut CellRow) -> rusqlite::Result<()> {
    blobs.complete(&mut cell.body)
}

/// Messages are stored as they are.
fn complete_message(_: &Blobs<'_>, _: &mut MessageRow) -> rusqlite::Result<()> {
    Ok(())
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
            None => {
                let file = &self.file;
                file.write(|transaction| write::create(transaction, &file.store, session, documents, first))
            }
            Some(group) => {
                let (session, first) = (Box::new(session.clone()), Box::new(first.clone()));
                let documents = documents.to_vec();
                group.write(Change::Create { session, documents, first }).await
            }
        }
    }

    async fn commit(&self, id: &str, commit: &Commit) -> Result<(), StoreError> {
        match &self.group {
            None => self.file.write(|transaction| write::commit(transaction, &self.file.store, id, commit)),
            Some(group) => {
                let commits = Arc::new(vec![commit.clone()]);
                group.write(Change::Commit { id: id.to_owned(), commits }).await
            }
        }
    }

    async fn commit_all(&self, id: &str, commits: &Arc<Vec<Commit>>) -> Result<(), StoreError> {
        match &self.group {
            None => self.file.write(|transaction| write::commit_all(transaction, &self.file.store, id, commits)),
            Some(group) => group.write(Change::Commit { id: id.to_owned(), commits: Arc::clone(commits) }).await,
        }
    }

    async fn session(&self, id: &str) -> Result<Option<SessionRow>, StoreError> {
        self.one(format!("{SESSION} WHERE id = ?"), [id.to_owned()], session_row).await
    }

    async fn sessions(&self) -> Result<Vec<SessionRow>, StoreError> {
        // Without its `Z`, a time sorts correctly as text: `…:00` comes before `…:00.5`.
        self.all(ReadSize::Many, format!("{SESSION} ORDER BY rtrim(updated_at, 'Z') DESC, id"), [], session_row).await
    }

    async fn sessions_page(
        &self,
        filter: &SessionFilter,
        after: Option<&SessionCursor>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, StoreError> {
        let (filter, after) = (filter.clone(), after.cloned());
        self.read(ReadSize::Many, move |connection| pages::page(connection, &filter, after.as_ref(), limit)).await
    }

    async fn frames(&self, id: &str) -> Result<Vec<FrameRow>, StoreError> {
        let sql =
            "SELECT f.key, state FROM frame AS f JOIN session AS s ON f.session = s.key WHERE s.id = ? ORDER BY f.key";
        self.all(ReadSize::Few, sql, [id.to_owned()], |row| Ok(FrameRow { key: row.get(0)?, state: row.get(1)? })).await
    }

    async fn variables(&self, id: &str) -> Result<Vec<VariableRow>, StoreError> {
        let sql = "SELECT scope, path, name, value, source, round, at, sensitive
                   FROM variable JOIN session AS s ON session = s.key WHERE s.id = ? ORDER BY scope, path, name";
        self.all(ReadSize::Few, sql, [id.to_owned()], variable_row).await
    }

    async fn user_variables(&self, user: &str) -> Result<Vec<VariableRow>, StoreError> {
        let sql = "SELECT scope, path, name, value, source, round, at, sensitive
                   FROM user_variable WHERE user = ? ORDER BY scope, path, name";
        self.all(ReadSize::Few, sql, [user.to_owned()], variable_row).await
    }

    async fn counters(&self, id: &str) -> Result<Vec<CounterRow>, StoreError> {
        let sql = "SELECT name, count FROM counter JOIN session AS s ON session = s.key WHERE s.id = ? ORDER BY name";
        self.all(ReadSize::Few, sql, [id.to_owned()], |row| Ok(CounterRow { name: row.get(0)?, count: count(row, 1)? }))
            .await
    }

    async fn journal(&self, id: &str, after: u64, limit: usize) -> Result<Vec<JournalRow>, StoreError> {
        let sql = "SELECT key, at, kind, body, packed, dictionary FROM journal WHERE key > ? AND key <= ? ORDER BY key LIMIT ?";
        self.within(id, ReadSize::of(limit), move |connection, session| {
            unpacked(connection, numbered(connection, session, after, limit, sql, stored_event)?)
        })
        .await
    }

    async fn journal_by_kind(
        &self,
        id: &str,
        kind: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<JournalRow>, StoreError> {
        let kind = kind.to_owned();
        self.within(id, ReadSize::of(limit), move |connection, session| {
            let (first, after, block) = (key(session, 0)?, key(session, after)?, Count(after >> BLOCK_BITS));
            let parameters = params![first, BLOCK_BITS, session, kind, block, after, sql_limit(limit)];
            unpacked(connection, all(connection, JOURNAL_OF, parameters, stored_event)?)
        })
        .await
    }

    async fn last_by_kind(&self, id: &str, kind: &str) -> Result<Option<JournalRow>, StoreError> {
        let kind = kind.to_owned();
        self.within(id, ReadSize::Few, move |connection, session| {
            let parameters = params![key(session, 0)?, BLOCK_BITS, session, kind];
            let row = connection.prepare_cached(LAST_OF)?.query_row(parameters, stored_event).optional()?;
            Ok(unpacked(connection, row.into_iter().collect())?.pop())
        })
        .await
    }

    async fn messages_tail(&self, id: &str, count: usize) -> Result<Vec<MessageRow>, StoreError> {
        let sql = "SELECT key, role, text, at, action_id, round, message_id FROM message
                   WHERE key > ? AND key <= ? ORDER BY key DESC LIMIT ?";
        let mut rows = self.between(id, 0, count, sql, message_row, complete_message).await?;
        rows.reverse();
        Ok(rows)
    }

    async fn messages(&self, id: &str, after: u64, limit: usize) -> Result<Vec<MessageRow>, StoreError> {
        let sql = "SELECT key, role, text, at, action_id, round, message_id FROM message
                   WHERE key > ? AND key <= ? ORDER BY key LIMIT ?";
        self.between(id, after, limit, sql, message_row, complete_message).await
    }

    async fn cell(&self, id: &str, cell_id: &str) -> Result<Option<CellRow>, StoreError> {
        let cell_id = cell_id.to_owned();
        self.within(id, ReadSize::Few, move |connection, session| {
            let cell = connection.prepare_cached(CELL)?.query_row(params![session, cell_id], cell_row).optional()?;
            let complete = |mut cell| complete_cell(&Blobs { connection }, &mut cell).map(|()| cell);
            cell.map(complete).transpose()
        })
        .await
    }

    async fn cells(&self, id: &str, after: u64, limit: usize) -> Result<Vec<CellRow>, StoreError> {
        self.between(id, after, limit, CELLS, cell_row, complete_cell).await
    }

    async fn cells_tail(&self, id: &str, count: usize) -> Result<Vec<CellRow>, StoreError> {
        let mut rows = self.between(id, 0, count, CELLS_TAIL, cell_row, complete_cell).await?;
        rows.reverse();
        Ok(rows)
    }

    async fn answer_accepted(&self, id: &str, answer_id: &str) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM answer AS a JOIN session AS s ON a.session = s.key WHERE s.id = ? AND a.id = ?";
        let parameters = [id, answer_id].map(str::to_owned);
        self.read(ReadSize::Few, move |connection| connection.prepare_cached(sql)?.exists(parameters)).await
    }

    async fn revision_with(&self, id: &str, status: &str, answers: u64) -> Result<Option<u64>, StoreError> {
        let status = status.to_owned();
        self.within(id, ReadSize::Few, move |connection, session| {
            replaced::revision_with(connection, session, &status, answers)
        })
        .await
    }

    async fn earlier_state(&self, id: &str, revision: u64) -> Result<Option<EarlierState>, StoreError> {
        self.within(id, ReadSize::Many, move |connection, session| {
            replaced::earlier_state(connection, session, revision)
        })
        .await
    }

    async fn requests(&self, id: &str) -> Result<Vec<RequestRow>, StoreError> {
        self.within(id, ReadSize::Few, requests::of_session).await
    }

    async fn open_requests(&self, due_before: Option<&str>) -> Result<Vec<OpenRequest>, StoreError> {
        let due_before = due_before.map(str::to_owned);
        self.read(ReadSize::Many, move |connection| requests::open(connection, due_before.as_deref())).await
    }

    async fn text(&self, id: &str, sha256: &str) -> Result<Option<String>, StoreError> {
        let sha256 = sha256.to_owned();
        self.within(id, ReadSize::Few, move |connection, session| Blobs { connection }.text_of(session, &sha256)).await
    }

    async fn has_text(&self, id: &str, sha256: &str) -> Result<bool, StoreError> {
        let sha256 = sha256.to_owned();
        let is_linked = self
            .within(id, ReadSize::Few, move |connection, session| Blobs { connection }.has(session, &sha256).map(Some));
        Ok(is_linked.await?.unwrap_or(false))
    }

    async fn document(&self, sha256: &str) -> Result<Option<String>, StoreError> {
        self.one("SELECT text FROM document WHERE sha256 = ?", [sha256.to_owned()], |row| row.get(0)).await
    }

    async fn delete(&self, id: &str) -> Result<bool, StoreError> {
        let id = id.to_owned();
        self.run(move |file| file.delete(&id)).await
    }

    async fn prune(&self, updated_before: &str) -> Result<Vec<String>, StoreError> {
        let time = updated_before.to_owned();
        self.run(move |file| file.prune(&time)).await
    }

    async fn lock(&self, id: &str, holder: &str) -> Result<Arc<dyn SessionLock>, StoreError> {
        let (id, holder) = (id.to_owned(), holder.to_owned());
        let lock = self.run_on(&self.lock_threads, move |file| file.lock(&id, &holder)).await?;
        Ok(Arc::new(lock))
    }

    async fn ask_for(&self, id: &str, request: LockRequest) -> Result<LockReply, StoreError> {
        let id = id.to_owned();
        self.run_on(&self.lock_threads, move |file| file.ask_for(&id, request)).await
    }

    async fn check_files(&self) -> Result<(), StoreError> {
        self.file.check_presence()?;
        // A newer release may have changed the layout.
        self.read(ReadSize::Few, |_| Ok(())).await
    }
}
