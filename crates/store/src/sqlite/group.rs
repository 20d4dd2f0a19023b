//! Group commits: a thread that writes the commits of many sessions in one transaction, so that they wait for the disk together.

use std::path::Path;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::error::StoreError;
use crate::rows::{Commit, DocumentRow, NewSessionRow};
use crate::sqlite::checkpoints::{Checkpoints, LogLimits};
use crate::sqlite::error::{self, Failure};
use crate::sqlite::file::{OpenFiles, keep_log, needs_log};
use crate::sqlite::open::writer;
use crate::sqlite::schema::{MIGRATIONS, refuse_newer};
use crate::sqlite::write;

/// The maximum number of commits in one transaction. Each waits for all of them.
const MAX_GROUP: usize = 256;

/// The settings of the connection that writes many sessions: up to 64 MiB of pages, so that the end of each session is usually among them, and
/// a file of the log as long as it usually is under load ([`Checkpoints`]), because it would grow anew after each checkpoint otherwise.
const FOR_MANY_SESSIONS: &str = "PRAGMA cache_size = -65536; PRAGMA journal_size_limit = 67108864;";

/// What is written.
pub(crate) enum Change {
    Create {
        session: Box<NewSessionRow>,
        documents: Vec<DocumentRow>,
        first: Box<Commit>,
    },
    Commit {
        id: String,
        commits: Arc<Vec<Commit>>,
    },
    /// A setting of the connection.
    #[cfg(test)]
    Setting(String),
}

/// What is taken back if a change of a group is refused.
#[derive(Clone, Copy)]
enum Undo {
    Group,
    Change,
}

struct Job {
    change: Change,
    /// Nobody waits for it if the caller is gone; the change is written all the same.
    done: oneshot::Sender<Result<(), StoreError>>,
}

/// Sends changes to the thread that writes them.
pub(crate) struct GroupWriter {
    /// None when the store is closed.
    jobs: Option<UnboundedSender<Job>>,
    thread: Option<JoinHandle<()>>,
    store: String,
}

impl GroupWriter {
    /// Starts the thread, with a connection of its own to the file.
    pub(crate) fn start(file: &Path, store: &str, files: Arc<OpenFiles>) -> Result<Self, StoreError> {
        let connection = writer(file, store, MIGRATIONS, false)
            .and_then(|connection| {
                connection.execute_batch(FOR_MANY_SESSIONS)?;
                Ok(connection)
            })
            .map_err(|failure| failure.into_store_error(store))?;
        let checkpoints =
            Checkpoints::start(&connection, (file, store), Arc::clone(&files), LogLimits::FOR_MANY_SESSIONS)?;
        let (jobs, received) = unbounded_channel();
        let writing = WritingThread { checkpoints, connection, store: store.to_owned(), files };
        let thread = Builder::new().name("store".to_owned()).spawn(move || writing.run(received));
        let thread = thread.map_err(|why| error::io(store, &why))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), store: store.to_owned() })
    }

    /// Writes a change, together with those of others. Returns when it is durable. A change whose caller is gone is written as well.
    pub(crate) async fn write(&self, change: Change) -> Result<(), StoreError> {
        let (done, result) = oneshot::channel();
        let ended = || error::thread_ended(&self.store);
        let jobs = self.jobs.as_ref().ok_or_else(ended)?;
        jobs.send(Job { change, done }).map_err(|_| ended())?;
        result.await.map_err(|_| ended())?
    }
}

impl Drop for GroupWriter {
    fn drop(&mut self) {
        // The thread ends when it has written everything.
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that writes the store has panicked");
        }
    }
}

/// The thread that writes.
struct WritingThread {
    /// Dropped first: the connection folds the log in when it is closed, if no other one is open.
    checkpoints: Checkpoints,
    connection: Connection,
    store: String,
    files: Arc<OpenFiles>,
}

impl WritingThread {
    fn run(mut self, mut received: UnboundedReceiver<Job>) {
        let mut jobs = Vec::new();
        // While a group is written, the next one gathers.
        while received.blocking_recv_many(&mut jobs, MAX_GROUP) > 0 {
            let group = std::mem::take(&mut jobs);
            let mut is_written = false;
            let mut answer = |job: Job, result: Result<(), StoreError>| {
                is_written |= result.is_ok();
                if result.as_ref().is_err_and(needs_log) {
                    self.files.keep_log();
                }
                let _ = job.done.send(result);
            };
            match Self::write_group(&mut self.connection, (&self.store, &self.files), &group) {
                Some(results) => group.into_iter().zip(results).for_each(|(job, result)| answer(job, result)),
                // Not all of them can be written: each is written alone, so that each has its own result.
                None => {
                    for job in group {
                        let result = Self::write_alone(&mut self.connection, (&self.store, &self.files), &job.change);
                        answer(job, result);
                    }
                }
            }
            // After a commit that was refused, the file may be another one, or damaged.
            if is_written {
                self.checkpoints.after_commit(&self.connection);
            }
        }
        if self.files.must_keep_log() {
            keep_log(&self.connection);
        }
    }

    /// Writes all changes in one transaction. Returns the result of each; none if nothing was written, for a reason that concerns all
    /// of them.
    fn write_group(
        connection: &mut Connection,
        (store, files): (&str, &OpenFiles),
        group: &[Job],
    ) -> Option<Vec<Result<(), StoreError>>> {
        if group.len() < 2 {
            return None;
        }
        // A savepoint for each change costs a copy of every page that it writes, and a change is rarely refused.
        let written = match Self::write_together(connection, (store, files), group, Undo::Group) {
            Ok(None) => Self::write_together(connection, (store, files), group, Undo::Change),
            written => written,
        };
        written.unwrap_or_else(|failure| {
            let why = failure.into_store_error(store);
            tracing::debug!(%why, changes = group.len(), "a group was not written");
            None
        })
    }

    /// Writes all changes in one transaction. Returns the result of each; none if one of them is refused and nothing was written.
    fn write_together(
        connection: &mut Connection,
        (store, files): (&str, &OpenFiles),
        group: &[Job],
        undo: Undo,
    ) -> Result<Option<Vec<Result<(), StoreError>>>, Failure> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        refuse_newer(&transaction, store)?;
        let mut results = Vec::with_capacity(group.len());
        for job in group {
            let result = match undo {
                Undo::Group => apply(&transaction, store, &job.change),
                Undo::Change => apply_alone(&transaction, store, &job.change)?,
            };
            if result.is_err() && matches!(undo, Undo::Group) {
                return Ok(None);
            }
            results.push(result.map_err(|failure| failure.into_store_error(store)));
        }
        files.presence.check()?;
        transaction.commit()?;
        files.presence.check()?;
        Ok(Some(results))
    }

    fn write_alone(
        connection: &mut Connection,
        (store, files): (&str, &OpenFiles),
        change: &Change,
    ) -> Result<(), StoreError> {
        let mut run = || -> Result<(), Failure> {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            refuse_newer(&transaction, store)?;
            apply(&transaction, store, change)?;
            files.presence.check()?;
            transaction.commit()?;
            files.presence.check()?;
            Ok(())
        };
        run().map_err(|failure| failure.into_store_error(store))
    }
}

/// Makes a change, or takes it back if it is refused.
/// Errors: what prevents both.
fn apply_alone(transaction: &Transaction<'_>, store: &str, change: &Change) -> Result<Result<(), Failure>, Failure> {
    transaction.prepare_cached("SAVEPOINT one")?.execute([])?;
    let result = apply(transaction, store, change);
    // SQLite itself takes everything back when the disk is full.
    if result.is_err() && !transaction.is_autocommit() {
        transaction.prepare_cached("ROLLBACK TO one")?.execute([])?;
    }
    transaction.prepare_cached("RELEASE one")?.execute([])?;
    Ok(result)
}

fn apply(transaction: &Transaction<'_>, store: &str, change: &Change) -> Result<(), Failure> {
    match change {
        Change::Create { session, documents, first } => write::create(transaction, store, session, documents, first),
        Change::Commit { id, commits } => write::commit_all(transaction, store, id, commits),
        #[cfg(test)]
        Change::Setting(sql) => Ok(transaction.query_row(sql, [], |_| Ok(()))?),
    }
}
