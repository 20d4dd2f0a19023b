//! Scripts with snapshots of their reports. Those in `tests/scripts/err/` must be rejected with exactly the report of their snapshot,
//! those in `tests/scripts/ok/` must start with exactly the warnings of theirs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bcc_authoring::validate::request::ValidateRequest;
use bcc_authoring::validate::validate::validate;
use bcc_engine::engine::{Engine, RunRequest};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::project::Project;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::edits::apply;
use bcc_lang::source::render::human::human;
use bcc_runtime::program::event::{Delta, Observer};
use bcc_store::memory::MemoryStore;

struct NoObserver;

impl Observer for NoObserver {
    fn delta(&self, _delta: &Delta<'_>) {}
}

/// Starts a session of the script and returns the report.
fn start_session(file: &Path) -> Result<String, String> {
    let environment = Environment::default();
    let project = Project::in_directory(file.parent().unwrap().to_path_buf(), false, &environment).unwrap();
    let engine = Engine::new(project, environment, Arc::new(MemoryStore::default()));
    let request = RunRequest { file: file.to_path_buf(), model: Some("offline".to_owned()), ..RunRequest::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match runtime.block_on(engine.run(&request, Arc::new(NoObserver))) {
        Ok(opened) => Ok(human(&opened.diagnostics, false)),
        Err(EngineError::Invalid(diagnostics)) => Err(human(&diagnostics, false)),
        Err(error) => Err(match error.help() {
            Some(help) => format!("{error}\nhelp: {help}\n"),
            None => format!("{error}\n"),
        }),
    }
}

/// Every script of a folder, by a relative path, which is the same on every machine.
fn scripts(folder: &str, min_count: usize) -> Vec<PathBuf> {
    crate::at_root();
    let folder = Path::new("tests/scripts").join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    assert!(files.len() >= min_count, "only {} scripts", files.len());
    files
}

/// Compares the report with the snapshot next to the script.
fn compare(folder: &str, file: &Path, report: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(Path::new("../scripts").join(folder));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(file.file_stem().unwrap().to_string_lossy().into_owned(), report));
}

#[test]
fn every_mistake_is_reported_as_its_snapshot_says() {
    for file in scripts("err", 88) {
        let Err(report) = start_session(&file) else { panic!("{} was not refused", file.display()) };
        compare("err", &file, &report);
    }
}

#[test]
fn every_sound_script_starts_with_the_warnings_of_its_snapshot() {
    for file in scripts("ok", 10) {
        let report = start_session(&file).unwrap_or_else(|report| panic!("{} was refused\n{report}", file.display()));
        compare("ok", &file, &report);
    }
}

/// The report of `validate` for the script.
fn validate_report(file: &Path) -> String {
    let request = ValidateRequest {
        paths: vec![file.to_path_buf()],
        project: Some(file.parent().unwrap().to_path_buf()),
        ..ValidateRequest::default()
    };
    human(&validate(&request, &Environment::default()).unwrap().diagnostics, false)
}

#[test]
fn every_finding_of_validate_is_as_its_snapshot_says() {
    for file in scripts("validate", 70) {
        compare("validate", &file, &validate_report(&file));
    }
}

/// The diagnostics of `validate` for a text, checked under the name of `file`.
fn found_in(file: &Path, text: &str) -> Vec<Diagnostic> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(file.file_name().unwrap());
    std::fs::write(&path, text).unwrap();
    let project = Some(folder.path().to_path_buf());
    let request = ValidateRequest { paths: vec![path], project, ..ValidateRequest::default() };
    validate(&request, &Environment::default()).unwrap().diagnostics
}

/// The number of diagnostics of each rule.
fn by_rule(found: &[Diagnostic]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    found.iter().for_each(|found| *counts.entry(found.rule).or_default() += 1);
    counts
}

#[test]
fn every_fix_settles_its_finding_and_breaks_nothing() {
    let files = ["err", "ok", "validate"].into_iter().flat_map(|folder| scripts(folder, 1));
    let mut fixes = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let before = found_in(&file, &text);
        for diagnostic in before.iter().filter(|diagnostic| diagnostic.file.text() == text) {
            for fix in &diagnostic.fixes {
                let fixed = apply(&text, &fix.edits).unwrap();
                let after = found_in(&file, &fixed);
                let (count_before, count_after) = (by_rule(&before), by_rule(&after));
                let place = format!("{}: [{}] {}: {}", file.display(), diagnostic.rule, diagnostic.message, fix.title);
                let shown = human(&after, false);
                let rule = diagnostic.rule;
                assert!(
                    count_after.get(rule).unwrap_or(&0) < count_before.get(rule).unwrap(),
                    "{place} settles nothing\n{fixed}\n{shown}"
                );
                assert!(!count_after.contains_key("yaml-syntax"), "{place} breaks the file\n{fixed}\n{shown}");
                fixes += 1;
            }
        }
    }
    assert!(fixes > 40, "only {fixes} fixes were tried");
}

/// Files that are too large, too deep or no text.
#[test]
fn hostile_files_are_rejected_with_a_short_report() {
    let folder = tempfile::tempdir().unwrap();
    let script = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let huge = script("huge.yaml", b"session:\n");
    // A sparse file of 100 MiB, which takes no space on the disk.
    std::fs::OpenOptions::new().write(true).open(&huge).unwrap().set_len(100 * 1024 * 1024).unwrap();
    let bomb: String = std::iter::once("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned())
        .chain((1..10).map(|n| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 10].join(", "))))
        .chain(["session: *a9\n".to_owned()])
        .collect();
    let nested_actions = (0..10_000).fold("x".to_owned(), |inner, _| format!("{{ actions: [{inner}] }}"));
    let indented: String = (0..2_000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    let table = [
        (huge, "file-too-large"),
        (script("binary.yaml", b"\x7fELF\x02\x01\x01\0\0\0\0\0session:"), "not-text"),
        (script("latin1.yaml", b"session:\n  session_name: Andr\xe9\n"), "UTF-8"),
        (script("utf16.yaml", b"\xff\xfes\0e\0s\0s\0i\0o\0n\0:\0"), "UTF-8"),
        (script("bomb.yaml", bomb.as_bytes()), "too"),
        (script("flow.yaml", "[".repeat(10_000).as_bytes()), "too-deep"),
        (script("closed.yaml", format!("session: {nested_actions}").as_bytes()), "too-deep"),
        (script("block.yaml", indented.as_bytes()), "too-deep"),
        (script("loop.yaml", b"session: &s { phases: *s }"), ""),
        (folder.path().join("nowhere.yaml"), "there is no file"),
        (folder.path().to_path_buf(), "not a regular file"),
    ];
    for (path, part) in table {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Err(report) = start_session(&path) else { panic!("{name} was not refused") };
        assert!(report.contains(part), "{name}: {report}");
        assert!(report.len() < 4_000, "{name}: a report of {} bytes", report.len());
    }
}

#[test]
fn a_thousand_mistakes_are_all_reported_in_order() {
    let actions: String =
        (0..1_000).map(|n| format!("            - {{ action_type: nope, action_id: a{n} }}\n")).collect();
    let text = format!(
        "session:\n  session_id: s\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions:\n{actions}"
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.yaml");
    std::fs::write(&path, text).unwrap();
    let report = start_session(&path).unwrap_err();
    assert_eq!(report.matches("error[unknown-kind]").count(), 1_000, "none is lost");
    assert!(report.contains(":8:") && report.contains(":1007:"), "in their order");
}
