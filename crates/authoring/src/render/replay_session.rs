//! A kept session, repeated in memory up to one of its calls: with the texts that it is pinned to, the answers of its person,
//! and the replies of its models as they are kept. No model is asked, and nothing of it is stored.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
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

/// How many steps a session is led at most.
const MOST_STEPS: usize = 200_000;

/// More than any session used: it came as far as it did, whatever its budget was.
const PLENTY: u64 = 1_000_000_000;

/// A call of a kept session: the step of its turn, and which of the turn's calls it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallPosition {
    /// The index of the turn among the steps.
    pub step: usize,
    /// The index of the call in its turn.
    pub call: usize,
}

/// What the wanted call is sent when its session is repeated.
pub struct RepeatedCall {
    /// With the templates that the session began with.
    pub then: Vec<ChatMessage>,
    /// With today's.
    ///
    /// The error says why there is no prompt.
    pub now: Result<CapturedPrompt, Message>,
}

pub struct SessionRepeater<'a> {
    /// Where it is kept; only read.
    pub archive: &'a dyn Store,
    pub row: &'a SessionRow,
    pub pinned: &'a Arc<Pinned>,
    pub steps: &'a [SentStep],
    /// Whether its clock was a fixed one, which speaks of UTC.
    pub utc: bool,
}

impl SessionRepeater<'_> {
    /// Repeats up to the wanted call. `fits` says whether a prompt is the one that was sent: of the moments that the call may
    /// have been made at, the one counts whose prompt fits. What the call lacks with the templates `now` is noted in `marks`.
    /// Errors: a sentence: why the session does not come to this call again. As [`EngineError`] when what is kept cannot be read.
    pub async fn up_to(
        &self,
        wanted: CallPosition,
        (now, marks): (Templates, &Arc<Marks>),
        fits: impl Fn(&[ChatMessage]) -> bool,
    ) -> Result<Result<RepeatedCall, Message>, EngineError> {
        let (program, clock, player) = (self.program()?, Arc::new(SetClock::new(self.utc)), Player::default());
        let services = Services {
            models: Arc::new(player.clone()),
            clock: Arc::clone(&clock) as Arc<_>,
            observer: Arc::new(IgnoreEvents),
            recheck: Arc::new(PinnedScript::new(Arc::clone(self.pinned))),
            recorder: None,
            outside: Default::default(),
        };
        let mut session = self.begun(program, services.clone()).await?;
        let mut next = 0;
        for _ in 0..MOST_STEPS {
            while let Some(SentStep::Plan(event)) = self.steps.get(next) {
                next += 1;
                if !replanned(&mut session, event).await? {
                    return Ok(Err(Message::word("a plan that changed its topic cannot be applied again")));
                }
            }
            match (session.status(), self.steps.get(next)) {
                (SessionStatus::Running, due) => {
                    if session.look().await? {
                        continue;
                    }
                    let path = session.place().path;
                    let due = match due {
                        Some(SentStep::Turn(turn)) if turn.path == path => Some(turn),
                        _ => None,
                    };
                    if let Some(turn) = due {
                        self.set(&clock, moments(turn).first());
                        if let Some(text) = turn.advice.as_ref().and_then(|advice| advice_of(advice, session.program()))
                        {
                            session.advise(text);
                        }
                        if next == wanted.step {
                            let tried = Tried { session: &session, services: &services, player: &player, turn, wanted };
                            if let Some(then) = self.then(&tried, &clock, &fits).await? {
                                let program = match session.replanned()? {
                                    Some(program) => program,
                                    None => self.program()?,
                                };
                                let now = tried.with(program, now, marks).await?;
                                return Ok(Ok(RepeatedCall { then, now }));
                            }
                        }
                    }
                    player.plays(due.cloned(), None);
                    session.step().await?;
                    let played = player.played();
                    if let Some(why) = played.lost {
                        return Ok(Err(why));
                    }
                    next += usize::from(played.asked > 0);
                }
                (SessionStatus::WaitingInput, Some(SentStep::Answer(text))) => {
                    next += 1;
                    session.answer(text, None).await?;
                }
                (SessionStatus::WaitingInput, _) => {
                    return Ok(Err(Message::word("it waits for an answer where it originally continued")));
                }
                (SessionStatus::Completed | SessionStatus::Failed | SessionStatus::Stopped, _) => {
                    return Ok(Err(Message::word("it ends before the call")));
                }
            }
        }
        Ok(Err(Message::word("it does not reach the call")))
    }

    /// What is sent with the session's own templates; `None` where the next turn asks no model.
    async fn then(
        &self,
        tried: &Tried<'_>,
        clock: &SetClock,
        fits: &impl Fn(&[ChatMessage]) -> bool,
    ) -> Result<Option<Vec<ChatMessage>>, EngineError> {
        let moments = moments(tried.turn);
        let mut first = None;
        for moment in &moments {
            self.set(clock, Some(moment));
            let Ok(heard) = tried.heard(tried.session.program()).await? else { return Ok(None) };
            if fits(&heard.request.messages) {
                return Ok(Some(heard.request.messages));
            }
            first.get_or_insert(heard.request.messages);
        }
        self.set(clock, moments.first());
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

    /// The session at its beginning, in an archive of its own.
    async fn begun(&self, program: Program, services: Services) -> Result<Session, EngineError> {
        let SessionRow { id, user, started_at, .. } = self.row;
        let own = self.archive.variables(id).await?;
        let of_user = self.archive.user_variables(user).await?;
        let is_given = |row: &&VariableRow| row.source == "command_line" && row.at >= *started_at;
        let given = own.iter().chain(of_user.iter()).filter(is_given);
        let given = given.filter_map(|row| Some((row.name.clone(), serde_json::from_str(&row.value).ok()?))).collect();
        let archive = Arc::new(MemoryStore::default());
        // What earlier sessions of the user left, as far as no later one changed it.
        let before = Commit {
            status: SessionStatus::Completed.name().to_owned(),
            user_variables_put: of_user.into_iter().filter(|row| row.at < *started_at).collect(),
            ..Commit::default()
        };
        let earlier = NewSessionRow { id: format!("{id} before"), user: user.clone(), ..NewSessionRow::default() };
        archive.create(&earlier, &[], &before).await?;
        let lock = archive.lock(id, "repeat").await?;
        let program = Arc::new(program);
        let plenty = Some(PLENTY);
        let parts = SessionParts {
            id: id.clone(),
            services,
            archive,
            lock,
            script: program.id.clone(),
            model: "repeat".to_owned(),
            budget: Budget { turns: plenty, model_calls: plenty, tokens: plenty, minutes: plenty },
            program,
        };
        let birth = NewSession {
            user: user.clone(),
            script_sha256: self.row.script_sha256.clone(),
            settings: String::new(),
            manifest: String::new(),
            documents: vec![],
            given,
        };
        Ok(Session::start(parts, birth).await?)
    }
}

/// The turn that is tried and not taken.
struct Tried<'a> {
    session: &'a Session,
    services: &'a Services,
    player: &'a Player,
    turn: &'a SentTurn,
    wanted: CallPosition,
}

impl Tried<'_> {
    /// What the wanted call is sent with this program.
    async fn heard(&self, program: &Program) -> Result<Result<CapturedPrompt, Message>, EngineError> {
        self.player.plays(Some(self.turn.clone()), Some(self.wanted.call));
        let went = self.session.rehearse(program, self.services).await?;
        let Played { heard, lost, .. } = self.player.played();
        Ok(heard.ok_or_else(|| match (went, lost) {
            (Err(ActionError::Failed { message, help: Some(help), .. }), _) => msg!("{message} ({help})"),
            (Err(ActionError::Failed { message, .. }), _) => message,
            (_, Some(why)) => why,
            _ => Message::word("the turn asks no model"),
        }))
    }

    /// The same with other templates, and what is lacking noted.
    async fn with(
        &self,
        mut program: Program,
        templates: Templates,
        marks: &Arc<Marks>,
    ) -> Result<Result<CapturedPrompt, Message>, EngineError> {
        marks.clear();
        program.templates = Arc::new(templates);
        program.texts.note_in(Arc::clone(marks));
        self.heard(&program).await
    }
}

/// The moments that a turn may have begun at: right after what was before it, or as long before its end as its calls took.
fn moments(turn: &SentTurn) -> Vec<jiff::Timestamp> {
    let Some(first) = turn.calls.first() else { return vec![] };
    let ms: u64 = turn.calls.iter().map(|SentCall { ms, .. }| ms).sum();
    let before: Option<jiff::Timestamp> = first.before.parse().ok();
    let took = jiff::SignedDuration::from_millis(i64::try_from(ms).unwrap_or(i64::MAX));
    let end: Option<jiff::Timestamp> = first.at.parse().ok();
    let began = end.and_then(|end| end.checked_sub(took).ok());
    [before, began].into_iter().flatten().collect()
}

/// An analysis as the prompt is told it, in the words of the session's own templates.
fn advice_of(advice: &Value, program: &Program) -> Option<String> {
    let kind = advice.get("action_type")?.as_str()?;
    let analysis: MonitorAnalysis = serde_json::from_value(advice.get("analysis")?.clone()).ok()?;
    let monitor = KINDS.iter().find(|known| known.name() == kind)?.monitor()?;
    let words = program.templates.get(monitor.name(), VERSION).ok().and_then(|found| found.front().feedback.clone());
    monitor.build_feedback_prompt(&analysis, &words.unwrap_or_else(|| monitor.words()))
}

async fn replanned(session: &mut Session, event: &Value) -> Result<bool, EngineError> {
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

/// The models of a repeated session: what is kept of their replies.
#[derive(Clone, Default)]
struct Player(Arc<Mutex<Playing>>);

#[derive(Default)]
struct Playing {
    turn: Option<SentTurn>,
    /// The call at which the turn is broken off.
    until: Option<usize>,
    played: Played,
}

#[derive(Default)]
struct Played {
    asked: usize,
    heard: Option<CapturedPrompt>,
    lost: Option<Message>,
}

impl Player {
    fn plays(&self, turn: Option<SentTurn>, until: Option<usize>) {
        *self.playing() = Playing { turn, until, played: Played::default() };
    }

    fn played(&self) -> Played {
        std::mem::take(&mut self.playing().played)
    }

    fn playing(&self) -> MutexGuard<'_, Playing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reply(&self, model: Option<&str>, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        let playing = &mut *self.playing();
        let over = || ModelError::Config { message: "the repetition ends here".into() };
        let number = playing.played.asked;
        playing.played.asked += 1;
        let turn = playing.turn.as_ref().filter(|turn| turn.path == request.task.path);
        if turn.is_some() && playing.until == Some(number) {
            playing.played.heard = Some(CapturedPrompt { model: model.map(str::to_owned), request: request.clone() });
            return Err(over());
        }
        match turn.and_then(|turn| turn.calls.get(number)) {
            Some(SentCall { reply: Some(text), cut_off, .. }) => {
                Ok(ModelReply { text: text.clone(), cut_off: *cut_off, attempts: 1, ..ModelReply::default() })
            }
            Some(_) => Err(ModelError::CutOff { host: "repeat".to_owned(), attempts: 1 }),
            None => {
                let action = &request.task.action_id;
                playing.played.lost = Some(msg!("`{action}` asks a model where it originally did not ask one"));
                Err(over())
            }
        }
    }
}

impl ModelProviders for Player {
    fn provider(&self, name: Option<&str>) -> Result<Arc<dyn Provider>, ModelError> {
        Ok(Arc::new(RecordedVoice { player: self.clone(), model: name.map(str::to_owned) }))
    }

    fn monitor(&self, _action_id: &str) -> Option<Arc<dyn Provider>> {
        None
    }
}

struct RecordedVoice {
    player: Player,
    model: Option<String>,
}

#[async_trait]
impl Provider for RecordedVoice {
    fn name(&self) -> &str {
        "repeat"
    }

    fn answers(&self, purpose: Purpose, _action_id: &str) -> bool {
        purpose == Purpose::Action
    }

    fn manners_of(&self, _task: &Task) -> ReplyPolicy {
        let playing = self.player.playing();
        let calls = playing.turn.as_ref().map(|turn| turn.calls.as_slice()).unwrap_or_default();
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
    fn a_turn_began_after_what_was_before_it_and_as_long_before_its_end_as_it_took() {
        let call = |before: &str, ms| SentCall {
            before: before.into(),
            at: "2026-11-22T00:01:02Z".into(),
            ms,
            ..SentCall::default()
        };
        let turn = |calls| SentTurn { calls, ..SentTurn::default() };
        let told = |turn: &SentTurn| moments(turn).iter().map(ToString::to_string).collect::<Vec<_>>();
        let both = turn(vec![call("2026-11-22T00:00:01Z", 1_000), call("x", 2_000)]);
        assert_eq!(told(&both), ["2026-11-22T00:00:01Z", "2026-11-22T00:00:59Z"]);
        assert_eq!(told(&turn(vec![call("", 0)])), ["2026-11-22T00:01:02Z"]);
        assert!(moments(&turn(vec![])).is_empty());
    }
}
