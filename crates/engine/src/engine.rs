//! The engine: starts and resumes sessions of a project. This is the entry point for embedders.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::again::given_answers::remaining_answers;
use crate::clock::{FixedClock, SystemClock, now};
use crate::earlier_replies::with_earlier_replies;
use crate::environment::Environment;
use crate::error::EngineError;
use crate::host_services::{SessionOrigin, check_before, check_permissions, host_services, stored_host_services};
use crate::loaded::{CheckedPrograms, LoadedProgram};
use crate::model_selection::{ModelRequested, refuse_silent_change, select_models};
use crate::models::shared::SharedModels;
use crate::notebook_file::given_ids::renamed;
use crate::pin::{Pinned, sha256};
use crate::project::Project;
use crate::recheck::PinnedScript;
use crate::recording::{FileRecorder, Header};
use crate::replay::ReplayRequest;
use crate::session_ids::{MAX_ID_ATTEMPTS, new_id, valid_session_id};
use crate::settings::{RunSettings, SessionPlace};
use crate::state_file::keeper::{StateFileKeeper, observed};
use crate::state_file::open::{StateFileAccess, keeper_of, new_keeper, stored_path};
use crate::store_access::open_store;
use crate::store_place::StorePlace;
use crate::stored_programs::{StoredProgram, StoredPrograms};
use crate::tool_source::{ToolChoice, ToolSource};
use crate::trust::own_sessions::is_own;
use crate::variables::variable_values;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::text::SourceFile;
use bcc_lang::value::exact::ExactValues;
use bcc_runtime::notebook::cell::Cell;
use bcc_runtime::notebook::given::GivenNotebook;
use bcc_runtime::program::asked_value::AskedValue;
use bcc_runtime::program::clock::Clock;
use bcc_runtime::program::custom::COMMAND;
use bcc_runtime::program::event::Observer;
use bcc_runtime::program::host_services::HostServices;
use bcc_runtime::program::limits::Budget;
use bcc_runtime::program::models::ModelProviders;
use bcc_runtime::program::recorder::Recorder;
use bcc_runtime::program::services::Services;
use bcc_runtime::run::head::SessionStatus;
use bcc_runtime::run::session::Session;
use bcc_runtime::run::start::{NewSession, SessionParts};
use bcc_store::contract::{SessionLock, Store};
use bcc_store::error::StoreError;
use bcc_store::rows::SessionRow;

/// The user of sessions that are started without `--user`.
pub const DEFAULT_USER: &str = "default";

/// The options of `run`.
#[derive(Clone, Debug, Default)]
pub struct RunRequest {
    pub file: PathBuf,
    /// The text in place of that of the file, which is then only a name: a state that a client has sent.
    pub text: Option<Arc<SourceFile>>,
    /// The directory to which messages name the files. By default, the script is named as it was given, and others are relative to the
    /// current directory.
    pub named_from: Option<PathBuf>,
    /// `--session`: the id of a new session, or of one to resume.
    pub session: Option<String>,
    /// The default is `default`.
    pub user: Option<String>,
    /// `--var NAME=VALUE`.
    pub variables: Vec<String>,
    pub variables_file: Option<PathBuf>,
    /// Values for variables that have their types already.
    pub values: ExactValues,
    pub scheme: Option<String>,
    pub model: Option<String>,
    pub seed: Option<u64>,
    /// `--clock`, RFC 3339.
    pub clock: Option<String>,
    /// `--record`: the file for the recording of model calls.
    pub record: Option<PathBuf>,
    /// `--replay` and `--replay-by`: the recording that replaces all models.
    pub replay: Option<ReplayRequest>,
    /// As in [`ResumeRequest`], if the session is resumed.
    pub any_project: bool,
    /// `--from`: the cells with which its notebook begins.
    pub cells: Vec<Cell>,
    /// `--behavior-server`: who continues a state of the behavior protocol.
    pub behavior_server: Option<String>,
    /// The key of the request to a server that begins it ([`crate::settings::begun_by`]).
    pub begun_by: Option<String>,
}

/// The options of `sessions resume`.
#[derive(Clone, Debug, Default)]
pub struct ResumeRequest {
    /// `--model`: another model than the session was started with.
    pub model: Option<String>,
    pub record: Option<PathBuf>,
    pub replay: Option<ReplayRequest>,
    /// Whether the person named the project of the engine: the session is then resumed in it, even if it was started in another
    /// one. Otherwise such a session is refused.
    pub any_project: bool,
    pub state_file: StateFileAccess,
}

/// A session that is ready to run, with messages for the person.
pub struct OpenedSession {
    pub session: Session,
    /// The findings of the check of the script, without errors.
    pub diagnostics: Vec<Diagnostic>,
    /// Notices for standard error.
    pub notices: Vec<Message>,
    /// Whether it was resumed.
    pub resumed: bool,
    /// The answers to give to it, each as soon as it waits for one, unless somebody else answers first.
    pub answers: Vec<String>,
    /// What writes its progress, if it carries a state file.
    pub state_file: Option<Arc<StateFileKeeper>>,
}

#[derive(Clone)]
pub struct Engine {
    project: Project,
    environment: Environment,
    store: Arc<dyn Store>,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) budget: Budget,
    pub(crate) shared: Arc<SharedModels>,
    pub(crate) tools: ToolChoice,
    pub(crate) stored_programs: StoredPrograms,
    checked_programs: CheckedPrograms,
}

impl Engine {
    pub fn new(project: Project, environment: Environment, store: Arc<dyn Store>) -> Self {
        let (shared, tools, stored_programs, checked_programs) = Default::default();
        let (clock, budget) = (None, Budget::default());
        Self { project, environment, store, clock, budget, shared, tools, stored_programs, checked_programs }
    }

    /// The same engine with this clock instead of the machine's, for sessions that are started without `--clock`.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock: Some(clock), ..self }
    }

    /// The same engine with the tools of this source; without one, its sessions have no tools.
    #[must_use]
    pub fn with_tools(self, tools: Arc<dyn ToolSource>) -> Self {
        Self { tools: ToolChoice(Some(tools)), ..self }
    }

    /// The same engine with the limits of `--budget`, for sessions that it starts or resumes. They replace the limits of the
    /// script, also when such a session is resumed later.
    #[must_use]
    pub fn with_budget(self, budget: Budget) -> Self {
        Self { budget, ..self }
    }

    /// An engine over the store at `store`, which is a path or a URL ([`StorePlace::of`]), or over the default one of the project.
    pub fn with_store(project: Project, environment: Environment, store: Option<&Path>) -> Result<Self, EngineError> {
        let store = open_store(&project, &environment, store, StorePlace::open)?;
        Ok(Self::new(project, environment, store))
    }

    /// [`Engine::with_store`] for many sessions at a time, whose commits are grouped.
    pub fn with_shared_store(
        project: Project,
        environment: Environment,
        store: Option<&Path>,
    ) -> Result<Self, EngineError> {
        let store = open_store(&project, &environment, store, StorePlace::open_shared)?;
        Ok(Self::new(project, environment, store))
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    pub fn project(&self) -> &Project {
        &self.project
    }

    /// Reads and checks the script, and starts a session of it, or resumes the requested one.
    ///
    /// # Errors
    /// `Invalid` with all findings when the script has errors; `Usage` and `Failed` as documented there.
    pub async fn run(&self, request: &RunRequest, observer: Arc<dyn Observer>) -> Result<OpenedSession, EngineError> {
        let loaded = LoadedProgram::shared(&self.project, request, &self.checked_programs)?;
        self.run_loaded(loaded, request, observer).await
    }

    /// [`Engine::run`] with a loaded script. A caller can check the script before it opens a store, so that no store is created
    /// for an invalid script.
    pub async fn run_loaded(
        &self,
        loaded: LoadedProgram,
        request: &RunRequest,
        observer: Arc<dyn Observer>,
    ) -> Result<OpenedSession, EngineError> {
        let is_state_file = loaded.is_state_file;
        let LoadedProgram { pinned, program, diagnostics, scheme, unnamed_scheme, given, is_checked, .. } = loaded;
        if let Some(id) = &request.session {
            valid_session_id(id)?;
            if let Some(row) = self.store.session(id).await? {
                return self.resume_existing(row, &program, &pinned, request, observer).await;
            }
        }
        self.project.refuse_changes()?;
        let host = self.tools.added_to(host_services(&self.project, &self.environment, &pinned), self, &pinned);
        if !is_checked {
            check_before(&program, &host).await?;
        }
        let allowed: Vec<String> = host.permissions.allowed.iter().cloned().collect();
        let settings = RunSettings {
            commands: host.permissions.check(COMMAND).is_ok(),
            allowed,
            origin: None,
            nonce: None,
            state_file: is_state_file.then(|| stored_path(&self.project, &request.file)),
            project: Some(self.project.directory.to_string_lossy().into_owned()),
            model: None,
            replay: request.replay.as_ref().map(|replay| replay.file.to_string_lossy().into_owned()),
            replay_by: request.replay.as_ref().map(|replay| replay.by),
            scheme,
            seed: request.seed,
            clock: request.clock.clone(),
            copy_of: None,
            retry_of: None,
            retry_seq: None,
            repeats_answers: false,
            given_answers: None,
            asks_anew: false,
            begun_by: request.begun_by.clone(),
        };
        let variables = variable_values(&program, request)?;
        let requested =
            ModelRequested { model: request.model.as_deref(), stored: None, replay: request.replay.as_ref() };
        let selected = select_models(&self.project, &self.environment, &self.shared, requested, &program)?;
        let settings = RunSettings { model: selected.requested, ..settings };
        if let Some(given) = &given {
            given.check_source(host.servers.as_ref(), selected.is_unconfigured)?;
        }
        let mut notices = selected.notices;
        notices.extend(unnamed_scheme);
        let clock = self.clock(request.clock.as_deref())?;
        let (observer, state_file) = match is_state_file {
            true => observed(new_keeper(&request.file, &pinned.script, observer)?),
            false => (observer, None),
        };
        let script_sha256 = sha256(pinned.script.text().as_bytes());
        let services = services(selected.models, clock, observer, &pinned, host);
        // What is only repeated changes nothing that other sessions know of the person: sensitive values of a recording are masks.
        let services = Services { keeps_globals: request.replay.is_some(), ..services };
        let recorded = request.record.as_deref().map(FileRecorder::create).transpose()?.map(Arc::new);
        let (manifest, documents) = pinned.documents()?;
        let notebook = given.map_or_else(
            || GivenNotebook::of_cells(renamed(request.cells.clone(), &pinned)),
            |given| Some(given.notebook),
        );
        let mut attempts = 0;
        loop {
            attempts += 1;
            let id = request.session.clone().unwrap_or_else(|| new_id(&program.id));
            let lock = self.store.lock(&id, &holder()).await?;
            if let Some(recorder) = &recorded {
                let (script, scheme) = (program.id.as_str(), settings.scheme.as_deref());
                let (script_sha256, model) = (script_sha256.as_str(), selected.name.as_str());
                recorder.write_header(&Header { session_id: &id, script, script_sha256, scheme, model })?;
            }
            let recorder = recorded.clone().map(|recorder| recorder as Arc<dyn Recorder>);
            let settings = self.with_origin(&id, &program, &settings, &manifest);
            let parts = SessionParts {
                id,
                program: Arc::clone(&program),
                services: Services { recorder, ..services.clone() },
                store: Arc::clone(&self.store),
                lock,
                script: program.id.clone(),
                model: selected.name.clone(),
                budget: self.budget,
            };
            let new_session = NewSession {
                user: request.user.clone().unwrap_or_else(|| DEFAULT_USER.to_owned()),
                script_sha256: script_sha256.clone(),
                settings: settings.to_json()?,
                manifest: manifest.clone(),
                documents: documents.clone(),
                given: variables.clone(),
                notebook: notebook.clone(),
            };
            match Session::start(parts, new_session).await {
                Ok(session) => {
                    return Ok(OpenedSession {
                        session,
                        diagnostics,
                        notices,
                        resumed: false,
                        answers: vec![],
                        state_file,
                    });
                }
                Err(bcc_runtime::run::error::RunError::Store(StoreError::Exists { .. }))
                    if request.session.is_none() && attempts < MAX_ID_ATTEMPTS => {}
                Err(error) => {
                    recorded.iter().for_each(|recorder| recorder.discard());
                    return Err(error.into());
                }
            }
        }
    }

    /// Resumes a stored session. `model` replaces the model that it was started with.
    ///
    /// # Errors
    /// When there is no such session, it has ended, another process runs it, or the stored data cannot be read.
    pub async fn resume(
        &self,
        id: &str,
        model: Option<&str>,
        observer: Arc<dyn Observer>,
    ) -> Result<OpenedSession, EngineError> {
        let request = ResumeRequest { model: model.map(str::to_owned), ..ResumeRequest::default() };
        self.resume_as(id, &request, observer).await
    }

    /// [`Engine::resume`] with all options.
    ///
    /// # Errors
    /// As [`Engine::resume`], and when the recording cannot be read or written.
    pub async fn resume_as(
        &self,
        id: &str,
        request: &ResumeRequest,
        observer: Arc<dyn Observer>,
    ) -> Result<OpenedSession, EngineError> {
        self.resume_with(id, request, observer, None).await
    }

    /// [`Engine::resume_as`] with the lock of the session, if the caller has it already.
    ///
    /// # Errors
    /// As [`Engine::resume_as`].
    pub async fn resume_with(
        &self,
        id: &str,
        request: &ResumeRequest,
        observer: Arc<dyn Observer>,
        lock: Option<Arc<dyn SessionLock>>,
    ) -> Result<OpenedSession, EngineError> {
        let row = self.store.session(id).await?;
        let row = row.ok_or_else(|| EngineError::from(bcc_runtime::run::error::RunError::NotFound(id.to_owned())))?;
        if let Some(status) = SessionStatus::parse(&row.status).filter(|status| status.is_final()) {
            return Err(bcc_runtime::run::error::RunError::Final { id: id.to_owned(), status: status.name() }.into());
        }
        let settings: RunSettings = serde_json::from_str(&row.settings)
            .map_err(|error| EngineError::failed(msg!("the settings of session `{id}` cannot be read: {error}")))?;
        let lock = match lock {
            Some(lock) => lock,
            None => self.store.lock(id, &holder()).await?,
        };
        let StoredProgram { pinned, program } = self.stored_programs.get(self.store.as_ref(), &row.manifest).await?;
        let project = &self.project;
        project.refuse_changes()?;
        let place = settings.place(id, &project.directory, request.any_project)?;
        let is_own = place == SessionPlace::Here && is_own(&self.environment, id, &settings, &row.manifest);
        let origin = SessionOrigin { id, allowed: is_own.then_some(settings.allowed.as_slice()) };
        let host = stored_host_services(project, &self.environment, &pinned, &origin);
        let host = self.tools.added_to_stored(host, self, &origin);
        check_permissions(&program, &host)?;
        // The request has priority over the settings that the session was started with.
        let model = request.model.as_deref();
        let stored_replay = settings.replay.as_deref().filter(|_| model.is_none());
        let stored_replay =
            stored_replay.map(|file| ReplayRequest::new(Path::new(file), settings.replay_by.unwrap_or_default()));
        let replay = request.replay.as_ref().or(stored_replay.as_ref());
        if model.is_none() && request.replay.is_none() && !is_own {
            self.refuse_foreign_replies(id, &settings)?;
        }
        let requested = ModelRequested { model, stored: settings.model.as_deref(), replay };
        let selected = select_models(project, &self.environment, &self.shared, requested, &program)?;
        refuse_silent_change(self.store.as_ref(), id, &selected).await?;
        if let Some(replayed) = &selected.replayed {
            replayed.resume(self.store.as_ref(), id).await?;
        }
        let mut notices = selected.notices;
        let clock = self.clock_of(&settings, id, SessionStatus::parse(&row.status)).await?;
        let keeper = keeper_of(&self.store, project, (id, &settings), request.state_file, &pinned.script, &observer);
        let (observer, state_file) = keeper.await?.map_or((observer, None), observed);
        let replaced = model.is_some() || selected.replayed.is_some();
        let models = match replaced {
            // Another model was asked for.
            true => selected.models,
            false => with_earlier_replies(self.store.as_ref(), id, &settings, selected.models).await?,
        };
        let mut services = services(models, clock, observer, &pinned, host);
        services.keeps_globals = settings.replay.is_some() || request.replay.is_some();
        if let Some(file) = &request.record {
            let (script_sha256, scheme) = (row.script_sha256.as_str(), settings.scheme.as_deref());
            let model = selected.name.as_str();
            let header = Header { session_id: id, script: &row.script, script_sha256, scheme, model };
            let (recorder, notice) = FileRecorder::resume(file, &header, &row, self.store.as_ref()).await?;
            services.recorder = Some(Arc::new(recorder));
            notices.extend(notice);
        }
        let parts = SessionParts {
            id: id.to_owned(),
            services,
            store: Arc::clone(&self.store),
            lock,
            script: program.id.clone(),
            model: selected.name,
            budget: self.budget,
            program,
        };
        let answers = remaining_answers(self.store.as_ref(), id, &settings).await?;
        let session = Session::resume(parts).await?;
        Ok(OpenedSession { session, diagnostics: vec![], notices, resumed: true, answers, state_file })
    }

    /// What the action with this id asks the person of a stored session for ([`bcc_runtime::program::program::Program::asked_value`]).
    ///
    /// # Errors
    /// The script of the session cannot be read.
    pub async fn asked_value(&self, row: &SessionRow, action_id: &str) -> Result<Option<AskedValue>, EngineError> {
        let StoredProgram { program, .. } = self.stored_programs.get(self.store.as_ref(), &row.manifest).await?;
        Ok(program.asked_value(action_id))
    }

    /// The script of a stored session, as it was when the session began.
    pub(crate) async fn pinned_script(&self, row: &SessionRow) -> Result<Arc<SourceFile>, EngineError> {
        Ok(Pinned::load(self.store.as_ref(), &row.manifest).await?.script)
    }

    /// The clock of a session: fixed at `start`, the one of this engine, or the machine's.
    pub(crate) fn clock(&self, start: Option<&str>) -> Result<Arc<dyn Clock>, EngineError> {
        let Some(start) = start else {
            return Ok(self.clock.clone().unwrap_or_else(|| Arc::new(SystemClock::new())));
        };
        let start = start.parse::<jiff::Timestamp>().map_err(|_| {
            EngineError::usage(msg!("`--clock {start}` is not a valid time"))
                .with_help("write a time such as 2026-11-21T20:00:00Z")
        })?;
        Ok(Arc::new(FixedClock::new(start)))
    }
}

/// The services of a session of the script in `pinned`.
pub(crate) fn services(
    models: Arc<dyn ModelProviders>,
    clock: Arc<dyn Clock>,
    observer: Arc<dyn Observer>,
    pinned: &Arc<Pinned>,
    host: HostServices,
) -> Services {
    let recheck = Arc::new(PinnedScript::new(Arc::clone(pinned)));
    Services { models, clock, observer, recheck, recorder: None, keeps_globals: false, host }
}

/// Identifies the process that holds the lock of a session, for the error message of others.
pub(crate) fn holder() -> String {
    format!("pid {} ({})", std::process::id(), crate::clock::stamp(now()))
}
