//! The scripts of the tests, each loaded and checked once for all of its cases.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bcc_engine::discovery::names::PathNames;
use bcc_engine::engine::RunRequest;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::host_services::host_services;
use bcc_engine::loaded::LoadedProgram;
use bcc_engine::models::shared::SharedModels;
use bcc_engine::project::{Project, absolute, given_directory, nearest};
use bcc_engine::recheck::PinnedScript;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::text::SourceFile;
use bcc_runtime::program::custom::COMMAND;
use bcc_runtime::program::host_services::HostServices;
use bcc_runtime::program::program::Program;
use bcc_runtime::program::recheck::Recheck;

pub struct LoadedScript {
    pub program: Arc<Program>,
    /// Checks the script again with other actions.
    pub recheck: Arc<dyn Recheck>,
    /// The services besides models: only programs. Each conversation has its own kernel, or none.
    pub services: HostServices,
    pub project: Project,
    pub path: PathBuf,
}

#[derive(Clone, Debug)]
pub struct ScriptError {
    pub why: Message,
    pub diagnostics: Vec<Diagnostic>,
}

/// A slot for each script and scheme, filled by the first thread that needs it while others wait.
type ScriptSlot = Arc<OnceLock<Result<Arc<LoadedScript>, ScriptError>>>;

pub struct Scripts {
    given: Option<PathBuf>,
    trust: bool,
    environment: Environment,
    names: PathNames,
    shared: SharedModels,
    known: Mutex<HashMap<(PathBuf, Option<String>), ScriptSlot>>,
    projects: Mutex<HashMap<PathBuf, Project>>,
}

impl Scripts {
    /// No scripts yet. `given` is the project of all of them; `trust` means that every configuration is trusted. Diagnostics name
    /// files by `names`.
    pub fn new(given: Option<PathBuf>, trust: bool, environment: Environment, names: PathNames) -> Self {
        Self {
            given,
            trust,
            environment,
            names,
            shared: SharedModels::default(),
            known: Mutex::default(),
            projects: Mutex::default(),
        }
    }

    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The model limits that all conversations share, without connections.
    pub fn shared(&self) -> Arc<SharedModels> {
        Arc::new(self.shared.with_own_connections())
    }

    /// The script at `path`, with the templates of this scheme or of its own.
    /// Errors: if it cannot be read, or has errors.
    pub fn get(&self, path: &Path, scheme: Option<&str>) -> Result<Arc<LoadedScript>, ScriptError> {
        let key = (absolute(path), scheme.map(str::to_owned));
        let slot = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(key).or_default())
        };
        slot.get_or_init(|| self.load(path, scheme)).clone()
    }

    /// Every script that could not be loaded, once.
    pub fn untried(&self) -> Vec<ScriptError> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut errors: Vec<(&PathBuf, ScriptError)> =
            known.iter().filter_map(|((path, _), slot)| Some((path, slot.get()?.as_ref().err()?.clone()))).collect();
        errors.sort_by_key(|(path, _)| *path);
        errors.into_iter().map(|(_, error)| error).collect()
    }

    /// Errors: `Usage` if the project of the script at `path` was changed since it was trusted.
    pub fn refuse_changes(&self, path: &Path) -> Result<(), EngineError> {
        // A project that cannot be read is reported with each of its scripts.
        self.project_of(path).map_or(Ok(()), |project| project.refuse_changes())
    }

    /// The project of the script at `path`. Each project is read once: it may be large.
    fn project_of(&self, path: &Path) -> Result<Project, EngineError> {
        let directory = match given_directory(self.given.as_deref(), &self.environment)? {
            Some(given) => given,
            None => nearest(&absolute(path)),
        };
        let mut projects = self.projects.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(project) = projects.get(&directory) {
            return Ok(project.clone());
        }
        let project = Project::in_directory(directory.clone(), self.trust, &self.environment)?;
        projects.insert(directory, project.clone());
        Ok(project)
    }

    fn load(&self, path: &Path, scheme: Option<&str>) -> Result<Arc<LoadedScript>, ScriptError> {
        let failed = |error: EngineError| match error {
            EngineError::Invalid(diagnostics) => {
                let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
                let first = diagnostics.iter().find(|diagnostic| diagnostic.is_error());
                let first = first.map(|first| msg!(": {}", first.message)).unwrap_or_default();
                let many = if errors == 1 { Message::word("an error") } else { msg!("{errors} errors") };
                let why = msg!("the script has {many}{first}");
                ScriptError { why, diagnostics: renamed(diagnostics, &self.names) }
            }
            other => {
                let help = other.help().map(|help| msg!(" ({help})")).unwrap_or_default();
                ScriptError { why: msg!("{other}{help}"), diagnostics: vec![] }
            }
        };
        let project = self.project_of(path).map_err(failed)?;
        let file = path.to_path_buf();
        let request = RunRequest { file, scheme: scheme.map(str::to_owned), ..RunRequest::default() };
        let (pinned, program) = LoadedProgram::of(&project, &request).map_err(failed)?.into_parts();
        project.refuse_changes().map_err(failed)?;
        let services = host_services(&project, &self.environment, &pinned);
        // Commands run in tests as in sessions; code cells do not.
        if let Err(denied) = services.permissions.check(COMMAND)
            && program.needs.contains_key(COMMAND)
        {
            return Err(failed(EngineError::usage(denied.message).with_help(denied.help)));
        }
        let recheck: Arc<dyn Recheck> = Arc::new(PinnedScript::new(pinned));
        Ok(Arc::new(LoadedScript { program, recheck, services, project, path: absolute(path) }))
    }
}

/// The diagnostics with the names of their files in reports. Scripts are loaded by their absolute paths.
fn renamed(mut diagnostics: Vec<Diagnostic>, names: &PathNames) -> Vec<Diagnostic> {
    let mut known: BTreeMap<String, Arc<SourceFile>> = BTreeMap::new();
    let mut rename = |file: &mut Arc<SourceFile>| {
        let shown = names.display_name(Path::new(file.name()));
        if shown != file.name() {
            let renamed = || Arc::new(SourceFile::new(shown.as_str(), file.text()));
            let renamed = Arc::clone(known.entry(shown.clone()).or_insert_with(renamed));
            *file = renamed;
        }
    };
    for diagnostic in &mut diagnostics {
        rename(&mut diagnostic.file);
        diagnostic.related.iter_mut().for_each(|related| rename(&mut related.file));
    }
    diagnostics
}
