//! Tests of plans in SQLite: the conformance tests, and what is saved of a damaged store.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::conformance_plans::{create, edit, plan_row, plans_conformance, task};
use crate::plan_contract::PlanStore;
use crate::plan_rows::PlanEditRow;
use crate::sqlite::open::{open, open_with};
use crate::sqlite::schema::MIGRATIONS;
use crate::sqlite::store::SqliteStore;
use crate::sqlite::unfinished_tests::{check, recover};

fn new_store() -> (TempDir, SqliteStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("sessions.db")).unwrap();
    (directory, store)
}

plans_conformance!(new_store());

#[tokio::test]
async fn plans_are_there_when_the_store_is_opened_again() {
    let (directory, store) = new_store();
    create(&store, 42, &[task(7, 1), task(8, 2)]).await;
    let before = store.plan_tasks(42).await.unwrap();
    drop(store);
    let store = open(&directory.path().join("sessions.db")).unwrap();
    assert_eq!(store.plan_tasks(42).await.unwrap(), before);
    assert_eq!(store.reserve_plan_ids(1, 1).await.unwrap(), (43, 9));
}

#[tokio::test]
async fn a_store_of_each_earlier_layout_can_have_plans_after_its_migration() {
    for earlier in 1..MIGRATIONS.len() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sessions.db");
        drop(open_with(&path, &MIGRATIONS[..earlier]).unwrap());
        // A store without plans is sound, also before its migration.
        assert!(check(&path).unwrap().is_sound());
        let store = open(&path).unwrap();
        assert_eq!(store.plans("anna").await.unwrap(), []);
        create(&store, 1, &[task(1, 1)]).await;
        assert_eq!(store.plans("anna").await.unwrap(), [plan_row(1)]);
    }
}

/// Fills a page in the middle of a table with zeros.
fn damage(path: &Path, table: &str) {
    let connection = rusqlite::Connection::open(path).unwrap();
    let sql = "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path";
    let pages: Vec<u32> =
        connection.prepare(sql).unwrap().query_map([table], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    drop(connection);
    let mut bytes = fs::read(path).unwrap();
    let start = (pages[pages.len() / 2] as usize - 1) * 4096;
    bytes[start..start + 4096].fill(0);
    fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn what_can_be_read_of_plans_is_saved() {
    let (directory, store) = new_store();
    let path = directory.path().join("sessions.db");
    let tasks: Vec<_> = (1..=2000).map(|id| task(id, i64::try_from(id).unwrap())).collect();
    create(&store, 1, &tasks).await;
    create(&store, 2, &[task(5000, 1)]).await;
    store.edit_plan(&PlanEditRow { removed: vec![2000], ..edit(1, 1, "e") }).await.unwrap();
    drop(store);
    assert!(check(&path).unwrap().is_sound());
    damage(&path, "plan_task");
    let report = check(&path).unwrap();
    let damage: Vec<String> = report.damage.iter().map(ToString::to_string).collect();
    assert!(damage.contains(&"some plans, or tasks of plans, cannot be read".to_owned()), "{damage:?}");
    assert!(!report.is_sound() && !report.is_complete());
    let recovered = recover(&path, true).unwrap();
    assert_eq!(recovered.store.as_deref(), Some(path.as_path()));
    let store = open(&path).unwrap();
    let saved = store.plan_tasks(1).await.unwrap().unwrap();
    assert_eq!((saved.plan.revision, saved.plan.title.as_str()), (2, "later"));
    assert!((1500..1999).contains(&saved.tasks.len()), "{}", saved.tasks.len());
    assert!(saved.tasks.iter().all(|row| *row == task(row.id, row.rank)));
    assert_eq!(store.plan_tasks(2).await.unwrap().unwrap().tasks, [task(5000, 1)]);
    assert_eq!(store.plan_edit("e").await.unwrap(), Some("{\"key\":\"e\"}".into()));
    assert_eq!(store.reserve_plan_ids(1, 1).await.unwrap(), (3, 5001));
    drop(store);
    assert!(check(&path).unwrap().is_sound());
}
