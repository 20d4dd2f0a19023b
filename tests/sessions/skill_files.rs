//! Skills in their own files: found, checked with the script that uses them, and pinned with its session.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use bcc_engine::engine::{Engine, RunRequest};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::loaded::LoadedProgram;
use bcc_engine::project::Project;
use bcc_lang::source::render::human::human;
use bcc_store::contract::Store;
use bcc_store::memory::MemoryStore;

use crate::test_session;

const SCRIPT: &str = "session:
  session_id: s
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: use_skill, action_id: calm, config: { skill: comfort } }
";

/// The file of a skill with one action, whose message is `content`.
fn skill(id: &str, content: &str) -> String {
    format!(
        "skill:\n  skill_id: {id}\n  actions:\n    - {{ action_type: ai_say, action_id: say, config: {{ content: \"{content}\" }} }}\n"
    )
}

fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    // Marks the folder as a project.
    fs::create_dir(folder.path().join(".bcc")).unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn request(folder: &Path) -> RunRequest {
    RunRequest { file: folder.join("scripts/s.yaml"), model: Some("offline".into()), ..RunRequest::default() }
}

fn open_project(folder: &Path) -> Project {
    Project::in_directory(folder.to_path_buf(), false, &Environment::default()).unwrap()
}

/// The report for a script that cannot run; empty if it can.
fn rejection_report(folder: &Path) -> String {
    match LoadedProgram::of(&open_project(folder), &request(folder)) {
        Ok(_) => String::new(),
        Err(EngineError::Invalid(found)) => human(&found, false),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_broken_skill_prevents_a_script_that_uses_it_from_running() {
    let unknown_name = skill("comfort", "{{ nobody }}");
    let indirect = "skill:\n  skill_id: comfort\n  actions:\n    - { action_type: use_skill, action_id: deeper, config: { skill: breathe } }\n";
    let broken = skill("breathe", "{% if %}");
    let unreadable = "skill:\n  skill_id: comfort\n  actions: [\n";
    let (fixed, sound) = (skill("comfort", "好"), skill("breathe", "好"));
    type Files<'a> = &'a [(&'a str, &'a str)];
    let table: [(Files<'_>, &[&str]); 7] = [
        (&[("skills/a.yaml", &unknown_name)], &["unknown-name", "skills/a.yaml"]),
        // Also through other skills.
        (&[("skills/a.yaml", indirect), ("skills/b.yaml", &broken)], &["skills/b.yaml"]),
        (&[("skills/a.yaml", indirect), ("skills/b.yaml", &sound)], &[]),
        // An unreadable file may contain the missing skill.
        (&[("skills/a.yaml", unreadable)], &["unknown-skill", "yaml-syntax", "skills/a.yaml"]),
        (&[], &["unknown-skill"]),
        // Skills that the script does not use.
        (&[("skills/a.yaml", &fixed), ("skills/b.yaml", &broken)], &[]),
        (&[("skills/a.yaml", &fixed), ("skills/b.yaml", "skill: {")], &[]),
    ];
    for (files, expected) in table {
        let files: Vec<_> = [("scripts/s.yaml", SCRIPT)].into_iter().chain(files.iter().copied()).collect();
        let folder = project(&files);
        let report = rejection_report(folder.path());
        assert_eq!(report.is_empty(), expected.is_empty(), "{files:?}\n{report}");
        for part in expected {
            assert!(report.contains(part), "{files:?} {part}\n{report}");
        }
    }
}

#[test]
fn a_skill_that_a_script_names_by_its_path_is_used() {
    let script = SCRIPT.replace("  phases:", "  skills: [../lib/comfort.yaml]\n  phases:");
    let sound = project(&[("scripts/s.yaml", &script), ("lib/comfort.yaml", &skill("comfort", "好"))]);
    assert_eq!(rejection_report(sound.path()), "");
    let broken = project(&[("scripts/s.yaml", &script), ("lib/comfort.yaml", "skill: {")]);
    assert!(rejection_report(broken.path()).contains("lib/comfort.yaml"));
}

#[test]
fn a_skill_of_the_script_takes_precedence_over_one_of_the_project() {
    let inline = "  skills: [{ skill_id: comfort, actions: [{ action_type: ai_say, action_id: say, config: { content: 好 } }] }]\n";
    let script = SCRIPT.replace("  phases:", &format!("{inline}  phases:"));
    let folder = project(&[("scripts/s.yaml", &script), ("skills/a.yaml", &skill("comfort", "{{ nobody }}"))]);
    assert_eq!(rejection_report(folder.path()), "");
}

#[tokio::test]
async fn a_session_keeps_the_skills_that_it_started_with() {
    let folder = project(&[
        ("scripts/s.yaml", SCRIPT),
        ("skills/a.yaml", &skill("comfort", "好")),
        ("skills/b.yaml", &skill("other", "好")),
    ]);
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let engine = Engine::new(open_project(folder.path()), Environment::default(), Arc::clone(&store));
    let id = "begun";
    let request = RunRequest { session: Some(id.into()), ..request(folder.path()) };
    drop(engine.run(&request, Arc::new(test_session::SilentObserver)).await.unwrap());
    let row = store.session(id).await.unwrap().unwrap();
    assert!(row.manifest.contains("a.yaml") && !row.manifest.contains("b.yaml"), "{}", row.manifest);
    fs::remove_dir_all(folder.path().join("skills")).unwrap();
    assert!(engine.resume(id, None, Arc::new(test_session::SilentObserver)).await.is_ok());
    assert!(rejection_report(folder.path()).contains("unknown-skill"), "a new session finds none");
}

#[test]
fn sessions_stored_next_to_a_script_hide_no_skills_from_the_next_run() {
    let folder = tempfile::tempdir().unwrap();
    let files = [("scripts/s.yaml", SCRIPT.to_owned()), ("skills/comfort.yaml", skill("comfort", "hello"))];
    for (path, text) in &files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    // Without a marker, the folder of the script is the project; the first run stores its session there.
    let scripts = folder.path().join("scripts");
    for _run in 0..2 {
        let project = Project::in_directory(scripts.clone(), false, &Environment::default()).unwrap();
        assert!(LoadedProgram::of(&project, &request(folder.path())).is_ok());
        fs::create_dir_all(scripts.join(".bcc")).unwrap();
    }
}
