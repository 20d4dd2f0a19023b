//! Commits that are grouped: each has its own result, and all are there.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use rusqlite::Connection;
use tempfile::TempDir;

use crate::conformance::{commit_at, conformance, event, message, new_session, start};
use crate::conformance_cells::cells_conformance;
use crate::conformance_requests::requests_conformance;
use crate::conformance_restoring::restoring_conformance;
use crate::contract::Store;
use crate::error::StoreError;
use crate::rows::Commit;
use crate::sqlite::group::Change;
use crate::sqlite::open::open;
use crate::sqlite::store::SqliteStore;

fn new_store() -> (TempDir, SqliteStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("sessions.db")).unwrap().with_group_commits().unwrap();
    (directory, store)
}

conformance!(new_store());
cells_conformance!(new_store());
requests_conformance!(new_store());
restoring_conformance!(new_store());

#[tokio::test]
async fn a_locked_session_can_be_asked_for_if_its_process_runs_many() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sessions.db");
    let of_many = || open(&path).unwrap().with_group_commits().unwrap();
    crate::conformance_locks::a_locked_session_can_be_asked_for(&of_many(), &of_many()).await;
    crate::conformance_locks::a_locked_session_can_be_asked_for(&of_many(), &open(&path).unwrap()).await;
    for other in [of_many(), open(&path).unwrap()] {
        crate::conformance_locks::a_process_that_runs_one_session_keeps_it(&open(&path).unwrap(), &other).await;
    }
}

#[tokio::test]
async fn a_process_that_a_newer_version_has_overtaken_reads_and_writes_nothing_more() {
    let directory = tempfile::tempdir().unwrap();
    for (name, is_shared) in [("one.db", false), ("many.db", true)] {
        let path = directory.path().join(name);
        let store = open(&path).unwrap();
        let store = if is_shared { store.with_group_commits().unwrap() } else { store };
        start(&store, "s").await;
        let other = rusqlite::Connection::open(&path).unwrap();
        other.execute_batch("PRAGMA user_version = 99").unwrap();
        let is_newer = |error: StoreError| assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error}");
        is_newer(store.session("s").await.unwrap_err());
        is_newer(store.commit("s", &commit_at(1)).await.unwrap_err());
        is_newer(store.commit_all("s", &Arc::new(vec![commit_at(1), commit_at(2)])).await.unwrap_err());
        is_newer(store.create(&new_session("t"), &[], &commit_at(0)).await.unwrap_err());
        is_newer(store.delete("s").await.unwrap_err());
        is_newer(store.check_files().await.unwrap_err());
        // Commits that are written together.
        let (one, two) = (commit_at(1), commit_at(1));
        let (first, second) = tokio::join!(store.commit("s", &one), store.commit("s", &two));
        is_newer(first.unwrap_err());
        is_newer(second.unwrap_err());
        drop(store);
        let revisions: i64 = other.query_row("SELECT sum(revision) FROM head", [], |row| row.get(0)).unwrap();
        assert_eq!(revisions, 1, "{name}");
    }
}

#[tokio::test]
async fn commits_written_together_are_all_or_none() {
    crate::conformance_restoring::commits_written_together_are_all_or_none(&new_store().1).await;
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("sessions.db")).unwrap();
    crate::conformance_restoring::commits_written_together_are_all_or_none(&store).await;
}

/// Limits the size of the file for the thread that writes.
async fn limit_pages(store: &SqliteStore, pages: u32) {
    let group = store.group.as_ref().unwrap();
    group.write(Change::Setting(format!("PRAGMA max_page_count = {pages}"))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_sessions_commit_at_the_same_time_and_each_commit_is_there() {
    const SESSIONS: usize = 64;
    const COMMITS: u64 = 20;
    let (directory, store) = new_store();
    let store = Arc::new(store);
    let sessions = (0..SESSIONS).map(|number| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let id = format!("s{number}");
            store.create(&new_session(&id), &[], &commit_at(0)).await.unwrap();
            for revision in 1..=COMMITS {
                let commit = Commit { journal: vec![event(revision, "k")], ..commit_at(revision) };
                store.commit(&id, &commit).await.unwrap();
                // What was acknowledged can be read.
                assert_eq!(store.session(&id).await.unwrap().unwrap().revision, revision + 1);
            }
        })
    });
    for session in sessions.collect::<Vec<_>>() {
        session.await.unwrap();
    }
    drop(store);
    let store = open(&directory.path().join("sessions.db")).unwrap();
    for number in 0..SESSIONS {
        assert_eq!(store.journal(&format!("s{number}"), 0, 100).await.unwrap().len(), 20);
    }
}

/// Sends a change, whose result is awaited later.
async fn send<F: Future>(change: F) -> Pin<Box<F>> {
    let mut change = Box::pin(change);
    poll_fn(|context| Poll::Ready(_ = change.as_mut().poll(context))).await;
    change
}

#[tokio::test]
async fn a_commit_that_is_refused_changes_nothing_for_the_others_of_its_group() {
    let (directory, store) = new_store();
    for id in ["a", "b", "c", "d", "e"] {
        start(&store, id).await;
    }
    let good = Commit { messages: vec![message(1, "kept")], answer_ids: vec!["k".into()], ..commit_at(1) };
    let stale = Commit { messages: vec![message(1, "lost")], ..commit_at(7) };
    let gap = Commit { journal: vec![event(9, "k")], ..commit_at(1) };
    // Refused only when some of its rows are written.
    let taken_answer = Commit { messages: vec![message(2, "lost")], answer_ids: vec!["k".into()], ..commit_at(2) };
    let (taken, first) = (new_session("d"), commit_at(0));
    // While another process writes, the changes gather.
    let other = Connection::open(directory.path().join("sessions.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let earlier = send(store.commit("e", &good)).await;
    let a = send(store.commit("a", &good)).await;
    let b = send(store.commit("b", &stale)).await;
    let again = send(store.commit("a", &taken_answer)).await;
    let c = send(store.commit("c", &gap)).await;
    let missing = send(store.commit("none", &good)).await;
    let exists = send(store.create(&taken, &[], &first)).await;
    let d = send(store.commit("d", &good)).await;
    other.execute_batch("COMMIT").unwrap();
    earlier.await.unwrap();
    a.await.unwrap();
    d.await.unwrap();
    let (b, again, c, missing, exists) = (b.await, again.await, c.await, missing.await, exists.await);
    assert!(matches!(b, Err(StoreError::Conflict { .. })), "{b:?}");
    assert!(matches!(again, Err(StoreError::AnswerTaken { .. })), "{again:?}");
    assert!(matches!(c, Err(StoreError::Gap { .. })), "{c:?}");
    assert!(matches!(missing, Err(StoreError::NotFound { .. })), "{missing:?}");
    assert!(matches!(exists, Err(StoreError::Exists { .. })), "{exists:?}");
    for (id, messages, revision) in [("a", 1, 2), ("b", 0, 1), ("c", 0, 1), ("d", 1, 2), ("e", 1, 2)] {
        assert_eq!(store.messages(id, 0, 9).await.unwrap().len(), messages, "{id}");
        assert_eq!(store.session(id).await.unwrap().unwrap().revision, revision, "{id}");
    }
}

#[tokio::test]
async fn a_commit_whose_caller_is_gone_is_written() {
    let (directory, store) = new_store();
    start(&store, "s").await;
    let commit = Commit { messages: vec![message(1, "kept")], ..commit_at(1) };
    // It is sent, and nobody waits for it any more.
    drop(send(store.commit("s", &commit)).await);
    drop(store);
    let store = open(&directory.path().join("sessions.db")).unwrap();
    assert_eq!(store.messages("s", 0, 9).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_group_that_does_not_fit_on_the_disk_is_written_as_far_as_it_does() {
    let (_directory, store) = new_store();
    let ids: Vec<String> = (0..16).map(|number| format!("s{number}")).collect();
    for id in &ids {
        start(&store, id).await;
    }
    let large = "x".repeat(200_000);
    let store = Arc::new(store);
    limit_pages(&store, 40).await;
    let writes = ids.iter().map(|id| {
        let (store, id, large) = (Arc::clone(&store), id.clone(), large.clone());
        tokio::spawn(async move {
            let commit = Commit { messages: vec![message(1, &large)], ..commit_at(1) };
            (id.clone(), store.commit(&id, &commit).await)
        })
    });
    let mut full = BTreeSet::new();
    for write in writes.collect::<Vec<_>>() {
        let (id, result) = write.await.unwrap();
        match result {
            Ok(()) => assert_eq!(store.messages(&id, 0, 9).await.unwrap().len(), 1),
            Err(StoreError::Full { .. }) => {
                assert!(store.messages(&id, 0, 9).await.unwrap().is_empty());
                full.insert(id);
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(!full.is_empty());
    // When there is space again, the same commits are made.
    limit_pages(&store, 1_000_000).await;
    for id in &full {
        let commit = Commit { messages: vec![message(1, &large)], ..commit_at(1) };
        store.commit(id, &commit).await.unwrap();
    }
}
