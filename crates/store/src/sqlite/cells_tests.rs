//! Tests of notebooks in the SQLite store: migration from the layout without them, and the cost of large notebooks.

use std::fs;

use rusqlite::StatementStatus;
use rusqlite::params;
use tempfile::TempDir;

use crate::conformance::{commit_at, event, message, new_session, start};
use crate::conformance_cells::cell;
use crate::contract::Store;
use crate::error::StoreError;
use crate::rows::Commit;
use crate::sqlite::open::{open, open_read_only, open_with};
use crate::sqlite::read::{CELL, CELLS, CELLS_TAIL, LAST_CELL};
use crate::sqlite::schema::{MIGRATIONS, layout};
use crate::sqlite::store::SqliteStore;
use crate::sqlite::write::key;

fn new_store() -> (TempDir, SqliteStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("sessions.db")).unwrap();
    (directory, store)
}

/// A store with one session, whose notebook has `count` cells.
async fn with_cells(count: u64) -> (TempDir, SqliteStore) {
    let (directory, store) = new_store();
    start(&store, "s").await;
    let all: Vec<_> = (1..=count).map(|number| cell(number, &format!("c-{number:05}"), &"字".repeat(60))).collect();
    store.commit("s", &Commit { cells_put: all, ..commit_at(1) }).await.unwrap();
    (directory, store)
}

#[tokio::test]
async fn a_store_without_notebooks_is_migrated_with_its_sessions() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sessions.db");
    let Some(released) = MIGRATIONS.get(..1) else { panic!("there is a first layout") };
    let store = open_with(&path, released).unwrap();
    // A commit writes to this table, which is not in the file.
    store.connection().execute_batch("CREATE TEMP TABLE session_recent (period TEXT, session INTEGER)").unwrap();
    let commit = Commit { journal: vec![event(1, "message")], messages: vec![message(1, "好")], ..commit_at(0) };
    store.create(&new_session("s"), &[], &commit).await.unwrap();
    let before = store.session("s").await.unwrap();
    assert_eq!(layout(&store.connection()).unwrap(), 1);
    drop(store);
    let error = open_read_only(&path).err().unwrap();
    assert!(matches!(error, StoreError::Outdated { found: 1, known: 8, .. }), "{error}");
    let store = open(&path).unwrap();
    assert_eq!(layout(&store.connection()).unwrap(), 8);
    assert_eq!(store.session("s").await.unwrap(), before);
    assert_eq!(store.messages("s", 0, 9).await.unwrap(), [message(1, "好")]);
    assert!(store.cells("s", 0, 9).await.unwrap().is_empty());
    store.commit("s", &Commit { cells_put: vec![cell(1, "a", "x")], ..commit_at(1) }).await.unwrap();
    drop(store);
    let store = open_read_only(&path).unwrap();
    assert_eq!(store.cell("s", "a").await.unwrap(), Some(cell(1, "a", "x")));
}

#[tokio::test]
async fn cells_are_found_by_a_key_without_sorting() {
    let (_home, store) = new_store();
    for (sql, parameters) in [(CELL, 2), (CELLS, 3), (CELLS_TAIL, 3), (LAST_CELL, 2)] {
        let connection = store.connection();
        let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let values = rusqlite::params_from_iter(std::iter::repeat_n(1, parameters));
        let steps: Vec<String> =
            plan.query_map(values, |row| row.get(3)).unwrap().collect::<rusqlite::Result<_>>().unwrap();
        assert!(steps.len() == 1 && steps.iter().all(|step| step.starts_with("SEARCH cell USING")), "{steps:?}");
    }
}

#[tokio::test]
async fn the_cost_of_a_cell_does_not_grow_with_its_notebook() {
    let mut pages = Vec::new();
    let mut steps = Vec::new();
    for count in [10, 10_000] {
        let (directory, store) = with_cells(count).await;
        let log = directory.path().join("sessions.db-wal");
        store.connection().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        let next = count + 1;
        let put = Commit {
            cells_put: vec![
                cell(count, &format!("c-{count:05}"), "changed"),
                cell(next, &format!("c-{next:05}"), "new"),
            ],
            ..commit_at(2)
        };
        store.commit("s", &put).await.unwrap();
        // After its header, the log contains each page that the commit wrote.
        pages.push(fs::metadata(&log).unwrap().len() / 4096);
        let connection = store.connection();
        let (first, last) = (key(1, 0).unwrap(), key(1, u64::MAX).unwrap());
        let id = format!("c-{next:05}");
        let run = |sql: &str, parameters: &[&dyn rusqlite::ToSql]| {
            let mut statement = connection.prepare(sql).unwrap();
            let rows = statement.query_map(parameters, |_| Ok(())).unwrap().count();
            (rows, statement.get_status(StatementStatus::VmStep))
        };
        steps.push([
            run(CELL, params![1, id]),
            run(CELLS_TAIL, params![first, last, 5]),
            run(CELLS, params![first, last, 5]),
            run(LAST_CELL, params![first, last]),
        ]);
    }
    // Deeper trees may cost one more page each; reading takes the same number of virtual machine steps.
    assert!(pages[1] <= pages[0] + 3, "{pages:?}");
    assert_eq!(steps[0], steps[1]);
    assert_eq!(steps[1].map(|(rows, _)| rows), [1, 5, 5, 1]);
}
