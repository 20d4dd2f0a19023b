//! Turns: one after the other, each committed with all that it did, until something must be waited for.

use std::sync::Arc;

use crate::model::error::ModelError;
use crate::program::action::{ActionError, Block, Flow, For};
use crate::program::event::{Event, Speaker};
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::place::Place;
use crate::program::program::Program;
use crate::program::turn::{Lent, Turn};
use crate::program::work::Work;
use crate::run::draft::Draft;
use crate::run::error::RunError;
use crate::run::frames::{At, Frame, block_component, child};
use crate::run::head::Status;
use crate::run::moves::{Arrived, Lost};
use crate::run::session::{Pause, Session, next_answer_id};

/// How many turns in a row an action may take without waiting (ARCHITECTURE, "Frames").
const MOST_TURNS_IN_A_ROW: u32 = 100;

/// The action that took a turn: its frame, its place in the round that the turn was about, its kind.
struct Here<'a> {
    key: &'a str,
    place: Place,
    kind: &'static str,
}

impl Session {
    /// Runs turns until an answer is needed or the session ends. Dropping the future between two commits is safe: what
    /// the turn under way had done is forgotten, and the same turn is taken again.
    ///
    /// # Errors
    /// When the store fails. The session must then be given up; at rest it is whole.
    pub async fn advance(&mut self) -> Result<Pause, RunError> {
        loop {
            match self.status {
                Status::Running => self.one_turn().await?,
                Status::WaitingInput => return Ok(Pause::Waiting),
                Status::Stopped => return Ok(Pause::Stopped),
                Status::Completed => return Ok(Pause::Completed),
                Status::Failed => return Ok(Pause::Failed),
            }
        }
    }

    async fn one_turn(&mut self) -> Result<(), RunError> {
        self.must_be_whole()?;
        let program = Arc::clone(&self.program);
        let key = self.frames.leaf();
        let unreadable = |what: &str| RunError::Unreadable { id: self.id.clone(), what: what.to_owned() };
        let frame = self.frames.get(&key).ok_or_else(|| unreadable("it has no frame"))?;
        let position = self.position(&program, &key).ok_or_else(|| unreadable("its frames point at no action"))?;
        let place = self.place_of(&key);
        let kind = position.step.kind;
        let lent = Lent {
            program: &program,
            phase: position.phase,
            topic: position.topic,
            place: &place,
            session_id: &self.id,
            kind,
            state: &frame.state,
            answer: self.pending.as_deref(),
            entered: frame.last.as_deref(),
            recent: &self.recent,
            services: &self.services,
            routed: &[],
            resumed: false,
            advice: None,
            most_rounds: None,
            calls_before: frame.calls,
            last_seq: self.last_seq,
        };
        let turn = Turn::new(lent, self.scopes.clone());
        let result = position.step.action.turn(&turn).await;
        let work = turn.into_work();
        self.head.turns += 1;
        self.head.model_calls += u64::from(work.calls);
        self.head.tokens_in += work.tokens_in;
        self.head.tokens_out += work.tokens_out;
        let mut draft = Draft::default();
        match result {
            Ok(flow) => {
                let here = Here { key: &key, place: Place { round: work.round, ..place }, kind };
                self.flowed(&program, &here, flow, work, &mut draft)?;
            }
            Err(ActionError::Model(error)) => self.stopped(&place, &error, work, &mut draft),
            Err(ActionError::Failed { code, message, help }) => {
                let here = Here { key: &key, place: Place { round: work.round, ..place }, kind };
                self.action_failed(&here, Lost { code, message, help }, work, &mut draft);
            }
        }
        self.commit(draft).await
    }

    fn flowed(
        &mut self,
        program: &Program,
        here: &Here<'_>,
        flow: Flow,
        work: Work,
        draft: &mut Draft,
    ) -> Result<(), RunError> {
        let Here { key, place, .. } = here;
        self.keep(here, work, draft)?;
        self.pending = None;
        self.head.pending = false;
        if let Some(frame) = self.frames.change(key) {
            frame.again = if flow == Flow::Again { frame.again + 1 } else { 0 };
            frame.last = None;
            if frame.again > MOST_TURNS_IN_A_ROW {
                let message =
                    format!("the action took {MOST_TURNS_IN_A_ROW} turns in a row and did not come to an end");
                self.failed(place, Lost { code: "too-many-turns", message, help: None }, draft);
                return Ok(());
            }
        }
        match flow {
            Flow::Again => {}
            Flow::Wait(For::Input) => self.wait(place, draft),
            Flow::Enter(Block(block)) => {
                let frame = Frame { at: At::Block(block.clone()), ..Frame::default() };
                self.frames.put(child(key, &block_component(&block)), frame);
                self.go_on(program, place, draft);
            }
            Flow::Done(outcome) | Flow::Exit(outcome) | Flow::Goto(outcome, _) => {
                self.done(program, here, *outcome, draft)
            }
            Flow::Call(_) => {}
        }
        Ok(())
    }

    /// Takes over what a turn did.
    fn keep(&mut self, here: &Here<'_>, work: Work, draft: &mut Draft) -> Result<(), RunError> {
        for write in &work.writes {
            let hidden = if write.written.sensitive { self.hide(&write.stored.value, draft) } else { Ok(()) };
            hidden
                .and_then(|()| draft.write(write))
                .map_err(|error| RunError::Unreadable { id: self.id.clone(), what: error.to_string() })?;
        }
        self.scopes = work.scopes;
        let mut place = here.place.clone();
        for (round, event) in work.events {
            place.round = round;
            draft.event(&place, event);
        }
        if let Some(frame) = self.frames.change(here.key) {
            frame.calls += work.calls;
            frame.round = work.round.or(frame.round);
            if let Some(state) = work.state {
                frame.state = state;
            }
        }
        Ok(())
    }

    fn wait(&mut self, place: &Place, draft: &mut Draft) {
        let answer_id = next_answer_id(self.answers);
        let said = draft.events.iter().rev().find_map(|(_, event)| match event {
            Event::Message { role: Speaker::Ai, text, .. } => Some(text.clone()),
            _ => None,
        });
        let prompt = said.unwrap_or_default();
        draft.event(place, Event::Waiting { r#for: "input", prompt, answer_id: answer_id.clone() });
        self.head.waiting = Some(answer_id);
        self.status = Status::WaitingInput;
    }

    fn done(&mut self, program: &Program, here: &Here<'_>, outcome: Outcome, draft: &mut Draft) {
        let Here { key, place, kind } = here;
        let reason = outcome.exit_reason.unwrap_or(ExitReason::ExitCriteriaMet);
        draft.event(place, Event::Outcome { action_type: kind, outcome: Box::new(outcome.clone()) });
        let from = place.action_id.clone().unwrap_or_default();
        if reason == ExitReason::Error {
            let why = "no route is written for it, and an error without a route fails the session".into();
            draft.event(place, Event::Routed { reason: reason.name(), route: "fail".into(), from: from.clone(), why });
            let message = format!("the action `{from}` ended with an error: the model's reply could not be read");
            self.failed(
                place,
                Lost { code: "action-error", message, help: Some("`/why` tells what was tried".into()) },
                draft,
            );
            return;
        }
        let why = "no route is written for it, and a completed action goes on".into();
        draft.event(place, Event::Routed { reason: reason.name(), route: "next".into(), from, why });
        self.finish_action(key, &outcome);
        self.go_on(program, place, draft);
    }

    /// Walks to the next action; completes the session when there is none.
    pub(crate) fn go_on(&mut self, program: &Program, place: &Place, draft: &mut Draft) {
        match self.settle(program, draft) {
            Ok(Arrived::Action) => {}
            Ok(Arrived::End) => {
                self.status = Status::Completed;
                let summary = self.head.summary(self.answers, None);
                draft.event(&Place::default(), Event::SessionCompleted { summary });
            }
            Err(lost) => self.failed(place, lost, draft),
        }
    }

    fn stopped(&mut self, place: &Place, error: &ModelError, work: Work, draft: &mut Draft) {
        self.only_calls(place, work, draft);
        self.status = Status::Stopped;
        let help = "resume the session when the model can be reached; nothing is lost".to_owned();
        let message = error.to_string();
        draft.event(place, Event::Error { code: "model-failed", message: message.clone(), help: Some(help) });
        let summary = self.head.summary(self.answers, Some(message));
        draft.event(place, Event::SessionStopped { summary });
    }

    fn action_failed(&mut self, here: &Here<'_>, lost: Lost, work: Work, draft: &mut Draft) {
        let Here { place, kind, .. } = here;
        self.only_calls(place, work, draft);
        let outcome = Outcome::failed(&lost.message);
        draft.event(place, Event::Outcome { action_type: kind, outcome: Box::new(outcome) });
        let from = place.action_id.clone().unwrap_or_default();
        let why = "no route is written for it, and an error without a route fails the session".into();
        draft.event(place, Event::Routed { reason: "error", route: "fail".into(), from, why });
        self.failed(place, lost, draft);
    }

    pub(crate) fn failed(&mut self, place: &Place, lost: Lost, draft: &mut Draft) {
        self.status = Status::Failed;
        let Lost { code, message, help } = lost;
        draft.event(place, Event::Error { code, message: message.clone(), help });
        let summary = self.head.summary(self.answers, Some(message));
        draft.event(place, Event::SessionFailed { summary });
    }

    /// Of a turn that came to nothing, what it cost is kept, and the notes that it made.
    fn only_calls(&mut self, place: &Place, work: Work, draft: &mut Draft) {
        let mut place = place.clone();
        for (round, event) in work.events {
            place.round = round;
            if matches!(event, Event::ModelCall(_) | Event::Warning { .. } | Event::MessageDiscarded { .. }) {
                draft.event(&place, event);
            }
        }
    }
}
