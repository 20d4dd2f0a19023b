//! Failures that are decided and follow an insertion: what a trigger or a route inserted runs first, and then the session fails
//! (docs/triggers.md, docs/routes.md).

use bcc_lang::message::message::Message;
use bcc_lang::script::route_parser::RouteTarget;

use crate::program::program::Program;
use crate::run::frames::{is_below, lineage, parent};
use crate::run::insertion::Insertion;
use crate::run::jumps::part_with;
use crate::run::routing::{default_route, fail_route_error, unread_reply};
use crate::run::session::Session;
use crate::run::transitions::SessionFailure;

impl Session {
    /// The error that the session fails with after an insertion around the frame `key`, if that is decided. A trigger that would lead
    /// elsewhere does not undo the decision.
    pub(crate) fn decided_failure(&self, program: &Program, key: &str) -> Option<SessionFailure> {
        // A failure in a cleanup ends only the cleanup.
        if self.cleanup_around(key).is_some() {
            return None;
        }
        lineage(key).find_map(|inserted| match self.frames.get(inserted)?.insertion.as_ref()? {
            Insertion::Called => None,
            Insertion::Triggered { failure, .. } => failure.clone().map(earlier_failure),
            Insertion::ByRoute { reason, completed, then, failure } => {
                let action = parent(inserted);
                let fails = match then {
                    Some(then) => *then == RouteTarget::Fail,
                    None if self.is_container(action) => false,
                    None => {
                        let default = default_route(*reason, *completed, None);
                        default == RouteTarget::Fail && !self.fails_insertion(program, action, *reason, &default)
                    }
                };
                let error = || match (failure, then) {
                    (Some(message), _) => earlier_failure(message.clone()),
                    (None, Some(_)) => fail_route_error(action),
                    (None, None) => unread_reply(action, *reason),
                };
                fails.then(error)
            }
        })
    }

    /// The error of a turn that a trigger let speak first, if this route of the action `key` would lead out of what the trigger inserted.
    pub(crate) fn failure_left_by(&self, program: &Program, key: &str, target: &RouteTarget) -> Option<SessionFailure> {
        lineage(key).find_map(|inserted| match self.frames.get(inserted)?.insertion.as_ref()? {
            Insertion::Triggered { failure: Some(message), .. } if self.leads_out(program, key, target, inserted) => {
                Some(earlier_failure(message.clone()))
            }
            _ => None,
        })
    }

    /// Whether this route of the action `key` leads out of the insertion with the frame `inserted`.
    fn leads_out(&self, program: &Program, key: &str, target: &RouteTarget, inserted: &str) -> bool {
        match target {
            RouteTarget::End | RouteTarget::SkipPhase => true,
            RouteTarget::SkipTopic => {
                !self.skill_topic_around(program, key).is_some_and(|topic| is_below(&topic, inserted))
            }
            RouteTarget::Goto(id) => match self.list_for(program, key, id) {
                Some((list, _)) => list != inserted && !is_below(&list, inserted),
                None => part_with(program, id).is_some(),
            },
            RouteTarget::Next | RouteTarget::Resume | RouteTarget::Retry | RouteTarget::Fail => false,
        }
    }
}

/// The error of an action after which something else ran before the session fails.
pub(crate) fn earlier_failure(message: Message) -> SessionFailure {
    SessionFailure { code: "action-error", message, help: None }
}
