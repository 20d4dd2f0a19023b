//! The log of a store is copied while it is written, and begins anew.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tempfile::TempDir;

use crate::sqlite::checkpoints::{Checkpoints, LogLimits, copied_log};
use crate::sqlite::disk;
use crate::sqlite::file::SqliteFile;
use crate::sqlite::open::{open, writer};
use crate::sqlite::schema::MIGRATIONS;
use crate::sqlite::store::SqliteStore;

const LIMITS: LogLimits = LogLimits { long: 40, most: 160, few: 10 };

/// What one commit of [`Written::commit`] adds to the log at most.
const PAGES_OF_COMMIT: u32 = 12;

struct Written {
    checkpoints: Checkpoints,
    connection: Connection,
    path: PathBuf,
    store: SqliteStore,
    _directory: TempDir,
}

impl Written {
    fn new(limits: LogLimits) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sessions.db");
        let store = open(&path).unwrap();
        let connection = writer(&path, "sessions.db", MIGRATIONS, false).unwrap();
        let files = Arc::clone(store.file.writable().unwrap());
        let checkpoints = Checkpoints::start(&connection, (&path, "sessions.db"), files, limits).unwrap();
        connection.execute_batch("CREATE TABLE written (number INTEGER PRIMARY KEY, text TEXT)").unwrap();
        Self { checkpoints, connection, path, store, _directory: directory }
    }

    /// Writes about five pages, and returns the number of pages in the log.
    fn commit(&mut self) -> u32 {
        self.connection.execute("INSERT INTO written (text) VALUES (?)", ["x".repeat(20_000)]).unwrap();
        let log = copied_log(&self.connection).unwrap().log;
        self.checkpoints.after_commit(&self.connection);
        log
    }

    fn count(&self) -> i64 {
        let other = Connection::open(&self.path).unwrap();
        other.query_row("SELECT count(*) FROM written", [], |row| row.get(0)).unwrap()
    }
}

#[test]
fn the_log_is_copied_on_another_thread_and_begins_anew() {
    let mut written = Written::new(LIMITS);
    let (mut before, mut restarts) = (0, 0);
    for _ in 0..300 {
        let log = written.commit();
        assert!(log <= LIMITS.most + PAGES_OF_COMMIT, "{log} pages");
        restarts += usize::from(log < before);
        before = log;
    }
    assert!(restarts > 3, "{restarts}");
    assert_eq!(written.count(), 300);
}

#[test]
fn a_long_log_is_copied_while_the_thread_that_writes_goes_on() {
    let mut written = Written::new(LogLimits { most: u32::MAX, ..LIMITS });
    while written.commit() < LIMITS.long {}
    written.checkpoints.wait_for_copying();
    let copied = copied_log(&written.connection).unwrap();
    assert_eq!(copied.copied, copied.log, "all of it was copied by the other thread");
    assert!(copied.log >= LIMITS.long);
    // There is nothing left to copy, so the next commit begins a new log.
    written.checkpoints.after_commit(&written.connection);
    assert!(written.commit() < LIMITS.long);
}

#[test]
fn a_reader_keeps_the_log_only_as_long_as_it_reads() {
    let mut written = Written::new(LIMITS);
    written.commit();
    let mut reader = Connection::open(&written.path).unwrap();
    let reading = reader.transaction().unwrap();
    let count = |connection: &Connection| -> i64 {
        connection.query_row("SELECT count(*) FROM written", [], |row| row.get(0)).unwrap()
    };
    assert_eq!(count(&reading), 1);
    let mut log = 0;
    for _ in 0..100 {
        log = written.commit();
    }
    assert!(log > LIMITS.most, "what is read stays: {log}");
    assert_eq!(count(&reading), 1);
    drop(reading);
    // Once it is copied, the next commit begins a new log.
    written.commit();
    assert!(written.commit() < LIMITS.long);
    assert_eq!(written.count(), 103);
}

#[test]
fn the_log_of_a_store_that_was_moved_away_or_is_damaged_is_not_copied() {
    for is_moved in [true, false] {
        let mut written = Written::new(LIMITS);
        if is_moved {
            std::fs::rename(&written.path, written.path.with_extension("moved")).unwrap();
        } else {
            written.store.file.keep_log();
        }
        // Neither by the other thread, nor by the one that writes, which copies a log that is too long.
        while written.commit() < 2 * LIMITS.most {
            written.checkpoints.wait_for_copying();
        }
        assert_eq!(copied_log(&written.connection).unwrap().copied, 0, "moved: {is_moved}");
    }
}

/// Whether the checkpoint of another connection has begun to wait for a reader.
static IS_HELD: AtomicBool = AtomicBool::new(false);

/// Keeps the lock of the checkpoints for a moment, and gives up.
fn hold(_: i32) -> bool {
    IS_HELD.store(true, Ordering::Release);
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(100) {
        std::thread::yield_now();
    }
    false
}

#[test]
fn what_is_deleted_is_not_in_the_log_although_it_is_being_copied() {
    const MARK: &[u8] = b"nobody-may-find-this-text";
    let mut written = Written::new(LIMITS);
    written.commit();
    written.connection.execute("INSERT INTO written (text) VALUES (CAST(? AS TEXT))", [MARK]).unwrap();
    let has_mark = |file: &SqliteFile| {
        let log = std::fs::read(disk::sibling(&file.path, "-wal")).unwrap();
        log.windows(MARK.len()).any(|part| part == MARK)
    };
    let file = Arc::clone(&written.store.file);
    assert!(has_mark(&file));
    let mut reader = Connection::open(&written.path).unwrap();
    let reading = reader.transaction().unwrap();
    reading.query_row("SELECT count(*) FROM written", [], |row| row.get::<_, i64>(0)).unwrap();
    let mut copying = Connection::open(&written.path).unwrap();
    copying.busy_handler(Some(hold)).unwrap();
    std::thread::scope(|scope| {
        file.with_secure_delete(|| {
            file.write(|transaction| Ok(transaction.execute("DELETE FROM written WHERE number > 1", []).map(drop)?))?;
            scope.spawn(move || copying.query_row("PRAGMA wal_checkpoint(FULL)", [], |_| Ok(())).unwrap());
            while !IS_HELD.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            drop(reading);
            Ok(())
        })
        .unwrap();
    });
    assert!(!has_mark(&file));
}
