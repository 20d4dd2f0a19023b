//! Tests of damaged stores: real files, as a killed process leaves them, with real bytes changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::conformance::{commit_at, event, message, new_session, read_all};
use crate::contract::Store;
use crate::error::StoreError;
use crate::rows::{Commit, CounterRow, DocumentRow, FrameRow, RequestRow};
use crate::sqlite::open::{open, open_read_only};
use crate::sqlite::salvage::Saved;
use crate::sqlite::unfinished_tests::{check, recover};

/// The number of commits of each session after its first one.
const COMMITS: u64 = 12;

/// The number of bytes of the header of a log, of that of a frame, and of a page.
const HEADER: usize = 32;
const FRAME: usize = 24 + 4096;

/// Changes the bytes of a file.
type Change = fn(&mut Vec<u8>);

/// A document with its hash.
fn document(id: &str) -> DocumentRow {
    let text = format!("the script of session {id}");
    let sha256 = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    DocumentRow { sha256, text }
}

/// A commit with an answer, in which every kind of row changes.
fn answer(id: &str, revision: u64) -> Commit {
    let (seq, number) = (revision * 2, revision);
    Commit {
        answers: revision,
        head: format!("{{\"of\":\"{id}\",\"revision\":{revision}}}"),
        frames_put: vec![FrameRow { key: format!("ask_{}", revision % 3), state: format!("{{\"round\":{revision}}}") }],
        counters_put: vec![CounterRow { name: "n".into(), count: revision }],
        journal: vec![event(seq - 1, "message"), event(seq, "waiting")],
        messages: vec![message(number, &format!("{id} {revision} {}", "很长的回答。".repeat(50)))],
        answer_ids: vec![format!("a{revision}")],
        requests_put: vec![RequestRow { id: format!("a{}", revision + 1), ..RequestRow::default() }],
        ..commit_at(revision)
    }
}

/// Everything that a store returns about a session.
async fn content(store: &dyn Store, id: &str) -> String {
    format!("{:?}", read_all(store, id).await)
}

/// A store as a killed process left it, and everything that it contained after each revision of its sessions.
struct Killed {
    directory: TempDir,
    states: BTreeMap<(String, u64), String>,
}

impl Killed {
    /// Two sessions whose commits alternate. `in_file` of them are already in the file, the others only in the log.
    async fn with(in_file: u64) -> Self {
        let live = tempfile::tempdir().unwrap();
        let store = open(&live.path().join("sessions.db")).unwrap();
        let mut states = BTreeMap::new();
        for revision in 0..=COMMITS {
            for id in ["one", "two"] {
                match revision {
                    0 => store.create(&new_session(id), &[document(id)], &commit_at(0)).await.unwrap(),
                    revision => store.commit(id, &answer(id, revision)).await.unwrap(),
                }
                states.insert((id.to_owned(), revision + 1), content(&store, id).await);
            }
            if revision + 1 == in_file {
                store.connection().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
            }
        }
        let killed = Self { directory: tempfile::tempdir().unwrap(), states };
        for end in ["", "-wal", "-shm"] {
            fs::copy(live.path().join(format!("sessions.db{end}")), killed.path(end)).unwrap();
        }
        killed
    }

    fn path(&self, end: &str) -> PathBuf {
        self.directory.path().join(format!("sessions.db{end}"))
    }

    /// A copy of the store, with this change of the file with this end.
    fn changed(&self, end: &str, change: impl FnOnce(&mut Vec<u8>)) -> TempDir {
        let directory = tempfile::tempdir().unwrap();
        for other in ["", "-wal", "-shm"] {
            if let Ok(bytes) = fs::read(self.path(other)) {
                fs::write(directory.path().join(format!("sessions.db{other}")), bytes).unwrap();
            }
        }
        let path = directory.path().join(format!("sessions.db{end}"));
        let mut bytes = fs::read(&path).unwrap();
        change(&mut bytes);
        fs::write(path, bytes).unwrap();
        directory
    }

    /// Ensures that a recovered store contains nothing that was never there, and returns the revisions of its sessions.
    async fn revisions(&self, path: &Path) -> BTreeMap<String, u64> {
        let store = open_read_only(path).unwrap();
        let mut revisions = BTreeMap::new();
        for row in store.sessions().await.unwrap() {
            let found = content(&store, &row.id).await;
            if row.status != "failed" {
                assert_eq!(found, self.states[&(row.id.clone(), row.revision)], "{} at {}", row.id, row.revision);
            }
            revisions.insert(row.id, row.revision);
        }
        revisions
    }
}

/// The bytes of the files of a store, without the index of the log, which SQLite rebuilds.
fn bytes(directory: &TempDir) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.is_file() && !path.display().to_string().ends_with("-shm"));
    files.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

fn store_in(directory: &TempDir) -> PathBuf {
    directory.path().join("sessions.db")
}

/// Ensures that a damaged store is refused, unchanged and copied.
fn refused(directory: &TempDir, case: &str) {
    let before = bytes(directory);
    let read = open_read_only(&store_in(directory)).err();
    assert!(matches!(read, Some(StoreError::Corrupt { .. })), "{case}: {read:?}");
    assert!(check(&store_in(directory)).is_ok_and(|report| !report.damage.is_empty()), "{case}");
    assert_eq!(bytes(directory), before, "{case}: reading changes nothing");
    let mut copies = Vec::new();
    for _ in 0..2 {
        match open(&store_in(directory)).err() {
            Some(StoreError::Damaged { copy, .. }) => copies.push(copy),
            other => panic!("{case}: {other:?}"),
        }
    }
    assert_eq!(copies[0], copies[1], "{case}: one copy is enough");
    let after = bytes(directory);
    for (path, content) in &before {
        assert_eq!(&after[path], content, "{case}: {}", path.display());
        let end = path.display().to_string().split_once("sessions.db").unwrap().1.to_owned();
        let copy = PathBuf::from(format!("{}{end}", copies[0]));
        assert_eq!(&after[&copy], content, "{case}: {}", copy.display());
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&fs::metadata(copy).unwrap()) & 0o777, 0o600);
    }
}

/// Some bytes of every part of a log: of its header, of the headers of frames, and of pages.
fn positions(length: usize) -> Vec<usize> {
    let frames = (length - HEADER) / FRAME;
    let mut positions = vec![1, 6, 10, 14, 18, 22, 26, 31];
    let parts = [3, 7, 9, 14, 17, 23, 24 + 1, 24 + 100, 24 + 2047, 24 + 4094];
    positions.extend(
        (0..).zip((0..frames).step_by(12)).map(|(index, frame)| HEADER + frame * FRAME + parts[index % parts.len()]),
    );
    positions.extend(parts.map(|part| HEADER + (frames - 1) * FRAME + part));
    positions
}

#[tokio::test]
async fn a_changed_byte_of_a_log_is_noticed_and_loses_next_to_nothing() {
    let killed = Killed::with(3).await;
    let log = fs::read(killed.path("-wal")).unwrap();
    let newest = COMMITS + 1;
    let (mut whole, mut total) = (0, 0);
    for with_index in [true, false] {
        for position in positions(log.len()).into_iter().skip(usize::from(with_index)).step_by(2) {
            let directory = killed.changed("-wal", |bytes| bytes[position] ^= 0x10);
            if !with_index {
                fs::remove_file(directory.path().join("sessions.db-shm")).unwrap();
            }
            let case = format!("byte {position} of {}, with index: {with_index}", log.len());
            refused(&directory, &case);
            let before = bytes(&directory);
            let recovery = recover(&store_in(&directory), false).unwrap();
            let new = recovery.store.unwrap();
            let mut after = bytes(&directory);
            after.remove(&new);
            assert_eq!(after, before, "{case}: the damaged store is unchanged");
            let revisions = killed.revisions(&new).await;
            for session in &recovery.report.sessions {
                let revision = revisions[&session.id];
                let is_whole = session.saved == Saved::Whole;
                assert!(
                    is_whole == (revision == newest) || recovery.report.misses_commits,
                    "{case}: {session:?} at {revision}"
                );
                assert!(matches!(session.saved, Saved::Whole | Saved::Earlier), "{case}: {session:?}");
                assert_eq!(session.answers, revision - 1, "{case}");
                // If its number is damaged, two pages may be meant.
                let is_page_number = position >= HEADER && (position - HEADER) % FRAME < 4;
                assert!(
                    revision + 1 >= newest || is_page_number,
                    "{case}: only the last commit can be lost: {session:?}"
                );
                whole += usize::from(session.saved == Saved::Whole);
                total += 1;
            }
            assert_eq!(recovery.report.sessions.len(), 2, "{case}");
        }
    }
    // SQLite itself would lose everything after the damaged frame.
    assert!(whole * 10 > total * 8, "{whole} of {total} sessions were saved whole");
}

#[tokio::test]
async fn of_a_log_with_an_overwritten_page_everything_else_is_saved() {
    let killed = Killed::with(3).await;
    let frames = (fs::read(killed.path("-wal")).unwrap().len() - HEADER) / FRAME;
    let (mut whole, mut total) = (0, 0);
    for frame in (0..frames).step_by(10).chain([frames - 1]) {
        {
            let (start, length) = [(24 + 1000, 2000), (0, FRAME), (16, 100)][frame % 3];
            let at = HEADER + frame * FRAME + start;
            let directory = killed.changed("-wal", |bytes| bytes[at..at + length].fill(0x5a));
            let case = format!("{length} bytes at {start} of frame {frame} of {frames}");
            refused(&directory, &case);
            let new = recover(&store_in(&directory), false).unwrap().store.unwrap();
            // What is there is as it was at some revision.
            let revisions = killed.revisions(&new).await;
            assert_eq!(revisions.len(), 2, "{case}");
            whole += revisions.values().filter(|revision| **revision == COMMITS + 1).count();
            total += 2;
        }
    }
    assert!(whole * 3 > total, "{whole} of {total} sessions were saved whole");
}

#[tokio::test]
async fn a_log_that_ends_in_an_interrupted_commit_is_opened_silently() {
    let killed = Killed::with(3).await;
    let log = fs::read(killed.path("-wal")).unwrap();
    let frames = (log.len() - HEADER) / FRAME;
    let whole = log.len() - FRAME;
    // Without its index, as after the system has stopped: the log says how far it was written.
    for cut in [HEADER, HEADER + 1, HEADER + FRAME * (frames / 2), whole, whole + 24, log.len() - 1] {
        let directory = killed.changed("-wal", |bytes| bytes.truncate(cut));
        fs::remove_file(directory.path().join("sessions.db-shm")).unwrap();
        let report = check(&store_in(&directory)).unwrap();
        assert!(report.is_sound(), "cut at {cut}: {report:?}");
        drop(open(&store_in(&directory)).unwrap());
        killed.revisions(&store_in(&directory)).await;
    }
    // Its index says that these commits were made.
    for cut in [0, HEADER + FRAME * (frames / 2), whole, log.len() - 1] {
        let directory = killed.changed("-wal", |bytes| bytes.truncate(cut));
        refused(&directory, &format!("cut at {cut}, with the index"));
    }
    let directory = killed.changed("-wal", Vec::clear);
    fs::remove_file(directory.path().join("sessions.db-wal")).unwrap();
    refused(&directory, "without the log");
}

#[tokio::test]
async fn a_frame_that_was_being_written_over_an_earlier_one_is_no_damage() {
    let killed = Killed::with(3).await;
    let log = fs::read(killed.path("-wal")).unwrap();
    let frames = (log.len() - HEADER) / FRAME;
    // The log is used again from its start: the frames from here on are of its earlier use.
    let reused = frames / 2;
    let directory = killed.changed("-wal", |bytes| {
        for frame in reused..frames {
            bytes[HEADER + frame * FRAME + 8..HEADER + frame * FRAME + 24].fill(7);
        }
        // Half of the page of the frame before is the earlier one.
        bytes[HEADER + (reused - 1) * FRAME + 24 + 2048..HEADER + reused * FRAME].fill(3);
    });
    fs::remove_file(directory.path().join("sessions.db-shm")).unwrap();
    drop(open(&store_in(&directory)).unwrap());
    killed.revisions(&store_in(&directory)).await;
}

#[tokio::test]
async fn frames_of_an_interrupted_transaction_behind_later_commits_are_no_damage() {
    let killed = Killed::with(3).await;
    // The first process is killed within a transaction that does not fit into memory.
    let store = open(&killed.path("")).unwrap();
    store
        .connection()
        .execute_batch(
            "PRAGMA cache_size = 10; BEGIN IMMEDIATE;
             WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 200)
             INSERT INTO user_variable SELECT n, '', '', '', hex(zeroblob(2000)), '', 0, '', 0 FROM n",
        )
        .unwrap();
    let interrupted = killed.changed("-wal", |_| {});
    let length = |directory: &TempDir| fs::metadata(directory.path().join("sessions.db-wal")).unwrap().len();
    // The second one commits, and is killed as well.
    let second = open(&store_in(&interrupted)).unwrap();
    second.commit("one", &answer("one", COMMITS + 1)).await.unwrap();
    let again = tempfile::tempdir().unwrap();
    for end in ["", "-wal", "-shm"] {
        let name = format!("sessions.db{end}");
        fs::copy(interrupted.path().join(&name), again.path().join(&name)).unwrap();
    }
    assert_eq!(length(&again), length(&interrupted), "the frames of the first process are still there");
    assert!(check(&store_in(&again)).unwrap().is_sound());
    let opened = open(&store_in(&again)).unwrap();
    assert_eq!(opened.session("one").await.unwrap().unwrap().revision, COMMITS + 2);
    drop(store);
}

#[tokio::test]
async fn a_damaged_file_with_a_whole_log_is_not_written_to() {
    let killed = Killed::with(6).await;
    let pages = fs::read(killed.path("")).unwrap().len() / 4096;
    let changes: [(&str, Change); 4] = [
        ("truncated", |bytes| bytes.truncate(bytes.len() / 2)),
        ("truncated within a page", |bytes| bytes.truncate(bytes.len() - 4096 - 17)),
        ("empty", Vec::clear),
        ("an empty page", |bytes| {
            let last = bytes.len() - 4096;
            bytes[last..].fill(0);
        }),
    ];
    for (name, change) in changes {
        let directory = killed.changed("", change);
        match open(&store_in(&directory)) {
            // A page that the log has as well is not damaged.
            Ok(store) => {
                drop(store);
                assert_eq!(killed.revisions(&store_in(&directory)).await.len(), 2, "{name}, {pages} pages");
            }
            Err(StoreError::Damaged { .. }) => {
                let directory = killed.changed("", change);
                let before = bytes(&directory);
                let recovery = recover(&store_in(&directory), true).expect(name);
                let moved = recovery.moved_to.unwrap();
                assert_eq!(fs::read(moved).unwrap(), before[&store_in(&directory)], "{name}");
                killed.revisions(&store_in(&directory)).await;
                assert!(check(&store_in(&directory)).unwrap().is_sound(), "{name}");
                drop(open(&store_in(&directory)).unwrap());
            }
            Err(other) => panic!("{name}: {other}"),
        }
    }
}

#[tokio::test]
async fn of_a_file_with_damaged_pages_every_session_is_saved_as_far_as_it_can_be_read() {
    let killed = Killed::with(COMMITS + 1).await;
    fs::remove_file(killed.path("-wal")).unwrap();
    fs::remove_file(killed.path("-shm")).unwrap();
    let pages = fs::read(killed.path("")).unwrap().len() / 4096;
    let (mut lost, mut unreadable) = (0, 0);
    for page in 1..pages {
        {
            let fill = if page % 2 == 0 { 0_u8 } else { 0x5a };
            let directory = killed.changed("", |bytes| bytes[page * 4096..(page + 1) * 4096].fill(fill));
            let before = bytes(&directory);
            let report = match check(&store_in(&directory)) {
                // Without the list of tables, nothing can be found.
                Err(StoreError::Corrupt { .. }) => {
                    unreadable += 1;
                    continue;
                }
                report => report.unwrap(),
            };
            assert_eq!(bytes(&directory), before, "page {page}");
            let recovery = recover(&store_in(&directory), false).unwrap();
            assert_eq!(recovery.report, report, "page {page}: the check says what is recovered");
            // An unused page does no harm.
            assert_eq!(recovery.store.is_none(), report.is_sound(), "page {page}");
            let Some(new) = recovery.store else { continue };
            lost += 1;
            let revisions = killed.revisions(&new).await;
            for session in report.sessions {
                assert_eq!(
                    session.saved != Saved::Nothing,
                    revisions.contains_key(&session.id),
                    "page {page}: {session:?}"
                );
                if session.saved == Saved::Whole {
                    assert_eq!(revisions[&session.id], COMMITS + 1);
                }
            }
            assert!(check(&new).unwrap().is_sound());
        }
    }
    assert!(lost > pages / 2 && unreadable < 5, "{lost} and {unreadable} of {pages}");
}

#[tokio::test]
async fn a_session_with_a_damaged_document_is_saved_to_be_read() {
    let killed = Killed::with(COMMITS + 1).await;
    fs::remove_file(killed.path("-wal")).unwrap();
    fs::remove_file(killed.path("-shm")).unwrap();
    let text = document("one").text;
    let directory = killed.changed("", |bytes| {
        let at = bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap();
        bytes[at] ^= 1;
    });
    // The structure is sound, so it is only found by a complete check.
    let recovery = recover(&store_in(&directory), false).unwrap();
    let saved: Vec<_> = recovery.report.sessions.iter().map(|session| (session.saved, session.answers)).collect();
    // Every second message is one of the user.
    assert_eq!(saved, [(Saved::Readable, COMMITS / 2), (Saved::Whole, COMMITS)]);
    let store = open(&recovery.store.unwrap()).unwrap();
    assert_eq!(store.messages("one", 0, usize::MAX).await.unwrap().len() as u64, COMMITS);
    assert_eq!(store.journal("one", 0, usize::MAX).await.unwrap().len() as u64, 2 * COMMITS);
    assert_eq!(store.session("one").await.unwrap().unwrap().status, "failed");
}

#[tokio::test]
async fn a_sound_store_is_checked_without_a_change_and_one_in_use_is_not_checked() {
    let killed = Killed::with(3).await;
    let empty = killed.changed("", Vec::clear);
    for end in ["-wal", "-shm"] {
        fs::remove_file(empty.path().join(format!("sessions.db{end}"))).unwrap();
    }
    assert!(check(&store_in(&empty)).unwrap().is_sound());
    let before = bytes(&killed.directory);
    let report = check(&killed.path("")).unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.sessions.len(), 2);
    assert_eq!(bytes(&killed.directory), before);
    let store = open(&killed.path("")).unwrap();
    store.commit("one", &answer("one", COMMITS + 1)).await.unwrap();
    assert!(matches!(check(&killed.path("")), Err(StoreError::InUse { .. })));
    assert!(matches!(recover(&killed.path(""), true), Err(StoreError::InUse { .. })));
    // A second connection finds the log of the first one, and neither checks nor changes it.
    let second = open(&killed.path("")).unwrap();
    assert_eq!(second.session("one").await.unwrap().unwrap().revision, COMMITS + 2);
    drop((store, second));
    assert!(check(&killed.path("")).unwrap().is_sound());
}

#[tokio::test]
async fn a_log_without_its_file_is_not_taken_over_by_a_new_file() {
    let killed = Killed::with(1).await;
    fs::remove_file(killed.path("")).unwrap();
    assert!(matches!(open(&killed.path("")), Err(StoreError::Damaged { .. })));
    assert!(!killed.path("").exists());
}
