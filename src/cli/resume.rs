//! `sessions resume`: resumes a stored session and drives it.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bcc_lang::message::msg;
use clap::Args;

use crate::cli::drive::{GivenInput, ResumeHint, drive, interrupted_early, interrupted_early_notice};
use crate::cli::exit::{Exit, SESSION_CODES};
use crate::cli::front_end::{FrontEnd, OutputArgs};
use crate::cli::json::{self, CatchUp};
use crate::cli::live_notebook::LiveNotebook;
use crate::cli::report;
use crate::cli::run::{ReplayBy, hint_of, parse_budget, replay_request};
use crate::cli::signals::Signals;
use crate::cli::state_file::WatchedFile;
use crate::cli::store_args::StoreArgs;
use bcc_engine::engine::{Engine, OpenedSession, ResumeRequest};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::find_session::{find_session, newest_unfinished};
use bcc_engine::project::{Project, given_directory};
use bcc_engine::state_file::open::StateFileAccess;
use bcc_engine::store_access::notice;
use bcc_engine::store_access::store_place;
use bcc_runtime::program::event::Observer;
use bcc_runtime::program::stored_event::public_line;
use bcc_store::contract::Store;
use bcc_tools::project_tools::ConfiguredTools;

#[derive(Debug, Args)]
#[command(after_help = SESSION_CODES)]
pub struct ResumeArgs {
    /// Session id, or its beginning if that is unique [default: the unfinished session that was used last]
    pub id: Option<String>,
    #[command(flatten)]
    pub output: OutputArgs,
    /// First print the stored events after this sequence number
    #[arg(long, value_name = "SEQ", requires = "json")]
    pub after: Option<u64>,
    /// Change the budget: turns, model_calls, tokens, minutes, each a total since the start of the session, as in
    /// turns=400; can be repeated. Also applies to later resumes
    #[arg(long, value_name = "NAME=NUMBER[,…]")]
    pub budget: Vec<String>,
    /// Use another model for this resume; later resumes use the model of the session again [default: BCC_MODEL,
    /// otherwise the model of the session]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Record the model calls in this file, which can contain the recording of the session so far
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub record: Option<PathBuf>,
    /// Replay a recorded conversation from here on, without calling a model
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub replay: Option<PathBuf>,
    /// How `--replay` assigns the recorded replies to calls [default: prompt]
    #[arg(long, value_enum, value_name = "METHOD", requires = "replay")]
    pub replay_by: Option<ReplayBy>,
    /// Write the notebook of the session to this file after every change (.ipynb, .md or .html)
    #[arg(long, value_name = "FILE")]
    pub notebook: Option<PathBuf>,
    /// Trust the project for this run, as with BCC_TRUST=1
    #[arg(long)]
    pub trust: bool,
    /// Project whose settings and permissions the session uses, also if it was started in another one [default:
    /// BCC_PROJECT, otherwise the current project, which must be that of the session]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    #[command(flatten)]
    pub store: StoreArgs,
}

/// The number of events that are read at a time: one may contain megabytes of prompt and reply.
const PAGE: usize = 64;

pub async fn resume(options: ResumeArgs, environment: Environment, front: FrontEnd) -> Result<Exit, EngineError> {
    resume_with(options, VecDeque::new(), environment, front).await
}

/// [`resume`], with answers that are given before the person is asked.
pub async fn resume_with(
    options: ResumeArgs,
    answers: VecDeque<String>,
    environment: Environment,
    front: FrontEnd,
) -> Result<Exit, EngineError> {
    let given = options.project.as_deref();
    let project = Project::of(Path::new("."), given, options.trust, &environment)?;
    let any_project = given_directory(given, &environment)?.is_some();
    let place = store_place(&project, &environment, options.store.store.as_deref());
    if !place.exists() {
        return Err(EngineError::usage(msg!("there is no store at {path}", path = place.named().display()))
            .with_help("specify the store with `--store`"));
    }
    let hint = hint_of(&project, &place, &environment);
    let budget = parse_budget(&options.budget)?;
    let engine = Engine::with_store(project, environment.clone(), options.store.store.as_deref())?
        .with_budget(budget)
        .with_tools(Arc::new(ConfiguredTools));
    if let Some(notice) = notice(&place) {
        report::quiet(&msg!("note: {note}", note = notice));
    }
    let mut signals = Signals::new(interrupted_early_notice())?;
    let sessions = engine.store().as_ref();
    let opened = signals.unless_received(async {
        let id = match &options.id {
            Some(given) => find_session(sessions, given).await?,
            None => {
                let id = newest_unfinished(sessions).await?;
                report::quiet(&msg!("resuming session {id}"));
                id
            }
        };
        let notebook = LiveNotebook::from_option(options.notebook.as_deref(), Some(&id))?;
        let request = ResumeRequest {
            model: options.model,
            record: options.record.clone(),
            replay: replay_request(options.replay.as_deref(), options.replay_by),
            any_project,
            state_file: StateFileAccess::InProject,
        };
        let opened = match options.after {
            None => {
                let observer = front.resuming_observer(sessions, &id).await?;
                engine.resume_as(&id, &request, notebook.observer(observer)).await?
            }
            Some(after) => resume_after(&engine, &id, &request, after, &notebook).await?,
        };
        Ok((opened, notebook))
    });
    let Some((opened, notebook)) = opened.await? else { return Ok(interrupted_early(front, &signals)) };
    for notice in &opened.notices {
        report::quiet(notice);
    }
    let hint = ResumeHint { trust: options.trust, record: options.record, notebook: options.notebook, ..hint };
    let waits = front == FrontEnd::Terminal;
    let watched = opened.state_file.map(|keeper| WatchedFile { keeper, waits });
    let given = GivenInput { watched, answers };
    drive(opened.session, sessions, front, &hint, notebook, signals, given).await
}

/// Locks the session before the earlier events are written, so that no event is committed in between.
async fn resume_after(
    engine: &Engine,
    id: &str,
    request: &ResumeRequest,
    after: u64,
    notebook: &LiveNotebook,
) -> Result<OpenedSession, EngineError> {
    let observer = Arc::new(CatchUp::default());
    let opened = engine.resume_as(id, request, notebook.observer(Arc::clone(&observer) as Arc<dyn Observer>)).await;
    // A session that has ended cannot be resumed, but its last events can be written.
    if !matches!(
        opened,
        Err(EngineError::Failed { .. }
            | EngineError::Held { .. }
            | EngineError::StoreUnavailable { .. }
            | EngineError::StoreNewer { .. }
            | EngineError::StoreGone { .. })
    ) {
        let sessions = engine.store().as_ref();
        write_again(sessions, id, after, observer.first_seq().unwrap_or(u64::MAX)).await?;
        observer.release();
    }
    opened
}

/// Writes the events after `after` and before `before` again.
async fn write_again(sessions: &dyn Store, id: &str, after: u64, before: u64) -> Result<(), EngineError> {
    let mut after = after;
    loop {
        let rows = sessions.journal(id, after, PAGE).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = last.seq;
        for row in rows.iter().take_while(|row| row.seq < before) {
            json::write(&public_line(&row.body));
        }
    }
}
