//! Begins a session again at one of its answers, with another script, other templates or another model (docs/begin-again.md): what was before
//! is kept, the person's later answers are given again, and models are asked only for what was not asked before.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::msg;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_runtime::program::custom::COMMAND;
use bcc_runtime::program::program::Program;
use bcc_runtime::run::head::{SessionStatus, earlier_effect};
use bcc_runtime::run::retry::{CopiedRows, CopyTarget, copy_of, rename_events, state_at};
use bcc_store::error::StoreError;
use bcc_store::rows::{Commit, DocumentRow, EarlierState, NewSessionRow, SessionRow};
use serde::Serialize;
use serde_json::Value;

use crate::again::given_answers::answers_after;
use crate::clock::{now, stamp};
use crate::engine::{Engine, RunRequest};
use crate::error::EngineError;
use crate::export::{events_of, stored_session};
use crate::fork::{ForkPoint, MAX_ATTEMPTS};
use crate::host_services::{check_permissions, host_services};
use crate::loaded::LoadedProgram;
use crate::pin::{Pinned, sha256};
use crate::session_ids::{MAX_ID_ATTEMPTS, new_id};
use crate::settings::{RunSettings, SessionPlace};
use crate::stored_programs::StoredProgram;
use crate::taken_back::TakenBackEvents;
use crate::trust::own_sessions::is_own;

/// Where a session begins again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgainPoint {
    /// At this answer, the first one that is given again. What was before it is kept; with 0, nothing is.
    Turn(u64),
    /// At the answer for which the session waited after this event.
    AfterEvent(u64),
}

impl Default for AgainPoint {
    fn default() -> Self {
        Self::Turn(0)
    }
}

/// A session to begin again.
#[derive(Clone, Debug, Default)]
pub struct AgainRequest {
    /// The session, which does not change and may be running.
    pub id: String,
    pub at: AgainPoint,
    /// The script and the templates as they are now; without it, those with which the session started.
    pub script: Option<PathBuf>,
    /// Another scheme of templates. Needs `script`.
    pub scheme: Option<String>,
    /// Another model, which is asked for everything.
    pub model: Option<String>,
    /// The id of the new session; one is made if it is not set.
    pub new_id: Option<String>,
    /// Whether the answers are given by every process that opens the new session ([`crate::engine::OpenedSession::answers`]), or only by the
    /// one that creates it.
    pub gives_answers: bool,
    /// As in [`crate::engine::ResumeRequest`].
    pub any_project: bool,
}

/// What a session that begins again takes.
#[derive(Clone, Debug, Serialize)]
pub struct AgainPlan {
    pub session: String,
    pub turn: u64,
    /// How many answers of the person are given again.
    pub answers: u64,
    pub model_calls: RepeatedCalls,
    /// The first call for which a model is asked, if there is one.
    pub first_difference: Option<CallPlace>,
    /// How many effects the session had from there on. Each of them is repeated only if the person says so.
    pub effects: u64,
}

/// The model calls of the earlier session from the answer on.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RepeatedCalls {
    pub earlier: u64,
    /// Those whose reply is used again, because their prompt is the same.
    pub recorded: u64,
    /// The others: about as many times, a model is asked.
    pub asked: u64,
}

/// Where a model is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallPlace {
    pub action_id: String,
    pub purpose: &'static str,
    pub round: u32,
}

/// A session that can begin again: nothing was written yet.
pub struct PreparedAgain {
    pub plan: AgainPlan,
    /// The findings of the check of the script, without errors.
    pub diagnostics: Vec<Diagnostic>,
    /// The answers to give to the new session, whenever it waits for one.
    pub answers: Vec<String>,
    pub(crate) copy: AgainCopy,
    new_id: Option<String>,
}

/// What the new session is made of.
pub(crate) struct AgainCopy {
    pub(crate) settings: RunSettings,
    pub(crate) pinned: Arc<Pinned>,
    pub(crate) program: Arc<Program>,
    /// The rows of the earlier session, with its id.
    pub(crate) rows: CopiedRows,
    earlier: SessionRow,
}

/// What a session is before it begins again, all of it from the same moment.
struct AgainState {
    plan: AgainPlan,
    diagnostics: Vec<Diagnostic>,
    answers: Vec<String>,
    copy: AgainCopy,
}

impl Engine {
    /// Checks how a session begins again, and which model calls this takes. No model is called, and nothing is written.
    ///
    /// # Errors
    /// `Usage` if the session has not as many answers, its state is not kept, or the script does not fit; `Invalid` if the script has errors.
    pub async fn prepare_again(&self, request: &AgainRequest) -> Result<PreparedAgain, EngineError> {
        let AgainState { mut plan, diagnostics, answers, copy } = self.again_state(request).await?;
        let previewed = self.preview_again(&copy, &answers).await?;
        let earlier = plan.model_calls.earlier;
        let recorded = previewed.recorded.min(earlier);
        plan.model_calls = RepeatedCalls { earlier, recorded, asked: earlier - recorded };
        plan.first_difference = previewed.first_difference;
        Ok(PreparedAgain { plan, diagnostics, answers, copy, new_id: request.new_id.clone() })
    }

    /// Reads the session without locking it: if it went on in the meantime, it is read again.
    async fn again_state(&self, request: &AgainRequest) -> Result<AgainState, EngineError> {
        let id = request.id.as_str();
        for _ in 0..MAX_ATTEMPTS {
            let row = stored_session(self.store().as_ref(), id).await?;
            let revision = row.revision;
            let state = self.again_state_of(request, row).await;
            // Of a session that has gone on, also an error may be about nothing.
            if stored_session(self.store().as_ref(), id).await?.revision == revision {
                return state;
            }
        }
        Err(EngineError::failed(msg!("session `{id}` goes on all the time; try again")))
    }

    async fn again_state_of(&self, request: &AgainRequest, row: SessionRow) -> Result<AgainState, EngineError> {
        let store = self.store().as_ref();
        let id = request.id.as_str();
        let settings: RunSettings = serde_json::from_str(&row.settings)
            .map_err(|error| EngineError::failed(msg!("the settings of session `{id}` cannot be read: {error}")))?;
        if settings.state_file.is_some() {
            return Err(EngineError::usage(msg!("session `{id}` carries a state file and cannot begin again")));
        }
        let earlier = self.state_before(&row, request.at).await?;
        let turn = if request.at == AgainPoint::Turn(0) { 0 } else { earlier.answers + 1 };
        let taken_back = TakenBackEvents::of(events_of(store, id, "taken_back").await?);
        let after = |events: Vec<Value>| {
            let is_later = |event: &Value| event.get("seq").and_then(Value::as_u64) > Some(earlier.last_seq);
            taken_back.others(events).into_iter().filter(is_later).collect::<Vec<_>>()
        };
        let answers = answers_after(store, id, earlier.last_seq).await?;
        let mut earlier_effects = BTreeMap::new();
        for effect in after(events_of(store, id, "effect_started").await?) {
            let name = |pointer: &str| effect.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            *earlier_effects.entry(earlier_effect(name("/kind"), name("/location/action_id"))).or_default() += 1;
        }
        let calls = after(events_of(store, id, "model_call").await?).len() as u64;
        let effects = earlier_effects.values().sum();
        let given_answers = request.gives_answers.then_some(answers.len() as u64);
        let settings = RunSettings { given_answers, ..settings };
        let (copy, diagnostics) = self.again_copy(request, row, settings, (earlier, earlier_effects)).await?;
        let plan = AgainPlan {
            session: id.to_owned(),
            turn,
            answers: answers.len() as u64,
            model_calls: RepeatedCalls { earlier: calls, recorded: 0, asked: calls },
            first_difference: None,
            effects,
        };
        Ok(AgainState { plan, diagnostics, answers, copy })
    }

    /// Creates the session. Returns its id; it can then be resumed, and be given the answers.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn create_again(&self, prepared: &PreparedAgain) -> Result<String, EngineError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let id = prepared.new_id.clone().unwrap_or_else(|| new_id(&prepared.copy.program.id));
            let (session, documents, first) = self.again_rows(&prepared.copy, &id).await?;
            match self.store().create(&session, &documents, &first).await {
                Ok(()) => return Ok(id),
                Err(StoreError::Exists { .. }) if prepared.new_id.is_none() && attempts < MAX_ID_ATTEMPTS => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The state in which the session waited for the answer; the one in which it started for 0.
    async fn state_before(&self, row: &SessionRow, at: AgainPoint) -> Result<EarlierState, EngineError> {
        let id = row.id.as_str();
        let point = match at {
            AgainPoint::Turn(0) => {
                let first = state_at(self.store().as_ref(), row, 1).await?;
                let missing = || EngineError::usage(msg!("the store does not keep the start of session `{id}`"));
                return first.ok_or_else(missing);
            }
            AgainPoint::Turn(turn) if turn > row.answers + 1 => {
                return Err(no_answer(row, turn));
            }
            AgainPoint::Turn(turn) => ForkPoint::AfterAnswers(turn - 1),
            AgainPoint::AfterEvent(seq) => ForkPoint::AfterEvent(seq),
        };
        let state = match self.state_at_point(row, point).await {
            // Only a session that waits for its next answer has the state before it.
            Err(EngineError::Usage { .. }) if at == AgainPoint::Turn(row.answers + 1) => {
                return Err(no_answer(row, row.answers + 1));
            }
            state => state?,
        };
        if SessionStatus::parse(&state.status) != Some(SessionStatus::WaitingInput) {
            let message = msg!("session `{id}` was not waiting for an answer there: its status was `{}`", state.status);
            return Err(EngineError::usage(message));
        }
        Ok(state)
    }

    async fn again_copy(
        &self,
        request: &AgainRequest,
        row: SessionRow,
        settings: RunSettings,
        (earlier, earlier_effects): (EarlierState, BTreeMap<String, u64>),
    ) -> Result<(AgainCopy, Vec<Diagnostic>), EngineError> {
        let id = row.id.clone();
        let place = settings.place(&id, &self.project().directory, request.any_project)?;
        // What the earlier session may do counts for the new one only if it was this user who allowed it.
        let is_own = place == SessionPlace::Here && is_own(self.environment(), &id, &settings, &row.manifest);
        let settings = RunSettings {
            allowed: if is_own { settings.allowed.clone() } else { vec![] },
            origin: None,
            copy_of: Some(id.clone()),
            retry_of: Some(id.clone()),
            retry_seq: Some(earlier.last_seq),
            repeats_answers: true,
            // Another model says other things.
            asks_anew: request.model.is_some(),
            project: Some(self.project().directory.to_string_lossy().into_owned()),
            model: request.model.clone().or_else(|| settings.model.clone()),
            scheme: request.scheme.clone().or_else(|| settings.scheme.clone()),
            ..settings
        };
        let Some(file) = &request.script else {
            if request.scheme.is_some() {
                return Err(EngineError::usage(msg!(
                    "another scheme needs the script as well, whose templates are used as they are now"
                )));
            }
            let stored = self.stored_programs.get(self.store().as_ref(), &row.manifest).await?;
            let StoredProgram { pinned, program } = stored;
            let rows = self.copied_rows(&row, earlier, None, earlier_effects).await?;
            return Ok((AgainCopy { settings, pinned, program, rows, earlier: row }, vec![]));
        };
        let run = RunRequest { file: file.clone(), scheme: settings.scheme.clone(), ..RunRequest::default() };
        let loaded = LoadedProgram::of(self.project(), &run)?;
        self.project().refuse_changes()?;
        if loaded.program.id != row.script {
            let (script, other) = (&row.script, &loaded.program.id);
            return Err(EngineError::usage(msg!("session `{id}` belongs to the script `{script}`, not to `{other}`")));
        }
        let host = self.tools.added_to(
            host_services(self.project(), self.environment(), &loaded.pinned),
            self,
            &loaded.pinned,
        );
        check_permissions(&loaded.program, &host)?;
        let commands = host.permissions.check(COMMAND).is_ok();
        let allowed = host.permissions.allowed.iter().cloned().collect();
        let settings = RunSettings { commands, allowed, ..settings };
        let diagnostics = loaded.diagnostics().to_vec();
        let (pinned, program) = loaded.into_parts();
        let rows = self.copied_rows(&row, earlier, Some(program.as_ref()), earlier_effects).await?;
        Ok((AgainCopy { settings, pinned, program, rows, earlier: row }, diagnostics))
    }

    /// The rows of the session as it was, as they fit the edited script.
    async fn copied_rows(
        &self,
        row: &SessionRow,
        earlier: EarlierState,
        edited: Option<&Program>,
        earlier_effects: BTreeMap<String, u64>,
    ) -> Result<CopiedRows, EngineError> {
        let at = stamp(now());
        let status = SessionStatus::parse(&earlier.status).unwrap_or(SessionStatus::Running);
        let target = CopyTarget {
            id: &row.id,
            at: &at,
            status,
            edited,
            renews_declared: true,
            is_separate: true,
            earlier_effects,
        };
        let CopiedRows { mut first, texts } = copy_of(self.store().as_ref(), row, earlier, &target).await?;
        // It is somebody else's: what a person has said once must not change what other sessions know of them.
        let known = self.store().user_variables(&row.user).await?;
        first.user_variables_put.retain(|row| known.iter().all(|known| known.name != row.name));
        first.user_variables_put.extend(known);
        Ok(CopiedRows { first, texts })
    }

    /// The rows with which the new session is created: in the engine's store, or in one for a preview.
    pub(crate) async fn again_rows(
        &self,
        copy: &AgainCopy,
        id: &str,
    ) -> Result<(NewSessionRow, Vec<DocumentRow>, Commit), EngineError> {
        let AgainCopy { settings, pinned, program, rows: CopiedRows { first, texts }, earlier } = copy;
        let (manifest, documents) = pinned.documents()?;
        let at = stamp(now());
        let mut first = Commit { updated_at: at.clone(), ..first.clone() };
        rename_events(&mut first.journal, &earlier.id, id);
        if let Some(started) = first.journal.first_mut() {
            let of = format!(",\"retry_of\":{},\"location\":", Value::from(earlier.id.as_str()));
            started.body = started.body.replacen(",\"location\":", &of, 1);
        }
        let settings = self.with_origin(id, program, settings, &manifest);
        let session = NewSessionRow {
            id: id.to_owned(),
            user: id.to_owned(),
            script: program.id.clone(),
            script_name: program.name.clone(),
            script_sha256: sha256(pinned.script.text().as_bytes()),
            started_at: at,
            settings: serde_json::to_string(&settings).map_err(|error| EngineError::failed(error.to_message()))?,
            manifest,
            texts: Some(texts.clone()),
        };
        Ok((session, documents, first))
    }
}

fn no_answer(row: &SessionRow, turn: u64) -> EngineError {
    EngineError::usage(msg!("session `{id}` has {} answers, and no answer {turn}", row.answers, id = row.id))
}
