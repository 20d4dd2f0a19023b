//! Tests of stores whose creation was interrupted: they contain nothing, and are completed when they are opened for writing.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tempfile::TempDir;

use crate::conformance::start;
use crate::contract::Store;
use crate::error::StoreError;
use crate::sqlite::inspect::{inspect, open_immutable};
use crate::sqlite::open::{open, open_read_only};
use crate::sqlite::recover::{self, Recovery, RecoveryReport};
use crate::sqlite::schema::{APPLICATION_ID, MIGRATIONS};

fn temporary_directory(parent: Option<&Path>) -> std::io::Result<TempDir> {
    parent.map_or_else(tempfile::tempdir, tempfile::tempdir_in)
}

pub(crate) fn check(path: &Path) -> Result<RecoveryReport, StoreError> {
    recover::check(path, temporary_directory)
}

pub(crate) fn recover(path: &Path, replaces: bool) -> Result<Recovery, StoreError> {
    recover::recover(path, replaces, temporary_directory)
}

fn file_in(directory: &TempDir) -> PathBuf {
    directory.path().join("sessions.db")
}

/// Copies the files of a database as they are, as after a kill.
fn copy_as_it_is(from: &Path, to: &Path) {
    for end in ["", "-journal"] {
        let with_end = |path: &Path| PathBuf::from(format!("{}{end}", path.display()));
        if with_end(from).exists() {
            fs::copy(with_end(from), with_end(to)).unwrap();
        }
    }
}

/// The file after the first commit was interrupted when this many of its pages were written, in their order, with its journal.
fn interrupted_commit(to: &Path, pages: usize) {
    let directory = tempfile::tempdir().unwrap();
    let connection = Connection::open(file_in(&directory)).unwrap();
    // Pages that do not fit into the cache are written before the commit, and the journal before them.
    connection.execute_batch("PRAGMA page_size = 4096; PRAGMA cache_size = 1; BEGIN IMMEDIATE").unwrap();
    connection.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
    connection.pragma_update(None, "user_version", 3).unwrap();
    MIGRATIONS.iter().for_each(|sql| connection.execute_batch(sql).unwrap());
    copy_as_it_is(&file_in(&directory), to);
    assert!(fs::metadata(to).unwrap().len() > 0, "nothing was written before the commit");
    connection.execute_batch("COMMIT").unwrap();
    fs::write(to, &fs::read(file_in(&directory)).unwrap()[..pages * 4096]).unwrap();
}

fn no_tables(to: &Path) {
    Connection::open(to).unwrap().execute_batch("CREATE TABLE t (x); DROP TABLE t; VACUUM").unwrap();
    assert!(fs::metadata(to).unwrap().len() > 0);
}

#[tokio::test]
async fn an_unfinished_store_has_no_sessions_and_is_completed() {
    type Make = fn(&Path);
    let cases: [(&str, Make); 4] = [
        ("empty", |to| fs::write(to, "").unwrap()),
        ("without tables", no_tables),
        ("interrupted after the first page", |to| interrupted_commit(to, 1)),
        ("interrupted after the third page", |to| interrupted_commit(to, 3)),
    ];
    for (name, make) in cases {
        let directory = tempfile::tempdir().unwrap();
        let path = file_in(&directory);
        make(&path);
        let report = check(&path).unwrap();
        assert!(report.is_sound() && report.sessions.is_empty(), "{name}: {report:?}");
        assert!(inspect(&path).unwrap().unwrap().sessions.is_empty(), "{name}");
        for opened in [open_immutable(&path), open_read_only(&path)] {
            assert!(matches!(opened, Err(StoreError::Missing { .. })), "{name}: {:?}", opened.err());
        }
        let store = open(&path).unwrap();
        start(&store, "s").await;
        drop(store);
        assert_eq!(open_read_only(&path).unwrap().sessions().await.unwrap().len(), 1, "{name}");
    }
}

#[tokio::test]
async fn a_commit_without_a_log_that_was_interrupted_is_undone_before_the_store_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("killed.db");
    let store = open(&file_in(&directory)).unwrap();
    start(&store, "s").await;
    drop(store);
    let connection = Connection::open(file_in(&directory)).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN; DELETE FROM head; DELETE FROM session",
        )
        .unwrap();
    let filler = "INSERT INTO blob (sha256, text) VALUES (hex(randomblob(32)), hex(randomblob(9000)))";
    (0..40).for_each(|_| connection.execute_batch(filler).unwrap());
    copy_as_it_is(&file_in(&directory), &path);
    let report = check(&path).unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.sessions.len(), 1);
    assert!(directory.path().join("killed.db-journal").exists(), "a check changes nothing");
    assert_eq!(open_read_only(&path).unwrap().sessions().await.unwrap().len(), 1);
}

#[test]
fn a_database_of_another_program_is_never_taken_for_an_unfinished_store() {
    let contents = [
        "CREATE TABLE t (x)",
        "PRAGMA user_version = 7; CREATE TABLE t (x); DROP TABLE t",
        "PRAGMA application_id = 7; CREATE TABLE t (x); DROP TABLE t",
        // Its table is in its log.
        "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (x)",
    ];
    for sql in contents {
        let directory = tempfile::tempdir().unwrap();
        let path = file_in(&directory);
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch("CREATE TABLE first (x); DROP TABLE first").unwrap();
        connection.execute_batch(sql).unwrap();
        let before = fs::read(&path).unwrap();
        for error in [open(&path).err(), open_read_only(&path).err(), open_immutable(&path).err()] {
            assert!(matches!(error, Some(StoreError::ForeignDatabase { .. })), "{sql}: {error:?}");
        }
        assert!(check(&path).is_err(), "{sql}");
        assert_eq!(fs::read(&path).unwrap(), before, "{sql}");
    }
}
