//! What a store on disk must do with notebooks: a store without them learns them, and none grows slow.

use std::fs;

use rusqlite::StatementStatus;
use rusqlite::params;
use tempfile::TempDir;

use crate::conformance::{commit_at, event, message, start};
use crate::conformance_cells::cell;
use crate::contract::Store;
use crate::error::StoreError;
use crate::rows::Commit;
use crate::sqlite::open::{open, open_read_only, open_with};
use crate::sqlite::read::{CELL, CELLS, CELLS_TAIL, LAST_CELL};
use crate::sqlite::schema::{STEPS, layout};
use crate::sqlite::store::SqliteStore;
use crate::sqlite::write::key;

fn fresh() -> (TempDir, SqliteStore) {
    let home = tempfile::tempdir().unwrap();
    let archive = open(&home.path().join("sessions.db")).unwrap();
    (home, archive)
}

/// A store with one session, whose notebook has `count` cells.
async fn with_cells(count: u64) -> (TempDir, SqliteStore) {
    let (home, archive) = fresh();
    start(&archive, "s").await;
    let all: Vec<_> = (1..=count).map(|number| cell(number, &format!("c-{number:05}"), &"字".repeat(60))).collect();
    archive.commit("s", &Commit { cells_put: all, ..commit_at(1) }).await.unwrap();
    (home, archive)
}

#[tokio::test]
async fn a_store_from_before_notebooks_is_brought_along_with_its_sessions() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    let Some(released) = STEPS.get(..1) else { panic!("there is a first layout") };
    let archive = open_with(&path, released).unwrap();
    start(&archive, "s").await;
    let told = Commit { journal: vec![event(1, "message")], messages: vec![message(1, "好")], ..commit_at(1) };
    archive.commit("s", &told).await.unwrap();
    let before = archive.session("s").await.unwrap();
    assert_eq!(layout(&archive.connection()).unwrap(), 1);
    drop(archive);
    let refused = open_read_only(&path).err().unwrap();
    assert!(matches!(refused, StoreError::Outdated { found: 1, known: 2, .. }), "{refused}");
    let archive = open(&path).unwrap();
    assert_eq!(layout(&archive.connection()).unwrap(), 2);
    assert_eq!(archive.session("s").await.unwrap(), before);
    assert_eq!(archive.messages("s", 0, 9).await.unwrap(), [message(1, "好")]);
    assert!(archive.cells("s", 0, 9).await.unwrap().is_empty());
    archive.commit("s", &Commit { cells_put: vec![cell(1, "a", "x")], ..commit_at(2) }).await.unwrap();
    drop(archive);
    let archive = open_read_only(&path).unwrap();
    assert_eq!(archive.cell("s", "a").await.unwrap(), Some(cell(1, "a", "x")));
}

#[tokio::test]
async fn cells_are_found_along_a_key_and_without_sorting() {
    let (_home, archive) = fresh();
    for (sql, parameters) in [(CELL, 2), (CELLS, 3), (CELLS_TAIL, 3), (LAST_CELL, 2)] {
        let connection = archive.connection();
        let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let none = rusqlite::params_from_iter(std::iter::repeat_n(1, parameters));
        let steps: Vec<String> =
            plan.query_map(none, |row| row.get(3)).unwrap().collect::<rusqlite::Result<_>>().unwrap();
        assert!(steps.len() == 1 && steps.iter().all(|step| step.starts_with("SEARCH cell USING")), "{steps:?}");
    }
}

#[tokio::test]
async fn what_a_cell_costs_does_not_grow_with_its_notebook() {
    let mut pages = Vec::new();
    let mut steps = Vec::new();
    for count in [10, 10_000] {
        let (home, archive) = with_cells(count).await;
        let log = home.path().join("sessions.db-wal");
        archive.connection().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        let next = count + 1;
        let put = Commit {
            cells_put: vec![
                cell(count, &format!("c-{count:05}"), "changed"),
                cell(next, &format!("c-{next:05}"), "new"),
            ],
            ..commit_at(2)
        };
        archive.commit("s", &put).await.unwrap();
        // The log holds each page that the commit wrote, after its header.
        pages.push(fs::metadata(&log).unwrap().len() / 4096);
        let connection = archive.connection();
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
    // Deeper trees may cost a page more each; reading takes the same steps of the same program.
    assert!(pages[1] <= pages[0] + 2, "{pages:?}");
    assert_eq!(steps[0], steps[1]);
    assert_eq!(steps[1].map(|(rows, _)| rows), [1, 5, 5, 1]);
}
