//! Drives a session: turns, answers, commands and signals, until it ends or must wait.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::path::PathBuf;

use crate::cli::commands::commands::command;
use crate::cli::exit::Exit;
use crate::cli::front_end::FrontEnd;
use crate::cli::input::{InputLine, RejectedInput};
use crate::cli::live_notebook::LiveNotebook;
use crate::cli::signals::Signals;
use bcc_engine::error::EngineError;
use bcc_engine::shell::quoted;
use bcc_runtime::run::session::{Session, SessionPause, TakenAnswer};
use bcc_store::contract::Store;

/// The options of the command that resumes a session.
#[derive(Clone, Debug, Default)]
pub struct ResumeHint {
    /// The project, if it is not that of the current directory.
    pub project: Option<PathBuf>,
    /// The store, if it is not the default one of the project.
    pub store: Option<PathBuf>,
    /// Whether the configuration was trusted for this run only.
    pub trust: bool,
    pub record: Option<PathBuf>,
    pub notebook: Option<PathBuf>,
}

/// Drives `session` until it ends or waits.
/// Errors: when the store fails; what was committed before stays.
pub async fn drive(
    mut session: Session,
    store: &dyn Store,
    front: FrontEnd,
    hint: &ResumeHint,
    mut notebook: LiveNotebook,
) -> Result<Exit, EngineError> {
    let mut signals =
        Signals::new().map_err(|error| EngineError::failed(msg!("cannot listen for signals: {error}")))?;
    let mut source = front.source();
    let resume = hint.command(&session.id);
    notebook.start(&session.id);
    loop {
        let pause = {
            let mut advance = std::pin::pin!(session.advance());
            loop {
                tokio::select! {
                    biased;
                    () = signals.any() => break None,
                    pause = &mut advance => break Some(pause),
                    () = notebook.due() => notebook.write(store, front).await,
                }
            }
        };
        notebook.catch_up(store, front).await;
        let Some(pause) = pause else { return Ok(interrupted(front, &resume)) };
        match pause? {
            SessionPause::Waiting => {}
            SessionPause::Completed => {
                if front == FrontEnd::Terminal {
                    front.note(&msg!("── session {} is complete ──", session.id));
                }
                front.report_unread(source.unread().await);
                return Ok(Exit::Done);
            }
            SessionPause::Failed => {
                front.report_unread(source.unread().await);
                return Ok(Exit::Failed);
            }
            SessionPause::Stopped => {
                let larger = session.larger_budget().map(|larger| format!(" --budget {larger}"));
                let status = if larger.is_some() { "stopped: the budget is used up" } else { "stopped" };
                let larger = larger.unwrap_or_default();
                front.note(&msg!(
                    "{what}; nothing is lost. Resume with: {resume}{larger}",
                    what = Message::word(status)
                ));
                front.report_unread(source.unread().await);
                return Ok(Exit::Waiting);
            }
        }
        loop {
            // Results of monitors are stored while the session waits for the person. Immediate results, such as those of prepared
            // replies, are processed before the next answer, so that piped answers always give the same conversation.
            tokio::task::yield_now().await;
            let input = tokio::select! {
                biased;
                () = signals.any() => return Ok(interrupted(front, &resume)),
                () = session.wait_for_result() => {
                    session.commit_results().await?;
                    continue;
                }
                input = source.next() => input,
            };
            match input {
                InputLine::Answer { text, answer_id } => match session.answer(&text, answer_id.as_deref()).await? {
                    TakenAnswer::Yes => break,
                    TakenAnswer::AlreadyUsed
                    | TakenAnswer::Unknown
                    | TakenAnswer::NotAwaited
                    | TakenAnswer::TooLong => {}
                },
                InputLine::Command(line) => command(&line, &mut session, store).await?,
                InputLine::Blank => {}
                InputLine::Rejected(RejectedInput { code, message, help }) => {
                    session.report_rejected_input(code, message, help).await?;
                }
                InputLine::End => {
                    front.note(&msg!("saved; the session is waiting for an answer. Resume with: {resume}"));
                    return Ok(Exit::Waiting);
                }
                InputLine::Interrupted => return Ok(interrupted(front, &resume)),
            }
        }
    }
}

fn interrupted(front: FrontEnd, resume: &str) -> Exit {
    front.note(&msg!("\ninterrupted; nothing is lost. Resume with: {resume}"));
    Exit::Interrupted
}

impl ResumeHint {
    /// The command that resumes the session `id`.
    pub fn command(&self, id: &str) -> String {
        // An id that comes from the store of somebody else may contain anything.
        let id = quoted(id);
        let mut command = format!("bcc-script sessions resume {id}");
        if let Some(project) = &self.project {
            command.push_str(" --project ");
            command.push_str(&quoted(project));
        }
        if let Some(store) = &self.store {
            command.push_str(" --store ");
            command.push_str(&quoted(store));
        }
        if self.trust {
            command.push_str(" --trust");
        }
        if let Some(file) = &self.record {
            command.push_str(" --record ");
            command.push_str(&quoted(file));
        }
        if let Some(file) = &self.notebook {
            command.push_str(" --notebook ");
            command.push_str(&quoted(file));
        }
        command
    }
}
