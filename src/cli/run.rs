//! `run`: starts a session of a script, or resumes one, and drives it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use clap::{Args, ValueEnum};

use crate::cli::drive::{GivenInput, ResumeHint, drive, interrupted_early, interrupted_early_notice};
use crate::cli::exit::{Exit, SESSION_CODES};
use crate::cli::front_end::{FrontEnd, OutputArgs};
use crate::cli::live_notebook::LiveNotebook;
use crate::cli::report;
use crate::cli::signals::Signals;
use crate::cli::state_file::WatchedFile;
#[cfg(feature = "server")]
use crate::cli::web::run_in_browser;
use bcc_engine::engine::{DEFAULT_USER, Engine, RunRequest};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::find_session::left_unfinished;
use bcc_engine::loaded::LoadedProgram;
use bcc_engine::notebook_file::read::read_cells;
use bcc_engine::project::{Project, absolute, given_directory, nearest};
use bcc_engine::replay::ReplayRequest;
use bcc_engine::state_file::open::run_state_file;
use bcc_engine::store_access::notice;
use bcc_engine::store_access::store_place;
use bcc_engine::store_place::StorePlace;
use bcc_lang::value::exact::ExactValues;
use bcc_llm::providers::replay::recording::ReplayMatching;
use bcc_runtime::program::limits::Budget;
use bcc_store::contract::Store;
use bcc_tools::project_tools::ConfiguredTools;

#[derive(Clone, Debug, Args)]
#[command(after_help = SESSION_CODES)]
pub struct RunArgs {
    /// Script, workflow state file, or state of the behavior protocol to run
    pub file: PathBuf,
    /// Of a workflow state file: keep running while it waits for a decision, even if standard input is no terminal
    #[arg(long, help_heading = "Session")]
    pub wait: bool,
    /// Talk in the browser: serve the page of this conversation on this machine, and open it
    #[cfg(feature = "server")]
    #[arg(long, conflicts_with_all = ["wait", "session", "record", "json", "notebook", "clock"], help_heading = "Session")]
    pub web: bool,
    /// Id of the session; an unfinished session with this id is resumed [default: a new id]
    #[arg(long, value_name = "ID", help_heading = "Session")]
    pub session: Option<String>,
    /// User whose global variables the session uses [default: default]
    #[arg(long, value_name = "ID", help_heading = "Session")]
    pub user: Option<String>,
    /// Set a variable; can be repeated
    #[arg(long = "var", value_name = "NAME=VALUE", help_heading = "Session")]
    pub variables: Vec<String>,
    /// Set variables from a JSON or YAML file
    #[arg(long = "vars", value_name = "FILE", help_heading = "Session")]
    pub variables_file: Option<PathBuf>,
    /// Override the budget of the script: turns, model_calls, tokens, minutes, each a total for the session, as in
    /// turns=400; can be repeated. Also applies to later resumes
    #[arg(long, value_name = "NAME=NUMBER[,…]", help_heading = "Session")]
    pub budget: Vec<String>,
    /// Model to use: a name from bcc-script.toml, `offline`, or `replay:FILE` [default: BCC_MODEL, otherwise the model
    /// of the script]
    #[arg(long, value_name = "MODEL", help_heading = "Model and templates")]
    pub model: Option<String>,
    /// Template scheme to use [default: that of the script, otherwise that of bcc-script.toml, otherwise `default`]
    #[arg(long, value_name = "SCHEME", help_heading = "Model and templates")]
    pub scheme: Option<String>,
    /// Record all model calls in a new file, for `--replay`
    #[arg(long, value_name = "FILE", conflicts_with = "replay", help_heading = "Model and templates")]
    pub record: Option<PathBuf>,
    /// Replay a recorded conversation without calling a model
    #[arg(long, value_name = "FILE", conflicts_with = "model", help_heading = "Model and templates")]
    pub replay: Option<PathBuf>,
    /// How `--replay` assigns the recorded replies to calls [default: prompt]
    #[arg(long, value_enum, value_name = "METHOD", requires = "replay", help_heading = "Model and templates")]
    pub replay_by: Option<ReplayBy>,
    /// Project directory [default: BCC_PROJECT, otherwise the nearest parent of FILE
    /// with bcc-script.toml, _system/ or .bcc/]
    #[arg(long, value_name = "DIR", help_heading = "Project")]
    pub project: Option<PathBuf>,
    /// Session store: a file, or a database (postgres://…) [default: BCC_STORE, otherwise .bcc/sessions.db in the project]
    #[arg(long, value_name = "PATH", help_heading = "Project")]
    pub store: Option<PathBuf>,
    /// Trust the project for this run, as with BCC_TRUST=1
    #[arg(long, help_heading = "Project")]
    pub trust: bool,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Of a state of the behavior protocol: the server of bcc-script.toml that continues it [default: the only one]
    #[arg(long, value_name = "NAME", conflicts_with = "model", help_heading = "Model and templates")]
    pub behavior_server: Option<String>,
    /// Begin with the cells of this Jupyter notebook
    #[arg(long, value_name = "NOTEBOOK")]
    pub from: Option<PathBuf>,
    /// Write the notebook of the session to this file after every change (.ipynb, .md or .html)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub notebook: Option<PathBuf>,
    /// Seed to store with the session; this release uses no random values
    #[arg(long, value_name = "N", help_heading = "Reproducible runs")]
    pub seed: Option<u64>,
    /// Start the clock at this time, and advance it by 1 ms per event
    #[arg(long, value_name = "RFC3339", help_heading = "Reproducible runs")]
    pub clock: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReplayBy {
    /// Each prompt must equal the recorded one; otherwise the session stops
    Prompt,
    /// The replies of each action are used in their order, whatever its prompts are
    Order,
}

pub async fn run(options: RunArgs, environment: Environment) -> Result<Exit, EngineError> {
    #[cfg(feature = "server")]
    if options.web {
        return run_in_browser(options, environment).await;
    }
    let front = FrontEnd::of(&options.output);
    loop {
        match start(options.clone(), environment.clone(), front).await {
            Ok(None) => {}
            Ok(Some(exit)) => return Ok(exit),
            Err(error) => return front.report_failure(Err(error)),
        }
    }
}

/// What the options ask the engine for.
pub fn request_of(options: &RunArgs, environment: &Environment) -> Result<RunRequest, EngineError> {
    let any_project = given_directory(options.project.as_deref(), environment)?.is_some();
    let replay = replay_request(options.replay.as_deref(), options.replay_by);
    let RunArgs { file, session, user, variables, variables_file, scheme, model, seed, clock, record, .. } =
        options.clone();
    let values = ExactValues::new();
    let notebook = options.from.as_deref().map(read_cells).transpose()?.unwrap_or_default();
    if let Some(left_out) = notebook.left_out() {
        report::note(&left_out);
    }
    Ok(RunRequest {
        file,
        session,
        user,
        variables,
        variables_file,
        values,
        scheme,
        model,
        seed,
        clock,
        record,
        replay,
        any_project,
        cells: notebook.cells,
        behavior_server: options.behavior_server.clone(),
        ..RunRequest::default()
    })
}

/// Runs the file. None if it is a state file that must be run again, because the steps that are still to run were changed.
async fn start(options: RunArgs, environment: Environment, front: FrontEnd) -> Result<Option<Exit>, EngineError> {
    let project = Project::of(&options.file, options.project.as_deref(), options.trust, &environment)?;
    let store = options.store.as_deref();
    let (options_trust, waits) = (options.trust, options.wait);
    let place = store_place(&project, &environment, store);
    let notebook = LiveNotebook::from_option(options.notebook.as_deref(), options.session.as_deref())?;
    let request = request_of(&options, &environment)?;
    let record = request.record.clone();
    let hint = ResumeHint {
        trust: options_trust,
        record,
        notebook: options.notebook,
        ..hint_of(&project, &place, &environment)
    };
    let budget = parse_budget(&options.budget)?;
    let mut loaded = LoadedProgram::of(&project, &request)?;
    if waits && !loaded.is_state_file {
        return Err(EngineError::usage("`--wait` is for workflow state files"));
    }
    // What is missing is told before there is a store. An existing session keeps the permissions that it was started with, and stops
    // where something is missing.
    if request.session.is_none() || !place.exists() {
        loaded.check_before(&project, &environment).await?;
    }
    let engine = Engine::with_store(project, environment.clone(), store)?
        .with_budget(budget)
        .with_tools(Arc::new(ConfiguredTools));
    if let Some(notice) = notice(&place) {
        report::quiet(&msg!("note: {note}", note = notice));
    }
    let mut signals = Signals::new(interrupted_early_notice())?;
    let store = engine.store().as_ref();
    let opened = signals.unless_received(async {
        let (observer, unfinished) = match &request.session {
            Some(id) => (front.resuming_observer(store, id).await?, None),
            None if loaded.is_state_file => (front.observer(), None),
            None => {
                let user = request.user.as_deref().unwrap_or(DEFAULT_USER);
                (front.observer(), unfinished_note(store, (&loaded.program.id, user), front, &hint).await?)
            }
        };
        let observer = notebook.observer(observer);
        let opened = match loaded.is_state_file {
            true => run_state_file(&engine, loaded, &request, observer).await?,
            false => engine.run_loaded(loaded, &request, observer).await?,
        };
        Ok((opened, unfinished))
    });
    let Some((opened, unfinished)) = opened.await? else { return Ok(Some(interrupted_early(front, &signals))) };
    report::warnings(&opened.diagnostics);
    for notice in opened.notices.iter().chain(&unfinished) {
        report::quiet(notice);
    }
    let waits = waits || front == FrontEnd::Terminal;
    let watched = opened.state_file.map(|keeper| WatchedFile { keeper, waits });
    let given = GivenInput { watched: watched.clone(), ..GivenInput::default() };
    let driven = drive(opened.session, store, front, &hint, notebook, signals, given).await;
    match watched.filter(|watched| driven.is_err() && watched.keeper.is_replanned()) {
        Some(_) => Ok(None),
        None => driven.map(Some),
    }
}

/// The note that an earlier session of this script and user can be resumed. A program that uses `--json` manages its sessions
/// itself.
async fn unfinished_note(
    store: &dyn Store,
    (script, user): (&str, &str),
    front: FrontEnd,
    hint: &ResumeHint,
) -> Result<Option<Message>, EngineError> {
    if matches!(front, FrontEnd::Json { .. }) {
        return Ok(None);
    }
    let Some(row) = left_unfinished(store, script, user).await? else { return Ok(None) };
    let hint = ResumeHint { record: None, notebook: None, ..hint.clone() };
    let (id, resume) = (&row.id, hint.command(&row.id));
    Ok(Some(msg!(
        "note: the session {id} of this script is unfinished, and a new one has begun. Resume the other with: {resume}"
    )))
}

pub fn replay_request(file: Option<&Path>, by: Option<ReplayBy>) -> Option<ReplayRequest> {
    let by = match by {
        Some(ReplayBy::Order) => ReplayMatching::Order,
        Some(ReplayBy::Prompt) | None => ReplayMatching::Prompt,
    };
    Some(ReplayRequest::new(file?, by))
}

pub fn parse_budget(budget: &[String]) -> Result<Budget, EngineError> {
    Budget::parse(budget.iter().map(String::as_str)).map_err(EngineError::usage)
}

/// The project and the store that must be named to resume a session of `project` in the store at `place` from the current
/// directory.
pub fn hint_of(project: &Project, place: &StorePlace, environment: &Environment) -> ResumeHint {
    let given = given_directory(None, environment).ok().flatten();
    let current = given.unwrap_or_else(|| nearest(&absolute(Path::new("."))));
    ResumeHint {
        project: (current != project.directory).then(|| project.directory.clone()),
        store: (store_place(project, environment, None) != *place).then(|| place.named()),
        ..ResumeHint::default()
    }
}
