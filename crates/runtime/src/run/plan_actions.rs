//! Actions that a plan of the orchestrator brought or changed: nothing about them ends the session (docs/orchestration.md).

use bcc_lang::message::msg;
use bcc_lang::script::route_parser::RouteTarget;

use crate::program::event::Event;
use crate::program::location::EventLocation;
use crate::program::orchestration::plans::PlanOrigin;
use crate::program::outcome::{ExitReason, Outcome};
use crate::run::draft::CommitDraft;
use crate::run::frames::{FrameTarget, component, id_of, lineage};
use crate::run::insertion::Insertion;
use crate::run::session::Session;
use crate::run::transitions::SessionFailure;
use crate::run::turns::NextStep;

/// An action of a topic that a plan brought or changed.
#[derive(Clone, Debug)]
pub(crate) struct PlannedAction {
    /// The key of its frame.
    pub(crate) key: String,
    pub(crate) origin: PlanOrigin,
}

impl Session {
    /// The action that a plan brought or changed and that the frame `key` belongs to: itself, or one that called the skill of it.
    /// What the author's routes and triggers insert below such an action does not belong to it.
    pub(crate) fn planned_action(&self, key: &str) -> Option<PlannedAction> {
        let mut plans = None;
        let mut found = None;
        for key in lineage(key) {
            let frame = self.frames.get(key)?;
            match &frame.at {
                FrameTarget::Topic => {
                    plans = frame.plans.as_deref();
                    found = None;
                }
                FrameTarget::Action => {
                    // Only the first action below the topic can be in its plans.
                    if let Some(origin) = plans.take().and_then(|plans| plans.origin(id_of(component(key)))) {
                        found = Some(PlannedAction { key: key.to_owned(), origin });
                    }
                }
                FrameTarget::Skill(_) | FrameTarget::Single(_) if frame.insertion != Some(Insertion::Called) => {
                    found = None;
                }
                // What a plan did to an action does not concern its compensation.
                FrameTarget::Finally | FrameTarget::Compensation => {
                    plans = None;
                    found = None;
                }
                FrameTarget::Session
                | FrameTarget::Phase
                | FrameTarget::Block(_)
                | FrameTarget::Skill(_)
                | FrameTarget::Single(_) => {}
            }
        }
        found
    }

    /// The target to use in place of `then` for the action `key`: `next` if `then` would end the session although a plan brought the
    /// action. Routes of an action that a plan only changed are its author's, except those for errors.
    pub(crate) fn target_within_plan(
        &self,
        key: &str,
        then: RouteTarget,
        (reason, error): (ExitReason, Option<&SessionFailure>),
        place: &EventLocation,
        draft: &mut CommitDraft,
    ) -> RouteTarget {
        if !matches!(then, RouteTarget::End | RouteTarget::Fail) {
            return then;
        }
        let Some(planned) = self.planned_action(key) else { return then };
        if planned.origin == PlanOrigin::Modified && !reason.fails() {
            return then;
        }
        if let Some(SessionFailure { code, message, help }) = error {
            draft.event(place, Event::Error { code, message: message.clone(), help: help.clone() });
        }
        let id = id_of(component(&planned.key));
        let message = msg!(
            "the route `{then}` was not followed: a plan brought or changed `{id}`, and no plan can end the session"
        );
        draft.event(place, Event::Error { code: "plan-cannot-end", message, help: None });
        RouteTarget::Next
    }

    /// Ends an action that a plan brought or changed after an error that would fail the session: the action is skipped.
    /// Errors: `error`, if the action is over, so that the error belongs to what follows it.
    pub(crate) fn skip_planned_action(
        &mut self,
        planned: &PlannedAction,
        error: SessionFailure,
        place: &EventLocation,
        draft: &mut CommitDraft,
    ) -> Result<NextStep, SessionFailure> {
        if self.frames.get(&planned.key).is_none() {
            return Err(error);
        }
        let SessionFailure { code, message, help } = error;
        draft.event(place, Event::Error { code, message, help });
        self.unwind(&planned.key);
        self.finish_action(&planned.key, &Outcome::default());
        self.settled(draft)
    }
}
