//! `run`: begins a session of a script, or goes on with one, and drives it.

use std::path::Path;

use crate::cli::arguments::{ReplayBy, Run};
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

/// Runs the subcommand.
///
/// # Errors
/// As [`EngineError`] sorts them.
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

/// What `--replay` and `--replay-by` ask for.
pub fn replayed(file: Option<&Path>, by: Option<ReplayBy>) -> Option<Replayed> {
    let by = match by {
        Some(ReplayBy::Order) => By::Order,
        Some(ReplayBy::Prompt) | None => By::Prompt,
    };
    Some(Replayed::new(file?, by))
}

/// What `--budget` asks for.
///
/// # Errors
/// When it cannot be read.
pub fn asked(budget: &[String]) -> Result<Budget, EngineError> {
    Budget::parse(budget.iter().map(String::as_str)).map_err(EngineError::usage)
}

/// Whether `sessions` would look for another store than `path` when it is called from this directory.
pub fn needs_store(path: &Path, environment: &Environment) -> bool {
    let here = Project::of(Path::new("."), None, false, environment);
    here.map_or(true, |here| store_path(&here, environment, None) != path)
}
