//! The house keeps its floors: who may use whom, who may touch the outside world, how long a file may be.
//!
//! The table below is that of `docs/architecture.md`, and a test compares the two. Each rule is a function over one file,
//! so that the tests at the end can show on a few lines of source that it catches what it forbids.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, missing_docs)]

#[path = "support/rust_source.rs"]
mod rust_source;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rust_source::RustSource;

/// The rooms of `src/` with their floors. A room may use the rooms of lower floors and itself.
const FLOORS: [(&str, u8); 17] = [
    ("source", 1),
    ("value", 1),
    ("schema", 1),
    ("archive", 1),
    ("words", 1),
    ("script", 2),
    ("prompt", 2),
    ("effects", 2),
    ("model", 2),
    ("notebook", 2),
    ("reply", 2),
    ("program", 3),
    ("actions", 4),
    ("check", 4),
    ("run", 4),
    ("engine", 5),
    ("cli", 6),
];

/// The floor from which on the outside world may be touched.
const OUTSIDE_FLOOR: u8 = 5;

/// The folders below it that may touch it too.
const OUTSIDE_FOLDERS: [&str; 4] = ["archive/", "effects/", "model/providers/", "notebook/kernel/"];

/// Paths that lead outside: files, clock, environment, network, processes, chance.
const OUTSIDE: [&str; 23] = [
    "std::fs",
    "std::env",
    "std::net",
    "std::os",
    "std::process",
    "std::io::stdin",
    "std::io::stdout",
    "std::io::stderr",
    "std::time::Instant",
    "std::time::SystemTime",
    "std::thread::sleep",
    "tokio::fs",
    "tokio::net",
    "tokio::process",
    "tokio::signal",
    "tokio::time",
    "jiff::Timestamp::now",
    "jiff::Zoned::now",
    "reqwest",
    "rusqlite",
    "etcetera",
    "fastrand",
    "uuid",
];

/// Methods of `Path` that ask the file system without naming it.
const OUTSIDE_CALLS: [&str; 8] =
    ["exists", "try_exists", "is_file", "is_dir", "is_symlink", "canonicalize", "read_dir", "symlink_metadata"];

const MOST_LINES: usize = 500;

/// A file of the house: its path under `src/`, and what it says.
struct File {
    path: String,
    text: String,
    source: RustSource,
    /// The whole file is compiled for tests only.
    only_tests: bool,
}

impl File {
    fn new(path: &str, text: &str) -> Self {
        Self { path: path.into(), text: text.into(), source: RustSource::new(text), only_tests: false }
    }

    /// The room that the file stands in; `None` for `lib.rs` and `main.rs`.
    fn room(&self) -> Option<&str> {
        self.path.split_once('/').map(|(room, _)| room)
    }

    fn is_kind(&self) -> bool {
        self.path.starts_with("actions/") && self.source.has("impl Kind for")
    }

    fn module(&self) -> String {
        let path = self.path.strip_suffix(".rs").unwrap_or(&self.path);
        path.strip_suffix("/mod").unwrap_or(path).replace('/', "::")
    }
}

fn floor(room: &str) -> Option<u8> {
    FLOORS.iter().find(|(name, _)| *name == room).map(|(_, floor)| *floor)
}

/// Whether `path` is `of` or lies inside it.
fn within(path: &str, of: &str) -> bool {
    path.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Arrows that the table does not allow.
fn arrows(file: &File, found: &mut Vec<String>) {
    let Some(room) = file.room() else { return };
    let Some(own) = floor(room) else {
        found.push(format!("{}: the room `{room}` stands on no floor of the table", file.path));
        return;
    };
    for named in file.source.paths() {
        let Some(to) = named.path.strip_prefix("crate::").or_else(|| named.path.strip_prefix("bcc_script::")) else {
            continue;
        };
        let other = to.split("::").next().unwrap_or(to);
        match floor(other) {
            _ if other == room => {}
            Some(below) if below < own => {}
            Some(floor) => found.push(format!(
                "{}:{}: `{room}` (F{own}) uses `{other}` (F{floor}): {}",
                file.path, named.line, named.path
            )),
            None => found.push(format!("{}:{}: `{}` names no room", file.path, named.line, named.path)),
        }
    }
}

/// Paths that are not written out, and re-exports that hide where a thing lives.
fn true_paths(file: &File, found: &mut Vec<String>) {
    if file.only_tests {
        return;
    }
    for named in file.source.paths().iter().filter(|named| !named.in_test) {
        let place = format!("{}:{}", file.path, named.line);
        if within(&named.path, "super") {
            found.push(format!("{place}: `{}` outside tests; write the path from `crate::`", named.path));
        }
        if named.re_export && file.path != "lib.rs" {
            found.push(format!("{place}: `pub use {}` hides where a thing lives", named.path));
        }
    }
}

/// Below its floor, nobody but the rooms made for it touches the outside world. Tests may.
fn outside(file: &File, found: &mut Vec<String>) {
    let Some(room) = file.room() else { return };
    let allowed = OUTSIDE_FOLDERS.iter().any(|folder| file.path.starts_with(folder));
    if file.only_tests || allowed || floor(room).is_some_and(|floor| floor >= OUTSIDE_FLOOR) {
        return;
    }
    for named in file.source.paths().iter().filter(|named| !named.in_test) {
        let glob = named.path.strip_suffix("::*");
        let leads = |outside: &&&str| within(&named.path, outside) || glob.is_some_and(|of| within(outside, of));
        if let Some(outside) = OUTSIDE.iter().find(leads) {
            found.push(format!("{}:{}: `{}` leads outside ({outside})", file.path, named.line, named.path));
        }
    }
    for call in OUTSIDE_CALLS {
        for line in file.source.calls_of(call) {
            found.push(format!("{}:{line}: `.{call}()` asks the file system", file.path));
        }
    }
}

/// A kind is named by the list of kinds and by nobody else.
fn kinds(file: &File, all: &[String], found: &mut Vec<String>) {
    for named in file.source.paths() {
        let Some(path) = named.path.strip_prefix("crate::") else { continue };
        let kind = all.iter().find(|kind| within(path, kind) && !within(&file.module(), kind));
        if let Some(kind) = kind {
            found.push(format!("{}:{}: names the kind `{kind}`", file.path, named.line));
        }
    }
}

/// A file is no longer than the wall, and says first what it does.
fn shape(file: &File, found: &mut Vec<String>) {
    let lines = file.text.lines().count();
    if lines > MOST_LINES {
        found.push(format!("{}: {lines} lines, more than {MOST_LINES}", file.path));
    }
    if !file.text.starts_with("//! ") {
        found.push(format!("{}: its first line does not say what the file does (`//! …`)", file.path));
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The `.rs` files under `folder` of the repository, by their paths in it.
fn rust_files(folder: &str) -> Vec<File> {
    fn walk(folder: &Path, paths: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, paths);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                paths.push(path);
            }
        }
    }
    let base = root().join(folder);
    let mut paths = Vec::new();
    if base.is_dir() {
        walk(&base, &mut paths);
    }
    paths.sort();
    let name = |path: &Path| path.strip_prefix(&base).unwrap().to_string_lossy().replace('\\', "/");
    let mut files: Vec<File> =
        paths.iter().map(|path| File::new(&name(path), &fs::read_to_string(path).unwrap())).collect();
    let only_tests: BTreeSet<String> = files
        .iter()
        .flat_map(|file| file.source.test_modules.iter().map(|name| format!("{}::{name}", file.module())))
        .collect();
    for file in &mut files {
        file.only_tests = only_tests.iter().any(|module| within(&file.module(), module));
    }
    files
}

fn house() -> Vec<File> {
    let files = rust_files("src");
    assert!(files.len() > 100, "only {} files found", files.len());
    files
}

fn kinds_of(files: &[File]) -> Vec<String> {
    files.iter().filter(|file| file.is_kind()).map(File::module).collect()
}

fn none_of(found: Vec<String>) {
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

fn each(rule: fn(&File, &mut Vec<String>)) -> Vec<String> {
    let mut found = Vec::new();
    house().iter().for_each(|file| rule(file, &mut found));
    found
}

#[test]
fn a_room_uses_only_the_rooms_below_it() {
    none_of(each(arrows));
}

#[test]
fn paths_are_written_out_and_nothing_is_re_exported() {
    none_of(each(true_paths));
}

#[test]
fn only_the_rooms_made_for_it_touch_the_outside_world() {
    none_of(each(outside));
}

#[test]
fn a_kind_is_named_by_the_list_of_kinds_only() {
    let files = house();
    let all = kinds_of(&files);
    assert!(all.len() >= 5, "{all:?}");
    let mut found = Vec::new();
    files.iter().filter(|file| file.path != "actions/mod.rs").for_each(|file| kinds(file, &all, &mut found));
    // `mod.rs` names them by their modules, which are its own.
    none_of(found);
}

#[test]
fn every_file_says_what_it_does_and_ends_before_the_wall() {
    let mut found = Vec::new();
    for folder in ["src", "tests", "benches", "examples"] {
        rust_files(folder).iter().for_each(|file| shape(file, &mut found));
    }
    none_of(found);
}

#[test]
fn every_room_stands_in_the_table_and_in_the_architecture_page() {
    let mut rooms: Vec<String> = fs::read_dir(root().join("src"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    rooms.sort();
    let mut table: Vec<String> = FLOORS.iter().map(|(room, _)| (*room).to_owned()).collect();
    table.sort();
    assert_eq!(rooms, table);

    // Rows of the page: | F1 | `source/` | …
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let rows = page.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| F")?.split('|').map(str::trim);
        let floor: u8 = cells.next()?.parse().ok()?;
        Some((cells.next()?.strip_prefix('`')?.strip_suffix("/`")?.to_owned(), floor))
    });
    let expected: Vec<(String, u8)> = FLOORS.iter().map(|(room, floor)| ((*room).to_owned(), *floor)).collect();
    assert_eq!(rows.collect::<Vec<_>>(), expected);
}

/// What `rule` says of a file at `path` with this text.
fn told(rule: fn(&File, &mut Vec<String>), path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    rule(&File::new(path, text), &mut found);
    found
}

#[test]
fn the_rule_of_floors_sees_every_way_to_write_a_path() {
    let wrong = [
        ("prompt/text.rs", "use crate::engine::engine::Engine;"),
        ("prompt/text.rs", "use crate::{value::scopes::Scope, reply::read::read};"),
        ("prompt/text.rs", "use crate::{\n    value::{self, scopes::Scope},\n    run::{session::{Pause}},\n};"),
        ("reply/read.rs", "fn f(model: &crate::model::request::Task) {}"),
        ("script/read.rs", "use crate::program as p; fn f() { p::kind::name() }"),
        ("run/load.rs", "use crate::check::check::check;"),
        ("source/text.rs", "use crate::value::scopes::Scope;"),
        ("source/text.rs", "#[cfg(test)]\nmod tests { use crate::cli::run::run; }"),
        ("attic/text.rs", "fn f() {}"),
        ("source/text.rs", "use crate::attic::x;"),
    ];
    for (path, text) in wrong {
        assert!(!told(arrows, path, text).is_empty(), "{path}: {text}");
    }
    let right = [
        ("engine/engine.rs", "use crate::run::session::Session; use crate::source::text::SourceFile;"),
        ("run/load.rs", "use crate::run::head::Head; fn f() { crate::program::turn::message_id(1, 0); }"),
        ("source/text.rs", "// use crate::cli::exit::Exit;\n/* crate::cli /* crate::run */ crate::cli */\nfn f() {}"),
        ("source/text.rs", "const A: &str = \"crate::cli::x\"; const B: &str = r#\"\"crate::run::x\"\"#;"),
        (
            "source/text.rs",
            "fn f<'a>(x: &'a str) -> char { if x.is_empty() { '\\'' } else { '\"' } } // \"crate::cli::x",
        ),
        ("main.rs", "fn main() { bcc_script::cli::cli::main(); }"),
    ];
    for (path, text) in right {
        assert!(told(arrows, path, text).is_empty(), "{path}: {text}: {:?}", told(arrows, path, text));
    }
}

#[test]
fn the_rule_of_true_paths_leaves_tests_alone() {
    let tests = "fn f() {}\n#[cfg(test)]\nmod tests {\n    use super::*;\n    fn g() { super::f() }\n}\n";
    assert!(told(true_paths, "run/load.rs", tests).is_empty());
    assert_eq!(told(true_paths, "run/load.rs", &format!("{tests}use super::head::Head;")).len(), 1);
    assert_eq!(told(true_paths, "run/load.rs", "use super::*;").len(), 1);
    assert_eq!(told(true_paths, "run/load.rs", "fn f() { super::head::new() }").len(), 1);
    assert_eq!(told(true_paths, "run/mod.rs", "pub mod head;\npub(crate) use head::Head;").len(), 1);
    assert_eq!(told(true_paths, "run/mod.rs", "#[doc(inline)]\npub use crate::run::head::*;").len(), 1);
    assert!(told(true_paths, "lib.rs", "pub use crate::run::head::Head;").is_empty());
    assert!(told(true_paths, "run/mod.rs", "pub mod head;\nuse crate::run::head::Head;").is_empty());
}

#[test]
fn the_rule_of_the_outside_world_sees_through_names() {
    let wrong = [
        "use std::fs;",
        "use std::{collections::BTreeMap, env};",
        "use std::time::{Duration, Instant};",
        "use std::time as t; fn f() { t::SystemTime::now(); }",
        "use std::time::*;",
        "use std::io; fn f() { io::stdin(); }",
        "use jiff::Timestamp; fn f() { Timestamp::now(); }",
        "use tokio::time::sleep;",
        "fn f() { reqwest::get(\"x\"); }",
        "fn f() { fastrand::u32(..); }",
        "fn f(path: &std::path::Path) -> bool { path.exists() }",
        "#[cfg(test)]\nmod tests;\nuse std::fs;",
    ];
    for text in wrong {
        assert_eq!(
            told(outside, "prompt/text.rs", text).len(),
            1,
            "{text}: {:?}",
            told(outside, "prompt/text.rs", text)
        );
        assert_eq!(told(outside, "model/request.rs", text).len(), 1, "{text}");
        for path in ["engine/files.rs", "cli/run.rs", "archive/sqlite/open.rs", "model/providers/openai.rs"] {
            assert!(told(outside, path, text).is_empty(), "{path}: {text}");
        }
    }
    let right = [
        "use std::time::Duration; use std::io::{self, Read}; fn f() -> io::Result<()> { Ok(()) }",
        "use jiff::Timestamp; fn f(t: Timestamp) -> String { t.to_string() }",
        "#[cfg(test)]\nmod tests {\n    use std::{fs, time::Instant};\n    fn f() { std::env::temp_dir().exists(); }\n}",
        "#[cfg(test)]\nuse std::fs;",
        "// std::fs\nconst A: &str = \"std::env\";",
    ];
    for text in right {
        assert!(
            told(outside, "prompt/text.rs", text).is_empty(),
            "{text}: {:?}",
            told(outside, "prompt/text.rs", text)
        );
    }
}

#[test]
fn the_rule_of_kinds_finds_one_action_that_names_another() {
    let kind =
        |name: &str, body: &str| File::new(&format!("actions/{name}.rs"), &format!("impl Kind for K {{}} {body}"));
    let shared = File::new("actions/assignments.rs", "fn assign() {}");
    let files = [
        kind("ask", "use crate::actions::assignments::assign; use crate::actions::ask::Rounds;"),
        kind("say", "use crate::actions::ask::Rounds;"),
        kind("note/mod", "fn f() { crate::actions::say::words(); }"),
        kind("think", "use crate::actions::{assignments, note::cell};"),
        kind("asking", ""),
        shared,
    ];
    let all = kinds_of(&files);
    assert_eq!(all, ["actions::ask", "actions::say", "actions::note", "actions::think", "actions::asking"]);
    let told = |file: &File| {
        let mut found = Vec::new();
        kinds(file, &all, &mut found);
        found.len()
    };
    assert_eq!(files.iter().map(told).collect::<Vec<_>>(), [0, 1, 1, 1, 0, 0]);
    assert_eq!(told(&File::new("engine/engine.rs", "use crate::actions::KINDS;")), 0);
    assert_eq!(told(&File::new("engine/engine.rs", "use crate::actions::ask::Ask;")), 1);
}

#[test]
fn the_rule_of_shape_counts_lines_and_reads_the_first() {
    let long = format!("//! A file.\n{}", "\n".repeat(MOST_LINES));
    assert_eq!(told(shape, "run/load.rs", &long).len(), 1);
    assert_eq!(told(shape, "run/load.rs", "use std::fmt;").len(), 1);
    assert!(told(shape, "run/load.rs", &long[..long.len() - 1]).is_empty());
}
