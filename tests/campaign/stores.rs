//! Damaged stores: bytes, pages, lengths, logs and rows that nobody wrote, and databases of other programs. Every command ends in time with
//! an error or with data; what is not damaged is as it was.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rusqlite::types::Value as Sql;
use serde_json::Value;

use crate::attack::{Attack, Case, campaign_directory, ensure};
use crate::kills::{old_answers, old_project};
use crate::process::{Home, fixture};
use crate::program::{Ended, command, run};

pub const ATTACKS: &[Attack] = &[
    Attack { name: "stores/bytes", run: bytes },
    Attack { name: "stores/log", run: log },
    Attack { name: "stores/damaged log", run: damaged_log },
    Attack { name: "stores/rows", run: rows },
    Attack { name: "stores/rows", run: rows },
    Attack { name: "stores/other programs", run: other_programs },
];

/// A project with sessions of every status, and its store with a log that is not yet in the main file.
struct Base {
    home: Home,
    database: Vec<u8>,
    log: Vec<u8>,
    /// The export of a session that is completely in the main file.
    whole: String,
    /// The export of a session that is completely in the log.
    open: String,
}

/// The project is made once, and only read afterwards.
fn base() -> &'static Base {
    static BASE: OnceLock<Base> = OnceLock::new();
    BASE.get_or_init(|| {
        let home = Home::kept_in(campaign_directory());
        old_project(&home);
        home.put("talk.yaml", fs::read_to_string(fixture("short_talk.yaml")).unwrap());
        let rest: String = old_answers().iter().skip(3).map(|answer| format!("{answer}\n")).collect();
        let finished = home.finish(["sessions", "resume", "after_3"], rest);
        assert_eq!(finished.code, Some(0), "{}", finished.err);
        checkpoint(&home.store());
        let mut running = home.start(["run", "talk.yaml", "--json", "--session", "open", "--user", "other"]);
        running.event_of("waiting");
        running.send("小林");
        running.event_of("waiting");
        running.kill();
        let log = fs::read(log_of(&home.store())).unwrap();
        assert!(!log.is_empty(), "the log is there");
        let database = fs::read(home.store()).unwrap();
        let export = |id: &str| {
            let export = home.finish(["sessions", "export", id], "");
            assert_eq!(export.code, Some(0), "{}", export.err);
            export.out
        };
        let (whole, open) = (export("whole"), export("open"));
        Base { home, database, log, whole, open }
    })
}

/// Moves everything from the log into the main file.
fn checkpoint(store: &Path) {
    let store = rusqlite::Connection::open(store).unwrap();
    store.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
}

fn log_of(store: &Path) -> PathBuf {
    PathBuf::from(format!("{}-wal", store.display()))
}

/// A copy of the store for this case.
fn copy(case: &Case, database: &[u8], log: Option<&[u8]>) -> PathBuf {
    let store = case.directory.join("store.db");
    fs::write(&store, database).unwrap();
    if let Some(log) = log {
        fs::write(log_of(&store), log).unwrap();
    }
    store
}

const SESSIONS: [&str; 8] =
    ["whole", "after_0", "after_3", "after_4", "after_6", "effect_open", "loop_stopped", "open"];

/// Runs one of the commands that read a store.
fn read(case: &mut Case, store: &Path, id: &str) -> Result<Ended, String> {
    let base = base();
    let commands: [&[&str]; 13] = [
        &["sessions", "list"],
        &["sessions", "show", id],
        &["sessions", "show", id, "--calls"],
        &["sessions", "export", id],
        &["sessions", "export", id, "--calls"],
        &["sessions", "export", id, "--format", "md"],
        &["sessions", "export", id, "--format", "html"],
        &["sessions", "resume", id],
        &["sessions", "resume", id, "--json", "--after", "2"],
        &["sessions", "resume", id, "--model", "offline", "--budget", "turns=100"],
        &["run", "talk.yaml", "--session", id],
        &["sessions", "delete", id],
        &["sessions", "prune", "--older-than", "1h"],
    ];
    let words = *case.one_of(&commands);
    let arguments = [words, &["--store", store.to_str().unwrap()]].concat();
    let input = "小林\n35\n茶\n好\n是\n好\n好\n";
    let ended = run(command(base.home.path(), &case.directory, &arguments), input);
    ended.orderly()?;
    if ended.code == Some(0) && words[1] == "export" && !words.contains(&"--format") {
        let export: Value = serde_json::from_str(&ended.out)
            .map_err(|error| format!("{}: code 0 and no JSON: {error}", ended.arguments))?;
        ensure(export["version"] == 1, || format!("{}: {export}", ended.arguments))?;
    }
    Ok(ended)
}

/// Runs three commands. The outcome is whether any of them found something wrong.
fn read_three_times(case: &mut Case, store: &Path) -> Result<String, String> {
    let mut errors = 0;
    for _ in 0..3 {
        let id = *case.one_of(&SESSIONS);
        errors += usize::from(matches!(read(case, store, id)?.code, Some(1 | 2)));
    }
    Ok(if errors > 0 { "an error" } else { "data" }.to_owned())
}

/// The size of a page of the store.
const PAGE: usize = 4096;

/// Damages the bytes of a file, at least a page long, in one of many ways, and says how.
fn damage(case: &mut Case, bytes: &mut Vec<u8>) -> &'static str {
    let rng = &mut case.rng;
    let pages = (bytes.len() / PAGE).max(1);
    let page = |number: usize, bytes: &[u8]| (number * PAGE).min(bytes.len())..((number + 1) * PAGE).min(bytes.len());
    match rng.u8(..8) {
        0 => {
            for _ in 0..rng.usize(1..40) {
                let at = rng.usize(..bytes.len());
                bytes[at] = rng.u8(..);
            }
            "single bytes"
        }
        1 => {
            let start = rng.usize(..100);
            rng.fill(&mut bytes[start..100]);
            "the header"
        }
        2 => {
            bytes.truncate(rng.usize(..bytes.len()));
            "cut off"
        }
        3 => {
            let (a, b) = (page(rng.usize(..pages), bytes), page(rng.usize(..pages), bytes));
            let length = a.len().min(b.len());
            let saved = bytes[a.start..a.start + length].to_vec();
            bytes.copy_within(b.start..b.start + length, a.start);
            bytes[b.start..b.start + length].copy_from_slice(&saved);
            "pages exchanged"
        }
        4 => {
            let range = page(rng.usize(..pages), bytes);
            bytes[range].fill(0);
            "an empty page"
        }
        5 => {
            let range = page(rng.usize(..pages), bytes);
            rng.fill(&mut bytes[range]);
            "a page of noise"
        }
        6 => {
            // The header of a page of a tree: its type, the number of its cells and their offsets.
            let start = page(rng.usize(..pages), bytes).start;
            for at in start..(start + 24).min(bytes.len()) {
                if rng.bool() {
                    bytes[at] = *rng.choice([0, 1, 2, 5, 10, 13, 0x7f, 0xff].iter()).unwrap();
                }
            }
            "the header of a page"
        }
        _ => {
            bytes.extend((0..rng.usize(1..3 * PAGE)).map(|_| 0xa5));
            "too long"
        }
    }
}

fn bytes(case: &mut Case) -> Result<String, String> {
    let mut database = base().database.clone();
    let mut how = damage(case, &mut database);
    if database.len() > PAGE && case.rng.u8(..3) == 0 {
        how = damage(case, &mut database);
    }
    let log = case.rng.bool().then(|| base().log.clone());
    let store = copy(case, &database, log.as_deref());
    Ok(format!("{how}: {}", read_three_times(case, &store)?))
}

/// The log is damaged, missing or of another store. What is in the main file is there, or an error says that it is not.
fn log(case: &mut Case) -> Result<String, String> {
    let mut log = base().log.clone();
    let how = match case.rng.u8(..5) {
        0 => "removed",
        1 => {
            log = (0..case.rng.usize(1..20_000)).map(|_| case.rng.u8(..)).collect();
            "noise"
        }
        2 => {
            let half = log.len() / 2;
            log.rotate_left(half);
            "rotated"
        }
        _ => damage(case, &mut log),
    };
    let store = copy(case, &base().database, (how != "removed").then_some(&log));
    let ended = read(case, &store, "whole")?;
    let arguments = ["sessions", "export", "whole", "--store", store.to_str().unwrap()];
    let export = run(command(base().home.path(), &case.directory, &arguments), "");
    export.orderly()?;
    let deleted = ended.arguments.contains("delete") || ended.arguments.contains("prune");
    if export.code == Some(0) {
        ensure(export.out == base().whole, || format!("{how}: a session that is not in the log has changed"))?;
    }
    read_three_times(case, &store)?;
    let outcome = if export.code == Some(0) { "the data" } else { "an error" };
    Ok(format!("{how}: {}", if deleted { "deleted" } else { outcome }))
}

/// The header of a log, and that of each of its frames.
const LOG_HEADER: usize = 32;
const FRAME: usize = PAGE + 24;

/// One bit of the log is wrong, and more of the log follows: what was acknowledged is there, or an error says that it is not.
fn damaged_log(case: &mut Case) -> Result<String, String> {
    let mut log = base().log.clone();
    let before_last = LOG_HEADER + ((log.len() - LOG_HEADER) / FRAME - 1) * FRAME;
    let at = case.rng.usize(..before_last);
    log[at] ^= 1 << case.rng.u8(..8);
    let store = copy(case, &base().database, Some(&log));
    let arguments = ["sessions", "export", "open", "--store", store.to_str().unwrap()];
    for number in 1..=2 {
        let export = run(command(base().home.path(), &case.directory, &arguments), "");
        export.orderly()?;
        let whole = export.code != Some(0) || export.out == base().open;
        ensure(whole, || format!("bit {at} of the log: reading {number} shows less than was acknowledged"))?;
        // Between the two, a command that writes.
        let words = ["sessions", "resume", "open", "--store", store.to_str().unwrap()];
        let resumed = run(command(base().home.path(), &case.directory, &words), "");
        resumed.orderly()?;
    }
    Ok("the data or an error".into())
}

/// A value that no release wrote.
fn strange(case: &mut Case, old: &Sql) -> Sql {
    let text = match old {
        Sql::Text(text) => text.clone(),
        _ => "{}".to_owned(),
    };
    let rng = &mut case.rng;
    match rng.u8(..20) {
        0 => Sql::Null,
        1 => Sql::Integer(i64::MAX),
        2 => Sql::Integer(i64::MIN),
        3 => Sql::Integer(-1),
        4 => Sql::Integer(0),
        5 => Sql::Real(f64::INFINITY),
        6 => Sql::Text(String::new()),
        7 => Sql::Text("[".repeat(200_000)),
        8 => Sql::Text(format!("{}1{}", "{\"a\":".repeat(50_000), "}".repeat(50_000))),
        9 => Sql::Text("好".repeat(1_000_000)),
        10 => Sql::Text("\u{1b}]0;x\u{7}\u{1b}[2J\u{202e}\n\r\0".to_owned()),
        11 => Sql::Blob(vec![0xff; 300]),
        12 => Sql::Text("{\"a\": 1e400, \"b\": -0.0, \"c\": 18446744073709551616}".to_owned()),
        13 => Sql::Text("running".to_owned()),
        14 => Sql::Text("../../../../etc/passwd".to_owned()),
        // What is there, with something else in it.
        15 => Sql::Text(text.replacen(char::is_numeric, "99999999999999999999", 3)),
        16 => Sql::Text(text.replace("true", "null").replace(':', ": [").replace(',', "], ")),
        17 => Sql::Text(text.chars().take(rng.usize(..text.chars().count() + 1)).collect()),
        18 => Sql::Text(text.replace("\"type\":\"", "\"type\":\"un")),
        _ => {
            let mut characters: Vec<char> = text.chars().collect();
            if !characters.is_empty() {
                let at = rng.usize(..characters.len());
                characters[at] = *rng.choice(['"', '{', '}', '0', '\\', '\u{0}', 'é'].iter()).unwrap();
            }
            Sql::Text(characters.into_iter().collect())
        }
    }
}

/// Rows that another program has changed, removed, doubled or invented.
fn rows(case: &mut Case) -> Result<String, String> {
    let store = copy(case, &base().database, Some(&base().log));
    checkpoint(&store);
    let connection = rusqlite::Connection::open(&store).unwrap();
    connection.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON").unwrap();
    let names = |sql: &str, column: &str| -> Vec<String> {
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(column)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let tables = names("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'", "name");
    let mut changed = 0;
    let mut tries = 0;
    while changed == 0 && tries < 50 {
        tries += 1;
        let table = case.one_of(&tables).clone();
        let columns = names(&format!("PRAGMA table_info(\"{table}\")"), "name");
        let column = case.one_of(&columns).clone();
        // Tables with and without row ids are addressed the same way.
        let count: i64 =
            connection.query_row(&format!("SELECT count(*) FROM \"{table}\""), [], |row| row.get(0)).unwrap();
        if count == 0 {
            continue;
        }
        let offset = case.rng.i64(..count);
        let select = format!("SELECT \"{column}\" FROM \"{table}\" LIMIT 1 OFFSET {offset}");
        let old: Sql = connection.query_row(&select, [], |row| row.get(0)).unwrap();
        let sql = match case.rng.u8(..8) {
            0 => format!("DELETE FROM \"{table}\" WHERE \"{column}\" IS ?1"),
            1 => format!("UPDATE \"{table}\" SET \"{column}\" = ?2"),
            2 => format!("DROP TABLE \"{table}\""),
            _ => format!("UPDATE \"{table}\" SET \"{column}\" = ?2 WHERE \"{column}\" IS ?1"),
        };
        let new = strange(case, &old);
        // Some columns are constrained; then another one is tried.
        let uses = [sql.contains("?1"), sql.contains("?2")];
        let result = match uses {
            [true, true] => connection.execute(&sql, [&old, &new]),
            [true, false] => connection.execute(&sql, [&old]),
            [false, true] => connection.execute(&sql.replace("?2", "?1"), [&new]),
            [false, false] => connection.execute(&sql, []),
        };
        changed += usize::from(result.is_ok());
        if result.is_ok() {
            let new: String = format!("{new:?}").chars().take(80).collect();
            fs::write(case.directory.join("changed.txt"), format!("{sql}\n{old:?}\n{new}\n")).unwrap();
        }
    }
    drop(connection);
    read_three_times(case, &store)
}

/// What is not a store of this program is refused and never changed.
fn other_programs(case: &mut Case) -> Result<String, String> {
    let store = case.directory.join("store.db");
    let what = case.rng.u8(..6);
    match what {
        0 => fs::write(&store, "这不是数据库\n".repeat(case.rng.usize(1..2000))).unwrap(),
        1 => fs::write(&store, (0..case.rng.usize(1..9000)).map(|_| case.rng.u8(..)).collect::<Vec<_>>()).unwrap(),
        2 => fs::write(&store, &base().database[..case.rng.usize(1..100)]).unwrap(),
        _ => {
            let other = rusqlite::Connection::open(&store).unwrap();
            let version = case.rng.i32(..);
            let table = case.one_of(&["sessions", "t", "journal", "events", "meta"]);
            other
                .execute_batch(&format!(
                    "CREATE TABLE {table} (id TEXT, x); INSERT INTO {table} VALUES ('open', 1); PRAGMA user_version = {version}"
                ))
                .unwrap();
            if what == 3 {
                other.execute_batch("PRAGMA application_id = 1").unwrap();
            }
        }
    }
    let before = fs::read(&store).unwrap();
    for _ in 0..3 {
        let ended = read(case, &store, "open")?;
        ensure(ended.code != Some(0), || format!("{}: code 0 for another program's file", ended.arguments))?;
        let after = fs::read(&store).unwrap();
        ensure(after == before, || format!("{} changed another program's file", ended.arguments))?;
    }
    Ok("refused".into())
}
