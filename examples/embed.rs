//! Embeds the interpreter: a session in memory, its events as they come, two answers, and what was said.
//!
//! `cargo run --example embed`

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use bcc_script::{Engine, Environment, Event, MemoryStore, Project, RunRequest, SessionEvent, SessionPause};

/// Runs the script in `file` with these answers; gives what was said, and whether the session came to its end.
pub(crate) async fn talk(file: &Path, answers: &[&str]) -> Result<(Vec<String>, bool), Box<dyn Error>> {
    // Nothing of this process's environment, so no key and no model: the offline responder answers. To use what the
    // user has configured, take `Environment::of_process()`.
    let environment = Environment::default();
    let project = Project::of(file, None, false, &environment)?;
    // `Engine::with_store` keeps sessions in SQLite instead, and `Engine::take_up` goes on with them.
    let engine = Engine::new(project, environment, Arc::new(MemoryStore::default()));
    let mut session = engine.start(&RunRequest { file: file.to_owned(), ..RunRequest::default() }).await?;

    let (mut said, mut answers) = (Vec::new(), answers.iter());
    while let Some(event) = session.next().await {
        // A `Delta` is a piece of a message that is still being written, for those who show words as they arrive.
        let SessionEvent::Committed { event, .. } = event else { continue };
        match *event {
            Event::Message { role, text, .. } => said.push(format!("{}: {text}", role.name())),
            Event::Waiting { answer_id, .. } => match answers.next() {
                // The answer is durable when this comes back. With its id, sending it twice does no harm.
                Some(answer) => drop(session.answer(answer, Some(&answer_id)).await?),
                None => break,
            },
            _ => {}
        }
    }
    Ok((said, session.close().await? == SessionPause::Completed))
}

#[allow(clippy::print_stdout, dead_code)] // an example talks; the test that runs `talk` does not
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/embed.yaml");
    let (said, completed) = talk(&file, &["Ann", "0 times, my first visit"]).await?;
    for line in said {
        println!("{line}");
    }
    println!("({})", if completed { "complete" } else { "waiting" });
    Ok(())
}
