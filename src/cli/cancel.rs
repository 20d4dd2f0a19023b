//! `cancel`: ends a session for good.

use std::sync::Arc;

use bcc_lang::message::msg;
use clap::Args;

use crate::cli::exit::Exit;
use crate::cli::print::print_translated;
use crate::cli::script_report::write_report_of;
use crate::cli::stored_session::{Silent, StoredSessionArgs, StoredSessions};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::find_session::find_session;

#[derive(Debug, Args)]
pub struct CancelArgs {
    /// Session id, or its beginning if that is unique
    pub id: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub comment: Option<String>,
    #[command(flatten)]
    pub stored: StoredSessionArgs,
}

pub async fn cancel(options: CancelArgs, environment: Environment) -> Result<Exit, EngineError> {
    let sessions = StoredSessions::open(&options.stored, &environment)?;
    let id = find_session(sessions.engine.store().as_ref(), &options.id).await?;
    let mut session = sessions.session(&id, Arc::new(Silent)).await?.session;
    session.cancel(options.comment).await?;
    print_translated(&msg!("session {id} is cancelled"))?;
    let reported = write_report_of(&session, sessions.engine.store().as_ref()).await;
    Ok(if reported { Exit::Done } else { Exit::Failed })
}
