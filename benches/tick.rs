//! Measures how long `tick` takes to find 10 due sessions among 100,000 waiting ones (target: less than 50 ms), and the whole command.
//!
//! The sessions that wait are copies of the rows of a real session, made in SQL: running 100,000 sessions would take far longer than what is
//! measured. The due ones are real. `BCC_BENCH_SESSIONS` sets the number of sessions (100,000).

#![allow(clippy::expect_used, clippy::print_stdout, reason = "a bench may fail where it stands, and prints its table")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use bcc_engine::clock::{now, stamp};
use bcc_engine::engine::{Engine, RunRequest};
use bcc_engine::environment::Environment;
use bcc_engine::project::Project;
use bcc_runtime::program::event::{Delta, Observer};
use bcc_runtime::run::session::SessionPause;
use bcc_store::contract::Store;
use bcc_store::sqlite::open::open;
use rusqlite::Connection;
use tokio::runtime::Runtime;

use crate::support::{directory, median, size};

mod support;

/// The number of due sessions.
const DUE: usize = 10;

/// How often finding them is measured.
const SEARCHES: usize = 200;

/// How often the command is measured, each time with due sessions of its own.
const COMMANDS: usize = 10;

/// The id of the session whose rows are copied.
const ORIGINAL: &str = "waits-for-its-time-original";

struct NoObserver;

impl Observer for NoObserver {
    fn delta(&self, _delta: &Delta<'_>) {}
}

/// A script that waits for a time and then ends.
fn script(id: &str, time: &str) -> String {
    format!(
        "\
session:
  session_id: {id}
  session_name: 提醒
  declare:
    - {{ var: reminded, type: boolean, value: false, define: 提醒过了没有 }}
    - {{ var: text, type: string, value: 明天上午十点有一次回访，请提前五分钟准备好。, define: 要提醒的事 }}
  phases:
    - phase_id: reminder
      topics:
        - topic_id: tomorrow
          actions:
            - {{ action_type: wait, action_id: rest, config: {{ for: {time} }} }}
            - {{ action_type: set, action_id: remind, config: {{ values: {{ reminded: true }} }} }}
"
    )
}

struct Bench {
    runtime: Runtime,
    directory: PathBuf,
}

impl Bench {
    /// Runs a session until it waits.
    fn session(&self, store: &Arc<dyn Store>, script: &str, id: &str) {
        let file = self.directory.join(script);
        let environment = Environment::default();
        let project = Project::of(&file, Some(&self.directory), false, &environment).expect("a project");
        let engine = Engine::new(project, environment, Arc::clone(store));
        let request =
            RunRequest { file, session: Some(id.into()), model: Some("offline".into()), ..RunRequest::default() };
        let pause = self.runtime.block_on(async {
            let mut opened = engine.run(&request, Arc::new(NoObserver)).await.expect("the session begins");
            opened.session.advance().await.expect("it waits")
        });
        assert_eq!(pause, SessionPause::Waiting);
    }

    /// Checks that the last copy is a session with as many events as the original.
    fn check_copy(&self, store: &dyn Store, count: usize) {
        let events = |id: &str| {
            let rows = self.runtime.block_on(store.journal(id, 0, usize::MAX)).expect("the journal is read");
            assert!(rows.iter().all(|row| row.body.contains(id)), "{rows:?}");
            rows.len()
        };
        let copies = format!("waits-for-its-time-{:08}", count + 1);
        assert!(events(ORIGINAL) > 0 && events(ORIGINAL) == events(&copies));
    }

    /// The number of sessions that are due.
    fn due(&self, store: &dyn Store) -> usize {
        self.runtime.block_on(store.open_requests(Some(&stamp(now())))).expect("the store is read").len()
    }

    /// Runs [`DUE`] sessions that are due when this returns.
    fn add_due(&self, path: &Path, round: usize) {
        let store: Arc<dyn Store> = Arc::new(open(path).expect("the store"));
        for number in 0..DUE {
            self.session(&store, "due.yaml", &format!("due-{round}-{number}"));
        }
        while self.due(store.as_ref()) < DUE {
            std::thread::yield_now();
        }
    }

    /// The time of `tick` in milliseconds; it must continue this number of sessions, and nothing may fail.
    fn tick(&self, path: &Path, options: &[&str], sessions: usize) -> f64 {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bcc-script"));
        // The environment of the user must not choose a store.
        command.env_clear().env("HOME", &self.directory).current_dir(&self.directory);
        command.args(["tick", "--project"]).arg(&self.directory).arg("--store").arg(path).args(options);
        let began = Instant::now();
        let output = command.output().expect("the program starts");
        let took = began.elapsed().as_secs_f64() * 1e3;
        let lines = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(lines.lines().filter(|line| line.ends_with("\tcompleted")).count(), sessions, "{output:?}");
        took
    }
}

/// Copies the rows of the session `count` times, with other ids and with times that are spread over ten days. The rows of its journal and of
/// its messages have keys that contain the key of the session, in the bits above 36 (`crates/store/src/sqlite/schema.rs`).
fn copy(path: &Path, count: usize) -> rusqlite::Result<()> {
    if count == 0 {
        return Ok(());
    }
    let mut connection = Connection::open(path)?;
    let transaction = connection.transaction()?;
    let original: i64 = transaction.query_row("SELECT key FROM session WHERE id = ?", [ORIGINAL], |row| row.get(0))?;
    let tables: Vec<String> = transaction
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'plan%'")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    // The copies refer to the rows of `session`, so it comes first.
    let others = tables.iter().map(String::as_str).filter(|table| *table != "session");
    for table in std::iter::once("session").chain(others) {
        let columns: Vec<(String, String)> = transaction
            .prepare("SELECT name, type FROM pragma_table_info(?)")?
            .query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        let has = |name: &str| columns.iter().any(|(column, _)| column == name);
        let of_original = match table {
            "session" => format!("t.key = {original}"),
            "journal" | "message" => format!("t.key >> 36 = {original}"),
            _ if has("session") => format!("t.session = {original}"),
            // Documents and the variables of users belong to no session.
            _ => continue,
        };
        let value = |(name, kind): &(String, String)| match (table, name.as_str()) {
            ("session", "key") | (_, "session") => "n.key".to_owned(),
            (_, "key") if kind == "INTEGER" => "(n.key << 36) | (t.key & ((1 << 36) - 1))".to_owned(),
            (_, "due_at") => "strftime('%Y-%m-%dT%H:%M:%fZ', t.due_at, (n.key % 864000) || ' seconds')".to_owned(),
            _ if kind == "TEXT" => format!("replace(t.{name}, '{ORIGINAL}', printf('waits-for-its-time-%08d', n.key))"),
            _ => format!("t.{name}"),
        };
        let values: Vec<String> = columns.iter().map(value).collect();
        let sql = format!(
            "WITH RECURSIVE n (key) AS (SELECT {first} UNION ALL SELECT key + 1 FROM n WHERE key < {last})
             INSERT INTO {table} SELECT {values} FROM n CROSS JOIN {table} AS t WHERE {of_original}",
            first = original + 1,
            last = original + i64::try_from(count).unwrap_or(i64::MAX - original),
            values = values.join(", ")
        );
        transaction.execute(&sql, [])?;
    }
    transaction.commit()
}

/// The times of a search, in milliseconds: in a store that was just opened, and in one that is open.
fn search(bench: &Bench, path: &Path) -> (Vec<f64>, Vec<f64>) {
    let mut first = Vec::new();
    let mut open_store = None;
    for _ in 0..SEARCHES {
        let store = open(path).expect("the store");
        let began = Instant::now();
        assert_eq!(bench.due(&store), DUE);
        first.push(began.elapsed().as_secs_f64() * 1e3);
        open_store = Some(store);
    }
    let store = open_store.expect("it was opened");
    let next = (0..SEARCHES).map(|_| {
        let began = Instant::now();
        assert_eq!(bench.due(&store), DUE);
        began.elapsed().as_secs_f64() * 1e3
    });
    (first, next.collect())
}

fn print_row(name: &str, times: &mut [f64]) {
    let middle = median(times);
    let slowest = times.last().copied().unwrap_or_default();
    println!("  {name:58} median {middle:9.3} ms   slowest {slowest:9.3} ms");
}

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let count: usize = std::env::var("BCC_BENCH_SESSIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(100_000);
    let folder = directory();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let bench = Bench { runtime, directory: folder.path().to_path_buf() };
    std::fs::write(folder.path().join("waiting.yaml"), script("waiting", "12h")).expect("the script is written");
    std::fs::write(folder.path().join("due.yaml"), script("due", "1s")).expect("the script is written");
    for sessions in [DUE + 1, count.max(DUE + 1)] {
        let path = folder.path().join(format!("{sessions}.db"));
        let store: Arc<dyn Store> = Arc::new(open(&path).expect("a store"));
        bench.session(&store, "waiting.yaml", ORIGINAL);
        drop(store);
        copy(&path, sessions - DUE - 1).expect("the rows are copied");
        bench.add_due(&path, 0);
        let store = open(&path).expect("the store");
        let waiting = bench.runtime.block_on(store.open_requests(None)).expect("requests");
        if sessions > DUE + 1 {
            bench.check_copy(&store, sessions - DUE - 1);
        }
        drop(store);
        println!("{} waiting sessions, {DUE} of them due; {} MB", waiting.len(), size(&path) / 1_000_000);
        let (mut first, mut next) = search(&bench, &path);
        print_row("finding them in a store that was just opened", &mut first);
        print_row("finding them in an open store (less than 50 ms)", &mut next);
        let mut commands = vec![bench.tick(&path, &[], DUE)];
        for round in 1..COMMANDS {
            bench.add_due(&path, round);
            commands.push(bench.tick(&path, &[], DUE));
        }
        print_row(&format!("`tick` that continues {DUE} sessions to their end"), &mut commands);
        let mut idle: Vec<f64> = (0..COMMANDS).map(|_| bench.tick(&path, &[], 0)).collect();
        print_row("`tick` when nothing is due", &mut idle);
        let mut all: Vec<f64> = (0..COMMANDS).map(|_| bench.tick(&path, &["--unfinished"], 0)).collect();
        print_row("`tick --unfinished`, which reads the list of all sessions", &mut all);
    }
}
