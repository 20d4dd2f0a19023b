//! Tests of large texts in the SQLite store: stored once, read unchanged, deleted with the last session that uses them.

use std::fs;

use tempfile::TempDir;

use crate::conformance::{NASTY, commit_at, event, start};
use crate::contract::Store;
use crate::error::StoreError;
use crate::rows::{CellRow, Commit, JournalRow};
use crate::sqlite::blobs::MIN_BLOB_BYTES;
use crate::sqlite::open::open;
use crate::sqlite::store::SqliteStore;

fn new_store() -> (TempDir, SqliteStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("sessions.db")).unwrap();
    (directory, store)
}

fn count(store: &SqliteStore, sql: &str) -> i64 {
    store.connection().query_row(sql, [], |row| row.get(0)).unwrap()
}

/// A cell whose output is `output`, and which was run `runs` times.
fn cell(output: &str, runs: u64) -> CellRow {
    let body = serde_json::json!({ "runs": runs, "outputs": [{ "png": output }], "end": "\"" });
    CellRow { number: 1, id: "c".into(), body: body.to_string() }
}

#[tokio::test]
async fn a_large_output_is_stored_once_however_often_its_cell_changes() {
    let (_home, store) = new_store();
    let output = "图\"\\\n".repeat(MIN_BLOB_BYTES);
    for session in ["s", "t"] {
        start(&store, session).await;
        for revision in 1..=5 {
            let cells_put = vec![cell(&output, revision)];
            let body = serde_json::json!({ "seq": revision, "llm_prompt": output }).to_string();
            let journal = vec![JournalRow { body, ..event(revision, "outcome") }];
            store.commit(session, &Commit { cells_put, journal, ..commit_at(revision) }).await.unwrap();
        }
        assert_eq!(store.cell(session, "c").await.unwrap(), Some(cell(&output, 5)));
        assert_eq!(store.cells(session, 0, 9).await.unwrap(), [cell(&output, 5)]);
        assert_eq!(store.cells_tail(session, 9).await.unwrap(), [cell(&output, 5)]);
        let last = store.last_by_kind(session, "outcome").await.unwrap().unwrap();
        let rows = store.journal(session, 0, 9).await.unwrap();
        assert_eq!((rows.len(), rows.last()), (5, Some(&last)));
        assert_eq!(store.journal_by_kind(session, "outcome", 0, 9).await.unwrap(), rows);
        assert!(rows.iter().all(|row| row.body.contains("图") && row.body.len() > output.len()));
        let state = store.earlier_state(session, 3).await.unwrap().unwrap();
        assert_eq!(state.changes.cells_put, [cell(&output, 2)]);
    }
    assert_eq!(count(&store, "SELECT count(*) FROM blob"), 1);
    assert_eq!(count(&store, "SELECT max(length(body)) < 200 FROM journal"), 1);
    assert!(store.delete("s").await.unwrap());
    assert_eq!(store.cell("t", "c").await.unwrap(), Some(cell(&output, 5)), "the other session needs it");
    assert!(store.delete("t").await.unwrap());
    assert_eq!(count(&store, "SELECT count(*) FROM blob"), 0);
    assert_eq!(count(&store, "SELECT count(*) FROM replaced"), 0);
}

#[tokio::test]
async fn any_text_is_read_as_it_was_written() {
    let (_home, store) = new_store();
    start(&store, "s").await;
    let large = "x".repeat(MIN_BLOB_BYTES);
    let texts = [
        format!("\"{large}\""),
        format!("{{\"a\":\"{large}\",\"b\":\"\\\\\",\"c\":\"{large}\\\"\"}}"),
        format!("\"{}\"", "x".repeat(MIN_BLOB_BYTES - 3)),
        // No JSON: the store promises nothing about the content of a text.
        format!("\"{large}"),
        format!("{large}\\"),
        format!("\"{large}\\"),
        format!("\u{1}\"{large}\""),
        format!("\"{large}\u{1}\""),
        "\u{1}".into(),
        "\u{1}b".into(),
        "\u{1}t".into(),
        NASTY.into(),
        format!("\"{}\"", NASTY.repeat(2000)),
        String::new(),
    ];
    for (seq, body) in (1..).zip(&texts) {
        let journal = vec![JournalRow { body: body.clone(), ..event(seq, "k") }];
        store.commit("s", &Commit { journal, ..commit_at(seq) }).await.unwrap();
    }
    let rows = store.journal("s", 0, 99).await.unwrap();
    assert!(rows.iter().map(|row| &row.body).eq(&texts));
}

#[tokio::test]
async fn a_deleted_large_text_is_not_left_on_disk() {
    let (directory, store) = new_store();
    start(&store, "s").await;
    let output = "不要让任何人知道的事".repeat(MIN_BLOB_BYTES);
    store.commit("s", &Commit { cells_put: vec![cell(&output, 1)], ..commit_at(1) }).await.unwrap();
    assert!(store.delete("s").await.unwrap());
    for file in fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path()) {
        if file.is_file() {
            let bytes = fs::read(&file).unwrap();
            let secret = "不要让任何人知道的事".as_bytes();
            assert!(!bytes.windows(secret.len()).any(|window| window == secret), "{}", file.display());
        }
    }
}

#[tokio::test]
async fn a_missing_part_of_a_text_is_an_error() {
    let (_home, store) = new_store();
    start(&store, "s").await;
    let output = "x".repeat(MIN_BLOB_BYTES);
    store.commit("s", &Commit { cells_put: vec![cell(&output, 1)], ..commit_at(1) }).await.unwrap();
    store.connection().execute_batch("PRAGMA foreign_keys = OFF; DELETE FROM blob").unwrap();
    let error = store.cell("s", "c").await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
}

#[tokio::test]
async fn a_large_text_that_another_session_brought_is_compared_with_its_hash() {
    let (_home, store) = new_store();
    let body = format!("{{\"code\":\"{}\"}}", "x".repeat(MIN_BLOB_BYTES));
    for id in ["theirs", "own"] {
        start(&store, id).await;
        let journal = vec![JournalRow { body: body.clone(), ..event(1, "message") }];
        store.commit(id, &Commit { journal, ..commit_at(1) }).await.unwrap();
        if id == "theirs" {
            let changed = store.connection().execute("UPDATE blob SET text = replace(text, 'x', 'y')", []).unwrap();
            assert_eq!(changed, 1);
        }
    }
    let error = store.journal("own", 0, 10).await.unwrap_err().to_string();
    assert!(error.contains("a row contains invalid data"), "{error}");
}
