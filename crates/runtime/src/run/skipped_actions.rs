//! Actions that are skipped when the session reaches them, and the routes for `skipped` (docs/routes.md).

use crate::program::event::Event;
use crate::program::location::EventLocation;
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::program::{Program, ProgramStep};
use crate::run::draft::CommitDraft;
use crate::run::frames::{parent, public_path};
use crate::run::session::Session;
use crate::run::transitions::SessionFailure;
use bcc_lang::message::message::Message;

/// Why an action is skipped.
pub(crate) struct SkipReason {
    pub(crate) why: Message,
    /// `skipped` of the event: `known` if what the action asks for is known already.
    pub(crate) skipped: Option<&'static str>,
}

impl Session {
    /// Skips the action `key`, which has not started: follows the route for `skipped`, if a table has one, else
    /// continues with the next action.
    pub(crate) fn skip_action(
        &mut self,
        program: &Program,
        step: &ProgramStep,
        key: &str,
        SkipReason { why, skipped }: SkipReason,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let place = self.place_of_unstarted(step, key);
        draft.event(&place, Event::Skipped { name: step.id.clone(), why, skipped });
        // The frame exists if a route restarted the action.
        if self.frames.get(key).is_none() {
            self.put_action(step, key);
        }
        if let Some(frame) = self.frames.change(key) {
            frame.not_started = true;
        }
        let position = self.position(program, key);
        if position.is_none_or(|position| position.route(program, ExitReason::Skipped).is_none()) {
            self.frames.remove(key);
            self.next_child(parent(key));
            return Ok(());
        }
        self.continue_after_outcome(program, key, Outcome::done(ExitReason::Skipped), None, draft)
    }

    /// The location of the action `key`, which need not have a frame.
    pub(crate) fn place_of_unstarted(&self, step: &ProgramStep, key: &str) -> EventLocation {
        let above = self.place_of(parent(key));
        EventLocation { action_id: Some(step.id.clone()), round: None, path: public_path(key), ..above }
    }
}
