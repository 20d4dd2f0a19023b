//! The engine: begins and resumes sessions of a project. What embeds the library starts here.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::clock::{FixedClock, SystemClock, now};
use crate::config::kinds::kinds;
use crate::environment::Environment;
use crate::error::EngineError;
use crate::host_services::{outside, permitted, without_commands};
use crate::loaded::LoadedProgram;
use crate::model_selection::{ModelRequested, voices};
use crate::models::shared::SharedModels;
use crate::pin::{Pinned, sha256};
use crate::project::{Project, absolute};
use crate::recheck::PinnedScript;
use crate::recording::{FileRecorder, Header};
use crate::replay::ReplayRequest;
use crate::settings::RunSettings;
use crate::variables::given;
use bcc_lang::source::compose::parse;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_runtime::program::clock::Clock;
use bcc_runtime::program::event::Observer;
use bcc_runtime::program::host_services::HostServices;
use bcc_runtime::program::limits::Budget;
use bcc_runtime::program::models::ModelProviders;
use bcc_runtime::program::program::Program;
use bcc_runtime::program::recorder::Recorder;
use bcc_runtime::program::services::Services;
use bcc_runtime::run::head::SessionStatus;
use bcc_runtime::run::session::Session;
use bcc_runtime::run::start::{NewSession, SessionParts};
use bcc_store::contract::Store;
use bcc_store::error::StoreError;
use bcc_store::rows::SessionRow;
use bcc_store::sqlite::open::open;

/// How many times a new id is tried when it is taken already.
const MOST_IDS: u32 = 8;

/// What `run` was asked for.
#[derive(Clone, Debug, Default)]
pub struct RunRequest {
    pub file: PathBuf,
    /// `--session`: the id to begin under, or to go on with.
    pub session: Option<String>,
    /// Without one, `default`.
    pub user: Option<String>,
    pub variables: Vec<String>,
    pub variables_file: Option<PathBuf>,
    pub scheme: Option<String>,
    pub model: Option<String>,
    pub seed: Option<u64>,
    /// `--clock`, RFC 3339.
    pub clock: Option<String>,
    /// `--record`: where what is said to models is written down.
    pub record: Option<PathBuf>,
    /// `--replay` and `--replay-by`: what stands for every model.
    pub replay: Option<ReplayRequest>,
}

/// What `sessions resume` was asked for.
#[derive(Clone, Debug, Default)]
pub struct ResumeRequest {
    /// `--model`: another model than the session was started with.
    pub model: Option<String>,
    pub record: Option<PathBuf>,
    pub replay: Option<ReplayRequest>,
}

/// A session that is ready to be driven, with what its driver should tell.
pub struct OpenedSession {
    pub session: Session,
    /// What the check of the script found; no errors among it.
    pub diagnostics: Vec<Diagnostic>,
    /// Things to know, for the standard error.
    pub notices: Vec<Message>,
    /// Whether it was taken up again.
    pub resumed: bool,
}

/// A program, by the manifest that it was made of.
type Checked = (String, Arc<Program>);

#[derive(Clone)]
pub struct Engine {
    project: Project,
    environment: Environment,
    archive: Arc<dyn Store>,
    clock: Option<Arc<dyn Clock>>,
    budget: Budget,
    shared: Arc<SharedModels>,
    /// What was checked last; a manifest has the hashes of everything that its program was made of.
    last: Arc<Mutex<Option<Checked>>>,
}

impl Engine {
    pub fn new(project: Project, environment: Environment, archive: Arc<dyn Store>) -> Self {
        let (shared, last) = Default::default();
        Self { project, environment, archive, clock: None, budget: Budget::default(), shared, last }
    }

    /// The same with another clock than the machine's, for sessions that are not begun with `--clock`.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock: Some(clock), ..self }
    }

    /// The same with limits of the command line (`--budget`), for sessions that it begins or takes up. They count instead
    /// of those of the script, also for whoever takes up such a session later.
    #[must_use]
    pub fn with_budget(self, budget: Budget) -> Self {
        Self { budget, ..self }
    }

    /// An engine over the SQLite store at `store`, or at the project's own place.
    pub fn with_store(project: Project, environment: Environment, store: Option<&Path>) -> Result<Self, EngineError> {
        let path = store_path(&project, &environment, store);
        let archive = open(&path)?;
        Ok(Self::new(project, environment, Arc::new(archive)))
    }

    pub fn archive(&self) -> &Arc<dyn Store> {
        &self.archive
    }

    pub fn project(&self) -> &Project {
        &self.project
    }

    /// Reads and checks the script, and begins a session of it — or goes on with the one that is asked for.
    ///
    /// # Errors
    /// `Invalid` with all findings when the script is not sound; `Usage` and `Failed` as they say.
    pub async fn run(&self, request: &RunRequest, observer: Arc<dyn Observer>) -> Result<OpenedSession, EngineError> {
        self.run_loaded(LoadedProgram::of(&self.project, request)?, request, observer).await
    }

    /// [`Engine::run`] with a script that was loaded before: whoever opens a store for it can check it first, so that a
    /// broken script leaves no store behind.
    pub async fn run_loaded(
        &self,
        loaded: LoadedProgram,
        request: &RunRequest,
        observer: Arc<dyn Observer>,
    ) -> Result<OpenedSession, EngineError> {
        let LoadedProgram { pinned, program, diagnostics, scheme } = loaded;
        if let Some(id) = &request.session {
            valid_session_id(id)?;
            if let Some(row) = self.archive.session(id).await? {
                return self.resume_same(row, &program, &pinned, request, observer).await;
            }
        }
        let outside = outside(&self.project, &self.environment);
        permitted(&program, &outside)?;
        let settings = RunSettings {
            commands: outside.permits.may("command").is_ok(),
            project: Some(self.project.directory.to_string_lossy().into_owned()),
            model: None,
            replay: request.replay.as_ref().map(|replay| replay.file.to_string_lossy().into_owned()),
            replay_by: request.replay.as_ref().map(|replay| replay.by),
            scheme,
            seed: request.seed,
            clock: request.clock.clone(),
        };
        let variables = given(&program, request.variables_file.as_deref(), &request.variables)?;
        let asked = ModelRequested { model: request.model.as_deref(), stored: None, replay: request.replay.as_ref() };
        let voices = voices(&self.project, &self.environment, &self.shared, asked, program.model.as_deref())?;
        let settings = RunSettings { model: voices.asked, ..settings };
        let notices = voices.notices;
        let clock = self.clock(request.clock.as_deref())?;
        let script_sha256 = sha256(pinned.script.text().as_bytes());
        let pinned = Arc::new(pinned);
        let services = services(voices.models, clock, observer, &pinned, outside);
        let recorded = request.record.as_deref().map(FileRecorder::create).transpose()?.map(Arc::new);
        let (manifest, documents) = pinned.documents()?;
        let program = Arc::new(program);
        let mut tries = 0;
        loop {
            tries += 1;
            let id = request.session.clone().unwrap_or_else(|| new_id(&program.id));
            let lock = self.archive.lock(&id, &holder()).await?;
            if let Some(recorder) = &recorded {
                let (script, scheme) = (program.id.as_str(), settings.scheme.as_deref());
                let (script_sha256, model) = (script_sha256.as_str(), voices.name.as_str());
                recorder.begin(&Header { session_id: &id, script, script_sha256, scheme, model })?;
            }
            let recorder = recorded.clone().map(|recorder| recorder as Arc<dyn Recorder>);
            let parts = SessionParts {
                id,
                program: Arc::clone(&program),
                services: Services { recorder, ..services.clone() },
                archive: Arc::clone(&self.archive),
                lock,
                script: program.id.clone(),
                model: voices.name.clone(),
                budget: self.budget,
            };
            let birth = NewSession {
                user: request.user.clone().unwrap_or_else(|| "default".into()),
                script_sha256: script_sha256.clone(),
                settings: json(&settings)?,
                manifest: manifest.clone(),
                documents: documents.clone(),
                given: variables.clone(),
            };
            match Session::start(parts, birth).await {
                Ok(session) => return Ok(OpenedSession { session, diagnostics, notices, resumed: false }),
                Err(bcc_runtime::run::error::RunError::Archive(StoreError::Exists { .. }))
                    if request.session.is_none() && tries < MOST_IDS => {}
                Err(error) => {
                    recorded.iter().for_each(|recorder| recorder.give_up());
                    return Err(error.into());
                }
            }
        }
    }

    /// Goes on with a stored session. `model` asks for another model than the one it was started with.
    ///
    /// # Errors
    /// When there is none, it is final, somebody else drives it, or what is stored cannot be read.
    pub async fn resume(
        &self,
        id: &str,
        model: Option<&str>,
        observer: Arc<dyn Observer>,
    ) -> Result<OpenedSession, EngineError> {
        let request = ResumeRequest { model: model.map(str::to_owned), ..ResumeRequest::default() };
        self.resume_as(id, &request, observer).await
    }

    /// [`Engine::resume`] with everything that can be asked for.
    ///
    /// # Errors
    /// As [`Engine::resume`], and when there is no such recording, or none can be written.
    pub async fn resume_as(
        &self,
        id: &str,
        request: &ResumeRequest,
        observer: Arc<dyn Observer>,
    ) -> Result<OpenedSession, EngineError> {
        let row = self.archive.session(id).await?;
        let row = row.ok_or_else(|| EngineError::from(bcc_runtime::run::error::RunError::NotFound(id.to_owned())))?;
        if let Some(status) = SessionStatus::parse(&row.status).filter(|status| status.is_final()) {
            return Err(bcc_runtime::run::error::RunError::Final { id: id.to_owned(), status: status.name() }.into());
        }
        let settings: RunSettings = serde_json::from_str(&row.settings)
            .map_err(|error| EngineError::failed(msg!("the settings of session `{id}` cannot be read: {error}")))?;
        let lock = self.archive.lock(id, &holder()).await?;
        let pinned = Pinned::load(self.archive.as_ref(), &row.manifest).await?;
        let program = self.checked(&row.manifest, &pinned)?;
        let project = self.project_of(&settings)?;
        let mut outside = outside(&project, &self.environment);
        if !settings.commands && pinned.kinds != kinds(&project.config) {
            outside = without_commands(outside);
        }
        permitted(&program, &outside)?;
        // What is asked for now wins over what the session was started with.
        let model = request.model.as_deref();
        let kept = settings.replay.as_deref().filter(|_| model.is_none());
        let kept = kept.map(|file| ReplayRequest::new(Path::new(file), settings.replay_by.unwrap_or_default()));
        let replay = request.replay.as_ref().or(kept.as_ref());
        let asked = ModelRequested { model, stored: settings.model.as_deref(), replay };
        let voices = voices(&project, &self.environment, &self.shared, asked, program.model.as_deref())?;
        if let Some(repeated) = &voices.repeated {
            repeated.go_on(self.archive.as_ref(), id).await?;
        }
        let mut notices = voices.notices;
        let clock = self.clock(settings.clock.as_deref())?;
        let mut services = services(voices.models, clock, observer, &Arc::new(pinned), outside);
        if let Some(file) = &request.record {
            let (script_sha256, scheme) = (row.script_sha256.as_str(), settings.scheme.as_deref());
            let model = voices.name.as_str();
            let header = Header { session_id: id, script: &row.script, script_sha256, scheme, model };
            let (recorder, notice) = FileRecorder::go_on(file, &header, &row, self.archive.as_ref()).await?;
            services.recorder = Some(Arc::new(recorder));
            notices.extend(notice);
        }
        let parts = SessionParts {
            id: id.to_owned(),
            services,
            archive: Arc::clone(&self.archive),
            lock,
            script: program.id.clone(),
            model: voices.name,
            budget: self.budget,
            program,
        };
        let session = Session::resume(parts).await?;
        Ok(OpenedSession { session, diagnostics: vec![], notices, resumed: true })
    }

    /// The program of a stored session; the one that was checked last is kept for whoever resumes another session of it.
    fn checked(&self, manifest: &str, pinned: &Pinned) -> Result<Arc<Program>, EngineError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, program)) = last.as_ref().filter(|(of, _)| of == manifest) {
            return Ok(Arc::clone(program));
        }
        let (program, diagnostics) = pinned.check(parse(&pinned.script))?;
        let program = Arc::new(program.ok_or(EngineError::Invalid(diagnostics))?);
        *last = Some((manifest.to_owned(), Arc::clone(&program)));
        Ok(program)
    }

    /// The clock of a session: one that starts where it is told, this engine's own, or the machine's.
    fn clock(&self, start: Option<&str>) -> Result<Arc<dyn Clock>, EngineError> {
        let Some(start) = start else {
            return Ok(self.clock.clone().unwrap_or_else(|| Arc::new(SystemClock::new())));
        };
        let start = start.parse::<jiff::Timestamp>().map_err(|_| {
            EngineError::usage(msg!("`--clock {start}` is not a valid time"))
                .with_help("write a time such as 2026-11-21T20:00:00Z")
        })?;
        Ok(Arc::new(FixedClock::new(start)))
    }

    /// The project that a stored session belongs to; this one when that is gone.
    fn project_of(&self, settings: &RunSettings) -> Result<Project, EngineError> {
        match settings.project.as_deref().map(Path::new) {
            Some(directory) if directory.is_dir() && directory != self.project.directory => {
                Project::in_directory(directory.to_path_buf(), self.project.trust_all, &self.environment)
            }
            _ => Ok(self.project.clone()),
        }
    }

    async fn resume_same(
        &self,
        row: SessionRow,
        program: &Program,
        pinned: &Pinned,
        request: &RunRequest,
        observer: Arc<dyn Observer>,
    ) -> Result<OpenedSession, EngineError> {
        if row.script != program.id {
            let message = msg!("session `{}` belongs to the script `{}`, not to `{}`", row.id, row.script, program.id);
            return Err(EngineError::usage(message).with_help("choose another `--session`, or omit it"));
        }
        if let Some(user) = request.user.as_ref().filter(|user| **user != row.user) {
            let message = msg!("session `{}` belongs to the user `{}`, not to `{user}`", row.id, row.user);
            return Err(EngineError::usage(message).with_help("choose another `--session`, or omit `--user`"));
        }
        let RunRequest { model, record, replay, .. } = request.clone();
        let mut opened = self.resume_as(&row.id, &ResumeRequest { model, record, replay }, observer).await?;
        let given = [
            ("--var", !request.variables.is_empty()),
            ("--vars", request.variables_file.is_some()),
            ("--scheme", request.scheme.is_some()),
            ("--seed", request.seed.is_some()),
            ("--clock", request.clock.is_some()),
        ];
        for (option, _) in given.iter().filter(|(_, is_given)| *is_given) {
            opened.notices.push(msg!("{option} has no effect: the session continues as it was started"));
        }
        if row.script_sha256 != sha256(pinned.script.text().as_bytes()) {
            opened.notices.push(msg!(
                "the script was edited after this session started; the session continues with the original version"
            ));
        }
        Ok(opened)
    }
}

/// Where the sessions of a project are kept: `--store`, else `BCC_STORE`, else the project's own place.
pub fn store_path(project: &Project, environment: &Environment, store: Option<&Path>) -> PathBuf {
    let chosen = store.map(Path::to_path_buf).or_else(|| environment.get("BCC_STORE").map(PathBuf::from));
    chosen.map_or_else(|| project.store(), |path| absolute(&path))
}

/// The outside world of a session of the script in `pinned`.
fn services(
    models: Arc<dyn ModelProviders>,
    clock: Arc<dyn Clock>,
    observer: Arc<dyn Observer>,
    pinned: &Arc<Pinned>,
    outside: HostServices,
) -> Services {
    let recheck = Arc::new(PinnedScript::new(Arc::clone(pinned)));
    Services { models, clock, observer, recheck, recorder: None, outside }
}

/// Who drives a session, for the one who finds it held.
fn holder() -> String {
    format!("process {} since {}", std::process::id(), crate::clock::stamp(now()))
}

/// A new id that tells the script and the day, and that no other session is likely to have.
fn new_id(script: &str) -> String {
    let day = now().strftime("%Y%m%d").to_string();
    let unique = uuid::Uuid::now_v7().simple().to_string();
    let tail: String = unique.chars().rev().take(8).collect();
    format!("{script}-{day}-{tail}")
}

fn valid_session_id(id: &str) -> Result<(), EngineError> {
    const LONGEST: usize = 200;
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    if id.is_empty() || id.chars().count() > LONGEST || !id.chars().all(allowed) {
        return Err(EngineError::usage(msg!("`{id}` is not a valid session id"))
            .with_help(msg!("an id consists of 1 to {LONGEST} letters, digits, `_`, `.` and `-`")));
    }
    Ok(())
}

fn json(settings: &RunSettings) -> Result<String, EngineError> {
    serde_json::to_string(settings).map_err(|error| EngineError::failed(Message::text(error.to_string())))
}
