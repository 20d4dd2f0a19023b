//! Opens the session that carries a state file, or begins a new one from the file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::source::text::SourceFile;
use bcc_lang::workflow::state_text::StateText;
use bcc_runtime::program::event::{NoObserver, Observer};
use bcc_runtime::program::program::Program;
use bcc_runtime::run::head::SessionStatus;
use bcc_runtime::run::session::Session;
use bcc_store::contract::Store;
use bcc_store::rows::{SessionFilter, SessionRow};
use bcc_store::session_pages::SessionPages;
use serde_json::Value;

use crate::engine::{Engine, OpenedSession, ResumeRequest, RunRequest};
use crate::error::EngineError;
use crate::loaded::LoadedProgram;
use crate::project::{Project, absolute};
use crate::settings::RunSettings;
use crate::state_file::agreement::{Agreement, EditedFile, agreement};
use crate::state_file::disk::{FileStamp, read};
use crate::state_file::file_decision::take_all;
use crate::state_file::keeper::StateFileKeeper;

/// The path by which the settings of a session name its state file: relative to the project, if it is in there.
pub(crate) fn stored_path(project: &Project, file: &Path) -> String {
    let file = absolute(file);
    let directory = absolute(&project.directory);
    file.strip_prefix(&directory).unwrap_or(&file).to_string_lossy().into_owned()
}

fn real_path(project: &Project, stored: &str) -> PathBuf {
    absolute(&project.directory).join(stored)
}

/// What a resumed session does with its state file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StateFileAccess {
    /// It writes the file, if that is in the project.
    #[default]
    InProject,
    /// It writes the file, which the person named.
    Named,
    /// It writes into the edited file what was decided, before another session goes on from the file.
    Edited,
    /// It only ends, because the file goes on without it.
    Unused,
}

/// The newest session of the project that carries this state file and has not ended.
///
/// # Errors
/// If the store fails.
pub async fn session_of_file(engine: &Engine, file: &Path) -> Result<Option<SessionRow>, EngineError> {
    Ok(unfinished_sessions(engine, file).await?.into_iter().next())
}

/// The sessions of the project that carry this state file and have not ended, the newest first. There is more than one only if a process
/// was killed while it replaced one by another.
async fn unfinished_sessions(engine: &Engine, file: &Path) -> Result<Vec<SessionRow>, EngineError> {
    let wanted = stored_path(engine.project(), file);
    let is_final = |row: &SessionRow| SessionStatus::parse(&row.status).is_some_and(SessionStatus::is_final);
    let mut sessions = SessionPages::new(engine.store().as_ref(), SessionFilter::default());
    let mut found = Vec::new();
    while let Some(row) = sessions.next().await? {
        if !is_final(&row) && state_file_of(&row).as_deref() == Some(wanted.as_str()) {
            found.push(row);
        }
    }
    found.sort_by(|one, other| other.started_at.cmp(&one.started_at));
    Ok(found)
}

/// The newest session of the project that carries this state file, or carried it until it ended.
///
/// # Errors
/// If the store fails.
pub async fn newest_session_of_file(engine: &Engine, file: &Path) -> Result<Option<SessionRow>, EngineError> {
    let wanted = stored_path(engine.project(), file);
    let mut sessions = SessionPages::new(engine.store().as_ref(), SessionFilter::default());
    let mut newest: Option<SessionRow> = None;
    while let Some(row) = sessions.next().await? {
        let is_newer = newest.as_ref().is_none_or(|newest| newest.started_at <= row.started_at);
        if is_newer && state_file_of(&row).as_deref() == Some(wanted.as_str()) {
            newest = Some(row);
        }
    }
    Ok(newest)
}

fn state_file_of(row: &SessionRow) -> Option<String> {
    serde_json::from_str::<RunSettings>(&row.settings).ok()?.state_file
}

/// Runs a state file: resumes its session if the file agrees with it, and begins a new one from the file otherwise.
///
/// # Errors
/// As [`Engine::run`]; also if no step is left to run, or another process runs the session.
pub async fn run_state_file(
    engine: &Engine,
    loaded: LoadedProgram,
    request: &RunRequest,
    observer: Arc<dyn Observer>,
) -> Result<OpenedSession, EngineError> {
    if request.session.is_some() {
        check_start(&loaded.program)?;
        return engine.run_loaded(loaded, request, observer).await;
    }
    let sessions = unfinished_sessions(engine, &request.file).await?;
    let (mut loaded, mut replaced) = (loaded, ReplacedSessions::default());
    if let Some((newest, older)) = sessions.split_first() {
        let edited = edited_since(engine, newest, &request.file).await?;
        let is_decided = edited.as_ref().is_some_and(|edited| edited.has_answers || !edited.decisions.is_empty());
        if edited.is_none() || is_decided {
            let access = if is_decided { StateFileAccess::Edited } else { StateFileAccess::Named };
            let mut opened = resume_newest(engine, request, (newest, older), access, Arc::clone(&observer)).await?;
            let (Some(edited), Some(keeper)) = (edited, opened.state_file.clone()) else { return Ok(opened) };
            finish_decided(&mut opened.session, &keeper).await?;
            loaded = LoadedProgram::of(engine.project(), request)?;
            let has_completed = opened.session.status() == SessionStatus::Completed;
            if opened.session.is_ending() && (!has_completed || loaded.program.earlier.is_over) {
                return Ok(opened);
            }
            if has_completed {
                replaced.0.push((opened.session, edited.why));
            } else {
                drop(opened);
                replaced.open(engine, request, std::slice::from_ref(newest), Some(edited.why)).await?;
            }
        } else {
            replaced.open(engine, request, &sessions, None).await?;
        }
    }
    let completed = completed_steps(&request.file)?;
    let mut notices = Vec::new();
    if let Err(error) = check_start(&loaded.program) {
        if matches!(error, EngineError::Ended { .. }) {
            replaced.end(&mut notices).await?;
        }
        return Err(error);
    }
    // What cannot begin replaces nothing; and what could be undone is in the new session before the earlier one ends.
    let mut opened = engine.run_loaded(loaded, request, observer).await?;
    replaced.take_over(&mut opened, &completed).await?;
    replaced.end(&mut notices).await?;
    notices.append(&mut opened.notices);
    Ok(OpenedSession { notices, ..opened })
}

/// Resumes the newest session of a file, and ends those that it replaced: a process was killed before it had done so.
async fn resume_newest(
    engine: &Engine,
    request: &RunRequest,
    (newest, older): (&SessionRow, &[SessionRow]),
    state_file: StateFileAccess,
    observer: Arc<dyn Observer>,
) -> Result<OpenedSession, EngineError> {
    let mut replaced = ReplacedSessions::default();
    replaced.open(engine, request, older, None).await?;
    let resume = ResumeRequest { any_project: request.any_project, state_file, ..ResumeRequest::default() };
    let mut opened = engine.resume_as(&newest.id, &resume, observer).await?;
    if opened.state_file.as_ref().is_some_and(|keeper| keeper.was_behind) {
        // A kill cannot be told from somebody who put an earlier text back.
        opened.notices.push(msg!(
            "{path} had an earlier state than session `{id}`, as after a kill: it is written again; to begin anew, cancel the workflow (`bcc-script cancel {path}`) and then restore the file",
            path = request.file.display(),
            id = newest.id
        ));
    }
    replaced.take_over(&mut opened, &completed_steps(&request.file)?).await?;
    replaced.end(&mut opened.notices).await?;
    Ok(opened)
}

/// Takes the decisions about the steps of a session that another one replaces, so that they are judged, and their values set, by the steps
/// as they were when they asked.
async fn finish_decided(session: &mut Session, keeper: &StateFileKeeper) -> Result<(), EngineError> {
    keeper.set_keeps_pending(true);
    take_all(session, keeper).await?;
    session.take_decided_turns().await?;
    keeper.set_keeps_pending(false);
    Ok(())
}

/// Unfinished sessions of a file that another one replaces, the newest first. No other process runs them in the meantime. One that has
/// completed just now can be among them.
#[derive(Default)]
struct ReplacedSessions(Vec<(Session, Message)>);

impl ReplacedSessions {
    /// Opens the sessions of these rows. If `why` the first of them is replaced is not given, it is determined.
    async fn open(
        &mut self,
        engine: &Engine,
        request: &RunRequest,
        rows: &[SessionRow],
        mut why: Option<Message>,
    ) -> Result<(), EngineError> {
        let (any_project, state_file) = (request.any_project, StateFileAccess::Unused);
        let resume = ResumeRequest { any_project, state_file, ..ResumeRequest::default() };
        for row in rows {
            let known = match why.take() {
                Some(why) => Some(why),
                None => edited_since(engine, row, &request.file).await?.map(|edited| edited.why),
            };
            let why = known.unwrap_or_else(|| Message::word("a newer session goes on from it"));
            self.0.push((engine.resume_as(&row.id, &resume, Arc::new(NoObserver)).await?.session, why));
        }
        Ok(())
    }

    /// Lets the session that replaces them undo what they did: what is `completed`.
    async fn take_over(&self, opened: &mut OpenedSession, completed: &BTreeSet<String>) -> Result<(), EngineError> {
        for (session, _) in self.0.iter().rev() {
            let open = session.open_compensations().await?.of_steps(completed);
            opened.session.take_over_compensations(open).await?;
        }
        Ok(())
    }

    /// Cancels them, and says so.
    async fn end(self, notices: &mut Vec<Message>) -> Result<(), EngineError> {
        for (mut session, why) in self.0.into_iter().filter(|(session, _)| !session.status().is_final()) {
            let id = session.id.clone();
            notices.push(msg!(
                "the session {id} is cancelled, because the file was edited: {why}; a new session goes on from the file",
                why = why.clone()
            ));
            let reason = msg!("the state file was edited: {why}", why = why);
            session.cancel(Some(reason.to_string()), false).await?;
        }
        Ok(())
    }
}

/// Refuses to begin if nothing is left to run, or if it is not known how far a skill got.
fn check_start(program: &Program) -> Result<(), EngineError> {
    if program.earlier.is_over {
        let message = msg!("the workflow `{}` is over: no step is left to run", program.id);
        let help = "to run steps again, set their `status` to `pending`, and `current_step` to the first of them";
        return Err(EngineError::Ended { message, help: Some(help.into()) });
    }
    let steps = program.phases.iter().flat_map(|phase| &phase.topics).flat_map(|topic| topic.steps.iter());
    let interrupted = |id: &str| program.earlier.interrupted.contains(id);
    if let Some(step) = steps.filter(|step| step.kind == "use_skill").find(|step| interrupted(&step.id)) {
        let message =
            msg!("the step `{}` was interrupted while its skill ran, and it is not known how far it got", step.id);
        let help = "set its `status` to `pending` to run the skill again, or to `completed` to go on without it";
        return Err(EngineError::usage(message).with_help(help));
    }
    Ok(())
}

/// The steps and sub tasks that are completed according to the file.
fn completed_steps(file: &Path) -> Result<BTreeSet<String>, EngineError> {
    let found = read(file).map_err(|why| unreadable(file, &why))?.value;
    let list = |value: &Value, name: &str| value.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let steps = list(&found, "steps").into_iter().flat_map(|step| {
        let tasks = list(&step, "sub_tasks");
        std::iter::once(step).chain(tasks)
    });
    let completed = steps.filter(|step| step.get("status").is_some_and(|status| status == "completed"));
    Ok(completed.filter_map(|step| Some(step.get("id")?.as_str()?.to_owned())).collect())
}

/// Why the session of a file cannot go on with it, because the file was edited.
async fn edited_since(engine: &Engine, row: &SessionRow, file: &Path) -> Result<Option<EditedFile>, EngineError> {
    let pinned = engine.pinned_script(row).await?;
    let found = read(file).map_err(|why| unreadable(file, &why))?;
    Ok(match agreement(engine.store().as_ref(), &row.id, &pinned, found).await? {
        Agreement::Agrees { .. } => None,
        Agreement::Edited(edited) => Some(edited),
    })
}

/// The keeper of the file of a stored session, if it carries one.
///
/// # Errors
/// The file was edited so that the session cannot go on, is outside the project, or cannot be read.
pub(crate) async fn keeper_of(
    store: &Arc<dyn Store>,
    project: &Project,
    (id, settings): (&str, &RunSettings),
    access: StateFileAccess,
    pinned: &Arc<SourceFile>,
    observer: &Arc<dyn Observer>,
) -> Result<Option<StateFileKeeper>, EngineError> {
    let Some(stored) = settings.state_file.as_deref().filter(|_| access != StateFileAccess::Unused) else {
        return Ok(None);
    };
    let path = real_path(project, stored);
    // A store may come from somebody else: it does not decide which files outside the project are written.
    if access == StateFileAccess::InProject && !absolute(&path).starts_with(absolute(&project.directory)) {
        let path = path.display();
        let message = msg!("session `{id}` carries {path}, a file outside the project");
        return Err(EngineError::usage(message).with_help(msg!("name the file: `bcc-script run {path}`")));
    }
    let stamp = FileStamp::of(&path).map_err(|error| unreadable(&path, &error.to_message()))?;
    let found = read(&path).map_err(|why| unreadable(&path, &why))?;
    match agreement(store.as_ref(), id, pinned, found).await? {
        Agreement::Agrees { text, is_behind, waiting, decisions } => {
            let stamp = Some(stamp).filter(|_| !is_behind);
            let keeper = StateFileKeeper::new(path, *text, stamp, Arc::clone(observer));
            Ok(Some(keeper.with_decisions(waiting, decisions)))
        }
        Agreement::Edited(EditedFile { text, waiting, decisions, .. }) if access == StateFileAccess::Edited => {
            let keeper = StateFileKeeper::new(path, *text, Some(stamp), Arc::clone(observer));
            Ok(Some(keeper.with_decisions(waiting, decisions)))
        }
        Agreement::Edited(EditedFile { why, .. }) => {
            let path = path.display();
            let message = msg!("{path} was edited since session `{id}` wrote it: {why}", why = why);
            let help = msg!("`bcc-script run {path}` goes on from the file, with a new session");
            Err(EngineError::usage(message).with_help(help))
        }
    }
}

/// The keeper of the file of a new session.
///
/// # Errors
/// The file cannot be written step by step.
pub(crate) fn new_keeper(
    file: &Path,
    source: &Arc<SourceFile>,
    observer: Arc<dyn Observer>,
) -> Result<StateFileKeeper, EngineError> {
    let path = absolute(file);
    let stamp = FileStamp::of(&path).map_err(|error| unreadable(&path, &error.to_message()))?;
    let shown = path.display();
    let text = StateText::new(source)
        .map_err(|error| EngineError::usage(msg!("{shown} cannot be updated: {error}", error = error.to_message())))?;
    Ok(StateFileKeeper::new(path, text, Some(stamp), observer))
}

fn unreadable(path: &Path, why: &Message) -> EngineError {
    EngineError::usage(msg!("the state file {path} cannot be used: {why}", path = path.display(), why = why.clone()))
}
