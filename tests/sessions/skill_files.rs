//! Skills in files of their own: found, checked with the script that reaches them, and pinned with its session.

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

use crate::stage;

const SCRIPT: &str = "session:
  session_id: s
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: use_skill, action_id: calm, config: { skill: comfort } }
";

/// The file of a skill with one action, which says `content`.
fn skill(id: &str, content: &str) -> String {
    format!(
        "skill:\n  skill_id: {id}\n  actions:\n    - {{ action_type: ai_say, action_id: say, config: {{ content: \"{content}\" }} }}\n"
    )
}

fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    // What marks it as a project.
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

fn opened(folder: &Path) -> Project {
    Project::in_directory(folder.to_path_buf(), false, &Environment::default()).unwrap()
}

/// What keeps the script of a project from running, in words; empty when nothing does.
fn refused(folder: &Path) -> String {
    match LoadedProgram::of(&opened(folder), &request(folder)) {
        Ok(_) => String::new(),
        Err(EngineError::Invalid(found)) => human(&found, false),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_broken_skill_keeps_a_script_that_reaches_it_from_running() {
    let unknown_name = skill("comfort", "{{ nobody }}");
    let through = "skill:\n  skill_id: comfort\n  actions:\n    - { action_type: use_skill, action_id: deeper, config: { skill: breathe } }\n";
    let broken = skill("breathe", "{% if %}");
    let unread = "skill:\n  skill_id: comfort\n  actions: [\n";
    let (mended, sound) = (skill("comfort", "好"), skill("breathe", "好"));
    type Files<'a> = &'a [(&'a str, &'a str)];
    let table: [(Files<'_>, &[&str]); 7] = [
        (&[("skills/a.yaml", &unknown_name)], &["unknown-name", "skills/a.yaml"]),
        // However far away.
        (&[("skills/a.yaml", through), ("skills/b.yaml", &broken)], &["skills/b.yaml"]),
        (&[("skills/a.yaml", through), ("skills/b.yaml", &sound)], &[]),
        // What cannot be read at all may be just the one that is missing.
        (&[("skills/a.yaml", unread)], &["unknown-skill", "yaml-syntax", "skills/a.yaml"]),
        (&[], &["unknown-skill"]),
        // Nobody reaches these.
        (&[("skills/a.yaml", &mended), ("skills/b.yaml", &broken)], &[]),
        (&[("skills/a.yaml", &mended), ("skills/b.yaml", "skill: {")], &[]),
    ];
    for (files, told) in table {
        let files: Vec<_> = [("scripts/s.yaml", SCRIPT)].into_iter().chain(files.iter().copied()).collect();
        let folder = project(&files);
        let report = refused(folder.path());
        assert_eq!(report.is_empty(), told.is_empty(), "{files:?}\n{report}");
        for part in told {
            assert!(report.contains(part), "{files:?} {part}\n{report}");
        }
    }
}

#[test]
fn a_skill_that_a_script_names_by_its_path_is_reached() {
    let script = SCRIPT.replace("  phases:", "  skills: [../lib/comfort.yaml]\n  phases:");
    let sound = project(&[("scripts/s.yaml", &script), ("lib/comfort.yaml", &skill("comfort", "好"))]);
    assert_eq!(refused(sound.path()), "");
    let broken = project(&[("scripts/s.yaml", &script), ("lib/comfort.yaml", "skill: {")]);
    assert!(refused(broken.path()).contains("lib/comfort.yaml"));
}

#[test]
fn a_skill_of_the_script_stands_before_one_of_the_project() {
    let inline = "  skills: [{ skill_id: comfort, actions: [{ action_type: ai_say, action_id: say, config: { content: 好 } }] }]\n";
    let script = SCRIPT.replace("  phases:", &format!("{inline}  phases:"));
    let folder = project(&[("scripts/s.yaml", &script), ("skills/a.yaml", &skill("comfort", "{{ nobody }}"))]);
    assert_eq!(refused(folder.path()), "");
}

#[tokio::test]
async fn a_session_keeps_the_skills_that_it_began_with() {
    let folder = project(&[
        ("scripts/s.yaml", SCRIPT),
        ("skills/a.yaml", &skill("comfort", "好")),
        ("skills/b.yaml", &skill("other", "好")),
    ]);
    let archive: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let engine = Engine::new(opened(folder.path()), Environment::default(), Arc::clone(&archive));
    let id = "begun";
    let request = RunRequest { session: Some(id.into()), ..request(folder.path()) };
    drop(engine.run(&request, Arc::new(stage::Nobody)).await.unwrap());
    let row = archive.session(id).await.unwrap().unwrap();
    assert!(row.manifest.contains("a.yaml") && !row.manifest.contains("b.yaml"), "{}", row.manifest);
    fs::remove_dir_all(folder.path().join("skills")).unwrap();
    assert!(engine.resume(id, None, Arc::new(stage::Nobody)).await.is_ok());
    assert!(refused(folder.path()).contains("unknown-skill"), "a new session finds none");
}

#[test]
fn sessions_that_are_kept_beside_a_script_hide_no_skills_from_the_next_run() {
    let folder = tempfile::tempdir().unwrap();
    let files = [("scripts/s.yaml", SCRIPT.to_owned()), ("skills/comfort.yaml", skill("comfort", "hello"))];
    for (path, text) in &files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    // Nothing marks a project, so that the folder of the script is taken for it; the first run keeps its session there.
    let scripts = folder.path().join("scripts");
    for _run in 0..2 {
        let project = Project::in_directory(scripts.clone(), false, &Environment::default()).unwrap();
        assert!(LoadedProgram::of(&project, &request(folder.path())).is_ok());
        fs::create_dir_all(scripts.join(".bcc")).unwrap();
    }
}
