//! What holds in every `finally` and `compensate`: nobody is waited for, no route leads out, and a failure is only reported
//! (docs/failures.md).

use bcc_lang::message::msg;

use crate::program::event::Event;
use crate::program::flow::{ActionError, Flow};
use crate::program::location::EventLocation;
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::program::Program;
use crate::run::draft::CommitDraft;
use crate::run::frames::{FrameTarget, component, id_of, is_below, lineage, parent};
use crate::run::session::Session;
use crate::run::transitions::SessionFailure;
use bcc_lang::script::route_parser::RouteTarget;

/// The position in a cleanup whose other actions are left out.
pub(crate) const LEFT_OUT: usize = usize::MAX;

impl Session {
    /// The key of the frame of the `finally` or `compensate` around the frame `key`, or of `key` itself.
    pub(crate) fn cleanup_of(&self, key: &str) -> Option<String> {
        let is_cleanup = |key: &&str| self.is_cleanup(key);
        lineage(key).filter(is_cleanup).last().map(str::to_owned)
    }

    pub(crate) fn is_cleanup(&self, key: &str) -> bool {
        let frame = self.frames.get(key);
        frame.is_some_and(|frame| matches!(frame.at, FrameTarget::Finally | FrameTarget::Compensation))
    }

    /// The cleanup around the action `key`, unless the action is in a branch inside it: a branch can fail.
    pub(crate) fn cleanup_around(&self, key: &str) -> Option<String> {
        let cleanup = self.cleanup_of(key)?;
        let is_inside = self.enclosing_branch(key).is_some_and(|branch| is_below(&branch, &cleanup));
        (!is_inside).then_some(cleanup)
    }

    /// The cleanup around the action `key`, unless the action is in a skill, an insertion or a branch inside it.
    pub(crate) fn direct_cleanup(&self, key: &str) -> Option<String> {
        self.cleanup_around(key).filter(|_| self.enclosing_insertion(key).is_none())
    }

    /// Rejects a flow that would wait for a person during a cleanup. Questions about effects that were interrupted are permitted.
    pub(crate) fn without_waiting(&self, key: &str, flow: Flow) -> Result<Flow, ActionError> {
        match flow.waits_for_person() && self.cleanup_of(key).is_some() {
            true => Err(ActionError::waits_in_cleanup()),
            false => Ok(flow),
        }
    }

    /// The target to use in place of `target` for the action `key`: `next` if the action is in a cleanup and `target` would leave it.
    pub(crate) fn target_in_cleanup(
        &self,
        program: &Program,
        key: &str,
        target: &RouteTarget,
        draft: &mut CommitDraft,
    ) -> RouteTarget {
        let leaves = match target {
            RouteTarget::Next | RouteTarget::Resume | RouteTarget::Retry => false,
            RouteTarget::SkipTopic | RouteTarget::SkipPhase | RouteTarget::End | RouteTarget::Fail => true,
            RouteTarget::Goto(id) => self.list_with(program, key, id).is_none(),
        };
        if !leaves || self.cleanup_around(key).is_none() {
            return target.clone();
        }
        let message = msg!("the route `{target}` was not followed: it leads out of a `finally` or `compensate`");
        draft.event(&self.place_of(key), Event::Error { code: "cleanup-cannot-leave", message, help: None });
        RouteTarget::Next
    }

    /// An action of the cleanup `cleanup` failed. This is reported; a `finally` continues with its next action, a `compensate` ends.
    pub(crate) fn cleanup_action_failed(
        &mut self,
        (key, cleanup): (&str, &str),
        reason: ExitReason,
        outcome: &Outcome,
        error: Option<SessionFailure>,
        draft: &mut CommitDraft,
    ) {
        let action = id_of(component(key));
        let SessionFailure { code, message, help } = error.unwrap_or_else(|| SessionFailure {
            code: "action-error",
            message: msg!("the action `{action}` ended with `{}`", reason.name()),
            help: None,
        });
        draft.event(&self.place_of(key), Event::Error { code, message, help });
        if self.frames.get(cleanup).is_some_and(|frame| frame.at == FrameTarget::Finally) {
            self.finish_action(key, outcome);
        } else {
            self.skip_rest_of_cleanup(cleanup);
        }
    }

    /// Ends the cleanup in which the session is, if there is one, because it cannot continue. Returns whether there was one.
    pub(crate) fn cleanup_failed(
        &mut self,
        place: &EventLocation,
        error: &SessionFailure,
        draft: &mut CommitDraft,
    ) -> bool {
        let Some(cleanup) = self.cleanup_of(&self.frames.leaf()) else { return false };
        let SessionFailure { code, message, help } = error.clone();
        draft.event(place, Event::Error { code, message, help });
        self.clear_pending();
        self.skip_rest_of_cleanup(&cleanup);
        self.walk_on(place, draft);
        true
    }

    fn skip_rest_of_cleanup(&mut self, cleanup: &str) {
        self.unwind(cleanup);
        let owner = id_of(component(parent(cleanup))).to_owned();
        let Some(frame) = self.frames.change(cleanup) else { return };
        frame.next = LEFT_OUT;
        if frame.at == FrameTarget::Compensation
            && let Some(ending) = &mut self.head.ending
        {
            ending.failed.push(owner);
        }
    }
}
