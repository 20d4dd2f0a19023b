//! Tests of the migration to the layout that keeps what commits replace: from each earlier layout, and killed at any moment.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::conformance::{commit_at, message, new_session, read_all};
use crate::contract::Store;
use crate::rows::{Commit, FrameRow, JournalRow, OpenRequest, RequestRow, SessionFilter};
use crate::sqlite::open::{open, open_with};
use crate::sqlite::schema::{MIGRATIONS, layout};
use crate::sqlite::store::SqliteStore;

/// Passes the path of the store to the same test, run again as a process that is killed.
const STORE: &str = "BCC_STORE_TEST_MIGRATE";

/// Takes long, after all migrations and in the same transaction.
const SLOW: &str = "CREATE TABLE late (n INTEGER);
    WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 2000000000) INSERT INTO late SELECT max(n) FROM n";

/// The first commit of a session that waits for an answer, as an earlier layout stores it.
fn waiting(head: &str, body: &str) -> Commit {
    let row = |seq, kind: &str, body: &str| JournalRow {
        seq,
        at: format!("2026-11-21T20:00:0{seq}Z"),
        kind: kind.into(),
        body: body.into(),
    };
    Commit {
        status: "waiting_input".into(),
        head: head.into(),
        updated_at: "2026-11-21T20:00:09Z".into(),
        frames_put: vec![FrameRow { key: "ask".into(), state: "{}".into() }],
        journal: vec![row(1, "waiting", "{\"prompt\":\"earlier\"}"), row(2, "message", "{}"), row(3, "waiting", body)],
        messages: vec![message(1, "好")],
        ..commit_at(0)
    }
}

/// The sessions of an earlier layout.
fn sessions() -> [(&'static str, Commit); 6] {
    let question = "{\"type\":\"waiting\",\"prompt\":\"您好吗？\"}";
    let other = |status: &str| Commit { status: status.into(), ..waiting("{\"waiting\":null}", question) };
    [
        ("answer", waiting("{\"waiting\":\"a1\"}", question)),
        ("effect", waiting("{\"waiting\":\"w7\",\"asks_effect\":true}", question)),
        ("no prompt", waiting("{\"waiting\":\"a1\"}", "not JSON")),
        ("no JSON", waiting("not JSON", question)),
        ("running", other("running")),
        ("completed", other("completed")),
    ]
}

async fn store_of_layout(migrations: &[&str], path: &Path) {
    let store = open_with(path, migrations).unwrap();
    if migrations.len() < WITH_PAGES {
        // A commit writes to this table, which is not in the file.
        let table = "CREATE TEMP TABLE session_recent (period TEXT, session INTEGER);";
        store.connection().execute_batch(table).unwrap();
    }
    for (id, first) in sessions() {
        store.create(&new_session(id), &[], &first).await.unwrap();
    }
}

/// The layout from which on a commit stores requests itself.
const WITH_REQUESTS: usize = 3;

/// The layout with the list of sessions by page.
const WITH_PAGES: usize = 5;

async fn assert_migrated(store: &SqliteStore, earlier: usize) {
    assert_eq!(layout(&store.connection()).unwrap() as usize, MIGRATIONS.len());
    for (id, first) in sessions() {
        let row = store.session(id).await.unwrap().unwrap();
        assert_eq!((row.revision, row.last_seq, &row.head), (1, 3, &first.head));
        assert_eq!(store.frames(id).await.unwrap(), first.frames_put);
        assert_eq!(store.journal(id, 0, 9).await.unwrap(), first.journal);
        assert_eq!(store.messages(id, 0, 9).await.unwrap(), first.messages);
    }
    let request = |session: &str, id: &str, kind: &str, prompt: &str| OpenRequest {
        session: session.into(),
        request: RequestRow {
            id: id.into(),
            kind: kind.into(),
            prompt: prompt.into(),
            opened_at: "2026-11-21T20:00:03Z".into(),
            ..RequestRow::default()
        },
    };
    let expected = [
        request("answer", "a1", "input", "您好吗？"),
        request("effect", "w7", "interrupted_effect", "您好吗？"),
        request("no prompt", "a1", "input", ""),
    ];
    let expected = if earlier < WITH_REQUESTS { &expected[..] } else { &[] };
    assert_eq!(store.open_requests(None).await.unwrap(), expected);
    let page = store.sessions_page(&SessionFilter::default(), None, 99).await.unwrap();
    assert_eq!(page, store.sessions().await.unwrap());
}

#[tokio::test]
async fn a_store_of_each_earlier_layout_is_migrated_with_the_requests_of_its_sessions() {
    for earlier in 1..MIGRATIONS.len() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sessions.db");
        store_of_layout(&MIGRATIONS[..earlier], &path).await;
        let store = open(&path).unwrap();
        assert_migrated(&store, earlier).await;
        // What was replaced before is not known, what is replaced now is kept.
        assert_eq!(store.revision_with("answer", "waiting_input", 0).await.unwrap(), None);
        store.commit("answer", &Commit { requests_answered: vec!["a1".into()], ..commit_at(1) }).await.unwrap();
        assert_eq!(store.revision_with("answer", "waiting_input", 0).await.unwrap(), Some(1));
        let open = if earlier < WITH_REQUESTS { 2 } else { 0 };
        assert_eq!(store.open_requests(None).await.unwrap().len(), open);
    }
}

/// This test as another process, which migrates the store at `path` until it is killed.
fn migrating(path: &Path) -> Child {
    let name = "sqlite::migration_tests::a_killed_migration_is_begun_again_and_loses_nothing";
    let mut process = Command::new(std::env::current_exe().unwrap());
    process.args(["--exact", name]).env(STORE, path).stdout(Stdio::null()).stderr(Stdio::null());
    process.spawn().unwrap()
}

/// Whether another process has the write lock of the store.
fn is_migrated_by_another(path: &Path) -> bool {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.busy_timeout(Duration::ZERO).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_err()
}

#[tokio::test]
async fn a_killed_migration_is_begun_again_and_loses_nothing() {
    if let Some(path) = std::env::var_os(STORE) {
        let _ = open_with(Path::new(&path), &[MIGRATIONS, &[SLOW]].concat());
        return;
    }
    let directory = TempDir::new().unwrap();
    for earlier in 1..MIGRATIONS.len() {
        let path = directory.path().join(format!("{earlier}.db"));
        store_of_layout(&MIGRATIONS[..earlier], &path).await;
        for wait_for_lock in [false, false, true, true] {
            let mut process = migrating(&path);
            let started = Instant::now();
            while wait_for_lock && !is_migrated_by_another(&path) {
                assert!(started.elapsed() < Duration::from_secs(60), "the other process does not migrate");
            }
            process.kill().unwrap();
            process.wait().unwrap();
            let connection = rusqlite::Connection::open(&path).unwrap();
            assert_eq!(layout(&connection).unwrap() as usize, earlier, "the migration is atomic");
        }
        let store = open(&path).unwrap();
        assert_migrated(&store, earlier).await;
        drop(store);
        let again = open(&path).unwrap();
        assert_migrated(&again, earlier).await;
    }
}

#[tokio::test]
async fn a_commit_costs_the_same_however_many_there_were() {
    let directory = TempDir::new().unwrap();
    let store = open(&directory.path().join("sessions.db")).unwrap();
    store.create(&new_session("s"), &[], &commit_at(0)).await.unwrap();
    let mut sizes = Vec::new();
    let pages = || store.connection().query_row("PRAGMA page_count", [], |row| row.get::<_, i64>(0)).unwrap();
    for revision in 1..=3000 {
        let state = format!("\"{}\"", "x".repeat(400));
        let commit = Commit { frames_put: vec![FrameRow { key: "ask".into(), state }], ..commit_at(revision) };
        store.commit("s", &commit).await.unwrap();
        if revision % 1000 == 0 {
            sizes.push(pages());
        }
    }
    assert!((sizes[2] - sizes[1]).abs_diff(sizes[1] - sizes[0]) < 20, "{sizes:?}");
    let before = read_all(&store, "s").await;
    let state = store.earlier_state("s", 2990).await.unwrap().unwrap();
    assert_eq!(state.changes.frames_put.len(), 1);
    assert!(read_all(&store, "s").await == before, "reading changes nothing");
}
