//! Tests of the SQLite store: the conformance suite, files and their modes, rejected files, races.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Barrier;

use rusqlite::Connection;
use tempfile::TempDir;

use crate::conformance::{NASTY, commit_at, conformance, event, message, new_session, start};
use crate::conformance_cells::cells_conformance;
use crate::conformance_requests::requests_conformance;
use crate::conformance_restoring::restoring_conformance;
use crate::contract::Store;
use crate::error::StoreError;
use crate::rows::Commit;
use crate::sqlite::open::{open, open_read_only, open_with};
use crate::sqlite::read::{JOURNAL_OF, LAST_OF};
use crate::sqlite::schema::{APPLICATION_ID, MIGRATIONS};
use crate::sqlite::store::SqliteStore;

fn new_store() -> (TempDir, SqliteStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&store_in(&directory)).unwrap();
    (directory, store)
}

/// A path with characters that are special in URIs and in SQL.
fn store_in(directory: &TempDir) -> PathBuf {
    directory.path().join("林 %41?#'x").join("sessions.db")
}

/// The names and the bytes of the files in a directory.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_file()).map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

fn open_errors(path: &Path) -> [StoreError; 2] {
    [open(path).err().unwrap(), open_read_only(path).err().unwrap()]
}

conformance!(new_store());
cells_conformance!(new_store());
requests_conformance!(new_store());
restoring_conformance!(new_store());

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_may_read_the_files() {
    use std::os::unix::fs::MetadataExt;
    let (directory, store) = new_store();
    start(&store, "s").await;
    let _lock = store.lock("s", "me").await.unwrap();
    let mut extensions = Vec::new();
    let mut pending = vec![store_in(&directory).parent().unwrap().to_path_buf()];
    while let Some(path) = pending.pop() {
        let metadata = fs::metadata(&path).unwrap();
        let expected = if metadata.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(metadata.mode() & 0o777, expected, "{}", path.display());
        if metadata.is_dir() {
            pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            extensions.push(path.extension().unwrap().to_str().unwrap().to_owned());
        }
    }
    extensions.sort();
    assert_eq!(extensions, ["db", "db-shm", "db-wal", "lock", "open", "opening", "owner"]);
}

#[tokio::test]
async fn commits_are_read_after_reopening() {
    let (directory, store) = new_store();
    start(&store, "s").await;
    store.commit("s", &Commit { journal: vec![event(1, "k")], ..commit_at(1) }).await.unwrap();
    let before = store.session("s").await.unwrap();
    drop(store);
    let path = store_in(&directory);
    assert_eq!(files(path.parent().unwrap()).len(), 1, "the log is folded in and gone");
    let store = open(&path).unwrap();
    assert_eq!(store.session("s").await.unwrap(), before);
    store.commit("s", &Commit { journal: vec![event(2, "k")], ..commit_at(2) }).await.unwrap();
}

#[tokio::test]
async fn a_statement_is_planned_once_for_all_bound_values() {
    let (_home, store) = new_store();
    start(&store, "s").await;
    let connection = store.connection();
    let mut statement = connection.prepare("SELECT key FROM session WHERE id = ?").unwrap();
    for id in ["s", "t", "s"] {
        let _ = statement.query_row([id], |row| row.get::<_, i64>(0));
    }
    assert_eq!(statement.get_status(rusqlite::StatementStatus::RePrepare), 0);
}

#[tokio::test]
async fn commits_are_durable_and_keys_are_enforced() {
    let (_home, store) = new_store();
    let connection = store.connection();
    let number = |pragma: &str| connection.query_row(pragma, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(number("PRAGMA synchronous"), 2);
    assert_eq!(number("PRAGMA foreign_keys"), 1);
    assert_eq!(number("PRAGMA application_id"), i64::from(APPLICATION_ID));
    let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}

#[tokio::test]
async fn a_read_only_store_reads_and_never_writes() {
    let (directory, store) = new_store();
    let path = store_in(&directory);
    start(&store, "s").await;
    // Reads in parallel to a writer, whose latest commit is in the log.
    let reader = open_read_only(&path).unwrap();
    store.commit("s", &commit_at(1)).await.unwrap();
    assert_eq!(reader.session("s").await.unwrap().unwrap().revision, 2);
    for error in [
        reader.commit("s", &commit_at(2)).await.unwrap_err(),
        reader.create(&new_session("t"), &[], &commit_at(0)).await.unwrap_err(),
        reader.delete("s").await.unwrap_err(),
        reader.prune("2030-01-01T00:00:00Z").await.unwrap_err(),
        reader.lock("s", "me").await.err().unwrap(),
    ] {
        assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    }
    drop((reader, store));
    assert_eq!(open_read_only(&path).unwrap().sessions().await.unwrap().len(), 1);
}

#[test]
fn reading_creates_no_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sessions.db");
    assert!(matches!(open_read_only(&path), Err(StoreError::Missing { .. })));
    fs::write(&path, "").unwrap();
    assert!(matches!(open_read_only(&path), Err(StoreError::Missing { .. })));
    assert_eq!(fs::read(&path).unwrap(), b"");
    open(&path).map(drop).unwrap();
}

#[test]
fn a_file_that_is_not_a_store_is_rejected_and_left_unchanged() {
    let mut garbage = vec![0_u8; 20_000];
    garbage.iter_mut().enumerate().for_each(|(place, byte)| *byte = (place * 31 % 251) as u8);
    for bytes in [b"x".to_vec(), b"a text file, \xE6\x9E\x97\n".repeat(500), garbage] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sessions.db");
        fs::write(&path, bytes).unwrap();
        let before = files(directory.path());
        for error in open_errors(&path) {
            assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
            assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
        }
        assert_eq!(files(directory.path()), before);
    }
}

#[tokio::test]
async fn a_damaged_store_is_reported_and_left_unchanged() {
    let (directory, store) = new_store();
    let path = store_in(&directory);
    for id in 0..50 {
        start(&store, &id.to_string()).await;
    }
    drop(store);
    let complete = fs::read(&path).unwrap();
    let mut damaged = complete.clone();
    damaged[100..].fill(0xA5);
    for bytes in [&complete[..complete.len() / 2 / 4096 * 4096], &complete[..4096], &damaged] {
        fs::write(&path, bytes).unwrap();
        let error = match open(&path) {
            Err(error) => error,
            Ok(store) => store.commit("1", &commit_at(1)).await.unwrap_err(),
        };
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
        assert!(fs::read(&path).unwrap() == bytes);
    }
}

#[test]
fn a_database_of_another_program_is_rejected_and_left_unchanged() {
    for setup in ["PRAGMA journal_mode = WAL; PRAGMA application_id = 7; PRAGMA user_version = 1;", ""] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sessions.db");
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch(setup).unwrap();
        connection.execute_batch("CREATE TABLE session (id); INSERT INTO session VALUES (1)").unwrap();
        drop(connection);
        let before = files(directory.path());
        for error in open_errors(&path) {
            assert!(matches!(error, StoreError::ForeignDatabase { .. }), "{error}");
        }
        assert_eq!(files(directory.path()), before);
    }
}

#[tokio::test]
async fn a_store_of_a_newer_version_is_rejected_and_left_unchanged() {
    let (directory, store) = new_store();
    let path = store_in(&directory);
    start(&store, "s").await;
    drop(store);
    drop(open_with(&path, &[MIGRATIONS, &["CREATE TABLE news (key INTEGER)"]].concat()).unwrap());
    let before = files(path.parent().unwrap());
    for error in open_errors(&path) {
        let StoreError::Newer { found, known, .. } = error else { panic!("{error}") };
        assert_eq!((found, known), (9, 8));
    }
    assert_eq!(files(path.parent().unwrap()), before);
}

#[tokio::test]
async fn a_migration_keeps_the_rows_and_is_atomic() {
    let (directory, store) = new_store();
    let path = store_in(&directory);
    start(&store, "s").await;
    let broken = [MIGRATIONS, &["ALTER TABLE head ADD COLUMN news TEXT; SELECT no_such_function()"]].concat();
    assert!(open_with(&path, &broken).is_err());
    store.commit("s", &commit_at(1)).await.unwrap();
    drop(store);
    let valid =
        [MIGRATIONS, &["ALTER TABLE head ADD COLUMN news TEXT", "CREATE INDEX by_news ON head (news)"]].concat();
    let store = open_with(&path, &valid).unwrap();
    let revision: i64 = store.connection().query_row("SELECT revision FROM head", [], |row| row.get(0)).unwrap();
    assert_eq!(revision, 2);
    let layout: i64 = store.connection().query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    assert_eq!(layout, 10);
}

#[test]
fn a_path_that_cannot_be_a_store_is_rejected_with_a_clear_message() {
    let directory = tempfile::tempdir().unwrap();
    for error in open_errors(directory.path()) {
        assert!(matches!(error, StoreError::NotAFile { .. }), "{error}");
    }
    let deep = directory.path().join("a/b/sessions.db");
    let error = open(&deep).err().unwrap();
    assert!(error.to_string().contains("does not exist"), "{error}");
    assert!(!directory.path().join("a").exists());
    fs::write(directory.path().join("file"), "").unwrap();
    let error = open(&directory.path().join("file/sessions.db")).err().unwrap();
    assert!(matches!(error, StoreError::Io { .. } | StoreError::NotAFile { .. }), "{error}");
}

#[tokio::test]
async fn a_full_disk_rejects_the_commit_and_keeps_the_stored_data() {
    let (_home, store) = new_store();
    start(&store, "s").await;
    let limit = |sql: &str| store.connection().query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let pages = limit("PRAGMA page_count");
    limit(&format!("PRAGMA max_page_count = {}", pages + 2));
    let large = Commit { messages: vec![message(1, &NASTY.repeat(2000))], ..commit_at(1) };
    let error = store.commit("s", &large).await.unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert!(!error.to_string().contains("小姐"), "{error}");
    assert_eq!(store.session("s").await.unwrap().unwrap().revision, 1);
    assert_eq!(store.messages("s", 0, 9).await.unwrap(), []);
    limit("PRAGMA max_page_count = 1000000");
    store.commit("s", &large).await.unwrap();
}

#[tokio::test]
async fn a_store_that_another_process_has_locked_is_busy() {
    let (directory, store) = new_store();
    start(&store, "s").await;
    let other = Connection::open(store_in(&directory)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    store.connection().busy_timeout(std::time::Duration::ZERO).unwrap();
    let error = store.commit("s", &commit_at(1)).await.unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error}");
    assert!(store.session("s").await.unwrap().is_some(), "reading goes on");
    other.execute_batch("ROLLBACK").unwrap();
    store.commit("s", &commit_at(1)).await.unwrap();
}

#[test]
fn threads_may_open_a_new_store_concurrently_and_one_creates_the_session() {
    const THREADS: usize = 8;
    for _ in 0..5 {
        let directory = tempfile::tempdir().unwrap();
        let path = store_in(&directory);
        let barrier = Barrier::new(THREADS);
        let created: usize = std::thread::scope(|scope| {
            let race = || {
                barrier.wait();
                let store = open(&path).unwrap();
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                match runtime.block_on(store.create(&new_session("s"), &[], &commit_at(0))) {
                    Ok(()) => 1,
                    Err(StoreError::Exists { .. }) => 0,
                    Err(error) => panic!("{error}"),
                }
            };
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(race)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(created, 1);
    }
}

/// Passes the path of the store to the same test, run again as another process.
const STORE: &str = "BCC_STORE_TEST_PATH";

#[tokio::test]
async fn many_processes_may_open_a_fresh_store_at_once() {
    if let Some(path) = std::env::var_os(STORE) {
        let store = open(Path::new(&path)).unwrap();
        match store.create(&new_session("s"), &[], &commit_at(0)).await {
            Ok(()) | Err(StoreError::Exists { .. }) => return,
            Err(error) => panic!("{error}"),
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let name = "sqlite::tests::many_processes_may_open_a_fresh_store_at_once";
    let spawn = |_| {
        let mut process = std::process::Command::new(std::env::current_exe().unwrap());
        process.args(["--exact", name]).env(STORE, store_in(&directory)).stdout(std::process::Stdio::null());
        process.spawn().unwrap()
    };
    let processes: Vec<_> = (0..6).map(spawn).collect();
    for mut process in processes {
        assert!(process.wait().unwrap().success());
    }
    let store = open_read_only(&store_in(&directory)).unwrap();
    assert_eq!(store.session("s").await.unwrap().unwrap().revision, 1);
}

#[test]
fn only_one_of_several_commits_at_one_revision_is_written() {
    let (directory, store) = new_store();
    let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime().block_on(start(&store, "s"));
    let written: usize = std::thread::scope(|scope| {
        let race = || {
            let store = open(&store_in(&directory)).unwrap();
            let commit = Commit { journal: vec![event(1, "k")], ..commit_at(1) };
            match runtime().block_on(store.commit("s", &commit)) {
                Ok(()) => 1,
                Err(StoreError::Conflict { expected: 1, found: 2, .. }) => 0,
                Err(error) => panic!("{error}"),
            }
        };
        let threads: Vec<_> = (0..6).map(|_| scope.spawn(race)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(written, 1);
}

#[tokio::test]
async fn a_second_store_reports_who_holds_a_session() {
    let (directory, store) = new_store();
    start(&store, "s").await;
    let lock = store.lock("s", "process 4711").await.unwrap();
    // Also through a link: the lock belongs to the file, not to the path by which it was opened.
    #[cfg(unix)]
    std::os::unix::fs::symlink(store_in(&directory), directory.path().join("link.db")).unwrap();
    for path in [store_in(&directory), directory.path().join("link.db")] {
        let second = open(&path).unwrap();
        for error in [second.lock("s", "me").await.err().unwrap(), second.delete("s").await.unwrap_err()] {
            let StoreError::Held { holder, .. } = error else { panic!("{error}") };
            assert_eq!(holder, "process 4711");
        }
        assert_eq!(second.prune("2030-01-01T00:00:00Z").await.unwrap(), Vec::<String>::new());
    }
    drop(store);
    let second = open(&store_in(&directory)).unwrap();
    assert!(second.lock("s", "me").await.is_err(), "a lock outlives the store that gave it");
    drop(lock);
    assert!(second.delete("s").await.unwrap());
}

#[tokio::test]
async fn a_deleted_session_leaves_no_data_on_disk() {
    let (directory, store) = new_store();
    let secret = "不要让任何人知道的事";
    start(&store, "kept").await;
    start(&store, "s").await;
    let commit = |revision| Commit {
        messages: vec![message(revision, &secret.repeat(if revision == 1 { 1 } else { 2000 }))],
        head: format!("{{\"said\":\"{secret}\"}}"),
        ..commit_at(revision)
    };
    store.commit("s", &commit(1)).await.unwrap();
    store.commit("s", &commit(2)).await.unwrap();
    let contains_secret = || {
        let contains = |bytes: &Vec<u8>| bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        files(store_in(&directory).parent().unwrap()).values().any(contains)
    };
    assert!(contains_secret());
    assert!(store.delete("s").await.unwrap());
    assert!(!contains_secret());
    assert!(store.session("kept").await.unwrap().is_some());
}

#[tokio::test]
async fn events_of_one_kind_are_found_by_an_index_without_sorting() {
    let (_home, store) = new_store();
    for (sql, parameters) in [(JOURNAL_OF, 7), (LAST_OF, 4)] {
        let connection = store.connection();
        let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let values = rusqlite::params_from_iter(std::iter::repeat_n(1, parameters));
        let steps: Vec<String> =
            plan.query_map(values, |row| row.get(3)).unwrap().collect::<rusqlite::Result<_>>().unwrap();
        assert!(steps.len() == 2 && steps.iter().all(|step| step.starts_with("SEARCH")), "{steps:?}");
    }
}

#[tokio::test]
async fn a_store_grows_linearly_with_the_committed_data() {
    let (directory, store) = new_store();
    start(&store, "s").await;
    let size = || files(store_in(&directory).parent().unwrap()).values().map(Vec::len).sum::<usize>();
    let mut sizes = Vec::new();
    for turn in 1..=1500_u64 {
        let commit = Commit {
            journal: (turn * 4 - 3..=turn * 4)
                .map(|seq| event(seq, ["a", "b", "c", "d"][(seq % 4) as usize]))
                .collect(),
            messages: vec![message(turn, &"好".repeat(200))],
            ..commit_at(turn)
        };
        store.commit("s", &commit).await.unwrap();
        if turn % 500 == 0 {
            store.connection().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
            sizes.push(size());
        }
    }
    let (first, last) = (sizes[1] - sizes[0], sizes[2] - sizes[1]);
    assert!(last.abs_diff(first) < first / 10, "{sizes:?}");
    // The texts of 500 turns are about 480,000 bytes.
    assert!(last < 1_000_000, "{sizes:?}");
}

/// Passes the read-only directory to the same test, run again as a user to whom permission bits apply.
#[cfg(unix)]
const READ_ONLY_DIRECTORY: &str = "BCC_STORE_TEST_READ_ONLY";

#[cfg(unix)]
#[tokio::test]
async fn a_store_in_a_read_only_place_is_read_but_not_written() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let set_mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    if let Some(place) = std::env::var_os(READ_ONLY_DIRECTORY) {
        let place = PathBuf::from(place);
        // A read-only file; a directory in which no log can be created; a directory without a store.
        let error = open(&place.join("sessions.db")).err().unwrap();
        assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
        let error = open(&place.join("new.db")).err().unwrap();
        assert!(matches!(error, StoreError::Denied { .. }), "{error}");
        let error = open_read_only(&place.join("secret.db")).err().unwrap();
        assert!(matches!(error, StoreError::Denied { .. }), "{error}");
        let error = match open(&place.join("writable.db")) {
            Err(error) => error,
            Ok(store) => store.commit("s", &commit_at(1)).await.unwrap_err(),
        };
        assert!(matches!(error, StoreError::Denied { .. } | StoreError::ReadOnly { .. }), "{error}");
        let store = open_read_only(&place.join("sessions.db")).unwrap();
        assert_eq!(store.sessions().await.unwrap().len(), 1);
        let error = open_read_only(&place.join("logged.db")).err().unwrap();
        assert!(error.to_string().contains("-wal"), "{error}");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    set_mode(directory.path(), 0o755);
    let place = directory.path().join("place");
    let store = open(&place.join("sessions.db")).unwrap();
    start(&store, "s").await;
    for end in ["", "-wal"] {
        fs::copy(place.join(format!("sessions.db{end}")), place.join(format!("logged.db{end}"))).unwrap();
        set_mode(&place.join(format!("logged.db{end}")), 0o444);
    }
    drop(store);
    for (name, mode) in [("sessions.db", 0o444), ("writable.db", 0o666), ("secret.db", 0o000)] {
        if name != "sessions.db" {
            fs::copy(place.join("sessions.db"), place.join(name)).unwrap();
        }
        set_mode(&place.join(name), mode);
    }
    set_mode(&place, 0o555);
    let name = "sqlite::tests::a_store_in_a_read_only_place_is_read_but_not_written";
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env(READ_ONLY_DIRECTORY, &place).current_dir("/");
    // Root may do everything; `nobody` is 65534 nearly everywhere.
    if fs::write(place.join("probe"), "").is_ok() {
        command.uid(65534).gid(65534);
    }
    match command.output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
        }
        Err(error) => eprintln!("not tested: this test cannot run itself as another user ({error})"),
    }
    set_mode(&place, 0o755);
}
