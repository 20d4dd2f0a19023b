//! The exit reasons, their default routes, and which of them an action can have (docs/routes.md).

use crate::collected::CollectedAction;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::route_parser::{OnExit, WrittenRoute};

/// All exit reasons.
pub(crate) const REASONS: [&str; 12] = [
    "exit_criteria_met",
    "max_rounds_reached",
    "slots_missing",
    "user_blocked",
    "off_topic",
    "approved",
    "rejected",
    "timed_out",
    "failed",
    "branch_failed",
    "skipped",
    "error",
];

/// The exit reason that every kind can have.
pub const ERROR: &str = "error";

/// The exit reason of an action that does not start.
pub(crate) const SKIPPED: &str = "skipped";

/// The behavior for a reason without a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultRoute {
    /// Continue with what follows.
    Next,
    Again,
    Fail,
}

pub fn default_route(reason: &str) -> DefaultRoute {
    match reason {
        "user_blocked" | "off_topic" => DefaultRoute::Again,
        ERROR | "failed" | "branch_failed" | "rejected" | "timed_out" => DefaultRoute::Fail,
        _ => DefaultRoute::Next,
    }
}

/// Whether an action may be skipped when the session reaches it.
pub(crate) fn may_be_skipped(action: &CollectedAction) -> bool {
    action.conditional
}

/// The exit reasons of an action with its config, including `error`, and `skipped` if it may be skipped; all reasons for an action of an unknown kind.
pub(crate) fn possible_reasons(
    model: &SemanticModel<'_>,
    action: &CollectedAction,
) -> impl Iterator<Item = &'static str> {
    let own = action.described.as_ref().and_then(|described| described.exits);
    let given = own.or_else(|| model.kind_of(action).map(|kind| kind.exits()));
    let skipped = may_be_skipped(action);
    REASONS.into_iter().filter(move |reason| match *reason {
        ERROR => true,
        SKIPPED => skipped,
        reason => given.is_none_or(|given| given.contains(&reason)),
    })
}

/// The routes of a table, indexed like [`REASONS`]. A table is queried for each action below it, so it is indexed once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReasonTable<'a>([Option<&'a WrittenRoute>; REASONS.len()]);

impl<'a> ReasonTable<'a> {
    /// The routes of a table, if there is one.
    pub(crate) fn of(on_exit: Option<&'a OnExit>) -> Self {
        let mut table = Self::default();
        for route in on_exit.into_iter().flat_map(|on_exit| &on_exit.routes) {
            let slots = REASONS.iter().zip(&mut table.0);
            slots.filter(|(reason, _)| **reason == route.reason.value).for_each(|(_, slot)| *slot = Some(route));
        }
        table
    }

    pub(crate) fn route(&self, reason: &str) -> Option<&'a WrittenRoute> {
        REASONS.iter().zip(&self.0).find(|(known, _)| **known == reason).and_then(|(_, route)| *route)
    }
}
