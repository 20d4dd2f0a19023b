//! Runs turns one after the other, each committed with its changes, until the session must wait.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;
use tracing::{Instrument, Span};

use crate::notebook::kernel::contract::KernelError;
use crate::program::decision::DecisionRequest;
use crate::program::event::Event;
use crate::program::flow::{ActionError, Call, EffectAnnouncement, Flow, StepBlock, WaitReason};
use crate::program::interrupted_effects::EFFECT_INTERRUPTED;
use crate::program::location::EventLocation;
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::program::Program;
use crate::program::services::Services;
use crate::program::turn::{Turn, TurnResources};
use crate::program::work::TurnWork;
use crate::run::draft::CommitDraft;
use crate::run::error::RunError;
use crate::run::frames::{Frame, FrameTarget, block_component, child};
use crate::run::head::SessionStatus;
use crate::run::insertion::Insertion;
use crate::run::monitors::TurnToWatch;
use crate::run::notebook::check_cell_limits;
use crate::run::position::Position;
use crate::run::session::{Session, SessionPause};
use crate::run::spans::{record_pause, record_turn};
use crate::run::transitions::SessionFailure;
use crate::run::triggers::TriggerCheck;
use crate::run::turn_work::keep_interrupted_cells;
use bcc_lang::script::route_parser::RouteTarget;

/// The maximum number of consecutive turns of an action without a wait ([`Flow::Again`]).
const MAX_TURNS_IN_A_ROW: u32 = 100;

/// The action of a turn: its frame, the frame of its topic or skill, its location with the current round, its kind.
pub(crate) struct ActionContext<'a> {
    pub(crate) key: &'a str,
    pub(crate) visit_key: &'a str,
    pub(crate) place: EventLocation,
    pub(crate) kind: &'static str,
}

/// The next step after a turn, if no trigger fires and no change leads elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NextStep {
    Turn,
    Wait(WaitReason),
    /// The session opens this request and waits for it.
    Request(Box<DecisionRequest>),
    /// The session announces this effect, which starts with the next turn.
    Effect(EffectAnnouncement),
    /// The branch that the session works in has no more actions.
    BranchEnd,
    End,
}

impl Session {
    /// Runs turns until an answer is needed or the session ends. Dropping the future between two commits is safe: the changes of the
    /// running turn are dropped, and the same turn runs again.
    /// Errors: The store failed. The session object must then be dropped; the stored session is intact.
    pub async fn advance(&mut self) -> Result<SessionPause, RunError> {
        self.advance_for(&Span::current()).await
    }

    /// [`Session::advance`] because of something that has a span of its own in another task.
    ///
    /// # Errors
    /// As [`Session::advance`].
    pub async fn advance_for(&mut self, cause: &Span) -> Result<SessionPause, RunError> {
        let span = self.session_span(cause);
        let pause = self.advance_and_write().instrument(span.clone()).await;
        record_pause(&span, &pause);
        pause
    }

    async fn advance_and_write(&mut self) -> Result<SessionPause, RunError> {
        let pause = self.advance_to_pause().await;
        if pause.is_err() && self.ensure_consistent().is_ok() {
            // What was done before the turn that failed is kept.
            self.write_held().await?;
        }
        pause
    }

    async fn advance_to_pause(&mut self) -> Result<SessionPause, RunError> {
        loop {
            self.commit_results().await?;
            if let Some(reason) = self.halted.take() {
                return Err(RunError::Halted(reason));
            }
            match self.status {
                SessionStatus::Running => {
                    self.refresh_globals().await?;
                    let span = self.turn_span();
                    self.one_turn().instrument(span).await?;
                }
                // Other branches may wait for a time while one asks about an effect.
                SessionStatus::WaitingInput | SessionStatus::WaitingApproval | SessionStatus::WaitingTime => {
                    if !self.take_due().await? {
                        return Ok(SessionPause::Waiting);
                    }
                }
                SessionStatus::Stopped => return Ok(SessionPause::Stopped),
                SessionStatus::Completed => return Ok(self.stop_kernel(SessionPause::Completed).await),
                SessionStatus::Cancelled => return Ok(self.stop_kernel(SessionPause::Cancelled).await),
                SessionStatus::Failed => return Ok(self.stop_kernel(SessionPause::Failed).await),
            }
        }
    }

    /// The kernel ends with the session.
    async fn stop_kernel(&self, pause: SessionPause) -> SessionPause {
        self.end_kernel().await;
        pause
    }

    /// Stops the kernel of a session that has ended, also the one that it started on a server.
    pub(crate) async fn end_kernel(&self) {
        let kernel = &self.services.host.kernel;
        kernel.stop().await;
        if let Some(started) = self.notebook.started_kernel(&self.id) {
            kernel.end_started(&self.program.kernel, started).await;
        }
    }

    /// Checks the triggers against an unchecked answer. Returns whether one fired, so that nothing else can be done now.
    pub(crate) async fn look_at_answer(&mut self, program: &Arc<Program>) -> Result<bool, RunError> {
        if self.pending.is_none() || self.triggers_checked {
            return Ok(false);
        }
        self.triggers_checked = true;
        // A message is checked before any action sees it, when only its text is known.
        let mut draft = CommitDraft::default();
        let place = self.place();
        let check = TriggerCheck { place: &place, unjudged: true, failure: None, held: None, opens_request: false };
        match self.check_triggers(program, check, &mut draft) {
            Ok(false) if draft.events.is_empty() => return Ok(false),
            // The warning about a condition that is null.
            Ok(false) => return self.commit(draft).await.map(|_| false),
            Ok(true) => self.walk_on(&place, &mut draft),
            Err(error) => self.failed(&place, error, &mut draft),
        }
        self.commit(draft).await?;
        Ok(true)
    }

    /// The resources for the turn of the action with the frame `key`.
    pub(crate) fn turn_resources<'a>(
        &'a self,
        (program, services): (&'a Program, &'a Services),
        (key, frame): (&str, &'a Frame),
        position: &Position<'a>,
        place: &'a EventLocation,
        reasons_with_route: &'a [ExitReason],
    ) -> TurnResources<'a> {
        let advice = self.frames.get(&position.visit_key).and_then(|frame| frame.advice.as_ref());
        let advice = advice.map(|advice| advice.text.as_str());
        TurnResources {
            program,
            phase: position.phase,
            topic: position.topic,
            place,
            session_id: &self.id,
            kind: position.step.kind,
            state: &frame.state,
            answer: self.pending.as_deref().or(frame.held.as_deref()),
            entered: frame.last.as_deref(),
            recent: &self.recent,
            services,
            plans: &self.plans,
            reasons_with_route,
            resumed: frame.resumed,
            advice: advice.filter(|_| position.step.action.takes_advice()),
            max_rounds: self.round_limit(key),
            calls_before: frame.calls,
            last_seq: self.last_seq,
            branch: "",
            notebook: &self.notebook,
            cells: &self.cells,
            masker: &self.masker,
            decision: frame.decision.as_deref(),
            push_backs: self.push_backs(key),
            effect: frame.effect.as_ref(),
            effect_is_due: frame.effect.as_ref().is_some_and(|effect| self.is_due(&effect.id)),
            is_in_cleanup: self.cleanup_of(key).is_some(),
            on_interrupted: position.step.on_interrupted,
            options: &position.step.options,
        }
    }

    pub(crate) async fn one_turn(&mut self) -> Result<(), RunError> {
        self.ensure_consistent()?;
        self.forget_changes();
        if self.is_between_compensations() {
            self.write_held().await?;
            return self.next_compensation().await;
        }
        let program = Arc::clone(&self.program);
        if self.look_at_answer(&program).await? {
            return Ok(());
        }
        let mut draft = CommitDraft::default();
        if self.budget_decides(&mut draft) {
            return self.commit(draft).await;
        }
        // A decision about time may have left a topic that a plan had changed.
        let program = Arc::clone(&self.program);
        let key = self.frames.leaf();
        let unreadable = |what: &'static str| RunError::Unreadable { id: self.id.clone(), what: Message::word(what) };
        let frame = self.frames.get(&key).ok_or_else(|| unreadable("it has no frame"))?;
        let position =
            self.position(&program, &key).ok_or_else(|| unreadable("its frames do not point to an action"))?;
        if frame.branches.is_some() {
            self.write_held().await?;
            // Boxed, as few turns have any: the future of every turn has room for it otherwise.
            return Box::pin(self.run_branches()).await;
        }
        // What others may see of a turn must not be ahead of what is stored.
        let action = &position.step.action;
        let has_effects = frame.effect.is_some() || !(action.is_free_of_effects() || action.announces_effects());
        let halted = if has_effects { self.write_waiting().await? } else { None };
        let place = self.place_of(&key);
        let kind = position.step.kind;
        let reasons_with_route = position.reasons_with_route(&program);
        let planned = self.planned_action(&key);
        let resources =
            self.turn_resources((&program, &self.services), (&key, frame), &position, &place, &reasons_with_route);
        let answered = resources.answer.is_some();
        let in_cleanup = resources.is_in_cleanup;
        let held = if self.pending.is_none() { frame.held_answer() } else { None };
        let held = held.as_ref();
        let turn = Turn::new(resources, self.scopes.clone());
        // If this future is dropped while the effect runs, it is unknown how far it got: no later turn finds it due.
        if let Some(effect) = resources.effect {
            self.mark_started(&effect.id);
        }
        let (result, also_halted) = self.while_writing(position.step.action.turn(&turn)).await?;
        let halted = halted.or(also_halted);
        let work = turn.into_work();
        let result = result.and_then(|flow| check_cell_limits(&work).map(|()| flow));
        record_turn(kind, work.round, result.as_ref().err());
        let result = result.and_then(|flow| self.without_waiting(&key, flow));
        self.halted = halted.or(self.halted.take());
        self.head.turns += 1;
        self.head.model_calls += u64::from(work.calls);
        self.head.count_tokens(work.tokens_in, work.tokens_out);
        let context = ActionContext {
            key: &key,
            visit_key: &position.visit_key,
            place: EventLocation { round: work.round, ..place },
            kind,
        };
        let repeatable = answered && position.step.action.can_be_repeated();
        if let Ok(flow) = &result
            && repeatable
        {
            let check =
                TriggerCheck { place: &context.place, unjudged: false, failure: None, held, opens_request: false };
            if let Some(fired) = self.interrupting_trigger(&program, check, (flow, &work), &mut draft) {
                self.drop_turn(context.key, &context.place, (flow, work), &mut draft)?;
                let fired = self.fire(&program, fired, check, &mut draft);
                let next = fired.and_then(|()| self.settled_with_changes(&mut draft));
                self.conclude(next, &context.place, &mut draft);
                return self.commit(draft).await;
            }
        }
        let scopes = (answered && self.is_watched(&position)).then(|| work.scopes.clone());
        let next = match result {
            Ok(flow) => self.apply_flow(&program, &context, flow, work, &mut draft)?,
            Err(ActionError::Model(error)) => {
                self.stopped(&context.place, SessionFailure::of_model(&error), work, &mut draft);
                return self.commit(draft).await;
            }
            Err(ActionError::Unusable { message, help }) if planned.is_some() => {
                // The next visit of the action would stop the session again, so it is skipped, as any error in a plan is.
                self.keep_calls(&context.place, work, &mut draft);
                self.clear_answer(context.key);
                Err(SessionFailure { code: "replies-unusable", message, help })
            }
            Err(error @ (ActionError::Source(_) | ActionError::Unusable { .. })) => {
                self.stopped(&context.place, SessionFailure::of(error), work, &mut draft);
                return self.commit(draft).await;
            }
            Err(error @ ActionError::Kernel(_)) if position.route(&program, ExitReason::Error).is_none() => {
                // The code did not start, so it is announced again when the session is resumed.
                self.close_effect_of(context.key, &context.place, "not started", &mut draft);
                self.stopped(&context.place, SessionFailure::of(error), work, &mut draft);
                return self.commit(draft).await;
            }
            // What a plan brought is skipped, as after any error in it, and a cleanup, where nobody answers, goes on.
            Err(ActionError::Prompt { message, help })
                if planned.is_none() && !in_cleanup && position.route(&program, ExitReason::Error).is_none() =>
            {
                self.stopped(&context.place, SessionFailure::of_prompt(message, help), work, &mut draft);
                return self.commit(draft).await;
            }
            Err(error @ ActionError::Prompt { .. }) => {
                self.action_failed(&program, &context, SessionFailure::of(error), work, &mut draft)
            }
            Err(
                ActionError::Failed { code, message, help } | ActionError::Kernel(KernelError { code, message, help }),
            ) => self.action_failed(&program, &context, SessionFailure { code, message, help }, work, &mut draft),
        };
        let next = match (next, &planned) {
            (Err(error), Some(planned)) => self.skip_planned_action(planned, error, &context.place, &mut draft),
            (next, _) => next,
        };
        let next = next.and_then(|next| self.follow_changes(&program, next, &mut draft));
        let failure = next.as_ref().err().map(|error| error.message.clone());
        // Also after a turn that was checked before: a route from it may have set variables.
        let check = TriggerCheck {
            place: &context.place,
            unjudged: !answered,
            failure: failure.as_ref(),
            held,
            opens_request: matches!(next, Ok(NextStep::Request(_))),
        };
        let next = match self.check_triggers(&program, check, &mut draft) {
            Ok(true) => self.settled_with_changes(&mut draft),
            Ok(false) => next,
            Err(error) => Err(error),
        };
        let turn = scopes.map(|scopes| TurnToWatch { position: &position, place: &context.place, held, scopes });
        let job = turn.and_then(|turn| self.next_job(&program, &turn, &draft));
        self.conclude(next, &context.place, &mut draft);
        // Monitors end with the session.
        self.next_job = job.filter(|_| !self.status.is_final());
        self.commit_with_next(draft).await
    }

    /// Ends an action whose turn failed.
    pub(crate) fn action_failed(
        &mut self,
        program: &Program,
        context: &ActionContext<'_>,
        error: SessionFailure,
        work: TurnWork,
        draft: &mut CommitDraft,
    ) -> Result<NextStep, SessionFailure> {
        // The turn is over and is not repeated: its calls keep their numbers.
        if let Some(frame) = self.frames.change(context.key) {
            frame.calls += work.calls;
            // If a route restarts the action, it asks again.
            frame.decision = None;
        }
        if error.code == EFFECT_INTERRUPTED {
            keep_interrupted_cells(&context.place, &work, draft);
        }
        self.keep_calls(&context.place, work, draft);
        self.close_effect_of(context.key, &context.place, "the action failed", draft);
        self.clear_answer(context.key);
        self.finish_with(program, context, Outcome::failed(&error.message), Some(error), draft)
    }

    pub(crate) fn apply_flow(
        &mut self,
        program: &Program,
        context: &ActionContext<'_>,
        flow: Flow,
        work: TurnWork,
        draft: &mut CommitDraft,
    ) -> Result<Result<NextStep, SessionFailure>, RunError> {
        let key = context.key;
        let asks = work.events.iter().any(|(_, event)| event.says_something());
        self.written_in_turn = work.writes.iter().map(|write| write.name.clone()).collect();
        let reported = self.apply_turn(context, work, draft)?;
        if let Err(error) = self.set_for_changes(program, key, draft) {
            return Ok(Err(error));
        }
        self.clear_answer(key);
        let takes_answer = flow == Flow::Wait(WaitReason::Input) && self.take_carried_answer(key, asks);
        if let Some(frame) = self.frames.change(key) {
            frame.again = match &flow {
                Flow::Again => frame.again + 1,
                // These have their own limits; the counter stays unchanged.
                Flow::Onward | Flow::Effect(_) => frame.again,
                _ => 0,
            };
            frame.last = None;
            frame.decision = None;
            if frame.again > MAX_TURNS_IN_A_ROW {
                let message = msg!("the action took {MAX_TURNS_IN_A_ROW} turns in a row and did not end");
                return Ok(Err(SessionFailure { code: "too-many-turns", message, help: None }));
            }
        }
        if let Some(outcome) = reported {
            self.metadata = outcome.metadata.clone();
            // Obstacles of an action that has another round anyway are routed too.
            if flow == Flow::Wait(WaitReason::Input) && outcome.exit_reason.is_some() {
                if let Err(error) = self.continue_after_outcome(program, key, outcome, None, draft) {
                    return Ok(Err(error));
                }
                // Nothing ran since, so nothing must be repeated.
                if let Some(frame) = self.frames.change(key) {
                    frame.resumed = false;
                }
            }
        }
        if matches!(flow, Flow::Done(_) | Flow::Exit(_) | Flow::Goto(..) | Flow::Rewind(..)) {
            self.close_effect_of(key, &context.place, "the action is done", draft);
        }
        if let Flow::Done(outcome) | Flow::Goto(outcome, ..) = &flow
            && let Err(error) = self.record_compensation(program, key, outcome, draft)
        {
            return Ok(Err(error));
        }
        Ok(match flow {
            Flow::Again | Flow::Onward => Ok(NextStep::Turn),
            Flow::Wait(_) if takes_answer => Ok(NextStep::Turn),
            Flow::Wait(what) => Ok(NextStep::Wait(what)),
            Flow::Request(request) => Ok(NextStep::Request(request)),
            Flow::Rewind(outcome, target) => self.push_back(program, context, *outcome, target, draft),
            Flow::Effect(announced) => Ok(NextStep::Effect(announced)),
            Flow::Enter(StepBlock(block)) => {
                let frame = Frame { at: FrameTarget::Block(block.clone()), ..Frame::default() };
                self.frames.put(child(key, &block_component(&block)), frame);
                self.settled(draft)
            }
            Flow::Branch(branches, limits) => {
                self.open_branches(key, branches, limits, draft);
                Ok(NextStep::Turn)
            }
            Flow::Call(Call { skill, inputs, part }) => {
                match self.insert(program, key, &skill, Insertion::Called, inputs, draft) {
                    Ok(()) => {
                        self.frames.set_part(key, part);
                        self.settled(draft)
                    }
                    Err(error) => {
                        self.finish_with(program, context, Outcome::failed(&error.message), Some(error), draft)
                    }
                }
            }
            Flow::Done(outcome) | Flow::Exit(outcome) => self.finish_with(program, context, *outcome, None, draft),
            Flow::Goto(outcome, target, why) => self.finish_with_goto(program, context, *outcome, (target, why), draft),
        })
    }

    /// Handles an action that ended, or that something with a route prevents from continuing.
    fn finish_with(
        &mut self,
        program: &Program,
        context: &ActionContext<'_>,
        outcome: Outcome,
        error: Option<SessionFailure>,
        draft: &mut CommitDraft,
    ) -> Result<NextStep, SessionFailure> {
        let ActionContext { key, place, kind, .. } = context;
        let deciding = outcome.deciding();
        self.metadata = deciding.metadata.clone();
        draft.event(place, Event::Outcome { action_type: kind, outcome: Box::new(outcome) });
        self.continue_after_outcome(program, key, deciding, error, draft)?;
        self.settled(draft)
    }

    /// Handles an action that chose where the session continues.
    fn finish_with_goto(
        &mut self,
        program: &Program,
        context: &ActionContext<'_>,
        outcome: Outcome,
        (target, why): (String, Message),
        draft: &mut CommitDraft,
    ) -> Result<NextStep, SessionFailure> {
        let ActionContext { key, place, kind, .. } = context;
        let reason = outcome.exit_reason.map_or("exit_criteria_met", |reason| reason.name());
        draft.event(place, Event::Outcome { action_type: kind, outcome: Box::new(outcome) });
        let from = place.action_id.clone().unwrap_or_default();
        let target = if program.ends_at(&target) { RouteTarget::End } else { RouteTarget::Goto(target) };
        draft.event(place, Event::RouteTaken { reason, route: target.to_string(), from, why, table: None });
        self.continue_at(program, key, &target, true, draft)?;
        self.settled(draft)
    }
}
