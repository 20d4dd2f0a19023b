//! Runs conversations in process: a script, a model, answers, and the result.

use std::path::Path;
use std::sync::{Arc, Mutex};

use bcc_engine::engine::{Engine, RunRequest};
use bcc_engine::environment::Environment;
use bcc_engine::project::Project;
use bcc_runtime::program::event::{Delta, Observer};
use bcc_runtime::run::session::SessionPause;
use bcc_store::memory::MemoryStore;
use serde_json::Value;

pub(crate) struct OfflineConversation {
    /// Why the session paused last.
    pub(crate) pause: SessionPause,
    pub(crate) events: Vec<Value>,
    /// The number of answers that were taken.
    pub(crate) answers: usize,
}

impl OfflineConversation {
    pub(crate) fn messages(&self) -> Vec<String> {
        let ai = self.events.iter().filter(|event| event["type"] == "message" && event["role"] == "ai");
        ai.map(|event| event["text"].as_str().unwrap().to_owned()).collect()
    }
}

#[derive(Default)]
struct Events(Mutex<Vec<Value>>);

impl Observer for Events {
    fn committed(&self, committed: &bcc_runtime::program::event::Committed<'_>) {
        self.0.lock().unwrap().push(serde_json::from_str(committed.line).unwrap());
    }

    fn delta(&self, _delta: &Delta<'_>) {}
}

/// Runs the script at `file` with the offline responder. After `answers`, each further question is answered with `fallback`.
pub(crate) async fn run(file: &Path, answers: &[String], fallback: Option<&str>) -> OfflineConversation {
    const MAX_ANSWERS: usize = 200;
    let environment = Environment::default();
    let project = Project::of(file, None, false, &environment).unwrap();
    let engine = Engine::new(project, environment, Arc::new(MemoryStore::default()));
    let events = Arc::new(Events::default());
    let request = RunRequest { file: file.to_owned(), ..RunRequest::default() };
    let started = engine.run(&request, events.clone()).await.unwrap();
    assert!(
        started.diagnostics.is_empty(),
        "{:?}",
        started.diagnostics.iter().map(|found| &found.message).collect::<Vec<_>>()
    );
    let mut session = started.session;
    let mut sent = 0;
    loop {
        let pause = session.advance().await.unwrap();
        let next = answers.get(sent).map(String::as_str).or(fallback).filter(|_| sent < MAX_ANSWERS);
        match next {
            Some(answer) if pause == SessionPause::Waiting => session.answer(answer, None).await.unwrap(),
            _ => {
                let events = events.0.lock().unwrap().clone();
                return OfflineConversation { pause, events, answers: sent };
            }
        };
        sent += 1;
    }
}
