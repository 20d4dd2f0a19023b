//! The scripts that tests are about, each read and checked once, whatever number of cases it serves.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bcc_engine::engine::RunRequest;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::host_services::outside;
use bcc_engine::loaded::LoadedProgram;
use bcc_engine::models::shared::SharedModels;
use bcc_engine::project::{Project, absolute};
use bcc_engine::recheck::PinnedScript;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_runtime::program::custom::COMMAND;
use bcc_runtime::program::host_services::HostServices;
use bcc_runtime::program::program::Program;
use bcc_runtime::program::recheck::Recheck;

pub struct LoadedScript {
    pub program: Arc<Program>,
    /// The script, to be checked again with other actions.
    pub recheck: Arc<dyn Recheck>,
    /// What it may touch beyond models: programs alone. Each conversation has a kernel of its own, or none.
    pub outside: HostServices,
    pub project: Project,
    pub path: PathBuf,
}

#[derive(Clone, Debug)]
pub struct ScriptError {
    pub why: Message,
    pub diagnostics: Vec<Diagnostic>,
}

/// One place for each script and scheme, filled by whoever comes first; the others wait for it.
type Place = Arc<OnceLock<Result<Arc<LoadedScript>, ScriptError>>>;

pub struct Scripts {
    given: Option<PathBuf>,
    trust: bool,
    environment: Environment,
    shared: SharedModels,
    known: Mutex<HashMap<(PathBuf, Option<String>), Place>>,
}

impl Scripts {
    /// No script yet. `given` is the project of all of them, `trust` whether every configuration is trusted.
    pub fn new(given: Option<PathBuf>, trust: bool, environment: Environment) -> Self {
        Self { given, trust, environment, shared: SharedModels::default(), known: Mutex::default() }
    }

    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// What a conversation shares with all others: the limits of models, and no connection.
    pub fn shared(&self) -> Arc<SharedModels> {
        Arc::new(self.shared.apart())
    }

    /// The script at `path`, with the templates of this scheme, else of its own.
    /// Errors: when it cannot be read, or is not sound.
    pub fn get(&self, path: &Path, scheme: Option<&str>) -> Result<Arc<LoadedScript>, ScriptError> {
        let key = (absolute(path), scheme.map(str::to_owned));
        let place = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(key).or_default())
        };
        place.get_or_init(|| self.load(path, scheme)).clone()
    }

    /// Every script that could not be tried, once.
    pub fn untried(&self) -> Vec<ScriptError> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut untried: Vec<(&PathBuf, ScriptError)> =
            known.iter().filter_map(|((path, _), place)| Some((path, place.get()?.as_ref().err()?.clone()))).collect();
        untried.sort_by_key(|(path, _)| *path);
        untried.into_iter().map(|(_, untried)| untried).collect()
    }

    fn load(&self, path: &Path, scheme: Option<&str>) -> Result<Arc<LoadedScript>, ScriptError> {
        let failed = |error: EngineError| match error {
            EngineError::Invalid(diagnostics) => {
                let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
                let first = diagnostics.iter().find(|diagnostic| diagnostic.is_error());
                let first = first.map(|first| msg!(": {}", first.message)).unwrap_or_default();
                let many = if errors == 1 { Message::word("an error") } else { msg!("{errors} errors") };
                ScriptError { why: msg!("the script has {many}{first}"), diagnostics }
            }
            other => {
                let help = other.help().map(|help| msg!(" ({help})")).unwrap_or_default();
                ScriptError { why: msg!("{other}{help}"), diagnostics: vec![] }
            }
        };
        let project = Project::of(path, self.given.as_deref(), self.trust, &self.environment).map_err(failed)?;
        let file = path.to_path_buf();
        let request = RunRequest { file, scheme: scheme.map(str::to_owned), ..RunRequest::default() };
        let (pinned, program) = LoadedProgram::of(&project, &request).map_err(failed)?.into_parts();
        let outside = outside(&project, &self.environment);
        // Commands run in tests as they do in sessions; the code of cells does not.
        if let Err(refused) = outside.permits.may(COMMAND)
            && program.needs.contains_key(COMMAND)
        {
            return Err(failed(EngineError::usage(refused.message).with_help(refused.help)));
        }
        let recheck: Arc<dyn Recheck> = Arc::new(PinnedScript::new(Arc::new(pinned)));
        Ok(Arc::new(LoadedScript { program: Arc::new(program), recheck, outside, project, path: absolute(path) }))
    }
}
