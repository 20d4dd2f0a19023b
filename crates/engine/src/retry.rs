//! `sessions retry`: begins a session from the journal of an ended one, at one of its steps (docs/retry.md).

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::message::{Joint, Message};
use bcc_lang::message::msg;
use bcc_lang::source::diagnostic::Diagnostic;
use serde::Serialize;
use serde_json::Value;

use crate::clock::{now, stamp};
use crate::earlier_replies::count_earlier_replies;
use crate::engine::{Engine, RunRequest};
use crate::error::EngineError;
use crate::export::{events_of, stored_session};
use crate::host_services::{check_permissions, host_services};
use crate::loaded::LoadedProgram;
use crate::pin::{Pinned, sha256};
use crate::report::collect::reported_steps;
use crate::report::contents::{ReportedStep, StepStatus};
use crate::session_ids::{MAX_ID_ATTEMPTS, new_id};
use crate::settings::{RunSettings, SessionPlace};
use crate::stored_programs::StoredProgram;
use crate::taken_back::TakenBackEvents;
use crate::trust::own_sessions::is_own;
use bcc_lang::schema::embedded::reply;
use bcc_runtime::program::custom::COMMAND;
use bcc_runtime::program::program::{Program, ProgramStep};
use bcc_runtime::run::head::SessionStatus;
use bcc_runtime::run::retry::{CopiedRows, CopyTarget, copy_of, state_at, undone_since};
use bcc_store::contract::Store;
use bcc_store::error::StoreError;
use bcc_store::rows::{EarlierState, NewSessionRow, SessionFilter, SessionRow};
use bcc_store::session_pages::SessionPages;

/// The options of `sessions retry`.
#[derive(Clone, Debug, Default)]
pub struct RetryRequest {
    /// The session that is repeated.
    pub id: String,
    /// `--from`: an action or the path of a location. The default is the step that failed.
    pub from: Option<String>,
    /// `--script`: an edited script.
    pub script: Option<PathBuf>,
    /// The id of the new session; one is made if it is not set.
    pub new_id: Option<String>,
    /// As in [`crate::engine::ResumeRequest`].
    pub any_project: bool,
}

/// What a retry keeps and runs.
#[derive(Clone, Debug, Serialize)]
pub struct RetryPlan {
    pub session: String,
    /// The path of the step from which it runs again.
    pub from: String,
    pub kept: Vec<KeptStep>,
    /// The paths of those kept steps that the earlier session has undone since.
    pub undone: Vec<String>,
    /// The actions of the script from there on, in its order. Routes may leave some out, or repeat some.
    pub runs: Vec<PlannedStep>,
    pub model_calls: PlannedCalls,
}

/// A step whose outcome is kept.
#[derive(Clone, Debug, Serialize)]
pub struct KeptStep {
    pub path: String,
    pub action_type: String,
    pub status: StepStatus,
}

#[derive(Clone, Debug, Serialize)]
pub struct PlannedStep {
    pub action_id: String,
    pub action_type: String,
    /// How many model calls it made in the earlier session; none if it did not run there.
    pub earlier_model_calls: Option<u64>,
    pub calls_model: bool,
}

/// How many model calls a retry takes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PlannedCalls {
    /// The calls of the earlier session from the step on.
    pub earlier: u64,
    /// The replies of them that are used again while the prompts are the same.
    pub recorded: u64,
    /// The number of actions that call a model and did not run in the earlier session.
    pub not_run_yet: u64,
}

/// A checked retry: nothing was written yet.
pub struct PreparedRetry {
    pub plan: RetryPlan,
    /// The findings of the check of an edited script, without errors.
    pub diagnostics: Vec<Diagnostic>,
    row: SessionRow,
    settings: RunSettings,
    earlier: EarlierState,
    pinned: Arc<Pinned>,
    program: Arc<Program>,
    edited: bool,
    new_id: Option<String>,
}

impl Engine {
    /// Checks a retry, and plans it. Nothing is written.
    ///
    /// # Errors
    /// `Usage` if the session has not ended, or the step or the edited script does not fit; `Invalid` if the edited script has errors.
    pub async fn prepare_retry(&self, request: &RetryRequest) -> Result<PreparedRetry, EngineError> {
        let store = self.store().as_ref();
        let id = request.id.as_str();
        let row = stored_session(store, id).await?;
        if !SessionStatus::parse(&row.status).is_some_and(SessionStatus::is_final) {
            return Err(EngineError::usage(msg!("session `{id}` has not ended: its status is `{}`", row.status))
                .with_help("continue it with `bcc-script sessions resume`"));
        }
        let settings: RunSettings = serde_json::from_str(&row.settings)
            .map_err(|error| EngineError::failed(msg!("the settings of session `{id}` cannot be read: {error}")))?;
        if settings.state_file.is_some() {
            // Another session of the same file would contradict what the file says was done.
            return Err(EngineError::usage(msg!(
                "session `{id}` belongs to a state file, which determines where it continues"
            ))
            .with_help(
                "run the file: `bcc-script run FILE`; a step whose `status` is changed to `pending` runs again",
            ));
        }
        let place = settings.place(id, &self.project().directory, request.any_project)?;
        let StoredProgram { pinned, program: before } = self.stored_programs.get(store, &row.manifest).await?;
        let steps = reported_steps(store, id).await?;
        let is_failed = |step: &ReportedStep| matches!(step.status, StepStatus::Failed | StepStatus::Rejected);
        if request.from.is_none() && row.status == SessionStatus::Failed.name() && !steps.iter().any(is_failed) {
            return Err(failed_between_steps(id, steps.last()));
        }
        let (number, seq) = self.step_of(id, request.from.as_deref(), &steps, &before).await?;
        let (kept, from) = steps.split_at(number);
        let Some(step) = from.first() else { return Err(no_failed_step(id)) };
        let Some(earlier) = state_at(store, &row, seq).await? else {
            return Err(self.no_state_before(&row, step, kept, &before).await);
        };
        let undone = undone_since(store, &row, &earlier, &step.path).await?;
        if let (None, Some(first)) = (&request.from, undone.first()) {
            return Err(undone_steps(id, &undone, first, &step.path));
        }
        let is_own = place == SessionPlace::Here && is_own(self.environment(), id, &settings, &row.manifest);
        let allowed = if is_own { settings.allowed.clone() } else { vec![] };
        let settings = RunSettings {
            allowed,
            origin: None,
            copy_of: Some(id.to_owned()),
            retry_of: Some(id.to_owned()),
            retry_seq: Some(earlier.last_seq),
            project: Some(self.project().directory.to_string_lossy().into_owned()),
            ..settings.without_earlier_session()
        };
        let (pinned, program, settings, diagnostics) = match &request.script {
            None => (pinned, before, settings, vec![]),
            Some(file) => {
                let run = RunRequest { file: file.clone(), scheme: settings.scheme.clone(), ..RunRequest::default() };
                let loaded = LoadedProgram::of(self.project(), &run)?;
                self.project().refuse_changes()?;
                check_kept(&row, &before, &loaded.program, kept, step)?;
                let host = self.tools.added_to(
                    host_services(self.project(), self.environment(), &loaded.pinned),
                    self,
                    &loaded.pinned,
                );
                check_permissions(&loaded.program, &host)?;
                let commands = host.permissions.check(COMMAND).is_ok();
                let allowed = host.permissions.allowed.iter().cloned().collect();
                let diagnostics = loaded.diagnostics().to_vec();
                let (pinned, program) = loaded.into_parts();
                (pinned, program, RunSettings { commands, allowed, ..settings }, diagnostics)
            }
        };
        let plan = RetryPlan {
            session: id.to_owned(),
            from: step.path.clone(),
            // What contains the step, or runs at the same time, goes on.
            kept: kept
                .iter()
                .filter(|other| ended_before(other, step))
                .map(|step| KeptStep {
                    path: step.path.clone(),
                    action_type: step.action_type.clone(),
                    status: step.status,
                })
                .collect(),
            undone,
            model_calls: self.calls_after(id, earlier.last_seq).await?,
            runs: vec![],
        };
        let mut plan = RetryPlan { runs: planned(&program, step, &steps, number), ..plan };
        let not_run = plan.runs.iter().filter(|step| step.calls_model && step.earlier_model_calls.is_none());
        plan.model_calls.not_run_yet = not_run.count() as u64;
        let edited = request.script.is_some();
        let new_id = request.new_id.clone();
        Ok(PreparedRetry { plan, diagnostics, row, settings, earlier, pinned, program, edited, new_id })
    }

    /// Creates the session of a prepared retry. Returns its id; the session can then be resumed.
    ///
    /// # Errors
    /// The store cannot be written, or the edited script has no place for the state.
    pub async fn create_retry(&self, prepared: PreparedRetry) -> Result<String, EngineError> {
        let PreparedRetry { row, settings, earlier, pinned, program, edited, new_id: wanted, .. } = prepared;
        let store = self.store().as_ref();
        let (manifest, documents) = pinned.documents()?;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let id = wanted.clone().unwrap_or_else(|| new_id(&program.id));
            let at = stamp(now());
            let target = CopyTarget {
                id: &id,
                at: &at,
                status: SessionStatus::Running,
                renews_declared: false,
                // The earlier session has ended, and this one goes on in its place.
                is_separate: false,
                edited: edited.then_some(program.as_ref()),
                // A step that is repeated is to do again what it does.
                earlier_effects: BTreeMap::new(),
            };
            let CopiedRows { mut first, texts } = copy_of(store, &row, earlier.clone(), &target).await?;
            // The first event names the session that this one repeats.
            if let Some(started) = first.journal.first_mut() {
                let of = format!(",\"retry_of\":{},\"location\":", Value::from(row.id.as_str()));
                started.body = started.body.replacen(",\"location\":", &of, 1);
            }
            let settings = self.with_origin(&id, &program, &settings, &manifest);
            let new = NewSessionRow {
                id: id.clone(),
                user: row.user.clone(),
                script: program.id.clone(),
                script_name: program.name.clone(),
                script_sha256: sha256(pinned.script.text().as_bytes()),
                started_at: at.clone(),
                settings: serde_json::to_string(&settings).map_err(|error| EngineError::failed(error.to_message()))?,
                manifest: manifest.clone(),
                texts: Some(texts),
            };
            match store.create(&new, &documents, &first).await {
                Ok(()) => return Ok(id),
                Err(StoreError::Exists { .. }) if wanted.is_none() && attempts < MAX_ID_ATTEMPTS => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The number of the step that is meant among the steps of a session, and the event with which it started. With several visits, the
    /// last one.
    async fn step_of(
        &self,
        id: &str,
        from: Option<&str>,
        steps: &[ReportedStep],
        program: &Program,
    ) -> Result<(usize, u64), EngineError> {
        let cleanup = cleanup_steps(program);
        let meant = |step: &ReportedStep| match from {
            Some(from) => step.action_id == from || step.path == from,
            // What fails while a session ends is not why it ended.
            None => {
                matches!(step.status, StepStatus::Failed | StepStatus::Rejected)
                    && !cleanup.contains(step.action_id.as_str())
            }
        };
        let number = steps.iter().rposition(meant).ok_or_else(|| match from {
            None => no_failed_step(id),
            Some(from) => {
                let names: BTreeSet<&str> = steps.iter().map(|step| step.action_id.as_str()).collect();
                let names = names.into_iter().map(|name| Message::text(format!("`{name}`")));
                EngineError::usage(msg!("session `{id}` has not started the step `{from}`"))
                    .with_help(msg!("its steps are {}", Message::list(Joint::Comma, names)))
            }
        })?;
        let store = self.store().as_ref();
        let taken_back = TakenBackEvents::of(events_of(store, id, "taken_back").await?);
        let started = taken_back.others(events_of(store, id, "action_started").await?);
        let path = steps.get(number).map(|step| step.path.as_str());
        let is_start = |event: &&Value| event.pointer("/location/path").and_then(Value::as_str) == path;
        let last = started.iter().rev().find(is_start).and_then(|event| event.get("seq")).and_then(Value::as_u64);
        let missing = || EngineError::usage(msg!("session `{id}` did not start its step, so nothing precedes it"));
        Ok((number, last.ok_or_else(missing)?))
    }

    /// The error for a step before which no state is kept: it began in the commit with which the session ended, as after a condition that
    /// cannot be evaluated.
    async fn no_state_before(
        &self,
        row: &SessionRow,
        step: &ReportedStep,
        earlier: &[ReportedStep],
        program: &Program,
    ) -> EngineError {
        let (id, store) = (row.id.as_str(), self.store().as_ref());
        let error =
            EngineError::usage(msg!("the store does not keep the state of session `{id}` before `{}`", step.path));
        for (number, other) in earlier.iter().enumerate().rev() {
            let Some(upto) = earlier.get(..=number) else { continue };
            let Ok((_, seq)) = self.step_of(id, Some(&other.path), upto, program).await else { continue };
            if matches!(state_at(store, row, seq).await, Ok(Some(_))) {
                return error.with_help(msg!("`--from {}` begins with the step before it", other.path));
            }
        }
        error.with_help("nothing is kept before it: run the script again")
    }

    async fn calls_after(&self, id: &str, seq: u64) -> Result<PlannedCalls, EngineError> {
        let store = self.store().as_ref();
        let calls = events_of(store, id, "model_call").await?;
        let after = calls.iter().filter(|call| call.get("seq").and_then(Value::as_u64).is_some_and(|own| own > seq));
        let recorded = count_earlier_replies(store, id, seq).await?;
        Ok(PlannedCalls { earlier: after.count() as u64, recorded: recorded as u64, not_run_yet: 0 })
    }
}

/// The session that the session `id` repeats from a step, and the sessions that repeat `id`.
///
/// # Errors
/// There is no such session, or the store cannot be read.
pub async fn related_sessions(store: &dyn Store, id: &str) -> Result<(Option<String>, Vec<String>), EngineError> {
    let of = |row: &SessionRow| {
        // Settings that this release cannot read name no session.
        let settings: Option<RunSettings> = serde_json::from_str(&row.settings).ok();
        settings.and_then(|settings| settings.retry_of)
    };
    let own = of(&stored_session(store, id).await?);
    let mut sessions = SessionPages::new(store, SessionFilter::default());
    let mut repeating = Vec::new();
    while let Some(row) = sessions.next().await? {
        if of(&row).as_deref() == Some(id) {
            repeating.push(row.id);
        }
    }
    Ok((own, repeating))
}

fn no_failed_step(id: &str) -> EngineError {
    EngineError::usage(msg!("no step of session `{id}` failed"))
        .with_help("name the step from which it is repeated (`from`): an action, or a path as in a report")
}

/// The error for a session that failed although none of its steps did, as after a mistake in the condition of a topic.
fn failed_between_steps(id: &str, last: Option<&ReportedStep>) -> EngineError {
    let error = EngineError::usage(msg!("session `{id}` failed, but none of its steps did"));
    match last {
        Some(step) => error.with_help(msg!("`--from {}` begins with the last step that ran", step.path)),
        None => error.with_help("nothing is kept before it: run the script again"),
    }
}

/// The error for a retry that would take undone steps for done without being told to.
fn undone_steps(id: &str, undone: &[String], first: &str, failed: &str) -> EngineError {
    let names = Message::list(Joint::Comma, undone.iter().map(|path| Message::text(format!("`{path}`"))));
    EngineError::usage(msg!(
        "session `{id}` has undone {names} meanwhile, and from `{failed}` on they would count as done"
    ))
    .with_help(msg!("`--from {first}` runs them again; `--from {failed}` goes on without them"))
}

/// Checks that an edited script has every step that is kept, before the step that runs again.
fn check_kept(
    row: &SessionRow,
    before: &Program,
    edited: &Program,
    kept: &[ReportedStep],
    step: &ReportedStep,
) -> Result<(), EngineError> {
    if edited.id != row.script {
        return Err(EngineError::usage(msg!(
            "session `{}` belongs to the script `{}`, not to `{}`",
            row.id,
            row.script,
            edited.id
        )));
    }
    let ids = |program: &Program| all_steps(program).iter().map(|step| step.id.clone()).collect::<Vec<_>>();
    let (old, new) = (ids(before), ids(edited));
    let position = |ids: &[String], id: &str| ids.iter().position(|known| known == id);
    let needed: BTreeSet<&str> = kept.iter().chain([step]).map(|step| step.action_id.as_str()).collect();
    let missing: Vec<&str> = needed.iter().copied().filter(|id| position(&new, id).is_none()).collect();
    if !missing.is_empty() {
        let names = Message::list(Joint::Comma, missing.iter().map(|id| Message::text(format!("`{id}`"))));
        return Err(EngineError::usage(msg!(
            "the edited script does not have the steps {names}, which have already run"
        ))
        .with_help("keep the ids of these steps, or start a new session with `bcc-script run`"));
    }
    let (here, there) = (position(&old, &step.action_id), position(&new, &step.action_id));
    let moved = |id: &&str| position(&old, id) < here && position(&new, id) > there;
    let moved: Vec<&str> = needed.iter().copied().filter(moved).collect();
    if !moved.is_empty() {
        let names = Message::list(Joint::Comma, moved.iter().map(|id| Message::text(format!("`{id}`"))));
        let message =
            msg!("the edited script has the steps {names}, which have already run, after `{}`", step.action_id);
        return Err(EngineError::usage(message).with_help("keep the order of the steps before it"));
    }
    Ok(())
}

/// All actions of a program in the order of the script, those of skills last.
fn all_steps(program: &Program) -> Vec<&ProgramStep> {
    fn add<'p>(steps: &'p [ProgramStep], found: &mut Vec<&'p ProgramStep>) {
        for step in steps {
            found.push(step);
            step.action.blocks().into_iter().for_each(|block| add(block, found));
        }
    }
    let mut found = Vec::new();
    let topics = program.phases.iter().flat_map(|phase| &phase.topics);
    topics.for_each(|topic| add(&topic.steps, &mut found));
    program.skills.values().for_each(|skill| add(&skill.steps, &mut found));
    found
}

/// The ids of the actions that clean up or undo.
fn cleanup_steps(program: &Program) -> BTreeSet<&str> {
    let topics = program.phases.iter().flat_map(|phase| &phase.topics);
    let finally = topics.flat_map(|topic| topic.finally.iter());
    let compensate = all_steps(program).into_iter().flat_map(|step| step.compensate.iter());
    finally.chain(compensate).map(|step| step.id.as_str()).collect()
}

/// Whether a step had ended when `step` began.
fn ended_before(other: &ReportedStep, step: &ReportedStep) -> bool {
    other.ended_at.as_ref().is_some_and(|ended| *ended <= step.started_at)
}

/// The actions from `step` on, and those that ran at the same time. `steps` are those of the earlier session, in which `step` has the
/// number `number`.
fn planned(program: &Program, step: &ReportedStep, steps: &[ReportedStep], number: usize) -> Vec<PlannedStep> {
    let (before, from) = steps.split_at(number);
    let all = all_steps(program);
    let contains = |other: &ReportedStep, path: &str| path.starts_with(&format!("{}/", other.path));
    let has_branches =
        |other: &&ReportedStep| all.iter().any(|own| own.id == other.action_id && own.kind == "parallel");
    let parallel: Vec<&ReportedStep> =
        before.iter().filter(|other| contains(other, &step.path)).filter(has_branches).collect();
    // What contains the step goes on, and does not begin again. What was left before it, without an end, does not either.
    let is_beside = |other: &&ReportedStep| {
        !contains(other, &step.path) && parallel.iter().any(|parallel| contains(parallel, &other.path))
    };
    let unfinished: Vec<&ReportedStep> =
        before.iter().filter(|other| !ended_before(other, step)).filter(is_beside).collect();
    let earlier: Vec<&ReportedStep> = unfinished.iter().copied().chain(from).collect();
    let unfinished: BTreeSet<&str> = unfinished.iter().map(|other| other.action_id.as_str()).collect();
    let first = all.iter().position(|own| own.id == step.action_id).unwrap_or(all.len());
    let runs = all.into_iter().enumerate().filter(|(at, own)| *at >= first || unfinished.contains(own.id.as_str()));
    runs.map(|(_, own)| {
        let earlier: Vec<&&ReportedStep> = earlier.iter().filter(|step| step.action_id == own.id).collect();
        PlannedStep {
            action_id: own.id.clone(),
            action_type: own.kind.to_owned(),
            earlier_model_calls: (!earlier.is_empty()).then(|| earlier.iter().map(|step| step.model_calls).sum()),
            calls_model: reply(own.kind).is_some() || own.kind == "behavior_loop",
        }
    })
    .collect()
}
