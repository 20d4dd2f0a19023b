//! Tests of locks with several processes: this test binary runs itself.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use crate::conformance::{commit_at, new_session};
use crate::contract::Store;
use crate::error::StoreError;
use crate::sqlite::open::open;

/// Passes the path of the store to the process.
const STORE: &str = "BCC_STORE_TEST_LOCKS";

const SESSIONS: usize = 100;

/// What a line of a process begins with, among what the test binary prints.
const LINE: &str = "locks: ";

/// A process that runs [`locks_of_a_process`].
struct Locking {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Locking {
    fn start(store: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "sqlite::locks::process_tests::locks_of_a_process", "--nocapture"]).env(STORE, store);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut locking = Self { process, input, output: BufReader::new(output) };
        assert_eq!(locking.line(), "ready");
        locking
    }

    fn line(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the process has ended");
            // The name of the test is in front of its first line.
            if let Some((_, line)) = line.split_once(LINE) {
                return line.trim_end().to_owned();
            }
        }
    }

    /// Lets it lock what it can.
    fn go(&mut self) {
        writeln!(self.input, "go").unwrap();
    }

    /// The sessions that it has locked.
    fn locked(&mut self) -> Vec<String> {
        self.line().split_whitespace().map(str::to_owned).collect()
    }

    fn end(mut self) {
        drop(self.input);
        assert!(self.process.wait().unwrap().success());
    }
}

fn wait_for_line() {
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// Locks all sessions that are free, and holds them until its input ends. Does nothing as an ordinary test.
#[tokio::test]
async fn locks_of_a_process() {
    let Some(path) = std::env::var_os(STORE) else { return };
    let store = open(Path::new(&path)).unwrap();
    let holder = format!("pid {} (now)", std::process::id());
    println!("\n{LINE}ready");
    wait_for_line();
    let mut locks = Vec::new();
    let mut locked = String::new();
    for number in 0..SESSIONS {
        let id = format!("s{number}");
        match store.lock(&id, &holder).await {
            Ok(lock) => {
                locks.push(lock);
                locked.push_str(&id);
                locked.push(' ');
            }
            Err(StoreError::Held { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    println!("\n{LINE}{locked}");
    wait_for_line();
}

fn new_store() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sessions.db");
    drop(open(&path).unwrap());
    (directory, path)
}

fn files(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path.with_extension("db.locks")).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Lets processes race for all sessions, and checks that each session has one owner.
fn race(path: &Path) {
    let mut racing: Vec<Locking> = (0..3).map(|_| Locking::start(path)).collect();
    racing.iter_mut().for_each(Locking::go);
    let locked: Vec<String> = racing.iter_mut().flat_map(Locking::locked).collect();
    assert_eq!(locked.len(), SESSIONS, "{locked:?}");
    assert_eq!(locked.iter().collect::<BTreeSet<_>>().len(), SESSIONS, "{locked:?}");
    racing.into_iter().for_each(Locking::end);
}

#[test]
fn of_processes_that_race_for_sessions_each_session_has_one_owner() {
    let (_directory, path) = new_store();
    for _ in 0..3 {
        race(&path);
        assert!(files(&path).iter().all(|name| name.starts_with("store.")), "{:?}", files(&path));
    }
}

#[test]
fn of_processes_that_race_for_the_sessions_of_a_killed_one_each_session_has_one_owner() {
    let (_directory, path) = new_store();
    let mut killed = Locking::start(&path);
    killed.go();
    assert_eq!(killed.locked().len(), SESSIONS);
    killed.process.kill().unwrap();
    killed.process.wait().unwrap();
    assert!(files(&path).len() > SESSIONS, "it has left its locks");
    race(&path);
    assert!(files(&path).iter().all(|name| name.starts_with("store.")), "{:?}", files(&path));
}

#[tokio::test]
async fn the_sessions_of_a_killed_process_are_taken_over_at_once() {
    let (_directory, path) = new_store();
    for _ in 0..5 {
        let mut killed = Locking::start(&path);
        killed.go();
        assert_eq!(killed.locked().len(), SESSIONS);
        let store = open(&path).unwrap();
        assert!(matches!(store.lock("s1", "me").await, Err(StoreError::Held { .. })));
        killed.process.kill().unwrap();
        // Its parent has not even waited for its end.
        let mut locks = Vec::new();
        for number in 0..SESSIONS {
            locks.push(store.lock(&format!("s{number}"), "me").await.unwrap());
        }
        killed.process.wait().unwrap();
    }
}

#[test]
fn the_files_of_killed_processes_are_removed_when_the_store_is_opened_again() {
    let (_directory, path) = new_store();
    let mut killed = Locking::start(&path);
    killed.go();
    killed.locked();
    killed.process.kill().unwrap();
    killed.process.wait().unwrap();
    let owners = || files(&path).iter().filter(|name| name.ends_with(".owner")).count();
    assert_eq!(owners(), 1);
    let store = open(&path).unwrap();
    assert_eq!(owners(), 0);
    drop(store);
}

/// Runs this test again as a process with few open files.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_may_lock_more_sessions_than_it_may_have_open_files() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    const FILES: &str = "BCC_STORE_TEST_FILES";
    const MANY: usize = 1500;
    const MAX_FILES: u64 = 256;
    let Some(path) = std::env::var_os(FILES) else {
        let (_directory, path) = new_store();
        let name = "sqlite::locks::process_tests::a_process_may_lock_more_sessions_than_it_may_have_open_files";
        let mut command = Command::new(std::env::current_exe().unwrap());
        let output = command.args(["--exact", name, "--nocapture"]).env(FILES, &path).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
        return;
    };
    setrlimit(Resource::Nofile, Rlimit { current: Some(MAX_FILES), maximum: Some(MAX_FILES) }).unwrap();
    let store = Arc::new(open(Path::new(&path)).unwrap().with_group_commits().unwrap());
    let begin = |number: usize| {
        let store = Arc::clone(&store);
        async move {
            let id = format!("s{number}");
            let lock = store.lock(&id, "me").await.unwrap();
            store.create(&new_session(&id), &[], &commit_at(0)).await.unwrap();
            assert_eq!(store.session(&id).await.unwrap().unwrap().revision, 1);
            lock
        }
    };
    let beginning: Vec<_> = (0..MANY).map(|number| tokio::spawn(begin(number))).collect();
    let mut locks = Vec::new();
    for session in beginning {
        locks.push(session.await.unwrap());
    }
    // Another store of the same process finds all of them locked.
    let other = open(Path::new(&path)).unwrap();
    for number in (0..MANY).step_by(100) {
        assert!(matches!(other.lock(&format!("s{number}"), "me").await, Err(StoreError::Held { .. })));
    }
    drop(locks);
    other.lock("s0", "me").await.unwrap();
}
