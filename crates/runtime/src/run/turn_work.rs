//! Applies what a turn buffered: the answer that it took, the state of its action, variables, events and cells.

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::msg;

use crate::notebook::cell::CellEnd;
use crate::program::assigned::Assignment;
use crate::program::assignments::assign_each;
use crate::program::cell_reader::NoCells;
use crate::program::evaluation::NULL_VALUE;
use crate::program::event::Event;
use crate::program::location::EventLocation;
use crate::program::outcome::Outcome;
use crate::program::program::Program;
use crate::program::shown_cell::ShownCell;
use crate::program::turn::{Turn, TurnResources};
use crate::program::work::TurnWork;
use crate::run::draft::CommitDraft;
use crate::run::error::RunError;
use crate::run::frames::{HeldAnswer, ROOT, redacted_key};
use crate::run::notebook::{cell_row, write_state};
use crate::run::position::last_of;
use crate::run::session::Session;
use crate::run::transitions::SessionFailure;
use crate::run::turns::ActionContext;

/// Keeps how the code of cells was interrupted, of a turn that fails because of it: a cell that has begun to run is not as though it
/// never had.
pub(crate) fn keep_interrupted_cells(place: &EventLocation, work: &TurnWork, draft: &mut CommitDraft) {
    for cell in work.cells.values().filter(|cell| cell.ended == Some(CellEnd::Interrupted)) {
        // A cell that was read can be written.
        if let Ok(row) = cell_row(cell) {
            draft.cells.push(row);
            draft.event(place, Event::Cell(Box::new(ShownCell::of(cell))));
        }
    }
}

impl Session {
    /// Marks the answer of a turn as processed.
    pub(crate) fn clear_answer(&mut self, key: &str) {
        self.pending = None;
        self.head.pending = false;
        if let Some(frame) = self.frames.change(key) {
            frame.hold_answer(None);
            frame.resumed = false;
        }
    }

    /// Passes the answer that a trigger took along to the action `key`, which waits for the person. If the action asked something, nobody
    /// takes this answer any more. Returns whether the action has an answer now.
    pub(crate) fn take_carried_answer(&mut self, key: &str, asks: bool) -> bool {
        let answer = self.clear_carried_answer();
        let Some(frame) = self.frames.change(key).filter(|_| answer.is_some() && !asks) else { return false };
        frame.hold_answer(answer);
        true
    }

    /// Removes the answer that a trigger took along.
    pub(crate) fn clear_carried_answer(&mut self) -> Option<HeldAnswer> {
        let answer = self.frames.get(ROOT)?.held_answer()?;
        self.frames.change(ROOT)?.hold_answer(None);
        Some(answer)
    }

    /// Applies the changes of a turn. Returns the outcome that it reported, if any.
    pub(crate) fn apply_turn(
        &mut self,
        context: &ActionContext<'_>,
        mut work: TurnWork,
        draft: &mut CommitDraft,
    ) -> Result<Option<Outcome>, RunError> {
        let (state, calls, round, advised) = (work.state.take(), work.calls, work.round, work.advice_used);
        let (closed, code) = (work.effect_closed, work.effect_code.take());
        let reported = work.events.iter().rev().find_map(|(_, event)| match event {
            Event::Outcome { outcome, .. } => Some(outcome.deciding()),
            _ => None,
        });
        let place = context.place.clone();
        self.apply_work(&place, work, draft)
            .map_err(|error| RunError::Unreadable { id: self.id.clone(), what: error.to_message() })?;
        if advised {
            self.advice_used(context.visit_key, &place, draft);
        }
        if let Some(frame) = self.frames.change(context.key) {
            frame.calls += calls;
            if closed {
                frame.effect = None;
            }
            if let Some(effect) = &mut frame.effect {
                effect.code = code;
            }
            frame.round = round.or(frame.round);
            if let Some(state) = state {
                frame.state = state;
            }
        }
        Ok(reported)
    }

    /// Masks the sensitive values of a turn in all output from now on.
    pub(crate) fn hide_sensitive(&mut self, work: &TurnWork, draft: &mut CommitDraft) -> Result<(), serde_json::Error> {
        let written = work.writes.iter().filter(|write| write.written.sensitive).map(|write| &write.stored.value);
        written.chain(&work.hidden).try_for_each(|value| self.hide(value, draft))
    }

    /// Applies the variables and events of a turn, or of an operation outside of turns.
    fn apply_work(
        &mut self,
        place: &EventLocation,
        work: TurnWork,
        draft: &mut CommitDraft,
    ) -> Result<(), serde_json::Error> {
        self.keep_named_scopes(&work.writes);
        self.pass_bound_plan(&work.writes, draft)?;
        self.hide_sensitive(&work, draft)?;
        for write in &work.writes {
            draft.write(write)?;
        }
        if let Some(mut notebook) = work.notebook.filter(|changed| *changed != self.notebook) {
            write_state(&mut notebook, &self.notebook, &self.services.clock.at(self.last_seq + 1), draft)?;
            self.notebook = notebook;
        }
        self.scopes = work.scopes;
        self.changed.extend(work.changed);
        let mut place = place.clone();
        for (round, event) in work.events {
            place.round = round;
            if let Event::Warning { code: NULL_VALUE, message, .. } = &event
                && !self.is_new_warning(&place, message, draft)
            {
                continue;
            }
            draft.event(&place, event);
        }
        for cell in work.cells.values() {
            draft.cells.push(cell_row(cell)?);
            draft.event(&place, Event::Cell(Box::new(ShownCell::of(cell))));
        }
        draft.texts.extend(work.texts);
        Ok(())
    }

    /// Runs an operation that needs a turn of the action `key`, without a turn: the `set` of a route.
    fn run_without_turn(
        &mut self,
        program: &Program,
        key: &str,
        draft: &mut CommitDraft,
        operation: impl FnOnce(&Turn<'_>),
    ) -> Result<(), SessionFailure> {
        let no_action = || SessionFailure::new(msg!("no action for `{}`", redacted_key(key)));
        let frame = self.frames.get(key).ok_or_else(no_action)?;
        let position = self.position(program, key).or_else(|| last_of(program)).ok_or_else(no_action)?;
        let place = self.place_of(key);
        let resources = TurnResources {
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
            plans: &self.plans,
            reasons_with_route: &[],
            resumed: false,
            advice: None,
            max_rounds: None,
            calls_before: frame.calls,
            last_seq: self.last_seq,
            branch: "",
            notebook: &self.notebook,
            cells: &NoCells,
            masker: &self.masker,
            decision: None,
            push_backs: 0,
            effect: None,
            effect_is_due: false,
            is_in_cleanup: self.cleanup_of(key).is_some(),
            on_interrupted: position.step.on_interrupted,
            options: &position.step.options,
        };
        let turn = Turn::new(resources, self.scopes.clone());
        turn.in_round(frame.round.unwrap_or(1));
        operation(&turn);
        let work = turn.into_work();
        self.apply_work(&place, work, draft).map_err(|error| SessionFailure::new(error.to_message()))
    }

    /// Sets what a route from the frame `key` sets. A value that cannot be set is reported at `place`, and its variable keeps the one it has:
    /// what somebody would say, nobody could know when the script was checked, and the route is followed (docs/routes.md).
    ///
    /// # Errors
    /// If the frame is damaged.
    pub(crate) fn set_by_route<'a>(
        &mut self,
        program: &Program,
        key: &str,
        place: &EventLocation,
        set: impl IntoIterator<Item = &'a Assignment>,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let mut failed = Vec::new();
        self.run_without_turn(program, key, draft, |turn| failed = assign_each(turn, set))?;
        for SessionFailure { code, message, help } in failed.into_iter().map(SessionFailure::of) {
            draft.event(place, Event::Error { code, message, help });
        }
        Ok(())
    }
}
