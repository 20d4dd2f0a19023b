//! `tick`: continues the sessions whose time has come, for cron and timers of the system.

use std::collections::BTreeSet;
use std::sync::Arc;

use bcc_lang::message::ToMessage;
use bcc_lang::message::msg;
use clap::Args;
use serde_json::json;
use tokio::time::Instant;

use crate::cli::exit::Exit;
use crate::cli::language::translated;
use crate::cli::last_analyses::{ANALYSIS_TIME, finish_analyses};
use crate::cli::print::print;
use crate::cli::script_report::write_report_of;
use crate::cli::signals::Signals;
use crate::cli::stored_session::{Silent, StoredSessionArgs, StoredSessions};
use bcc_engine::clock::{now, stamp};
use bcc_engine::engine::OpenedSession;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::state_file::file_decision::take_all;
use bcc_lang::source::render::visible::{visible_json, visible_line};
use bcc_runtime::run::head::SessionStatus;
use bcc_store::contract::Store;

#[derive(Debug, Args)]
pub struct TickArgs {
    /// Print one JSON object per session
    #[arg(long)]
    pub json: bool,
    /// Also continue sessions whose turn it is and that no process runs: a decision was recorded, or a process was killed
    #[arg(long)]
    pub unfinished: bool,
    #[command(flatten)]
    pub stored: StoredSessionArgs,
}

/// Continues each session with a due request until it waits again or ends. A session that another process runs is left to it.
pub async fn tick(options: TickArgs, environment: Environment) -> Result<Exit, EngineError> {
    let sessions = StoredSessions::open(&options.stored, &environment)?;
    let store = Arc::clone(sessions.engine.store());
    let due = store.open_requests(Some(&stamp(now()))).await?;
    let mut ids: BTreeSet<String> = due.into_iter().map(|open| open.session).collect();
    ids = without_stopped(store.as_ref(), ids).await?;
    if options.unfinished {
        let rows = store.sessions().await?;
        let running = rows.into_iter().filter(|row| row.status == SessionStatus::Running.name());
        ids.extend(running.map(|row| row.id));
    }
    let mut signals = Signals::new(msg!("\ninterrupted; nothing is lost"))?;
    // Of all sessions together: the next ones do not wait for the monitors of each.
    let deadline = Instant::now() + ANALYSIS_TIME;
    let mut failures = 0;
    for id in ids {
        let result = tokio::select! {
            biased;
            () = signals.any() => return Ok(Exit::Interrupted),
            result = go_on(&sessions, &id, deadline) => result,
        };
        let (status, error) = match result {
            Ok((status, reported)) => {
                // It is not due again: somebody has to look at it.
                failures += usize::from(status == SessionStatus::Stopped || !reported);
                (Some(status.name()), None)
            }
            Err(error) => {
                failures += 1;
                (None, Some(error.to_message()))
            }
        };
        if options.json {
            let error = error.map(|error| error.to_string());
            let line = json!({ "session_id": id, "status": status, "error": error }).to_string();
            print(&visible_json(&line))?;
        } else {
            let result = match (status, error) {
                (Some(status), _) => status.to_owned(),
                (None, Some(error)) => translated(&msg!("error: {error}", error = error)).into_owned(),
                (None, None) => String::new(),
            };
            print(&format!("{}\t{}", visible_line(&id), visible_line(&result)))?;
        }
    }
    Ok(if failures == 0 { Exit::Done } else { Exit::Failed })
}

/// The sessions without those that are stopped: a branch of theirs waits for a time, but they would only stop again.
async fn without_stopped(store: &dyn Store, ids: BTreeSet<String>) -> Result<BTreeSet<String>, EngineError> {
    let mut left = BTreeSet::new();
    for id in ids {
        let row = store.session(&id).await?;
        if row.is_none_or(|row| row.status != SessionStatus::Stopped.name()) {
            left.insert(id);
        }
    }
    Ok(left)
}

/// Returns the new status, and whether the report of a session that has ended was written, if its script names one.
async fn go_on(sessions: &StoredSessions, id: &str, deadline: Instant) -> Result<(SessionStatus, bool), EngineError> {
    let OpenedSession { mut session, state_file, .. } = sessions.session(id, Arc::new(Silent)).await?;
    if let Some(keeper) = &state_file {
        take_all(&mut session, keeper).await?;
    }
    session.advance().await?;
    finish_analyses(&mut session, deadline).await?;
    let reported = write_report_of(&session, sessions.engine.store().as_ref(), state_file.as_deref()).await;
    Ok((session.status(), reported))
}
