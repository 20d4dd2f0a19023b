//! Tests of the layers of the workspace: the dependencies of the crates are compared with docs/architecture.md, and access to the host,
//! the length of files and the size of import cycles are checked.
//!
//! Each rule is a function over one file, so that the tests at the end can show on a few lines of source that it catches what it
//! forbids.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::rust_source::{self, RustSource};

/// Files that may re-export: the public names of the library, and the macros of messages, which are used with the types that they
/// create.
const RE_EXPORTS: [&str; 2] = ["src/lib.rs", "crates/lang/src/message/mod.rs"];

/// The crates in the order of docs/architecture.md. A crate uses only crates before it.
const CRATES: [&str; 10] =
    ["macros", "lang", "llm", "store", "runtime", "check", "engine", "tools", "authoring", "server"];

/// The crates that may access the host, and the folders of other crates that may.
const HOST_ACCESS_FOLDERS: [&str; 10] = [
    "src/",
    "crates/server/",
    "crates/tools/",
    "crates/authoring/",
    "crates/engine/",
    "crates/store/",
    "crates/llm/src/http/",
    "crates/llm/src/providers/",
    "crates/runtime/src/effects/",
    "crates/runtime/src/notebook/kernel/",
];

/// Paths that access the host: files, clock, environment, network, processes, random numbers.
const HOST_PATHS: [&str; 23] = [
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

/// Methods of `Path` that access the file system.
const HOST_CALLS: [&str; 8] =
    ["exists", "try_exists", "is_file", "is_dir", "is_symlink", "canonicalize", "read_dir", "symlink_metadata"];

/// Functions and types of the standard library that open files. `std::fs` as a whole may be imported.
const OPENING: [&str; 6] = [
    "std::fs::File",
    "std::fs::OpenOptions",
    "std::fs::read",
    "std::fs::read_to_string",
    "std::fs::write",
    "std::fs::copy",
];

/// The files that open files. All others call them, so that no link leads out of a project, and no pipe blocks.
const OPENING_FILES: [&str; 15] = [
    "crates/engine/src/files.rs",
    "crates/engine/src/files/",
    "crates/engine/src/recording.rs",
    "crates/engine/src/trust.rs",
    "crates/runtime/src/effects/descendants.rs",
    "crates/runtime/src/effects/process.rs",
    "crates/runtime/src/notebook/kernel/directory.rs",
    "crates/runtime/src/notebook/kernel/process.rs",
    "crates/runtime/src/notebook/kernel/specs.rs",
    "crates/store/src/sqlite/damage.rs",
    "crates/store/src/sqlite/disk.rs",
    "crates/store/src/sqlite/image.rs",
    "crates/store/src/sqlite/in_use.rs",
    "crates/store/src/sqlite/locks/",
    "crates/store/src/sqlite/wal.rs",
];

const MAX_LINES: usize = 500;

/// The maximum number of files in an import cycle.
const MAX_CYCLE_FILES: usize = 6;

/// The list of kinds, the only file that may name them.
const KINDS_FILE: &str = "crates/runtime/src/actions/mod.rs";

/// A file of the workspace: its path in the repository, and its text.
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

/// Whether `path` is `parent` or inside of it.
fn is_inside(path: &str, parent: &str) -> bool {
    path.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Finds paths that are not written out, and re-exports that hide where an item is defined.
fn explicit_paths(file: &File, found: &mut Vec<String>) {
    if file.only_tests {
        return;
    }
    for named_path in file.source.paths().iter().filter(|named_path| !named_path.in_test) {
        let place = format!("{}:{}", file.path, named_path.line);
        if is_inside(&named_path.path, "super") {
            found.push(format!("{place}: `{}` outside tests; write the path from `crate::`", named_path.path));
        }
        if named_path.re_export && !RE_EXPORTS.contains(&file.path.as_str()) {
            found.push(format!("{place}: `pub use {}` hides where a thing lives", named_path.path));
        }
    }
}

/// Finds host access outside of the allowed folders. Tests may access the host.
fn host_access(file: &File, found: &mut Vec<String>) {
    if file.only_tests || HOST_ACCESS_FOLDERS.iter().any(|place| file.path.starts_with(place)) {
        return;
    }
    for named_path in file.source.paths().iter().filter(|named_path| !named_path.in_test) {
        let glob = named_path.path.strip_suffix("::*");
        let is_host_path = |host_path: &&&str| {
            is_inside(&named_path.path, host_path) || glob.is_some_and(|prefix| is_inside(host_path, prefix))
        };
        if let Some(host_path) = HOST_PATHS.iter().find(is_host_path) {
            found.push(format!("{}:{}: `{}` leads outside ({host_path})", file.path, named_path.line, named_path.path));
        }
    }
    for call in HOST_CALLS {
        for line in file.source.calls_of(call) {
            found.push(format!("{}:{line}: `.{call}()` asks the file system", file.path));
        }
    }
}

/// Finds files that open files themselves. Tests may do so.
fn opening(file: &File, found: &mut Vec<String>) {
    if file.only_tests || OPENING_FILES.iter().any(|place| file.path.starts_with(place)) {
        return;
    }
    for named_path in file.source.paths().iter().filter(|named_path| !named_path.in_test) {
        if OPENING.iter().any(|opening| is_inside(&named_path.path, opening)) {
            let (path, line, used) = (&file.path, named_path.line, &named_path.path);
            found.push(format!("{path}:{line}: `{used}`; use crates/engine/src/files/ instead"));
        }
    }
}

/// Finds kinds that are named outside of the list of kinds.
fn kinds(file: &File, all: &[String], found: &mut Vec<String>) {
    for named_path in file.source.paths() {
        let path = named_path.path.replacen("bcc_runtime::", "crate::", 1);
        let kind = all.iter().find(|kind| is_inside(&path, kind) && !is_inside(&file.module(), kind));
        if let Some(kind) = kind {
            found.push(format!("{}:{}: names the kind `{kind}`", file.path, named_path.line));
        }
    }
}

/// Checks that a file is within the limit and starts with a description.
fn shape(file: &File, found: &mut Vec<String>) {
    let lines = file.text.lines().count();
    if lines > MAX_LINES {
        found.push(format!("{}: {lines} lines, more than {MAX_LINES}", file.path));
    }
    if !file.text.starts_with("//! ") {
        found.push(format!("{}: its first line does not say what the file does (`//! …`)", file.path));
    }
}

/// Finds import cycles in one crate with more than [`MAX_CYCLE_FILES`] files.
fn cycles(files: &[&File], found: &mut Vec<String>) {
    let modules: BTreeMap<String, usize> = files.iter().enumerate().map(|(at, file)| (file.module(), at)).collect();
    let used = |file: &File| -> BTreeSet<usize> {
        let paths = file.source.paths().into_iter().filter(|named_path| !named_path.in_test);
        let module = |named_path: rust_source::NamedPath| {
            let ends = named_path.path.match_indices("::").map(|(at, _)| at).chain([named_path.path.len()]);
            ends.filter_map(|end| modules.get(&named_path.path[..end]).copied()).last()
        };
        // A file that only lists modules uses nothing itself, so it is not a part of a cycle.
        paths.filter_map(module).filter(|at| files[*at].module() != "crate").collect()
    };
    let edges: Vec<BTreeSet<usize>> = files.iter().map(|file| used(file)).collect();
    let reach = |from: usize| {
        let (mut seen, mut pending) = (BTreeSet::new(), vec![from]);
        while let Some(at) = pending.pop() {
            pending.extend(edges[at].iter().filter(|next| seen.insert(**next)));
        }
        seen
    };
    let reached: Vec<BTreeSet<usize>> = (0..files.len()).map(reach).collect();
    let mut reported = BTreeSet::new();
    for at in 0..files.len() {
        let cycle: Vec<usize> = reached[at].iter().copied().filter(|other| reached[*other].contains(&at)).collect();
        if cycle.len() > MAX_CYCLE_FILES && reported.insert(cycle.clone()) {
            let names: Vec<&str> = cycle.iter().map(|at| files[*at].path.as_str()).collect();
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

fn assert_none(found: Vec<String>) {
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
    assert_none(each(explicit_paths));
}

#[test]
fn only_the_allowed_folders_access_the_host() {
    assert_none(each(host_access));
}

#[test]
fn files_are_opened_in_one_way() {
    assert_none(each(opening));
    for text in [
        "use std::fs; fn f() { fs::read(p) }",
        "use std::fs::File; fn f() { File::open(p) }",
        "fn f() { std::fs::write(p, b) }",
    ] {
        assert!(!violations(opening, "crates/authoring/src/a.rs", text).is_empty(), "{text}");
    }
    for text in ["use std::fs; fn f() { fs::read_dir(p) }", "#[cfg(test)]\nmod tests { fn f() { std::fs::read(p) } }"] {
        assert_eq!(violations(opening, "crates/authoring/src/a.rs", text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn a_kind_is_named_by_the_list_of_kinds_only() {
    let files = workspace();
    let all = kinds_of(&files);
    assert!(all.len() >= 5, "{all:?}");
    let mut found = Vec::new();
    files.iter().filter(|file| file.path != KINDS_FILE).for_each(|file| kinds(file, &all, &mut found));
    assert_none(found);
}

#[test]
fn every_file_has_a_description_and_is_within_the_limit() {
    let mut found = each(shape);
    for folder in ["tests", "benches", "examples"] {
        for (path, text) in rust_source::files_below(root(), folder) {
            shape(&File::new(&path, &text), &mut found);
        }
    }
    assert_none(found);
}

#[test]
fn no_import_cycle_is_large() {
    let files = workspace();
    let mut crates: BTreeMap<&str, Vec<&File>> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.only_tests) {
        crates.entry(file.crate_root()).or_default().push(file);
    }
    let mut found = Vec::new();
    crates.values().for_each(|files| cycles(files, &mut found));
    assert_none(found);
}

/// The violations of `rule` in a file at `path` with this text.
fn violations(rule: fn(&File, &mut Vec<String>), path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    rule(&File::new(path, text), &mut found);
    found
}

#[test]
fn the_cycle_rule_finds_every_form_of_a_path() {
    let chain = |last: &str| -> Vec<File> {
        let to = |at: usize| format!("use crate::a{}::x;", (at + 1) % 7);
        (0..7).map(|at| File::new(&format!("src/a{at}.rs"), &if at == 6 { last.into() } else { to(at) })).collect()
    };
    let cycle_count = |last: &str| {
        let (files, mut found) = (chain(last), Vec::new());
        cycles(&files.iter().collect::<Vec<_>>(), &mut found);
        found.len()
    };
    for closed in [
        "use crate::a0::x;",
        "use crate::{a5::y, a0::{self, deep::X}};",
        "fn f(x: &crate::a0::X) {}",
        "use crate::a0 as other; fn f() { other::x() }",
    ] {
        assert_eq!(cycle_count(closed), 1, "{closed}");
    }
    for open in
        ["fn f() {}", "use crate::a1::x;", "// use crate::a0::x;", "#[cfg(test)]\nmod tests { use crate::a0::x; }"]
    {
        assert_eq!(cycle_count(open), 0, "{open}");
    }
}

#[test]
fn the_path_rule_ignores_tests() {
    let tests = "fn f() {}\n#[cfg(test)]\nmod tests {\n    use super::*;\n    fn g() { super::f() }\n}\n";
    assert!(violations(explicit_paths, "crates/runtime/src/run/resume.rs", tests).is_empty());
    assert_eq!(
        violations(explicit_paths, "crates/runtime/src/run/resume.rs", &format!("{tests}use super::head::Head;")).len(),
        1
    );
    assert_eq!(violations(explicit_paths, "crates/runtime/src/run/resume.rs", "use super::*;").len(), 1);
    assert_eq!(
        violations(explicit_paths, "crates/runtime/src/run/resume.rs", "fn f() { super::head::new() }").len(),
        1
    );
    assert_eq!(
        violations(explicit_paths, "crates/runtime/src/run/mod.rs", "pub mod head;\npub(crate) use head::Head;").len(),
        1
    );
    assert_eq!(
        violations(explicit_paths, "crates/runtime/src/run/mod.rs", "#[doc(inline)]\npub use crate::run::head::*;")
            .len(),
        1
    );
    assert!(violations(explicit_paths, "src/lib.rs", "pub use crate::run::head::Head;").is_empty());
    assert!(
        violations(explicit_paths, "crates/runtime/src/run/mod.rs", "pub mod head;\nuse crate::run::head::Head;")
            .is_empty()
    );
}

#[test]
fn the_host_access_rule_resolves_names() {
    let forbidden = [
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
    for text in forbidden {
        assert_eq!(
            violations(host_access, "crates/lang/src/template/text.rs", text).len(),
            1,
            "{text}: {:?}",
            violations(host_access, "crates/lang/src/template/text.rs", text)
        );
        assert_eq!(violations(host_access, "crates/llm/src/model/request.rs", text).len(), 1, "{text}");
        for path in [
            "crates/engine/src/files.rs",
            "src/cli/run.rs",
            "crates/store/src/sqlite/open.rs",
            "crates/llm/src/providers/openai.rs",
        ] {
            assert!(violations(host_access, path, text).is_empty(), "{path}: {text}");
        }
    }
    let allowed = [
        "use std::time::Duration; use std::io::{self, Read}; fn f() -> io::Result<()> { Ok(()) }",
        "use jiff::Timestamp; fn f(t: Timestamp) -> String { t.to_string() }",
        "#[cfg(test)]\nmod tests {\n    use std::{fs, time::Instant};\n    fn f() { std::env::temp_dir().exists(); }\n}",
        "#[cfg(test)]\nuse std::fs;",
        "// std::fs\nconst A: &str = \"std::env\";",
    ];
    for text in allowed {
        assert!(
            violations(host_access, "crates/lang/src/template/text.rs", text).is_empty(),
            "{text}: {:?}",
            violations(host_access, "crates/lang/src/template/text.rs", text)
        );
    }
}

#[test]
fn the_kinds_rule_finds_an_action_that_names_another() {
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
    let violation_count = |file: &File| {
        let mut found = Vec::new();
        kinds(file, &all, &mut found);
        found.len()
    };
    assert_eq!(files.iter().map(violation_count).collect::<Vec<_>>(), [0, 1, 1, 1, 0, 0]);
    assert_eq!(violation_count(&File::new("crates/engine/src/pin.rs", "use bcc_runtime::actions::KINDS;")), 0);
    assert_eq!(violation_count(&File::new("crates/engine/src/pin.rs", "use bcc_runtime::actions::ask::Ask;")), 1);
}

#[test]
fn the_shape_rule_checks_the_length_and_the_first_line() {
    let long = format!("//! A file.\n{}", "\n".repeat(MAX_LINES));
    assert_eq!(violations(shape, "crates/runtime/src/run/resume.rs", &long).len(), 1);
    assert_eq!(violations(shape, "crates/runtime/src/run/resume.rs", "use std::fmt;").len(), 1);
    assert!(violations(shape, "crates/runtime/src/run/resume.rs", &long[..long.len() - 1]).is_empty());
}
