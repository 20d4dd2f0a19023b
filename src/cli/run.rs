//! `run`: begins a session of a script, or goes on with one, and drives it.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::cli::drive::{ResumeHint, drive};
use crate::cli::exit::Exit;
use crate::cli::front::Front;
use crate::cli::live_notebook::LiveNotebook;
use crate::cli::report;
use bcc_engine::engine::{Engine, RunRequest, store_path};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::loaded::Loaded;
use bcc_engine::outside::{outside, permitted};
use bcc_engine::project::Project;
use bcc_engine::replay::Replayed;
use bcc_llm::providers::replay::recording::By;
use bcc_runtime::program::limits::Budget;

#[derive(Debug, Args)]
pub struct Run {
    /// The script
    pub file: PathBuf,
    /// Begin under this id, or go on with the unfinished session of this id
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Whose global variables the session sees [default: default]
    #[arg(long, value_name = "ID")]
    pub user: Option<String>,
    /// Give a variable its value; may be repeated
    #[arg(long = "var", value_name = "NAME=VALUE")]
    pub variables: Vec<String>,
    /// Give variables the values of a JSON or YAML file
    #[arg(long = "vars", value_name = "FILE")]
    pub variables_file: Option<PathBuf>,
    /// Use the templates of this scheme
    #[arg(long, value_name = "S")]
    pub scheme: Option<String>,
    /// Ask this model: a name from bcc-script.toml, `offline`, or `replay:FILE`
    #[arg(long, value_name = "M")]
    pub model: Option<String>,
    /// Write everything that is said to models into this new file, for `--replay`
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub record: Option<PathBuf>,
    /// Repeat a recorded conversation without any model: each prompt must be the one that was recorded
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub replay: Option<PathBuf>,
    /// How `--replay` finds its replies
    #[arg(long, value_enum, requires = "replay")]
    pub replay_by: Option<ReplayBy>,
    /// Give the session another budget than its script does: turns, model_calls, tokens, minutes, each as what may be used
    /// in all; may be repeated. It is kept for later resumes
    #[arg(long, value_name = "NAME=NUMBER[,…]")]
    pub budget: Vec<String>,
    /// The project directory [default: the nearest above FILE that has a bcc-script.toml, a _system/ or a .bcc/]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// Where sessions are kept [default: .bcc/sessions.db of the project]
    #[arg(long, value_name = "PATH")]
    pub store: Option<PathBuf>,
    /// Keep this file the notebook of the session while it goes on: .ipynb, .md or .html
    #[arg(long, value_name = "FILE")]
    pub notebook: Option<PathBuf>,
    /// Write every event as one JSON object a line
    #[arg(long)]
    pub json: bool,
    /// Seed everything random
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Let the clock start at this moment and move 1 ms an event
    #[arg(long, value_name = "RFC3339")]
    pub clock: Option<String>,
    /// Trust the project's bcc-script.toml for this run
    #[arg(long)]
    pub trust: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReplayBy {
    /// The very calls that were recorded; a prompt that differs stops the session
    Prompt,
    /// In order for each action, whatever the prompts are
    Order,
}

pub async fn run(options: Run, environment: Environment) -> Result<Exit, EngineError> {
    let front = Front::of(options.json);
    front.told(begin(options, environment, front).await)
}

async fn begin(options: Run, environment: Environment, front: Front) -> Result<Exit, EngineError> {
    let project = Project::of(&options.file, options.project.as_deref(), options.trust, &environment)?;
    let store = options.store.as_deref();
    let options_trust = options.trust;
    let path = store_path(&project, &environment, store);
    let notebook = LiveNotebook::asked(options.notebook.as_deref(), options.session.as_deref())?;
    let request = RunRequest {
        file: options.file,
        session: options.session,
        user: options.user,
        variables: options.variables,
        variables_file: options.variables_file,
        scheme: options.scheme,
        model: options.model,
        seed: options.seed,
        clock: options.clock,
        record: options.record,
        replay: replayed(options.replay.as_deref(), options.replay_by),
    };
    let store_hint = needs_store(&path, &environment).then(|| path.clone());
    let record = request.record.clone();
    let hint = ResumeHint { store: store_hint, trust: options_trust, record, notebook: options.notebook };
    let budget = asked(&options.budget)?;
    let loaded = Loaded::of(&project, &request)?;
    // One that is there goes on as it was begun, whatever the script needs now.
    if request.session.is_none() || !path.exists() {
        permitted(&loaded.program, &outside(&project, &environment))?;
    }
    let engine = Engine::with_store(project, environment.clone(), store)?.with_budget(budget);
    let opened = engine.run_loaded(loaded, &request, notebook.observer(front.observer())).await?;
    report::warnings(&opened.diagnostics);
    for notice in &opened.notices {
        report::quiet(notice);
    }
    drive(opened.session, engine.archive().as_ref(), front, &hint, notebook).await
}

pub fn replayed(file: Option<&Path>, by: Option<ReplayBy>) -> Option<Replayed> {
    let by = match by {
        Some(ReplayBy::Order) => By::Order,
        Some(ReplayBy::Prompt) | None => By::Prompt,
    };
    Some(Replayed::new(file?, by))
}

pub fn asked(budget: &[String]) -> Result<Budget, EngineError> {
    Budget::parse(budget.iter().map(String::as_str)).map_err(EngineError::usage)
}

/// Whether `sessions` would look for another store than `path` when it is called from this directory.
pub fn needs_store(path: &Path, environment: &Environment) -> bool {
    let here = Project::of(Path::new("."), None, false, environment);
    here.map_or(true, |here| store_path(&here, environment, None) != path)
}
