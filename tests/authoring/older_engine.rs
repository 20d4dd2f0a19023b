//! A project of an older engine, in `tests/older_engine/`: `migrate` converts all of it, and what is left has no error.

use std::fs;
use std::path::Path;

use bcc_authoring::fix::fix::{FixRequest, fix};
use bcc_authoring::fix::rules::Rules;
use bcc_authoring::validate::request::ValidateRequest;
use bcc_authoring::validate::validate::validate;
use bcc_engine::environment::Environment;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::render::human::human;
use tempfile::TempDir;

const FILES: [&str; 4] = [
    "scripts/intake.yaml",
    "skills/questioning.yaml",
    "_system/config/custom/clinic/ai_say_v1.md",
    "_system/config/custom/clinic/ai_ask_monitor_v1.md",
];

fn project() -> TempDir {
    crate::at_root();
    let folder = tempfile::tempdir().unwrap();
    for file in FILES {
        let target = folder.path().join(file);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::write(target, fs::read(Path::new("tests/older_engine").join(file)).unwrap()).unwrap();
    }
    folder
}

fn request(folder: &Path) -> ValidateRequest {
    ValidateRequest { project: Some(folder.to_path_buf()), ..ValidateRequest::default() }
}

fn errors(folder: &Path) -> Vec<Diagnostic> {
    let found = validate(&request(folder), &Environment::default()).unwrap().diagnostics;
    found.into_iter().filter(Diagnostic::is_error).collect()
}

#[test]
fn a_project_of_an_older_engine_has_no_error_after_its_migration() {
    let folder = project();
    assert!(!errors(folder.path()).is_empty());
    let migrate = FixRequest { check: request(folder.path()), rules: Rules::LegacyForms, write: true };
    let report = fix(&migrate, &Environment::default()).unwrap();
    assert!(report.rejected.is_empty() && report.incomplete.is_empty(), "{}", human(&report.rejected, false));
    let left = errors(folder.path());
    assert!(left.is_empty(), "{}", human(&left, false));
    let migrated: Vec<String> = FILES
        .iter()
        .map(|file| format!("=== {file}\n{}", fs::read_to_string(folder.path().join(file)).unwrap()))
        .collect();
    insta::assert_snapshot!("the_migrated_project_of_an_older_engine", migrated.concat());
    let again = fix(&FixRequest { write: false, ..migrate }, &Environment::default()).unwrap();
    assert!(again.fixed.is_empty(), "a second time changes nothing");
}

#[test]
fn equal_problems_of_a_template_are_one_finding() {
    let folder = project();
    let found = errors(folder.path());
    let of_file = |name: &str| found.iter().filter(|found| found.file.name().ends_with(name)).collect::<Vec<_>>();
    let tags = of_file("ai_say_v1.md");
    assert_eq!(tags.len(), 1, "{}", human(&found, false));
    assert!(tags[0].message.to_string().starts_with("4 values are written as tags"), "{}", tags[0].message);
    let of_monitor = of_file("ai_ask_monitor_v1.md");
    assert_eq!(of_monitor.len(), 3, "one for each name");
    assert!(of_monitor.iter().any(|found| found.message.to_string().contains("(2 places, on lines 3, 7)")));
}

#[test]
fn a_template_keeps_a_name_of_the_older_engine_that_a_script_sets() {
    let folder = project();
    let template = folder.path().join("_system/config/custom/clinic/ai_say_v1.md");
    let script = folder.path().join("scripts/names.yaml");
    let of_script = "session:
  session_id: names
  declare: [{ var: 咨询师名, value: 林老师 }]
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions: [{ action_type: ai_say, action_id: s, config: { content: '我是{{ 咨询师名 }}' } }]
";
    fs::write(&script, of_script).unwrap();
    let mut migrate = FixRequest { check: request(folder.path()), rules: Rules::LegacyForms, write: true };
    fix(&migrate, &Environment::default()).unwrap();
    let text = fs::read_to_string(&template).unwrap();
    assert!(text.contains("{{user}}说话") && text.contains("{{咨询师名}}"), "{text}");

    // A script that cannot be read may set any name.
    fs::write(&template, text.replace("{{user}}说话", "{{用户名}}说话")).unwrap();
    fs::write(&script, "session:\n  session_id: [").unwrap();
    fix(&migrate, &Environment::default()).unwrap();
    assert!(fs::read_to_string(&template).unwrap().contains("{{用户名}}说话"));

    // Nor is it known what else uses a template if only some files are given.
    fs::remove_file(&script).unwrap();
    migrate.check.paths = vec![folder.path().join("_system")];
    fix(&migrate, &Environment::default()).unwrap();
    assert!(fs::read_to_string(&template).unwrap().contains("{{用户名}}说话"));
    migrate.check.paths.clear();
    fix(&migrate, &Environment::default()).unwrap();
    assert!(fs::read_to_string(&template).unwrap().contains("{{user}}说话"));
}
