//! Drives a session: turns, answers, commands and signals, until it ends or must wait for another day.

use std::path::Path;

use crate::archive::contract::Archive;
use crate::cli::commands::command;
use crate::cli::exit::Exit;
use crate::cli::front::Front;
use crate::cli::input::Input;
use crate::cli::signals::Signals;
use crate::engine::error::EngineError;
use crate::run::session::{Pause, Session, Taken};

/// Drives `session` to its end or its next rest.
///
/// # Errors
/// When the store fails; what was committed before stays.
pub async fn drive(
    mut session: Session,
    archive: &dyn Archive,
    front: Front,
    store: Option<&Path>,
) -> Result<Exit, EngineError> {
    let mut signals =
        Signals::new().map_err(|error| EngineError::failed(format!("signals cannot be listened to: {error}")))?;
    let mut source = front.source();
    let resume = resume_command(&session.id, store);
    loop {
        let pause = tokio::select! {
            biased;
            () = signals.any() => return Ok(interrupted(front, &resume)),
            pause = session.advance() => pause?,
        };
        match pause {
            Pause::Waiting => {}
            Pause::Completed => {
                if front == Front::Terminal {
                    front.note(&format!("── session {} is complete ──", session.id));
                }
                return Ok(Exit::Done);
            }
            Pause::Failed => return Ok(Exit::Failed),
            Pause::Stopped => {
                front.note(&format!("stopped; nothing is lost. Resume with: {resume}"));
                return Ok(Exit::Waiting);
            }
        }
        loop {
            let input = tokio::select! {
                biased;
                () = signals.any() => return Ok(interrupted(front, &resume)),
                input = source.next() => input,
            };
            match input {
                Input::Answer { text, answer_id } => match session.answer(&text, answer_id.as_deref()).await? {
                    Taken::Yes => break,
                    Taken::Before | Taken::Unknown | Taken::NotAwaited => {}
                },
                Input::Command(words) => command(&words, &session, archive).await?,
                Input::Unusable(why) if why.is_empty() => {}
                Input::Unusable(why) => front.note(&why),
                Input::End => {
                    front.note(&format!("saved; the session waits for an answer. Resume with: {resume}"));
                    return Ok(Exit::Waiting);
                }
                Input::Interrupted => return Ok(interrupted(front, &resume)),
            }
        }
    }
}

fn interrupted(front: Front, resume: &str) -> Exit {
    front.note(&format!("\ninterrupted; nothing is lost. Resume with: {resume}"));
    Exit::Interrupted
}

/// The command that takes the session up again.
fn resume_command(id: &str, store: Option<&Path>) -> String {
    match store {
        Some(store) => format!("bcc-script sessions resume {id} --store {}", quoted(&store.display().to_string())),
        None => format!("bcc-script sessions resume {id}"),
    }
}

fn quoted(path: &str) -> String {
    let plain = path.chars().all(|c| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_'));
    if plain { path.to_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}
