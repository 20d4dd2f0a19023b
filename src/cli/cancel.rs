//! `cancel`: ends a session for good, after what undoes its completed actions.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use clap::Args;

use crate::cli::exit::Exit;
use crate::cli::print::print_translated;
use crate::cli::report::note;
use crate::cli::script_report::write_report_of;
use crate::cli::signals::Signals;
use crate::cli::stored_session::{StoredSessionArgs, StoredSessions};
use bcc_engine::engine::OpenedSession;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::find_session::find_session;
use bcc_engine::state_file::open::session_of_file;
use bcc_runtime::program::event::{Committed, Delta, Event, Observer};
use bcc_runtime::run::head::SessionStatus;

#[derive(Debug, Args)]
pub struct CancelArgs {
    /// Session id, or its beginning if that is unique; or a workflow state file, for its unfinished session
    pub id: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub comment: Option<String>,
    /// Do not undo the completed actions. If the session is about to end already, end it at once
    #[arg(long)]
    pub no_compensate: bool,
    #[command(flatten)]
    pub stored: StoredSessionArgs,
}

/// Collects what failed while the session ended.
#[derive(Debug, Default)]
struct CleanupErrors(Mutex<Vec<Message>>);

impl Observer for CleanupErrors {
    fn committed(&self, committed: &Committed<'_>) {
        if let Event::Error { message, .. } = committed.event {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(message.clone());
        }
    }

    fn delta(&self, _delta: &Delta<'_>) {}
}

pub async fn cancel(options: CancelArgs, environment: Environment) -> Result<Exit, EngineError> {
    let (sessions, id) = match Path::new(&options.id) {
        file if file.is_file() => {
            let sessions = StoredSessions::open_for(file, &options.stored, &environment)?;
            let found = session_of_file(&sessions.engine, file).await?;
            let id = found
                .map(|row| row.id)
                .ok_or_else(|| EngineError::usage(msg!("no session of {file} is unfinished", file = file.display())))?;
            (sessions, id)
        }
        _ => {
            let sessions = StoredSessions::open(&options.stored, &environment)?;
            let id = find_session(sessions.engine.store().as_ref(), &options.id).await?;
            (sessions, id)
        }
    };
    let errors = Arc::new(CleanupErrors::default());
    let opened = sessions.session(&id, Arc::<CleanupErrors>::clone(&errors)).await?;
    let OpenedSession { mut session, state_file, .. } = opened;
    let mut signals = Signals::new(msg!("\ninterrupted; nothing is lost"))?;
    session.cancel(options.comment, !options.no_compensate).await?;
    if !session.status().is_final() {
        tokio::select! {
            biased;
            () = signals.any() => return Ok(Exit::Interrupted),
            paused = session.advance() => drop(paused?),
        }
    }
    let errors = std::mem::take(&mut *errors.0.lock().unwrap_or_else(PoisonError::into_inner));
    for error in &errors {
        note(&msg!("error: {error}", error = error));
    }
    let status = session.status();
    let message = match status {
        SessionStatus::Cancelled => msg!("session {id} is cancelled"),
        status if status.is_final() => msg!("session {id} has the status {}", status.name()),
        status => msg!(
            "session {id} is being cancelled, and has the status {}: `bcc-script sessions resume {id}` continues",
            status.name()
        ),
    };
    print_translated(&message)?;
    let reported =
        !status.is_final() || write_report_of(&session, sessions.engine.store().as_ref(), state_file.as_deref()).await;
    Ok(if reported && status == SessionStatus::Cancelled && errors.is_empty() { Exit::Done } else { Exit::Failed })
}
