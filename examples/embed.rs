//! Embeds the interpreter: a session in memory, an observer of our own, two answers, and what was said.
//!
//! `cargo run --example embed`

use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bcc_engine::engine::{Engine, RunRequest};
use bcc_engine::environment::Environment;
use bcc_engine::project::Project;
use bcc_runtime::program::event::{Delta, Observer};
use bcc_runtime::run::session::Pause;
use bcc_store::memory::MemoryArchive;

/// Reads events as they are committed: here, only what is said.
#[derive(Default)]
struct Transcript(Mutex<Vec<String>>);

impl Observer for Transcript {
    fn committed(&self, kind: &str, line: &str) {
        // Each event is one JSON object; docs/sessions.md lists them.
        let Ok(event) = serde_json::from_str::<serde_json::Value>(line) else { return };
        let field = |name: &str| event.get(name).and_then(|value| value.as_str()).unwrap_or_default();
        if kind == "message" {
            let said = format!("{}: {}", field("role"), field("text"));
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(said);
        }
    }

    fn delta(&self, _delta: &Delta<'_>) {
        // A piece of a message that is still being written, for those who show words as they arrive.
    }
}

/// Runs the script in `file` with these answers; gives what was said, and whether the session came to its end.
pub(crate) async fn talk(file: &Path, answers: &[&str]) -> Result<(Vec<String>, bool), Box<dyn Error>> {
    // Nothing of this process's environment, so no key and no model: the offline responder answers. To use what the
    // user has configured, take `Environment::of_process()`.
    let environment = Environment::default();
    let project = Project::of(file, None, false, &environment)?;
    // `Engine::with_store` keeps sessions in SQLite instead, and `Engine::resume` takes them up again.
    let engine = Engine::new(project, environment, Arc::new(MemoryArchive::default()));

    let transcript = Arc::new(Transcript::default());
    let request = RunRequest { file: file.to_owned(), ..RunRequest::default() };
    let mut session = engine.run(&request, transcript.clone()).await?.session;

    let mut answers = answers.iter();
    let completed = loop {
        // Everything that can happen without the person happens here.
        match session.advance().await? {
            Pause::Waiting => {}
            pause => break pause == Pause::Completed,
        }
        match answers.next() {
            // The answer is durable when this comes back. With an id, sending it twice does no harm.
            Some(answer) => session.answer(answer, None).await?,
            None => break false,
        };
    };
    let said = transcript.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok((said, completed))
}

#[allow(clippy::print_stdout, dead_code)] // an example talks; the test that runs `talk` does not
fn main() -> Result<(), Box<dyn Error>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/embed.yaml");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (said, completed) = runtime.block_on(talk(&file, &["Ann", "0 times, my first visit"]))?;
    for line in said {
        println!("{line}");
    }
    println!("({})", if completed { "complete" } else { "waiting" });
    Ok(())
}
