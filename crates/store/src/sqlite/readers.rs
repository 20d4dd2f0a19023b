//! A pool of connections for reading: reads of many sessions wait neither for commits nor for each other.
//!
//! In a write-ahead log, a reader sees every commit that was made before it begins, and no writer waits for it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::StoreError;
use crate::sqlite::error::Failure;
use crate::sqlite::file::{OpenFiles, SqliteFile};
use crate::sqlite::open::connect;
use crate::sqlite::schema::refuse_newer;
use crate::sqlite::threads::BlockingThreads;

/// The maximum number of connections. More reads wait for their turn.
pub(crate) const MAX_READERS: usize = 4;

/// The maximum number of rows that count as few.
const FEW: usize = 64;

/// How much a query reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadSize {
    /// A few rows by their keys: this takes microseconds, less than the way to another thread and back.
    Few,
    /// Possibly many rows. Read on a thread of its own.
    Many,
}

impl ReadSize {
    /// Of a query for so many rows at most.
    pub(crate) fn of(limit: usize) -> Self {
        if limit <= FEW { Self::Few } else { Self::Many }
    }
}

pub(crate) struct Readers {
    pool: Arc<Pool>,
    threads: BlockingThreads,
}

struct Pool {
    path: PathBuf,
    store: String,
    files: Arc<OpenFiles>,
    /// Connections that no read uses.
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    /// Readers of a store that is open for writing; none if it has no write-ahead log, because a commit then waits for all reads.
    pub(crate) fn of(file: &SqliteFile) -> Result<Option<Self>, StoreError> {
        let files = Arc::clone(file.writable()?);
        let mode: String = file.read(|connection| connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)))?;
        let pool = Pool { path: file.path.clone(), store: file.store.clone(), files, idle: Mutex::default() };
        let threads = BlockingThreads::new(&file.store, MAX_READERS);
        Ok((mode == "wal").then(|| Self { pool: Arc::new(pool), threads }))
    }

    /// Runs a query: on this thread if it reads a few rows and a connection is free, otherwise on a thread of its own. A query that has started
    /// always runs to completion.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        size: ReadSize,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        if size == ReadSize::Few
            && let Some(_turn) = self.threads.try_turn()
        {
            return self.pool.read(query);
        }
        let pool = Arc::clone(&self.pool);
        self.threads.run(move || pool.read(query)).await
    }
}

impl Pool {
    fn read<T>(&self, query: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        self.try_read(query).map_err(|failure| failure.into_store_error(&self.store))
    }

    fn try_read<T>(&self, query: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Failure> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let free = idle().pop();
        let connection = match free {
            Some(connection) => connection,
            None => self.open()?,
        };
        // After an error, the connection is closed: it may be the reason.
        refuse_newer(&connection, &self.store)?;
        let result = query(&connection)?;
        idle().push(connection);
        Ok(result)
    }

    fn open(&self) -> Result<Connection, Failure> {
        let connection = connect(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY, "")?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        // The path may lead to another store in the meantime.
        self.files.presence.check()?;
        Ok(connection)
    }
}
