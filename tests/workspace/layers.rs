//! The workspace keeps its layers: which crate uses which is Cargo's to enforce and compared here with docs/architecture.md; who may touch
//! the outside world, how long a file may be and how large a circle of imports, is checked here.
//!
//! Each rule is a function over one file, so that the tests at the end can show on a few lines of source that it catches what it
//! forbids.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::rust_source::{self, RustSource};

/// Files that may re-export: the public names of the whole, and the macros of messages, which are used with the types that they
/// make.
const RE_EXPORTS: [&str; 2] = ["src/lib.rs", "crates/lang/src/message/mod.rs"];

/// The crates in the order of docs/architecture.md. A crate uses only crates that stand before it.
const CRATES: [&str; 8] = ["macros", "lang", "llm", "store", "runtime", "check", "engine", "authoring"];

/// The crates that may touch the outside world, and the folders of others that may.
const OUTSIDE_PLACES: [&str; 8] = [
    "src/",
    "crates/authoring/",
    "crates/engine/",
    "crates/store/",
    "crates/llm/src/http/",
    "crates/llm/src/providers/",
    "crates/runtime/src/effects/",
    "crates/runtime/src/notebook/kernel/",
];

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

/// The largest circle of imports: files that all need one another.
const LARGEST_CIRCLE: usize = 6;

/// The list of kinds, which alone names them.
const KINDS_FILE: &str = "crates/runtime/src/actions/mod.rs";

/// A file of the workspace: its path in the repository, and what it says.
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

    /// The crate's `src/` folder.
    fn crate_root(&self) -> &str {
        self.path.find("src/").map_or("", |at| &self.path[..at + 4])
    }

    fn is_kind(&self) -> bool {
        self.path.starts_with("crates/runtime/src/actions/") && self.source.has("impl Kind for")
    }

    /// Its module, as `crate::run::session`.
    fn module(&self) -> String {
        let path = self.path.strip_prefix(self.crate_root()).unwrap_or(&self.path);
        let path = path.strip_suffix(".rs").unwrap_or(path);
        match path.strip_suffix("/mod").unwrap_or(path) {
            "lib" | "main" => "crate".into(),
            path => format!("crate::{}", path.replace('/', "::")),
        }
    }
}

/// Whether `path` is `of` or lies inside it.
fn within(path: &str, of: &str) -> bool {
    path.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
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
        if named.re_export && !RE_EXPORTS.contains(&file.path.as_str()) {
            found.push(format!("{place}: `pub use {}` hides where a thing lives", named.path));
        }
    }
}

/// Only what is made for it touches the outside world. Tests may.
fn outside(file: &File, found: &mut Vec<String>) {
    if file.only_tests || OUTSIDE_PLACES.iter().any(|place| file.path.starts_with(place)) {
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
        let path = named.path.replacen("bcc_runtime::", "crate::", 1);
        let kind = all.iter().find(|kind| within(&path, kind) && !within(&file.module(), kind));
        if let Some(kind) = kind {
            found.push(format!("{}:{}: names the kind `{kind}`", file.path, named.line));
        }
    }
}

/// A file is no longer than the limit, and says first what it does.
fn shape(file: &File, found: &mut Vec<String>) {
    let lines = file.text.lines().count();
    if lines > MOST_LINES {
        found.push(format!("{}: {lines} lines, more than {MOST_LINES}", file.path));
    }
    if !file.text.starts_with("//! ") {
        found.push(format!("{}: its first line does not say what the file does (`//! …`)", file.path));
    }
}

/// The circles of imports among the files of one crate that are larger than [`LARGEST_CIRCLE`].
fn circles(files: &[&File], found: &mut Vec<String>) {
    let modules: BTreeMap<String, usize> = files.iter().enumerate().map(|(at, file)| (file.module(), at)).collect();
    let used = |file: &File| -> BTreeSet<usize> {
        let paths = file.source.paths().into_iter().filter(|named| !named.in_test);
        let module = |named: rust_source::Named| {
            let ends = named.path.match_indices("::").map(|(at, _)| at).chain([named.path.len()]);
            ends.filter_map(|end| modules.get(&named.path[..end]).copied()).last()
        };
        // What only lists modules is used by everybody inside and uses nothing.
        paths.filter_map(module).filter(|at| files[*at].module() != "crate").collect()
    };
    let edges: Vec<BTreeSet<usize>> = files.iter().map(|file| used(file)).collect();
    let reach = |from: usize| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(at) = open.pop() {
            open.extend(edges[at].iter().filter(|next| seen.insert(**next)));
        }
        seen
    };
    let reached: Vec<BTreeSet<usize>> = (0..files.len()).map(reach).collect();
    let mut told = BTreeSet::new();
    for at in 0..files.len() {
        let circle: Vec<usize> = reached[at].iter().copied().filter(|other| reached[*other].contains(&at)).collect();
        if circle.len() > LARGEST_CIRCLE && told.insert(circle.clone()) {
            let names: Vec<&str> = circle.iter().map(|at| files[*at].path.as_str()).collect();
            found.push(format!("{} files import one another in a circle:\n  {}", names.len(), names.join("\n  ")));
        }
    }
}

fn root() -> &'static Path {
    Path::new(crate::ROOT)
}

/// The `.rs` files of the workspace.
fn workspace() -> Vec<File> {
    let texts = rust_source::files(root());
    let only_tests = rust_source::only_tests(&texts);
    let mut files: Vec<File> = texts.iter().map(|(path, text)| File::new(path, text)).collect();
    for file in &mut files {
        file.only_tests = only_tests.contains(&file.path);
    }
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
    workspace().iter().for_each(|file| rule(file, &mut found));
    found
}

#[test]
fn a_crate_uses_only_the_crates_before_it_in_the_architecture_page() {
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |").map(|(name, _)| name));
    let listed: Vec<&str> = rows.filter(|name| root().join("crates").join(name).is_dir()).collect();
    assert_eq!(listed, CRATES);
    let mut folders: Vec<String> = fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    folders.sort();
    let mut table = CRATES.to_vec();
    table.sort_unstable();
    assert_eq!(folders, table);
    for (place, name) in CRATES.iter().enumerate() {
        let manifest = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = toml::from_str(&manifest).unwrap();
        let own = manifest["dependencies"].as_table().unwrap().keys().filter_map(|name| name.strip_prefix("bcc-"));
        for other in own {
            assert!(CRATES[..place].contains(&other), "`{name}` uses `{other}`, which does not stand before it");
        }
    }
}

#[test]
fn paths_are_written_out_and_nothing_is_re_exported() {
    none_of(each(true_paths));
}

#[test]
fn only_what_is_made_for_it_touches_the_outside_world() {
    none_of(each(outside));
}

#[test]
fn a_kind_is_named_by_the_list_of_kinds_only() {
    let files = workspace();
    let all = kinds_of(&files);
    assert!(all.len() >= 5, "{all:?}");
    let mut found = Vec::new();
    files.iter().filter(|file| file.path != KINDS_FILE).for_each(|file| kinds(file, &all, &mut found));
    none_of(found);
}

#[test]
fn every_file_says_what_it_does_and_ends_before_the_limit() {
    let mut found = each(shape);
    for folder in ["tests", "benches", "examples"] {
        for (path, text) in rust_source::files_below(root(), folder) {
            shape(&File::new(&path, &text), &mut found);
        }
    }
    none_of(found);
}

#[test]
fn no_circle_of_imports_is_large() {
    let files = workspace();
    let mut crates: BTreeMap<&str, Vec<&File>> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.only_tests) {
        crates.entry(file.crate_root()).or_default().push(file);
    }
    let mut found = Vec::new();
    crates.values().for_each(|files| circles(files, &mut found));
    none_of(found);
}

/// What `rule` says of a file at `path` with this text.
fn told(rule: fn(&File, &mut Vec<String>), path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    rule(&File::new(path, text), &mut found);
    found
}

#[test]
fn the_rule_of_circles_sees_every_way_to_write_a_path() {
    let chain = |last: &str| -> Vec<File> {
        let to = |at: usize| format!("use crate::a{}::x;", (at + 1) % 7);
        (0..7).map(|at| File::new(&format!("src/a{at}.rs"), &if at == 6 { last.into() } else { to(at) })).collect()
    };
    let told = |last: &str| {
        let (files, mut found) = (chain(last), Vec::new());
        circles(&files.iter().collect::<Vec<_>>(), &mut found);
        found.len()
    };
    for closed in [
        "use crate::a0::x;",
        "use crate::{a5::y, a0::{self, deep::X}};",
        "fn f(x: &crate::a0::X) {}",
        "use crate::a0 as other; fn f() { other::x() }",
    ] {
        assert_eq!(told(closed), 1, "{closed}");
    }
    for open in
        ["fn f() {}", "use crate::a1::x;", "// use crate::a0::x;", "#[cfg(test)]\nmod tests { use crate::a0::x; }"]
    {
        assert_eq!(told(open), 0, "{open}");
    }
}

#[test]
fn the_rule_of_true_paths_leaves_tests_alone() {
    let tests = "fn f() {}\n#[cfg(test)]\nmod tests {\n    use super::*;\n    fn g() { super::f() }\n}\n";
    assert!(told(true_paths, "crates/runtime/src/run/load.rs", tests).is_empty());
    assert_eq!(told(true_paths, "crates/runtime/src/run/load.rs", &format!("{tests}use super::head::Head;")).len(), 1);
    assert_eq!(told(true_paths, "crates/runtime/src/run/load.rs", "use super::*;").len(), 1);
    assert_eq!(told(true_paths, "crates/runtime/src/run/load.rs", "fn f() { super::head::new() }").len(), 1);
    assert_eq!(told(true_paths, "crates/runtime/src/run/mod.rs", "pub mod head;\npub(crate) use head::Head;").len(), 1);
    assert_eq!(
        told(true_paths, "crates/runtime/src/run/mod.rs", "#[doc(inline)]\npub use crate::run::head::*;").len(),
        1
    );
    assert!(told(true_paths, "src/lib.rs", "pub use crate::run::head::Head;").is_empty());
    assert!(told(true_paths, "crates/runtime/src/run/mod.rs", "pub mod head;\nuse crate::run::head::Head;").is_empty());
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
            told(outside, "crates/lang/src/template/text.rs", text).len(),
            1,
            "{text}: {:?}",
            told(outside, "crates/lang/src/template/text.rs", text)
        );
        assert_eq!(told(outside, "crates/llm/src/model/request.rs", text).len(), 1, "{text}");
        for path in [
            "crates/engine/src/files.rs",
            "src/cli/run.rs",
            "crates/store/src/sqlite/open.rs",
            "crates/llm/src/providers/openai.rs",
        ] {
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
            told(outside, "crates/lang/src/template/text.rs", text).is_empty(),
            "{text}: {:?}",
            told(outside, "crates/lang/src/template/text.rs", text)
        );
    }
}

#[test]
fn the_rule_of_kinds_finds_one_action_that_names_another() {
    let kind = |name: &str, body: &str| {
        File::new(&format!("crates/runtime/src/actions/{name}.rs"), &format!("impl Kind for K {{}} {body}"))
    };
    let shared = File::new("crates/runtime/src/actions/assignments.rs", "fn assign() {}");
    let files = [
        kind("ask", "use crate::actions::assignments::assign; use crate::actions::ask::Rounds;"),
        kind("say", "use crate::actions::ask::Rounds;"),
        kind("note/mod", "fn f() { crate::actions::say::words(); }"),
        kind("think", "use crate::actions::{assignments, note::cell};"),
        kind("asking", ""),
        shared,
    ];
    let all = kinds_of(&files);
    assert_eq!(all, ["ask", "say", "note", "think", "asking"].map(|kind| format!("crate::actions::{kind}")));
    let told = |file: &File| {
        let mut found = Vec::new();
        kinds(file, &all, &mut found);
        found.len()
    };
    assert_eq!(files.iter().map(told).collect::<Vec<_>>(), [0, 1, 1, 1, 0, 0]);
    assert_eq!(told(&File::new("crates/engine/src/pin.rs", "use bcc_runtime::actions::KINDS;")), 0);
    assert_eq!(told(&File::new("crates/engine/src/pin.rs", "use bcc_runtime::actions::ask::Ask;")), 1);
}

#[test]
fn the_rule_of_shape_counts_lines_and_reads_the_first() {
    let long = format!("//! A file.\n{}", "\n".repeat(MOST_LINES));
    assert_eq!(told(shape, "crates/runtime/src/run/load.rs", &long).len(), 1);
    assert_eq!(told(shape, "crates/runtime/src/run/load.rs", "use std::fmt;").len(), 1);
    assert!(told(shape, "crates/runtime/src/run/load.rs", &long[..long.len() - 1]).is_empty());
}
