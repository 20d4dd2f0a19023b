//! Conversations in process: a script, a model, answers, and what came of it.

use std::path::Path;
use std::sync::{Arc, Mutex};

use bcc_engine::engine::{Engine, RunRequest};
use bcc_engine::environment::Environment;
use bcc_engine::project::Project;
use bcc_runtime::program::event::{Delta, Observer};
use bcc_runtime::run::session::SessionPause;
use bcc_store::memory::MemoryStore;
use serde_json::Value;

pub(crate) struct Talk {
    /// Why the session came back last.
    pub(crate) pause: SessionPause,
    pub(crate) events: Vec<Value>,
    /// How many of the answers were taken.
    pub(crate) answers: usize,
}

impl Talk {
    pub(crate) fn said(&self) -> Vec<String> {
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

/// Runs the script at `file` on the offline responder. When `answers` are used up, `then` answers for as long as the session asks.
pub(crate) async fn offline(file: &Path, answers: &[String], then: Option<&str>) -> Talk {
    const MOST_ANSWERS: usize = 200;
    let environment = Environment::default();
    let project = Project::of(file, None, false, &environment).unwrap();
    let engine = Engine::new(project, environment, Arc::new(MemoryStore::default()));
    let events = Arc::new(Events::default());
    let request = RunRequest { file: file.to_owned(), ..RunRequest::default() };
    let opened = engine.run(&request, events.clone()).await.unwrap();
    assert!(
        opened.diagnostics.is_empty(),
        "{:?}",
        opened.diagnostics.iter().map(|found| &found.message).collect::<Vec<_>>()
    );
    let mut session = opened.session;
    let mut given = 0;
    loop {
        let pause = session.advance().await.unwrap();
        let next = answers.get(given).map(String::as_str).or(then).filter(|_| given < MOST_ANSWERS);
        match next {
            Some(answer) if pause == SessionPause::Waiting => session.answer(answer, None).await.unwrap(),
            _ => {
                let events = events.0.lock().unwrap().clone();
                return Talk { pause, events, answers: given };
            }
        };
        given += 1;
    }
}
