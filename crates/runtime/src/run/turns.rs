//! Turns: one after the other, each committed with all that it did, until something must be waited for.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;

use crate::program::cell_reader::NoCells;
use crate::program::event::{Event, Speaker};
use crate::program::flow::{ActionError, Call, Flow, StepBlock, WaitReason};
use crate::program::location::EventLocation;
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::program::Program;
use crate::program::services::Services;
use crate::program::shown_cell::ShownCell;
use crate::program::turn::{Turn, TurnResources};
use crate::program::work::TurnWork;
use crate::run::draft::CommitDraft;
use crate::run::error::RunError;
use crate::run::frames::{Frame, FrameTarget, Insertion, block_component, child, told};
use crate::run::head::SessionStatus;
use crate::run::mailbox::Arrival;
use crate::run::notebook::{cell_row, fits, state_row};
use crate::run::position::{Position, last_of};
use crate::run::session::{Session, SessionPause, next_answer_id};
use crate::run::transitions::{Arrived, SessionFailure};
use crate::run::triggers::Look;
use bcc_lang::script::routes::Go;

/// How many turns in a row an action may take without waiting (ARCHITECTURE, "Frames").
const MOST_TURNS_IN_A_ROW: u32 = 100;

/// The action that took a turn: its frame, that of its topic or skill, its place in the round that it is in by now, its kind.
struct ActionContext<'a> {
    key: &'a str,
    home: &'a str,
    place: EventLocation,
    kind: &'static str,
}

/// What follows a turn, when no trigger steps in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextStep {
    Turn,
    Wait(WaitReason),
    End,
}

impl Session {
    /// Runs turns until an answer is needed or the session ends. Dropping the future between two commits is safe: what
    /// the turn under way had done is forgotten, and the same turn is taken again.
    /// Errors: When the store fails. The session must then be given up; at rest it is whole.
    pub async fn advance(&mut self) -> Result<SessionPause, RunError> {
        loop {
            self.note_arrivals().await?;
            match self.status {
                SessionStatus::Running => self.one_turn().await?,
                SessionStatus::WaitingInput => return Ok(SessionPause::Waiting),
                SessionStatus::Stopped => return Ok(SessionPause::Stopped),
                SessionStatus::Completed => return Ok(self.with_no_kernel(SessionPause::Completed).await),
                SessionStatus::Failed => return Ok(self.with_no_kernel(SessionPause::Failed).await),
            }
        }
    }

    /// Nothing runs any more in a session that is over: its kernel ends with it.
    async fn with_no_kernel(&self, pause: SessionPause) -> SessionPause {
        self.services.outside.kernel.stop().await;
        pause
    }

    /// Lets the triggers look at an answer that they have not seen. Gives whether that was all that can be done now.
    pub(crate) async fn look_at_answer(&mut self, program: &Arc<Program>) -> Result<bool, RunError> {
        if self.pending.is_none() || self.looked {
            return Ok(false);
        }
        self.looked = true;
        // A message is looked at before any action sees it, when nothing is known of it but its words.
        let mut draft = CommitDraft::default();
        let place = self.place();
        let look = Look { place: &place, unjudged: true, failure: None };
        match self.look_at_triggers(program, look, &mut draft) {
            Ok(false) => return Ok(false),
            Ok(true) => self.walk_on(&place, &mut draft),
            Err(lost) => self.failed(&place, lost, &mut draft),
        }
        self.commit(draft).await?;
        Ok(true)
    }

    /// What is lent to the turn of the action with the frame `key`.
    pub(crate) fn lent<'a>(
        &'a self,
        (program, services): (&'a Program, &'a Services),
        (key, frame): (&str, &'a Frame),
        position: &Position<'a>,
        place: &'a EventLocation,
        routed: &'a [ExitReason],
    ) -> TurnResources<'a> {
        let advice = self.frames.get(&position.home).and_then(|home| home.advice.as_ref());
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
            routed,
            resumed: frame.resumed,
            advice: advice.filter(|_| position.step.action.takes_advice()),
            most_rounds: self.most_rounds(key),
            calls_before: frame.calls,
            last_seq: self.last_seq,
            notebook: &self.notebook,
            shelf: &self.shelf,
            masker: &self.masker,
            effect: frame.effect.as_ref(),
            effect_is_due: frame.effect.as_ref().is_some_and(|effect| self.is_due(&effect.id)),
            on_interrupted: position.step.on_interrupted,
        }
    }

    pub(crate) async fn one_turn(&mut self) -> Result<(), RunError> {
        self.must_be_whole()?;
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
        let place = self.place_of(&key);
        let kind = position.step.kind;
        let routed = position.routed(&program);
        let lent = self.lent((&program, &self.services), (&key, frame), &position, &place, &routed);
        let answered = lent.answer.is_some();
        let turn = Turn::new(lent, self.scopes.clone());
        // Should this future be dropped while the effect runs, nobody can tell how far it came: no later turn finds it due.
        if let Some(effect) = lent.effect {
            self.begins(&effect.id);
        }
        let result = position.step.action.turn(&turn).await;
        let work = turn.into_work();
        let result = result.and_then(|flow| fits(&work).map(|()| flow));
        self.head.turns += 1;
        self.head.model_calls += u64::from(work.calls);
        self.head.tokens_in += work.tokens_in;
        self.head.tokens_out += work.tokens_out;
        let here = ActionContext {
            key: &key,
            home: &position.home,
            place: EventLocation { round: work.round, ..place },
            kind,
        };
        let then = match result {
            Ok(flow) => self.flowed(&program, &here, flow, work, &mut draft)?,
            Err(ActionError::Model(error)) => {
                self.stopped(&here.place, SessionFailure::of_model(&error), work, &mut draft);
                return self.commit(draft).await;
            }
            Err(error @ ActionError::Source(_)) => {
                self.stopped(&here.place, SessionFailure::of(error), work, &mut draft);
                return self.commit(draft).await;
            }
            Err(ActionError::Failed { code, message, help }) => {
                // The turn is over, and what it asked is not asked again: its calls keep their numbers.
                if let Some(frame) = self.frames.change(here.key) {
                    frame.calls += work.calls;
                }
                self.only_calls(&here.place, work, &mut draft);
                self.close_with(here.key, &here.place, "the action failed", &mut draft);
                self.took_answer(here.key);
                self.ended(
                    &program,
                    &here,
                    Outcome::failed(&message),
                    Some(SessionFailure { code, message, help }),
                    &mut draft,
                )
            }
        };
        let failure = then.as_ref().err().map(|lost| lost.message.clone());
        let look = Look { place: &here.place, unjudged: !answered, failure: failure.as_ref() };
        let then = match self.look_at_triggers(&program, look, &mut draft) {
            Ok(true) => self.settled(&mut draft),
            Ok(false) => then,
            Err(lost) => Err(lost),
        };
        let job = if answered { self.next_job(&program, &position, &here.place, &draft) } else { None };
        self.conclude(then, &here.place, &mut draft);
        // Monitors end with the session.
        self.next_job = job.filter(|_| !self.status.is_final());
        self.commit(draft).await
    }

    pub(crate) fn conclude(
        &mut self,
        then: Result<NextStep, SessionFailure>,
        place: &EventLocation,
        draft: &mut CommitDraft,
    ) {
        if matches!(then, Ok(NextStep::End) | Err(_)) {
            // What monitors have said by now was paid for, and belongs to the history.
            // There is no topic left that a plan could change.
            for arrival in self.mailbox.take() {
                self.note(Arrival { orchestrate: false, ..arrival }, draft);
            }
        }
        match then {
            Ok(NextStep::Turn) => {}
            Ok(NextStep::Wait(what)) => self.wait(what, place, draft),
            Ok(NextStep::End) => {
                self.status = SessionStatus::Completed;
                let summary = self.summary(None);
                draft.event(&EventLocation::default(), Event::SessionCompleted { summary });
            }
            Err(lost) => self.failed(place, lost, draft),
        }
    }

    /// Walks to the next action that is to run.
    pub(crate) fn settled(&mut self, draft: &mut CommitDraft) -> Result<NextStep, SessionFailure> {
        Ok(match self.settle(draft)? {
            Arrived::Action => NextStep::Turn,
            Arrived::End => NextStep::End,
        })
    }

    /// Walks to the next action, and completes or fails the session when there is none.
    pub(crate) fn walk_on(&mut self, place: &EventLocation, draft: &mut CommitDraft) {
        let then = self.settled(draft);
        self.conclude(then, place, draft);
    }

    fn flowed(
        &mut self,
        program: &Program,
        here: &ActionContext<'_>,
        flow: Flow,
        work: TurnWork,
        draft: &mut CommitDraft,
    ) -> Result<Result<NextStep, SessionFailure>, RunError> {
        let key = here.key;
        let turned = self.keep(here, work, draft)?;
        self.took_answer(key);
        if let Some(frame) = self.frames.change(key) {
            frame.again = match &flow {
                Flow::Again => frame.again + 1,
                // These have bounds of their own; what is bounded here stays bounded beside them.
                Flow::Onward | Flow::Effect(_) => frame.again,
                _ => 0,
            };
            frame.last = None;
            if frame.again > MOST_TURNS_IN_A_ROW {
                let message = msg!("the action took {MOST_TURNS_IN_A_ROW} turns in a row and did not end");
                return Ok(Err(SessionFailure { code: "too-many-turns", message, help: None }));
            }
        }
        if let Some(outcome) = turned {
            self.metadata = outcome.metadata.clone();
            // What stands in the way of an action that has another round anyway is decided too.
            if flow == Flow::Wait(WaitReason::Input) && outcome.exit_reason.is_some() {
                if let Err(lost) = self.decide(program, key, outcome, None, draft) {
                    return Ok(Err(lost));
                }
                // Nothing ran since, so nothing is to be said again.
                if let Some(frame) = self.frames.change(key) {
                    frame.resumed = false;
                }
            }
        }
        if matches!(flow, Flow::Done(_) | Flow::Exit(_) | Flow::Goto(..)) {
            self.close_with(key, &here.place, "the action is done", draft);
        }
        Ok(match flow {
            Flow::Again | Flow::Onward => Ok(NextStep::Turn),
            Flow::Wait(what) => Ok(NextStep::Wait(what)),
            Flow::Effect(announced) => {
                self.announce(key, &here.place, announced, draft);
                Ok(NextStep::Turn)
            }
            Flow::Enter(StepBlock(block)) => {
                let frame = Frame { at: FrameTarget::Block(block.clone()), ..Frame::default() };
                self.frames.put(child(key, &block_component(&block)), frame);
                self.settled(draft)
            }
            Flow::Call(Call { skill, inputs }) => {
                match self.insert(program, key, &skill, Insertion::Called, inputs, draft) {
                    Ok(()) => self.settled(draft),
                    Err(lost) => self.ended(program, here, Outcome::failed(&lost.message), Some(lost), draft),
                }
            }
            Flow::Done(outcome) | Flow::Exit(outcome) => self.ended(program, here, *outcome, None, draft),
            Flow::Goto(outcome, target, why) => self.gone(program, here, *outcome, (target, why), draft),
        })
    }

    /// The answer that a turn was about is taken.
    fn took_answer(&mut self, key: &str) {
        self.pending = None;
        self.head.pending = false;
        if let Some(frame) = self.frames.change(key) {
            frame.held = None;
            frame.resumed = false;
        }
    }

    /// Takes over what a turn did. Gives the outcome that it reported, if any.
    fn keep(
        &mut self,
        here: &ActionContext<'_>,
        mut work: TurnWork,
        draft: &mut CommitDraft,
    ) -> Result<Option<Outcome>, RunError> {
        let (state, calls, round, advised) = (work.state.take(), work.calls, work.round, work.advice_used);
        let closed = work.effect_closed;
        let reported = work.events.iter().rev().find_map(|(_, event)| match event {
            Event::Outcome { outcome, .. } => Some(outcome.deciding()),
            _ => None,
        });
        let place = here.place.clone();
        self.keep_work(&place, work, draft)
            .map_err(|error| RunError::Unreadable { id: self.id.clone(), what: Message::text(error.to_string()) })?;
        if advised {
            self.advice_used(here.home, &place, draft);
        }
        if let Some(frame) = self.frames.change(here.key) {
            frame.calls += calls;
            if closed {
                frame.effect = None;
            }
            frame.round = round.or(frame.round);
            if let Some(state) = state {
                frame.state = state;
            }
        }
        Ok(reported)
    }

    /// Takes over the variables and events of a turn, or of what is done beside one.
    fn keep_work(
        &mut self,
        place: &EventLocation,
        work: TurnWork,
        draft: &mut CommitDraft,
    ) -> Result<(), serde_json::Error> {
        for write in &work.writes {
            if write.written.sensitive {
                self.hide(&write.stored.value, draft)?;
            }
            draft.write(write)?;
        }
        if let Some(notebook) = work.notebook.filter(|changed| *changed != self.notebook) {
            draft.variables.push(state_row(&notebook, self.services.clock.at(self.last_seq + 1))?);
            self.notebook = notebook;
        }
        self.scopes = work.scopes;
        let mut place = place.clone();
        for (round, event) in work.events {
            place.round = round;
            draft.event(&place, event);
        }
        for cell in work.cells.values() {
            draft.cells.push(cell_row(cell)?);
            draft.event(&place, Event::Cell(Box::new(ShownCell::of(cell))));
        }
        Ok(())
    }

    /// Does something that only a turn of the action `key` can, without being one: the `set` of a route.
    pub(crate) fn beside(
        &mut self,
        program: &Program,
        key: &str,
        draft: &mut CommitDraft,
        does: impl FnOnce(&Turn<'_>) -> Result<(), ActionError>,
    ) -> Result<(), SessionFailure> {
        let lost = || SessionFailure::new(msg!("no action for `{}`", told(key)));
        let frame = self.frames.get(key).ok_or_else(lost)?;
        let position = self.position(program, key).or_else(|| last_of(program)).ok_or_else(lost)?;
        let place = self.place_of(key);
        let lent = TurnResources {
            program,
            phase: position.phase,
            topic: position.topic,
            place: &place,
            session_id: &self.id,
            kind: position.step.kind,
            state: &frame.state,
            answer: None,
            entered: None,
            recent: &self.recent,
            services: &self.services,
            routed: &[],
            resumed: false,
            advice: None,
            most_rounds: None,
            calls_before: frame.calls,
            last_seq: self.last_seq,
            notebook: &self.notebook,
            shelf: &NoCells,
            masker: &self.masker,
            effect: None,
            effect_is_due: false,
            on_interrupted: position.step.on_interrupted,
        };
        let turn = Turn::new(lent, self.scopes.clone());
        turn.in_round(frame.round.unwrap_or(1));
        does(&turn).map_err(SessionFailure::of)?;
        let work = turn.into_work();
        self.keep_work(&place, work, draft).map_err(|error| SessionFailure::new(Message::text(error.to_string())))
    }

    fn wait(&mut self, what: WaitReason, place: &EventLocation, draft: &mut CommitDraft) {
        if what == WaitReason::InterruptedEffect {
            return self.ask_about_effect(place, draft);
        }
        let answer_id = next_answer_id(self.answers);
        let said = draft.events.iter().rev().find_map(|(_, event)| match event {
            Event::Message { role: Speaker::Ai, text, .. } => Some(text.clone()),
            _ => None,
        });
        let prompt = said.unwrap_or_default();
        draft.event(place, Event::Waiting { r#for: what.name(), prompt, answer_id: answer_id.clone() });
        self.head.waiting = Some(answer_id);
        self.status = SessionStatus::WaitingInput;
    }

    /// An action came to its end, or something stands in its way that a route is written for.
    fn ended(
        &mut self,
        program: &Program,
        here: &ActionContext<'_>,
        outcome: Outcome,
        lost: Option<SessionFailure>,
        draft: &mut CommitDraft,
    ) -> Result<NextStep, SessionFailure> {
        let ActionContext { key, place, kind, .. } = here;
        let deciding = outcome.deciding();
        self.metadata = deciding.metadata.clone();
        draft.event(place, Event::Outcome { action_type: kind, outcome: Box::new(outcome) });
        self.decide(program, key, deciding, lost, draft)?;
        self.settled(draft)
    }

    /// An action chose itself where the session goes on.
    fn gone(
        &mut self,
        program: &Program,
        here: &ActionContext<'_>,
        outcome: Outcome,
        (target, why): (String, Message),
        draft: &mut CommitDraft,
    ) -> Result<NextStep, SessionFailure> {
        let ActionContext { key, place, kind, .. } = here;
        let reason = outcome.exit_reason.map_or("exit_criteria_met", |reason| reason.name());
        draft.event(place, Event::Outcome { action_type: kind, outcome: Box::new(outcome) });
        let from = place.action_id.clone().unwrap_or_default();
        let go = Go::Goto(target);
        draft.event(place, Event::Routed { reason, route: go.to_string(), from, why, table: None });
        self.go(program, key, &go, true, draft)?;
        self.settled(draft)
    }
}
