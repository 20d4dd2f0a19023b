//! `validate` reports everything that `run` rejects a script for, and files that change while they are read cause no failure.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use bcc_authoring::validate::cache::CheckCache;
use bcc_authoring::validate::request::{ValidateReport, ValidateRequest};
use bcc_authoring::validate::validate::{validate, validate_again};
use bcc_engine::engine::RunRequest;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::loaded::LoadedProgram;
use bcc_engine::project::Project;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::render::human::human;

fn check(paths: &[PathBuf]) -> ValidateReport {
    let request = ValidateRequest { paths: paths.to_vec(), ..ValidateRequest::default() };
    validate(&request, &Environment::default()).unwrap()
}

fn shown(diagnostics: &[Diagnostic]) -> String {
    human(diagnostics, false)
}

/// `validate` applies more rules than `run` and accepts more types of documents.
#[test]
fn validate_finds_in_a_script_all_that_run_finds() {
    crate::at_root();
    let mut count = 0;
    for folder in ["err", "ok"] {
        for entry in fs::read_dir(Path::new("tests/scripts").join(folder)).unwrap() {
            let file = entry.unwrap().path();
            if file.extension().is_none_or(|extension| extension != "yaml") {
                continue;
            }
            let project = Project::of(&file, None, false, &Environment::default()).unwrap();
            let request = RunRequest { file: file.clone(), ..RunRequest::default() };
            let run_diagnostics = match LoadedProgram::of(&project, &request) {
                Ok(loaded) => loaded.diagnostics().to_vec(),
                Err(EngineError::Invalid(diagnostics)) => diagnostics,
                Err(error) => panic!("{}: {error}", file.display()),
            };
            if run_diagnostics.iter().any(|found| found.rule == "not-a-session") {
                continue;
            }
            let validate_diagnostics = check(std::slice::from_ref(&file)).diagnostics;
            let reports: Vec<String> =
                validate_diagnostics.iter().map(|found| shown(std::slice::from_ref(found))).collect();
            for found in &run_diagnostics {
                let report = shown(std::slice::from_ref(found));
                assert!(reports.contains(&report), "{}: validate does not find\n{report}", file.display());
            }
            count += 1;
        }
    }
    assert!(count > 80, "only {count} scripts");
}

#[test]
fn the_report_does_not_depend_on_threads() {
    crate::at_root();
    let folder = PathBuf::from("tests/scripts/err");
    let first = shown(&check(std::slice::from_ref(&folder)).diagnostics);
    for _ in 0..3 {
        assert_eq!(shown(&check(std::slice::from_ref(&folder)).diagnostics), first);
    }
}

#[test]
fn files_that_change_while_they_are_read_end_in_a_report() {
    crate::at_root();
    let folder = tempfile::tempdir().unwrap();
    let sound = fs::read_to_string("scripts/welcome.yaml").unwrap();
    let file = folder.path().join("a.yaml");
    let other = folder.path().join("b.yaml");
    fs::write(&file, &sound).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let huge = format!("{sound}# {}\n", "好".repeat(1_000_000));
            while !done.load(Ordering::Relaxed) {
                fs::write(&file, &huge).unwrap();
                fs::write(&file, "").unwrap();
                fs::rename(&file, &other).unwrap();
                fs::remove_file(&other).unwrap();
                fs::create_dir(&other).unwrap();
                fs::remove_dir(&other).unwrap();
            }
        });
        for _ in 0..200 {
            let report = check(&[folder.path().to_path_buf(), file.clone()]);
            assert!(report.diagnostics.iter().all(|found| found.help.is_some()), "{}", shown(&report.diagnostics));
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn the_cache_of_earlier_checks_is_never_stale() {
    crate::at_root();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let script = fs::read_to_string("scripts/interview_en.yaml").unwrap();
    let cache = CheckCache::default();
    let steps: [(&str, &str); 14] = [
        ("scripts/a.yaml", &script),
        ("scripts/b.yaml", &script.replace("action_type", "acton_type")),
        ("scripts/a.yaml", &script.replace("content:", "contnet:")),
        ("scripts/a.yaml", &script),
        ("_system/config/custom/english/ai_say_v1.md", "{{ nobody_knows }}"),
        ("_system/config/custom/english/ai_say_v1.md", "{{ content }}{{ output_list }}"),
        ("_system/config/custom/english/part.md/x", ""),
        ("_system/config/default/ai_ask_v1.md", "---\noutput_schema: own.json\n---\n{{ content }}"),
        ("schemas/replies/own.json", "{}"),
        ("schemas/replies/own.json", "{"),
        ("bcc-script.toml", "[project]\nscheme = \"none\"\n"),
        ("bcc-script.toml", "[rules]\nunknown-key = \"off\"\n"),
        ("bcc-script.toml", "["),
        ("skills/a.yaml", "skill:\n  skill_id: a\n"),
    ];
    for (name, text) in steps {
        write(name, text);
        let request = ValidateRequest { paths: vec![folder.path().to_path_buf()], ..ValidateRequest::default() };
        let cached = validate_again(&request, &Environment::default(), Some(&cache)).unwrap();
        let fresh = validate(&request, &Environment::default()).unwrap();
        assert_eq!(shown(&cached.diagnostics), shown(&fresh.diagnostics), "after {name}");
        assert_eq!(cached.files, fresh.files);
    }
    assert!(!cache.is_empty(), "nothing was remembered");
}
