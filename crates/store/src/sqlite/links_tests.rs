//! Tests of the links of a SQLite store: those that all stores pass, and what only a file can do.

use tempfile::TempDir;

use crate::conformance::{commit_at, event, new_session};
use crate::conformance_links::{link, links_conformance, talk};
use crate::contract::Store;
use crate::link_contract::LinkStore;
use crate::link_rows::TalkOutcome;
use crate::rows::Commit;
use crate::sqlite::open::open;
use crate::sqlite::store::SqliteStore;
use crate::sqlite::unfinished_tests::recover;

fn new_store() -> (TempDir, SqliteStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("sessions.db")).unwrap();
    (directory, store)
}

links_conformance!(new_store());

#[tokio::test]
async fn of_two_processes_one_uses_a_link_for_one_talk() {
    let (directory, store) = new_store();
    store.create_link(&link("l")).await.unwrap();
    let other = open(&directory.path().join("sessions.db")).unwrap();
    let (first, second) = (talk("l", "a"), talk("l", "b"));
    let (first, second) = tokio::join!(store.start_talk(&first, Some(1)), other.start_talk(&second, Some(1)));
    let mut outcomes = [first.unwrap(), second.unwrap()];
    outcomes.sort_by_key(|outcome| *outcome != TalkOutcome::Begun);
    assert_eq!(outcomes, [TalkOutcome::Begun, TalkOutcome::UsedUp]);
}

#[tokio::test]
async fn the_links_of_a_damaged_store_are_saved() {
    let (directory, store) = new_store();
    let path = directory.path().join("sessions.db");
    store.create_link(&link("l")).await.unwrap();
    store.start_talk(&talk("l", "a"), None).await.unwrap();
    store.create(&new_session("s"), &[], &commit_at(0)).await.unwrap();
    for revision in 1..200 {
        let commit = Commit { journal: vec![event(revision, "message")], ..commit_at(revision) };
        store.commit("s", &commit).await.unwrap();
    }
    let (links, talks) = (store.links().await.unwrap(), store.talks("l").await.unwrap());
    drop(store);
    let mut bytes = std::fs::read(&path).unwrap();
    let length = bytes.len();
    bytes[length - 4096..].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    recover(&path, true).unwrap();
    let store = open(&path).unwrap();
    assert_eq!((store.links().await.unwrap(), store.talks("l").await.unwrap()), (links, talks));
}
