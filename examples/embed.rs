//! Embeds the interpreter: runs a session in memory, reads its events, gives two answers, and prints the messages.
//!
//! `cargo run --example embed`

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use bcc_script::{Engine, Environment, Event, MemoryStore, Project, RunRequest, SessionEvent, SessionPause};

/// Runs the script in `file` with these answers. Returns the messages, and whether the session completed.
pub(crate) async fn talk(file: &Path, answers: &[&str]) -> Result<(Vec<String>, bool), Box<dyn Error>> {
    // An empty environment has no key and no model: the offline responder answers. To use the configuration of the user, take
    // `Environment::of_process()`.
    let environment = Environment::default();
    let project = Project::of(file, None, false, &environment)?;
    // `Engine::with_store` stores sessions in SQLite instead, and `Engine::start_resumed` resumes them.
    let engine = Engine::new(project, environment, Arc::new(MemoryStore::default()));
    let mut session = engine.start(&RunRequest { file: file.to_owned(), ..RunRequest::default() }).await?;

    let (mut messages, mut answers) = (Vec::new(), answers.iter());
    while let Some(event) = session.next().await {
        // A `Delta` is a piece of a message that is still being written, for a live display.
        let SessionEvent::Committed { event, .. } = event else { continue };
        match *event {
            Event::Message { role, text, .. } => messages.push(format!("{}: {text}", role.name())),
            Event::Waiting { answer_id, .. } => match answers.next() {
                // The answer is durable when this returns. With its id, sending it twice does no harm.
                Some(answer) => drop(session.answer(answer, Some(&answer_id)).await?),
                None => break,
            },
            _ => {}
        }
    }
    Ok((messages, session.close().await? == SessionPause::Completed))
}

#[allow(clippy::print_stdout, dead_code)] // the example prints; the test that runs `talk` does not
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/embed.yaml");
    let (messages, completed) = talk(&file, &["Ann", "0 times, my first visit"]).await?;
    for line in messages {
        println!("{line}");
    }
    println!("({})", if completed { "complete" } else { "waiting" });
    Ok(())
}
