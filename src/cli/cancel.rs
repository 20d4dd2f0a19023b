//! `cancel`: ends a session for good, after what undoes its completed actions.

use std::sync::Arc;

use bcc_lang::message::msg;
use clap::Args;

use crate::cli::exit::Exit;
use crate::cli::print::print_translated;
use crate::cli::signals::Signals;
use crate::cli::stored_session::{Silent, StoredSessionArgs, StoredSessions};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::find_session::find_session;
use bcc_runtime::run::head::SessionStatus;

#[derive(Debug, Args)]
pub struct CancelArgs {
    /// Session id, or its beginning if that is unique
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

pub async fn cancel(options: CancelArgs, environment: Environment) -> Result<Exit, EngineError> {
    let sessions = StoredSessions::open(&options.stored, &environment)?;
    let id = find_session(sessions.engine.store().as_ref(), &options.id).await?;
    let mut session = sessions.session(&id, Arc::new(Silent)).await?.session;
    let mut signals = Signals::new(msg!("\ninterrupted; nothing is lost"))?;
    session.cancel(options.comment, !options.no_compensate).await?;
    let is_over = session.status().is_final();
    if !is_over {
        tokio::select! {
            biased;
            () = signals.any() => return Ok(Exit::Interrupted),
            paused = session.advance() => drop(paused?),
        }
    }
    match session.status() {
        SessionStatus::Cancelled => {
            print_translated(&msg!("session {id} is cancelled"))?;
            Ok(Exit::Done)
        }
        status => {
            let message = match status.is_final() {
                true => msg!("session {id} has the status {}", status.name()),
                false => msg!(
                    "session {id} is being cancelled, and has the status {}: `bcc-script sessions resume {id}` continues",
                    status.name()
                ),
            };
            print_translated(&message)?;
            Ok(Exit::Failed)
        }
    }
}
