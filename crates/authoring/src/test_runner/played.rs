//! Test support: runs sessions of small projects with scripted replies and answers.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use bcc_engine::engine::{Engine, RunRequest};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::project::Project;
use bcc_lang::source::render::human::human;
use bcc_runtime::program::event::{Delta, Observer};
use bcc_runtime::program::program::Program;
use bcc_runtime::run::session::SessionPause;
use bcc_store::contract::Store;
use bcc_store::memory::MemoryStore;

pub(crate) struct Played {
    pub(crate) program: Arc<Program>,
    pub(crate) events: Vec<Value>,
}

struct IgnoreDeltas;

impl Observer for IgnoreDeltas {
    fn delta(&self, _delta: &Delta<'_>) {}
}

/// The id of every session.
pub(crate) const SESSION: &str = "s";

/// Runs `script.yaml` of these files with these replies (YAML in the format of `replay:` files) and answers.
pub(crate) fn play(files: &[(&str, &str)], replies: &str, answers: &[&str]) -> Played {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in files {
        write(&directory.path().join(path), text);
    }
    let indented: String = replies.lines().map(|line| format!("  {line}\n")).collect();
    let replies = directory.path().join("replies.yaml");
    write(&replies, &if indented.is_empty() { "replies: {}\n".to_owned() } else { format!("replies:\n{indented}") });
    play_file(&directory.path().join("script.yaml"), &replies, answers)
}

pub(crate) fn play_file(script: &Path, replies: &Path, answers: &[&str]) -> Played {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let environment = Environment::default();
        let project = Project::in_directory(script.parent().unwrap().to_path_buf(), false, &environment).unwrap();
        let store = Arc::new(MemoryStore::default());
        let engine = Engine::new(project, environment, Arc::<MemoryStore>::clone(&store));
        let request = RunRequest {
            file: script.to_path_buf(),
            session: Some(SESSION.to_owned()),
            model: Some(format!("replay:{}", replies.display())),
            clock: Some("2026-11-21T20:00:00Z".to_owned()),
            ..RunRequest::default()
        };
        let opened = engine.run(&request, Arc::new(IgnoreDeltas)).await.unwrap_or_else(|error| match error {
            EngineError::Invalid(found) => panic!("{}", human(&found, false)),
            error => panic!("{error}"),
        });
        let mut session = opened.session;
        let mut answers = answers.iter();
        while session.advance().await.unwrap() == SessionPause::Waiting {
            let Some(answer) = answers.next() else { break };
            session.answer(answer, None).await.unwrap();
        }
        assert_eq!(answers.next(), None, "an answer that nobody waited for");
        let program = Arc::clone(&session.base);
        drop(session);
        let rows = store.journal(SESSION, 0, usize::MAX).await.unwrap();
        let events = rows.iter().map(|row| serde_json::from_str(&row.body).unwrap()).collect();
        Played { program, events }
    })
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}
