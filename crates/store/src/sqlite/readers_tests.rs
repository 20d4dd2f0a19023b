//! Tests of the pool of readers.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::conformance::{commit_at, event, message, start};
use crate::contract::Store;
use crate::error::StoreError;
use crate::rows::Commit;
use crate::sqlite::open::open;
use crate::sqlite::readers::{MAX_READERS, ReadSize, Readers};
use crate::sqlite::store::SqliteStore;

fn new_store() -> (TempDir, Arc<SqliteStore>) {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("sessions.db")).unwrap().with_group_commits().unwrap();
    (directory, Arc::new(store))
}

#[test]
fn a_read_waits_neither_for_a_writer_nor_for_another_use_of_the_connection() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (directory, store) = new_store();
    runtime.block_on(start(&*store, "s"));
    let other = rusqlite::Connection::open(directory.path().join("sessions.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE; DELETE FROM head").unwrap();
    let in_use = store.file.connection();
    assert_eq!(runtime.block_on(store.session("s")).unwrap().unwrap().revision, 1);
    assert_eq!(runtime.block_on(store.sessions()).unwrap().len(), 1);
    drop(in_use);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_run_at_the_same_time_but_only_a_few() {
    let (_directory, store) = new_store();
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let barrier = Arc::new(Barrier::new(MAX_READERS));
    let reads = (0..4 * MAX_READERS).map(|_| {
        let (store, running) = (Arc::clone(&store), Arc::clone(&running));
        let (most, barrier) = (Arc::clone(&most), Arc::clone(&barrier));
        tokio::spawn(async move {
            let query = move |connection: &rusqlite::Connection| {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                // Passes only if as many as may run do run.
                barrier.wait();
                let found = connection.query_row("SELECT 1", [], |row| row.get::<_, u32>(0));
                running.fetch_sub(1, Ordering::SeqCst);
                found
            };
            store.read(ReadSize::Many, query).await.unwrap()
        })
    });
    for read in reads.collect::<Vec<_>>() {
        assert_eq!(read.await.unwrap(), 1);
    }
    assert_eq!(most.load(Ordering::SeqCst), MAX_READERS);
}

#[tokio::test]
async fn readers_write_nothing_and_a_read_that_fails_does_no_harm_to_the_next_one() {
    let (_directory, store) = new_store();
    start(&*store, "s").await;
    let error = store.read(ReadSize::Many, |connection| connection.execute("DELETE FROM head", [])).await.unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    assert!(store.read(ReadSize::Many, |connection| connection.execute_batch("BEGIN; SELECT nothing")).await.is_err());
    store.commit("s", &commit_at(1)).await.unwrap();
    assert_eq!(store.session("s").await.unwrap().unwrap().revision, 2);
}

#[tokio::test]
async fn the_log_is_folded_in_when_a_store_with_readers_is_closed() {
    let (directory, store) = new_store();
    start(&*store, "s").await;
    assert!(store.session("s").await.unwrap().is_some());
    drop(store);
    let files = fs::read_dir(directory.path()).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_file());
    assert_eq!(files.count(), 1);
}

#[tokio::test]
async fn readers_do_not_read_a_store_that_has_taken_the_place_of_theirs() {
    let (directory, store) = new_store();
    start(&*store, "s").await;
    let path = directory.path().join("sessions.db");
    fs::rename(&path, directory.path().join("moved.db")).unwrap();
    fs::rename(directory.path().join("sessions.db-wal"), directory.path().join("moved.db-wal")).unwrap();
    drop(open(&path).unwrap());
    let error = store.session("s").await.unwrap_err();
    assert!(matches!(error, StoreError::Gone { .. }), "{error}");
}

#[tokio::test]
async fn a_store_without_a_log_has_no_readers_and_is_read_all_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("sessions.db")).unwrap();
    start(&store, "s").await;
    store.connection().query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(())).unwrap();
    assert!(Readers::of(&store.file).unwrap().is_none());
    assert!(store.session("s").await.unwrap().is_some());
}

/// Prints how long reads take while many sessions commit:
/// `cargo test --release -p bcc-store time_of_reads -- --ignored --nocapture`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn time_of_reads() {
    const WRITERS: usize = 64;
    const READS: usize = 2000;
    let (_directory, store) = new_store();
    for number in 0..WRITERS {
        start(&*store, &format!("s{number}")).await;
    }
    let cases =
        [("a few rows", 20, 0), ("a few rows", 20, WRITERS), ("more rows", 200, 0), ("more rows", 200, WRITERS)];
    for (what, rows, writers) in cases {
        let commits = Arc::new(AtomicUsize::new(0));
        let writing: Vec<_> = (0..writers)
            .map(|number| {
                let (store, commits) = (Arc::clone(&store), Arc::clone(&commits));
                tokio::spawn(async move {
                    let id = format!("s{number}");
                    let first = store.session(&id).await.unwrap().unwrap().revision;
                    for revision in first.. {
                        let (journal, messages) = (vec![event(revision, "k")], vec![message(revision, "你好")]);
                        let commit = Commit { journal, messages, ..commit_at(revision) };
                        store.commit(&id, &commit).await.unwrap();
                        commits.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        let begin = Instant::now();
        let reading = (0..8).map(|reader| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let mut times = Vec::new();
                for read in 0..READS {
                    let begin = Instant::now();
                    store.messages_tail(&format!("s{}", (reader + read) % WRITERS), rows).await.unwrap();
                    times.push(begin.elapsed());
                }
                times
            })
        });
        let mut times: Vec<Duration> = Vec::new();
        for reader in reading.collect::<Vec<_>>() {
            times.extend(reader.await.unwrap());
        }
        let seconds = begin.elapsed().as_secs_f64();
        for writer in writing {
            writer.abort();
            let _ = writer.await;
        }
        times.sort();
        let (reads, commits) = (times.len() as f64 / seconds, commits.load(Ordering::Relaxed) as f64 / seconds);
        let [median, late, last] = [times.len() / 2, times.len() * 99 / 100, times.len() - 1].map(|at| times[at]);
        eprintln!(
            "{what}: {reads:.0} reads/s, {commits:.0} commits/s; median {median:?}, 99 % {late:?}, longest {last:?}"
        );
    }
}
