//! Checkpoints: the pages of the write-ahead log are copied to the database file, after which the log begins anew.
//!
//! Where many sessions are written, a thread of its own reads and copies the pages while the thread that writes goes on. What was written in the
//! meantime is copied in the same way, and the thread that writes copies only the little that is left then, and waits until the file is on the
//! disk, because a log begins anew only when all of it is copied (<https://www.sqlite.org/wal.html#checkpointing>).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{Builder, JoinHandle};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::StoreError;
use crate::sqlite::error::{self, Failure};
use crate::sqlite::file::OpenFiles;
use crate::sqlite::open::connect;
use crate::sqlite::schema;

/// When the log is copied, in pages of the log.
#[derive(Clone, Copy)]
pub(crate) struct LogLimits {
    /// The length from which it is copied.
    pub(crate) long: u32,
    /// The length at which the thread that writes waits for a checkpoint, and copies what is left however long it is.
    pub(crate) most: u32,
    /// What the thread that writes copies itself.
    pub(crate) few: u32,
}

impl LogLimits {
    /// Four times as long as usual: a page that is written again before it is copied is then copied only once.
    pub(crate) const FOR_MANY_SESSIONS: Self = Self { long: 4_000, most: 16_000, few: 400 };
}

/// How often the thread of the checkpoints copies what was written in the meantime, before the thread that writes copies the rest however long
/// it is.
const MAX_ROUNDS: u32 = 3;

/// How much of the log is copied, in pages. There are none of both without a log.
#[derive(Debug)]
pub(crate) struct CopiedLog {
    pub(crate) log: u32,
    pub(crate) copied: u32,
}

/// Decides when the log is copied, and by which thread. It belongs to the thread that writes.
pub(crate) struct Checkpoints {
    limits: LogLimits,
    files: Arc<OpenFiles>,
    /// How often the thread has begun to copy this log.
    rounds: u32,
    is_copying: bool,
    /// Tells the thread to copy the log. None when it is to end.
    begin: Option<Sender<()>>,
    /// Each time that the thread has copied the log.
    ended: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpoints {
    /// Starts the thread, with a connection of its own to the file. `writing` makes no checkpoints any more except those of
    /// [`Self::after_commit`].
    pub(crate) fn start(
        writing: &Connection,
        (file, store): (&Path, &str),
        files: Arc<OpenFiles>,
        limits: LogLimits,
    ) -> Result<Self, StoreError> {
        writing
            .execute_batch("PRAGMA wal_autocheckpoint = 0")
            .map_err(|failure| Failure::from(failure).into_store_error(store))?;
        let (begin, begun) = channel();
        let (copied, ended) = channel();
        let copying = CopyingThread {
            path: file.to_owned(),
            store: store.to_owned(),
            files: Arc::clone(&files),
            connection: None,
        };
        let thread = Builder::new().name("store log".to_owned()).spawn(move || copying.run(&begun, &copied));
        let thread = thread.map_err(|why| error::io(store, &why))?;
        Ok(Self { limits, files, rounds: 0, is_copying: false, begin: Some(begin), ended, thread: Some(thread) })
    }

    /// Has the log copied if it is long. A checkpoint that fails is no error: what is in the log is durable, and the next one copies it.
    pub(crate) fn after_commit(&mut self, writing: &Connection) {
        if let Err(error) = self.copy_if_long(writing) {
            tracing::debug!(%error, "the log of the store was not copied");
        }
    }

    fn copy_if_long(&mut self, writing: &Connection) -> rusqlite::Result<()> {
        let CopiedLog { log, copied } = copied_log(writing)?;
        if log < self.limits.long {
            self.rounds = 0;
            return Ok(());
        }
        if log >= self.limits.most {
            self.wait_for_copying();
        } else {
            self.is_copying &= matches!(self.ended.try_recv(), Err(TryRecvError::Empty));
            if self.is_copying
                || (log.saturating_sub(copied) > self.limits.few && self.rounds < MAX_ROUNDS && self.start_copying())
            {
                return Ok(());
            }
        }
        self.rounds = 0;
        if self.files.must_keep_log() {
            return Ok(());
        }
        checkpoint(writing)
    }

    /// Waits until the thread has copied the log, if it does. If the thread has ended, nothing is waited for.
    pub(crate) fn wait_for_copying(&mut self) {
        if std::mem::take(&mut self.is_copying) {
            let _ = self.ended.recv();
        }
    }

    /// Returns false if the thread has ended.
    fn start_copying(&mut self) -> bool {
        self.rounds += 1;
        self.is_copying = self.begin.as_ref().is_some_and(|begin| begin.send(()).is_ok());
        self.is_copying
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.begin = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that copies the log of the store has panicked");
        }
    }
}

struct CopyingThread {
    path: PathBuf,
    store: String,
    files: Arc<OpenFiles>,
    /// Opened when it is first needed: most processes write little.
    connection: Option<Connection>,
}

impl CopyingThread {
    fn run(mut self, begun: &Receiver<()>, copied: &Sender<()>) {
        while begun.recv().is_ok() {
            if let Err(failure) = self.copy() {
                // It may be the reason.
                self.connection = None;
                let why = failure.into_store_error(&self.store);
                tracing::debug!(%why, "the log of the store was not copied");
            }
            if copied.send(()).is_err() {
                return;
            }
        }
    }

    fn copy(&mut self) -> Result<(), Failure> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.open()?,
        };
        // The path may lead to another store in the meantime.
        if !self.files.must_keep_log() {
            checkpoint(&connection)?;
        }
        self.connection = Some(connection);
        Ok(())
    }

    fn open(&self) -> Result<Connection, Failure> {
        let connection = connect(&self.path, OpenFlags::SQLITE_OPEN_READ_WRITE, "")?;
        // Nothing of another file may be read: that creates its log, or undoes its interrupted commit.
        self.files.presence.check()?;
        // Only the connection that is closed last folds the log in, and it knows whether the file is still the one that was opened.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;")?;
        // A connection that has read nothing does not know of the log.
        schema::layout(&connection)?;
        Ok(connection)
    }
}

/// Copies as much of the log as no reader needs, without waiting for anybody.
fn checkpoint(connection: &Connection) -> rusqlite::Result<()> {
    connection.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")?.query_row([], |_| Ok(()))
}

pub(crate) fn copied_log(connection: &Connection) -> rusqlite::Result<CopiedLog> {
    connection.prepare_cached("PRAGMA wal_checkpoint(NOOP)")?.query_row([], |row| {
        // Both are -1 if the store has a rollback journal instead.
        let pages = |column| row.get(column).map(|pages: i64| u32::try_from(pages).unwrap_or(0));
        Ok(CopiedLog { log: pages(1)?, copied: pages(2)? })
    })
}
