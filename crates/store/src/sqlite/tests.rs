//! What only a store on disk must do: the conformance suite, files and their modes, refused stores, races.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Barrier;

use rusqlite::Connection;
use tempfile::TempDir;

use crate::conformance::{NASTY, commit_at, conformance, event, message, new_session, start};
use crate::conformance_cells::cells_conformance;
use crate::contract::Store;
use crate::error::StoreError;
use crate::rows::Commit;
use crate::sqlite::open::{open, open_read_only, open_with};
use crate::sqlite::read::{JOURNAL_OF, LAST_OF};
use crate::sqlite::schema::{APPLICATION_ID, STEPS};
use crate::sqlite::store::SqliteStore;

fn fresh() -> (TempDir, SqliteStore) {
    let home = tempfile::tempdir().unwrap();
    let archive = open(&store_in(&home)).unwrap();
    (home, archive)
}

/// A path with what has a meaning in URIs and in SQL.
fn store_in(home: &TempDir) -> PathBuf {
    home.path().join("林 %41?#'x").join("sessions.db")
}

/// The names and the bytes of the files in a directory.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_file()).map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

fn refused(path: &Path) -> [StoreError; 2] {
    [open(path).err().unwrap(), open_read_only(path).err().unwrap()]
}

conformance!(fresh());
cells_conformance!(fresh());

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_may_read_what_is_stored() {
    use std::os::unix::fs::MetadataExt;
    let (home, archive) = fresh();
    start(&archive, "s").await;
    let _lock = archive.lock("s", "me").await.unwrap();
    let mut seen = Vec::new();
    let mut left = vec![store_in(&home).parent().unwrap().to_path_buf()];
    while let Some(path) = left.pop() {
        let metadata = fs::metadata(&path).unwrap();
        let expected = if metadata.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(metadata.mode() & 0o777, expected, "{}", path.display());
        if metadata.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            seen.push(path.extension().unwrap().to_str().unwrap().to_owned());
        }
    }
    seen.sort();
    assert_eq!(seen, ["db", "db-shm", "db-wal", "lock"]);
}

#[tokio::test]
async fn what_was_committed_is_there_after_reopening() {
    let (home, archive) = fresh();
    start(&archive, "s").await;
    archive.commit("s", &Commit { journal: vec![event(1, "k")], ..commit_at(1) }).await.unwrap();
    let before = archive.session("s").await.unwrap();
    drop(archive);
    let path = store_in(&home);
    assert_eq!(files(path.parent().unwrap()).len(), 1, "the log is folded in and gone");
    let archive = open(&path).unwrap();
    assert_eq!(archive.session("s").await.unwrap(), before);
    archive.commit("s", &Commit { journal: vec![event(2, "k")], ..commit_at(2) }).await.unwrap();
}

#[tokio::test]
async fn a_statement_is_planned_once_whatever_is_bound() {
    let (_home, archive) = fresh();
    start(&archive, "s").await;
    let connection = archive.connection();
    let mut statement = connection.prepare("SELECT key FROM session WHERE id = ?").unwrap();
    for id in ["s", "t", "s"] {
        let _ = statement.query_row([id], |row| row.get::<_, i64>(0));
    }
    assert_eq!(statement.get_status(rusqlite::StatementStatus::RePrepare), 0);
}

#[tokio::test]
async fn commits_are_durable_and_keys_are_enforced() {
    let (_home, archive) = fresh();
    let connection = archive.connection();
    let number = |pragma: &str| connection.query_row(pragma, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(number("PRAGMA synchronous"), 2);
    assert_eq!(number("PRAGMA foreign_keys"), 1);
    assert_eq!(number("PRAGMA application_id"), i64::from(APPLICATION_ID));
    let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}

#[tokio::test]
async fn a_read_only_store_reads_and_never_writes() {
    let (home, archive) = fresh();
    let path = store_in(&home);
    start(&archive, "s").await;
    // Beside a writer, whose latest commit lies in the log.
    let reader = open_read_only(&path).unwrap();
    archive.commit("s", &commit_at(1)).await.unwrap();
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
    drop((reader, archive));
    assert_eq!(open_read_only(&path).unwrap().sessions().await.unwrap().len(), 1);
}

#[test]
fn reading_makes_no_store() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("sessions.db");
    assert!(matches!(open_read_only(&path), Err(StoreError::Missing { .. })));
    fs::write(&path, "").unwrap();
    assert!(matches!(open_read_only(&path), Err(StoreError::Missing { .. })));
    assert_eq!(fs::read(&path).unwrap(), b"");
    open(&path).map(drop).unwrap();
}

#[test]
fn a_file_that_is_no_store_is_refused_and_left_as_it_is() {
    let mut garbage = vec![0_u8; 20_000];
    garbage.iter_mut().enumerate().for_each(|(place, byte)| *byte = (place * 31 % 251) as u8);
    for bytes in [b"x".to_vec(), b"a text file, \xE6\x9E\x97\n".repeat(500), garbage] {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("sessions.db");
        fs::write(&path, bytes).unwrap();
        let before = files(home.path());
        for error in refused(&path) {
            assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
            assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
        }
        assert_eq!(files(home.path()), before);
    }
}

#[tokio::test]
async fn a_damaged_store_is_reported_and_left_as_it_is() {
    let (home, archive) = fresh();
    let path = store_in(&home);
    for id in 0..50 {
        start(&archive, &id.to_string()).await;
    }
    drop(archive);
    let whole = fs::read(&path).unwrap();
    let mut scratched = whole.clone();
    scratched[100..].fill(0xA5);
    for bytes in [&whole[..whole.len() / 2 / 4096 * 4096], &whole[..4096], &scratched] {
        fs::write(&path, bytes).unwrap();
        let error = match open(&path) {
            Err(error) => error,
            Ok(archive) => archive.commit("1", &commit_at(1)).await.unwrap_err(),
        };
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
        assert!(fs::read(&path).unwrap() == bytes);
    }
}

#[test]
fn a_database_of_another_program_is_refused_and_left_as_it_is() {
    for setup in ["PRAGMA journal_mode = WAL; PRAGMA application_id = 7; PRAGMA user_version = 1;", ""] {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("sessions.db");
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch(setup).unwrap();
        connection.execute_batch("CREATE TABLE session (id); INSERT INTO session VALUES (1)").unwrap();
        drop(connection);
        let before = files(home.path());
        for error in refused(&path) {
            assert!(matches!(error, StoreError::NotOurs { .. }), "{error}");
        }
        assert_eq!(files(home.path()), before);
    }
}

#[tokio::test]
async fn a_store_of_a_newer_version_is_refused_and_left_as_it_is() {
    let (home, archive) = fresh();
    let path = store_in(&home);
    start(&archive, "s").await;
    drop(archive);
    drop(open_with(&path, &[STEPS, &["CREATE TABLE news (key INTEGER)"]].concat()).unwrap());
    let before = files(path.parent().unwrap());
    for error in refused(&path) {
        let StoreError::Newer { found, known, .. } = error else { panic!("{error}") };
        assert_eq!((found, known), (3, 2));
    }
    assert_eq!(files(path.parent().unwrap()), before);
}

#[tokio::test]
async fn a_migration_keeps_the_rows_and_happens_whole_or_not_at_all() {
    let (home, archive) = fresh();
    let path = store_in(&home);
    start(&archive, "s").await;
    let broken = [STEPS, &["ALTER TABLE head ADD COLUMN news TEXT; SELECT no_such_function()"]].concat();
    assert!(open_with(&path, &broken).is_err());
    archive.commit("s", &commit_at(1)).await.unwrap();
    drop(archive);
    let good = [STEPS, &["ALTER TABLE head ADD COLUMN news TEXT", "CREATE INDEX by_news ON head (news)"]].concat();
    let archive = open_with(&path, &good).unwrap();
    assert_eq!(archive.session("s").await.unwrap().unwrap().revision, 2);
    let layout: i64 = archive.connection().query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    assert_eq!(layout, 4);
}

#[test]
fn a_path_that_can_hold_no_store_is_refused_in_plain_words() {
    let home = tempfile::tempdir().unwrap();
    for error in refused(home.path()) {
        assert!(matches!(error, StoreError::NotAFile { .. }), "{error}");
    }
    let deep = home.path().join("a/b/sessions.db");
    let error = open(&deep).err().unwrap();
    assert!(error.to_string().contains("does not exist"), "{error}");
    assert!(!home.path().join("a").exists());
    fs::write(home.path().join("file"), "").unwrap();
    let error = open(&home.path().join("file/sessions.db")).err().unwrap();
    assert!(matches!(error, StoreError::Io { .. } | StoreError::NotAFile { .. }), "{error}");
}

#[tokio::test]
async fn a_full_disk_refuses_the_commit_and_keeps_what_was_there() {
    let (_home, archive) = fresh();
    start(&archive, "s").await;
    let limit = |sql: &str| archive.connection().query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let pages = limit("PRAGMA page_count");
    limit(&format!("PRAGMA max_page_count = {}", pages + 2));
    let large = Commit { messages: vec![message(1, &NASTY.repeat(2000))], ..commit_at(1) };
    let error = archive.commit("s", &large).await.unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert!(!error.to_string().contains("小姐"), "{error}");
    assert_eq!(archive.session("s").await.unwrap().unwrap().revision, 1);
    assert_eq!(archive.messages("s", 0, 9).await.unwrap(), []);
    limit("PRAGMA max_page_count = 1000000");
    archive.commit("s", &large).await.unwrap();
}

#[tokio::test]
async fn a_store_that_another_keeps_locked_is_busy() {
    let (home, archive) = fresh();
    start(&archive, "s").await;
    let other = Connection::open(store_in(&home)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    archive.connection().busy_timeout(std::time::Duration::ZERO).unwrap();
    let error = archive.commit("s", &commit_at(1)).await.unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error}");
    assert!(archive.session("s").await.unwrap().is_some(), "reading goes on");
    other.execute_batch("ROLLBACK").unwrap();
    archive.commit("s", &commit_at(1)).await.unwrap();
}

#[test]
fn many_may_open_a_fresh_store_at_once_and_one_creates_the_session() {
    const THREADS: usize = 8;
    for _ in 0..5 {
        let home = tempfile::tempdir().unwrap();
        let path = store_in(&home);
        let barrier = Barrier::new(THREADS);
        let created: usize = std::thread::scope(|scope| {
            let race = || {
                barrier.wait();
                let archive = open(&path).unwrap();
                let run = tokio::runtime::Builder::new_current_thread().build().unwrap();
                match run.block_on(archive.create(&new_session("s"), &[], &commit_at(0))) {
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

/// Names the store to the same test, run again as another process.
const STORE: &str = "BCC_ARCHIVE_TEST_STORE";

#[tokio::test]
async fn many_processes_may_open_a_fresh_store_at_once() {
    if let Some(path) = std::env::var_os(STORE) {
        let archive = open(Path::new(&path)).unwrap();
        match archive.create(&new_session("s"), &[], &commit_at(0)).await {
            Ok(()) | Err(StoreError::Exists { .. }) => return,
            Err(error) => panic!("{error}"),
        }
    }
    let home = tempfile::tempdir().unwrap();
    let name = "sqlite::tests::many_processes_may_open_a_fresh_store_at_once";
    let spawn = |_| {
        let mut process = std::process::Command::new(std::env::current_exe().unwrap());
        process.args(["--exact", name]).env(STORE, store_in(&home)).stdout(std::process::Stdio::null());
        process.spawn().unwrap()
    };
    let processes: Vec<_> = (0..6).map(spawn).collect();
    for mut process in processes {
        assert!(process.wait().unwrap().success());
    }
    let archive = open_read_only(&store_in(&home)).unwrap();
    assert_eq!(archive.session("s").await.unwrap().unwrap().revision, 1);
}

#[test]
fn of_many_commits_at_one_revision_one_is_written() {
    let (home, archive) = fresh();
    let run = || tokio::runtime::Builder::new_current_thread().build().unwrap();
    run().block_on(start(&archive, "s"));
    let written: usize = std::thread::scope(|scope| {
        let race = || {
            let archive = open(&store_in(&home)).unwrap();
            let commit = Commit { journal: vec![event(1, "k")], ..commit_at(1) };
            match run().block_on(archive.commit("s", &commit)) {
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
async fn a_second_handle_is_told_who_holds_a_session() {
    let (home, archive) = fresh();
    start(&archive, "s").await;
    let lock = archive.lock("s", "process 4711").await.unwrap();
    // Through a link as well: the lock belongs to the file, not to the name that it was opened by.
    #[cfg(unix)]
    std::os::unix::fs::symlink(store_in(&home), home.path().join("link.db")).unwrap();
    for path in [store_in(&home), home.path().join("link.db")] {
        let second = open(&path).unwrap();
        for error in [second.lock("s", "me").await.err().unwrap(), second.delete("s").await.unwrap_err()] {
            let StoreError::Held { holder, .. } = error else { panic!("{error}") };
            assert_eq!(holder, "process 4711");
        }
        assert_eq!(second.prune("2030-01-01T00:00:00Z").await.unwrap(), Vec::<String>::new());
    }
    drop(archive);
    let second = open(&store_in(&home)).unwrap();
    assert!(second.lock("s", "me").await.is_err(), "a lock outlives the archive that gave it");
    drop(lock);
    assert!(second.delete("s").await.unwrap());
}

#[tokio::test]
async fn nothing_of_a_deleted_session_can_be_found_on_disk() {
    let (home, archive) = fresh();
    let secret = "不要让任何人知道的事";
    start(&archive, "kept").await;
    start(&archive, "s").await;
    let told = |revision| Commit {
        messages: vec![message(revision, &secret.repeat(if revision == 1 { 1 } else { 2000 }))],
        head: format!("{{\"said\":\"{secret}\"}}"),
        ..commit_at(revision)
    };
    archive.commit("s", &told(1)).await.unwrap();
    archive.commit("s", &told(2)).await.unwrap();
    let shows = || {
        let holds = |bytes: &Vec<u8>| bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        files(store_in(&home).parent().unwrap()).values().any(holds)
    };
    assert!(shows());
    assert!(archive.delete("s").await.unwrap());
    assert!(!shows());
    assert!(archive.session("kept").await.unwrap().is_some());
}

#[tokio::test]
async fn a_kind_of_event_is_found_along_an_index_and_without_sorting() {
    let (_home, archive) = fresh();
    for (sql, parameters) in [(JOURNAL_OF, 7), (LAST_OF, 4)] {
        let connection = archive.connection();
        let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let none = rusqlite::params_from_iter(std::iter::repeat_n(1, parameters));
        let steps: Vec<String> =
            plan.query_map(none, |row| row.get(3)).unwrap().collect::<rusqlite::Result<_>>().unwrap();
        assert!(steps.len() == 2 && steps.iter().all(|step| step.starts_with("SEARCH")), "{steps:?}");
    }
}

#[tokio::test]
async fn a_store_grows_with_what_is_committed_and_no_faster() {
    let (home, archive) = fresh();
    start(&archive, "s").await;
    let size = || files(store_in(&home).parent().unwrap()).values().map(Vec::len).sum::<usize>();
    let mut sizes = Vec::new();
    for turn in 1..=1500_u64 {
        let commit = Commit {
            journal: (turn * 4 - 3..=turn * 4)
                .map(|seq| event(seq, ["a", "b", "c", "d"][(seq % 4) as usize]))
                .collect(),
            messages: vec![message(turn, &"好".repeat(200))],
            ..commit_at(turn)
        };
        archive.commit("s", &commit).await.unwrap();
        if turn % 500 == 0 {
            archive.connection().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
            sizes.push(size());
        }
    }
    let (first, last) = (sizes[1] - sizes[0], sizes[2] - sizes[1]);
    assert!(last.abs_diff(first) < first / 10, "{sizes:?}");
    // The texts of 500 turns are some 480,000 bytes.
    assert!(last < 900_000, "{sizes:?}");
}

/// Names the read-only place to the same test, run again as a user whom permission bits bind.
#[cfg(unix)]
const PLACE: &str = "BCC_ARCHIVE_TEST_READ_ONLY";

#[cfg(unix)]
#[tokio::test]
async fn a_store_in_a_read_only_place_is_read_but_not_written() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let modes = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    if let Some(place) = std::env::var_os(PLACE) {
        let place = PathBuf::from(place);
        // A file that cannot be written; a directory in which no log can be made; a directory without a store.
        let error = open(&place.join("sessions.db")).err().unwrap();
        assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
        let error = open(&place.join("new.db")).err().unwrap();
        assert!(matches!(error, StoreError::Denied { .. }), "{error}");
        let error = open_read_only(&place.join("secret.db")).err().unwrap();
        assert!(matches!(error, StoreError::Denied { .. }), "{error}");
        let error = match open(&place.join("writable.db")) {
            Err(error) => error,
            Ok(archive) => archive.commit("s", &commit_at(1)).await.unwrap_err(),
        };
        assert!(matches!(error, StoreError::Denied { .. } | StoreError::ReadOnly { .. }), "{error}");
        let archive = open_read_only(&place.join("sessions.db")).unwrap();
        assert_eq!(archive.sessions().await.unwrap().len(), 1);
        let error = open_read_only(&place.join("logged.db")).err().unwrap();
        assert!(error.to_string().contains("-wal"), "{error}");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    modes(home.path(), 0o755);
    let place = home.path().join("place");
    let archive = open(&place.join("sessions.db")).unwrap();
    start(&archive, "s").await;
    for end in ["", "-wal"] {
        fs::copy(place.join(format!("sessions.db{end}")), place.join(format!("logged.db{end}"))).unwrap();
        modes(&place.join(format!("logged.db{end}")), 0o444);
    }
    drop(archive);
    for (name, mode) in [("sessions.db", 0o444), ("writable.db", 0o666), ("secret.db", 0o000)] {
        if name != "sessions.db" {
            fs::copy(place.join("sessions.db"), place.join(name)).unwrap();
        }
        modes(&place.join(name), mode);
    }
    modes(&place, 0o555);
    let name = "sqlite::tests::a_store_in_a_read_only_place_is_read_but_not_written";
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", name, "--nocapture"]).env(PLACE, &place).current_dir("/");
    // Nothing is forbidden to root; `nobody` is 65534 nearly everywhere.
    if fs::write(place.join("probe"), "").is_ok() {
        again.uid(65534).gid(65534);
    }
    match again.output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
        }
        Err(error) => eprintln!("not tested: this test cannot run itself as another user ({error})"),
    }
    modes(&place, 0o755);
}
