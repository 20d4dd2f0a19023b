//! Repeats a stored session in memory up to one of its calls, with its pinned texts, the stored answers and the stored
//! replies of its models. No model is called, and nothing is written to the store.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;

use crate::render::capturing::{CapturedPrompt, IgnoreEvents};
use crate::render::sent_calls::{SentCall, SentStep, SentTurn};
use bcc_engine::clock::SetClock;
use bcc_engine::error::EngineError;
use bcc_engine::pin::Pinned;
use bcc_engine::recheck::PinnedScript;
use bcc_lang::source::compose::parse;
use bcc_lang::template::missing::Marks;
use bcc_lang::template::templates::Templates;
use bcc_llm::model::error::ModelError;
use bcc_llm::model::message::ChatMessage;
use bcc_llm::model::provider::{LiveObserver, Provider, ReplyPolicy};
use bcc_llm::model::reply::ModelReply;
use bcc_llm::model::request::{ModelRequest, Purpose, Task};
use bcc_runtime::actions::KINDS;
use bcc_runtime::actions::monitors::analysis::VERSION;
use bcc_runtime::program::analysis::MonitorAnalysis;
use bcc_runtime::program::decision::GivenDecision;
use bcc_runtime::program::flow::ActionError;
use bcc_runtime::program::limits::Budget;
use bcc_runtime::program::location::EventLocation;
use bcc_runtime::program::models::ModelProviders;
use bcc_runtime::program::program::Program;
use bcc_runtime::program::services::Services;
use bcc_runtime::run::head::SessionStatus;
use bcc_runtime::run::session::Session;
use bcc_runtime::run::start::{NewSession, SessionParts};
use bcc_store::contract::Store;
use bcc_store::memory::MemoryStore;
use bcc_store::rows::{Commit, NewSessionRow, SessionRow, VariableRow};

/// The maximum number of steps of a repeated session.
const MAX_STEPS: usize = 200_000;

/// An effectively unlimited budget: the original session got this far, whatever its budget was.
const UNLIMITED: u64 = 1_000_000_000;

/// The position of a call in a stored session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallPosition {
    /// The index of the turn among the steps.
    pub step: usize,
    /// The index of the call in its turn.
    pub call: usize,
}

/// The prompts of the selected call when its session is repeated.
pub(crate) struct RepeatedCall {
    /// With the templates of the session.
    pub original: Vec<ChatMessage>,
    /// With the current templates.
    ///
    /// The error is the reason why there is no prompt.
    pub current: Result<CapturedPrompt, Message>,
}

pub(crate) struct SessionRepeater<'a> {
    /// The store of the session; only read.
    pub store: &'a dyn Store,
    pub row: &'a SessionRow,
    pub pinned: &'a Arc<Pinned>,
    pub steps: &'a [SentStep],
    /// Whether the session used a fixed clock, which has the time zone UTC.
    pub utc: bool,
}

impl SessionRepeater<'_> {
    /// Repeats the session up to the selected call. `is_original` compares a prompt with the original one; it selects
    /// among the possible times of the call. Names that are missing in the templates `now` are recorded in `marks`.
    /// Errors: a message if the session does not reach the call again; an [`EngineError`] if the stored data cannot be read.
    pub(crate) async fn repeat_to(
        &self,
        wanted: CallPosition,
        (now, marks): (Templates, &Arc<Marks>),
        is_original: impl Fn(&[ChatMessage]) -> bool,
    ) -> Result<Result<RepeatedCall, Message>, EngineError> {
        let (program, clock, player) = (self.program()?, Arc::new(SetClock::new(self.utc)), Player::default());
        let services = Services {
            models: Arc::new(player.clone()),
            clock: Arc::clone(&clock) as Arc<_>,
            observer: Arc::new(IgnoreEvents),
            recheck: Arc::new(PinnedScript::new(Arc::clone(self.pinned))),
            recorder: None,
            keeps_globals: false,
            host: Default::default(),
        };
        let mut session = self.start(program, services.clone()).await?;
        let mut next = 0;
        for _ in 0..MAX_STEPS {
            while let Some(SentStep::Plan(event)) = self.steps.get(next) {
                next += 1;
                if !apply_plan(&mut session, event).await? {
                    return Ok(Err(Message::word("a plan that changed its topic cannot be applied again")));
                }
            }
            match (session.status(), self.steps.get(next)) {
                (SessionStatus::Running, due) => {
                    if session.check_triggers_on_answer().await? {
                        continue;
                    }
                    let path = session.place().path;
                    let due = match due {
                        Some(SentStep::Turn(turn)) if turn.path == path => Some(turn),
                        _ => None,
                    };
                    if let Some(turn) = due {
                        self.set(&clock, start_times(turn).first());
                        if let Some(text) =
                            turn.advice.as_ref().and_then(|advice| advice_text(advice, session.program()))
                        {
                            session.advise(text);
                        }
                        if next == wanted.step {
                            let dry_run =
                                DryRun { session: &session, services: &services, player: &player, turn, wanted };
                            if let Some(original) = self.original_prompt(&dry_run, &clock, &is_original).await? {
                                let program = match session.replanned()? {
                                    Some(program) => program,
                                    None => self.program()?,
                                };
                                let now = dry_run.prompt_with(program, now, marks).await?;
                                return Ok(Ok(RepeatedCall { original, current: now }));
                            }
                        }
                    }
                    player.load_turn(due.cloned(), None);
                    session.step().await?;
                    let played = player.take_result();
                    if let Some(reason) = played.error {
                        return Ok(Err(reason));
                    }
                    next += usize::from(played.calls > 0);
                }
                (SessionStatus::WaitingInput, Some(SentStep::Answer(text))) => {
                    next += 1;
                    session.answer(text, None).await?;
                }
                (SessionStatus::WaitingInput, _) => {
                    return Ok(Err(Message::word("it waits for an answer where it originally continued")));
                }
                (SessionStatus::WaitingApproval, Some(SentStep::Decision(event))) => {
                    next += 1;
                    let given = GivenDecision::deserialize(event);
                    let given = given
                        .map_err(|error| EngineError::failed(msg!("a stored decision cannot be read: {error}")))?;
                    let action = event.pointer("/location/action_id").and_then(Value::as_str);
                    session.repeat_decision(action, given).await?;
                }
                (SessionStatus::WaitingApproval | SessionStatus::WaitingTime, _) => {
                    return Ok(Err(Message::word("it waits for a decision where it originally continued")));
                }
                (
                    SessionStatus::Completed
                    | SessionStatus::Failed
                    | SessionStatus::Stopped
                    | SessionStatus::Cancelled,
                    _,
                ) => {
                    return Ok(Err(Message::word("it ends before the call")));
                }
            }
        }
        Ok(Err(Message::word("it does not reach the call")))
    }

    /// The prompt with the session's own templates; `None` if the next turn calls no model.
    async fn original_prompt(
        &self,
        dry_run: &DryRun<'_>,
        clock: &SetClock,
        is_original: &impl Fn(&[ChatMessage]) -> bool,
    ) -> Result<Option<Vec<ChatMessage>>, EngineError> {
        let start_times = start_times(dry_run.turn);
        let mut first = None;
        for moment in &start_times {
            self.set(clock, Some(moment));
            let Ok(captured) = dry_run.captured_prompt(dry_run.session.program()).await? else { return Ok(None) };
            if is_original(&captured.request.messages) {
                return Ok(Some(captured.request.messages));
            }
            first.get_or_insert(captured.request.messages);
        }
        self.set(clock, start_times.first());
        Ok(first)
    }

    fn set(&self, clock: &SetClock, moment: Option<&jiff::Timestamp>) {
        if let Some(moment) = moment {
            clock.set(*moment);
        }
    }

    fn program(&self) -> Result<Program, EngineError> {
        let (program, found) = self.pinned.check(parse(&self.pinned.script))?;
        program.ok_or(EngineError::Invalid(found))
    }

    /// Starts the session again, in its own in-memory store.
    async fn start(&self, program: Program, services: Services) -> Result<Session, EngineError> {
        let SessionRow { id, user, started_at, .. } = self.row;
        let own = self.store.variables(id).await?;
        let of_user = self.store.user_variables(user).await?;
        let is_given = |row: &&VariableRow| row.source == "command_line" && row.at >= *started_at;
        let given = own.iter().chain(of_user.iter()).filter(is_given);
        let given = given.filter_map(|row| Some((row.name.clone(), serde_json::from_str(&row.value).ok()?))).collect();
        let store = Arc::new(MemoryStore::default());
        // The variables that earlier sessions of the user stored, unless a later one changed them.
        let before = Commit {
            status: SessionStatus::Completed.name().to_owned(),
            user_variables_put: of_user.into_iter().filter(|row| row.at < *started_at).collect(),
            ..Commit::default()
        };
        let earlier = NewSessionRow { id: format!("{id} before"), user: user.clone(), ..NewSessionRow::default() };
        store.create(&earlier, &[], &before).await?;
        let lock = store.lock(id, "repeat").await?;
        let program = Arc::new(program);
        let unlimited = Some(UNLIMITED);
        let parts = SessionParts {
            id: id.clone(),
            services,
            store,
            lock,
            script: program.id.clone(),
            model: "repeat".to_owned(),
            budget: Budget { turns: unlimited, model_calls: unlimited, tokens: unlimited, minutes: unlimited },
            program,
        };
        let new_session = NewSession {
            user: user.clone(),
            script_sha256: self.row.script_sha256.clone(),
            settings: String::new(),
            manifest: String::new(),
            documents: vec![],
            given,
            notebook: None,
        };
        Ok(Session::start(parts, new_session).await?)
    }
}

/// A turn that is run without being committed.
struct DryRun<'a> {
    session: &'a Session,
    services: &'a Services,
    player: &'a Player,
    turn: &'a SentTurn,
    wanted: CallPosition,
}

impl DryRun<'_> {
    /// The prompt of the selected call with this program.
    async fn captured_prompt(&self, program: &Program) -> Result<Result<CapturedPrompt, Message>, EngineError> {
        self.player.load_turn(Some(self.turn.clone()), Some(self.wanted.call));
        let result = self.session.dry_run_turn(program, self.services).await?;
        let TurnResult { captured, error, .. } = self.player.take_result();
        Ok(captured.ok_or_else(|| match (result, error) {
            (
                Err(
                    ActionError::Failed { message, help: Some(help), .. }
                    | ActionError::Prompt { message, help: Some(help) },
                ),
                _,
            ) => msg!("{message} ({help})"),
            (Err(ActionError::Failed { message, .. } | ActionError::Prompt { message, .. }), _) => message,
            (_, Some(why)) => why,
            _ => Message::word("the turn asks no model"),
        }))
    }

    /// The prompt with other templates; missing names are recorded in `marks`.
    async fn prompt_with(
        &self,
        mut program: Program,
        templates: Templates,
        marks: &Arc<Marks>,
    ) -> Result<Result<CapturedPrompt, Message>, EngineError> {
        marks.clear();
        program.templates = Arc::new(templates);
        program.texts.record_in(Arc::clone(marks));
        self.captured_prompt(&program).await
    }
}

/// The possible start times of a turn: right after the previous event, or the duration of its calls before its end.
fn start_times(turn: &SentTurn) -> Vec<jiff::Timestamp> {
    let Some(first) = turn.calls.first() else { return vec![] };
    let ms: u64 = turn.calls.iter().map(|SentCall { ms, .. }| ms).sum();
    let before: Option<jiff::Timestamp> = first.before.parse().ok();
    let duration = jiff::SignedDuration::from_millis(i64::try_from(ms).unwrap_or(i64::MAX));
    let end: Option<jiff::Timestamp> = first.at.parse().ok();
    let start_time = end.and_then(|end| end.checked_sub(duration).ok());
    [before, start_time].into_iter().flatten().collect()
}

/// The advice text of an analysis, with the feedback texts of the session's own templates.
fn advice_text(advice: &Value, program: &Program) -> Option<String> {
    let kind = advice.get("action_type")?.as_str()?;
    let analysis: MonitorAnalysis = serde_json::from_value(advice.get("analysis")?.clone()).ok()?;
    let monitor = KINDS.iter().find(|known| known.name() == kind)?.monitor()?;
    let template = program.templates.get(monitor.name(), VERSION).ok();
    let language = template.as_ref().map_or_else(|| program.templates.language(), |found| found.language());
    let feedback = template.and_then(|found| found.front().feedback.clone());
    monitor.build_feedback_prompt(&analysis, &feedback.unwrap_or_else(|| monitor.feedback_texts(language)))
}

async fn apply_plan(session: &mut Session, event: &Value) -> Result<bool, EngineError> {
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let round = event.pointer("/location/round").and_then(Value::as_u64).and_then(|round| u32::try_from(round).ok());
    let at = EventLocation {
        path: text("/location/path"),
        action_id: Some(text("/from")),
        round,
        ..EventLocation::default()
    };
    match event.get("plan").cloned().map(serde_json::from_value) {
        Some(Ok(plan)) => Ok(session.replan(&at, plan).await?),
        _ => Ok(false),
    }
}

/// The models of a repeated session: they return the stored replies.
#[derive(Clone, Default)]
struct Player(Arc<Mutex<PlayerState>>);

#[derive(Default)]
struct PlayerState {
    turn: Option<SentTurn>,
    /// The call at which the turn is aborted.
    until: Option<usize>,
    played: TurnResult,
}

#[derive(Default)]
struct TurnResult {
    calls: usize,
    captured: Option<CapturedPrompt>,
    error: Option<Message>,
}

impl Player {
    fn load_turn(&self, turn: Option<SentTurn>, until: Option<usize>) {
        *self.state() = PlayerState { turn, until, played: TurnResult::default() };
    }

    fn take_result(&self) -> TurnResult {
        std::mem::take(&mut self.state().played)
    }

    fn state(&self) -> MutexGuard<'_, PlayerState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reply(&self, model: Option<&str>, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        let state = &mut *self.state();
        let over = || ModelError::Config { message: "the repetition ends here".into() };
        let number = state.played.calls;
        state.played.calls += 1;
        let turn = state.turn.as_ref().filter(|turn| turn.path == request.task.path);
        if turn.is_some() && state.until == Some(number) {
            state.played.captured = Some(CapturedPrompt { model: model.map(str::to_owned), request: request.clone() });
            return Err(over());
        }
        match turn.and_then(|turn| turn.calls.get(number)) {
            Some(SentCall { reply: Some(text), cut_off, .. }) => {
                Ok(ModelReply { text: text.clone(), cut_off: *cut_off, attempts: 1, ..ModelReply::default() })
            }
            Some(_) => Err(ModelError::CutOff { host: "repeat".to_owned(), attempts: 1 }),
            None => {
                let action = &request.task.action_id;
                state.played.error = Some(msg!("`{action}` asks a model where it originally did not ask one"));
                Err(over())
            }
        }
    }
}

impl ModelProviders for Player {
    fn provider(&self, name: Option<&str>) -> Result<Arc<dyn Provider>, ModelError> {
        Ok(Arc::new(RecordedProvider { player: self.clone(), model: name.map(str::to_owned) }))
    }

    fn monitor(&self, _action_id: &str) -> Option<Arc<dyn Provider>> {
        None
    }
}

struct RecordedProvider {
    player: Player,
    model: Option<String>,
}

#[async_trait]
impl Provider for RecordedProvider {
    fn name(&self) -> &str {
        "repeat"
    }

    fn answers(&self, purpose: Purpose, _action_id: &str) -> bool {
        purpose == Purpose::Action
    }

    fn reply_policy_for(&self, _task: &Task) -> ReplyPolicy {
        let state = self.player.state();
        let calls = state.turn.as_ref().map(|turn| turn.calls.as_slice()).unwrap_or_default();
        let reask = u32::try_from(calls.len().saturating_sub(1)).unwrap_or(u32::MAX);
        ReplyPolicy { repair: calls.iter().any(|call| call.repaired), reask }
    }

    async fn complete(&self, request: &ModelRequest, _live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        self.player.reply(self.model.as_deref(), request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_starts_after_the_previous_event_or_its_duration_before_its_end() {
        let call = |before: &str, ms| SentCall {
            before: before.into(),
            at: "2026-11-22T00:01:02Z".into(),
            ms,
            ..SentCall::default()
        };
        let turn = |calls| SentTurn { calls, ..SentTurn::default() };
        let times = |turn: &SentTurn| start_times(turn).iter().map(ToString::to_string).collect::<Vec<_>>();
        let both = turn(vec![call("2026-11-22T00:00:01Z", 1_000), call("x", 2_000)]);
        assert_eq!(times(&both), ["2026-11-22T00:00:01Z", "2026-11-22T00:00:59Z"]);
        assert_eq!(times(&turn(vec![call("", 0)])), ["2026-11-22T00:01:02Z"]);
        assert!(start_times(&turn(vec![])).is_empty());
    }
}
