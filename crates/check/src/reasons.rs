//! Exit reasons: which there are, what happens without a route, and which of them an action can give (docs/routes.md).

use crate::collected::ActionFact;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::routes::{OnExit, WrittenRoute};

/// Every exit reason.
pub const REASONS: [&str; 10] = [
    "exit_criteria_met",
    "max_rounds_reached",
    "user_blocked",
    "off_topic",
    "approved",
    "rejected",
    "timed_out",
    "failed",
    "branch_failed",
    "error",
];

/// The reason that every kind can give.
pub const ERROR: &str = "error";

/// What happens for a reason for which nobody wrote a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultRoute {
    /// It goes on with what stands next.
    Next,
    Again,
    Fail,
}

pub fn usual(reason: &str) -> DefaultRoute {
    match reason {
        "user_blocked" | "off_topic" => DefaultRoute::Again,
        ERROR | "failed" | "branch_failed" | "rejected" | "timed_out" => DefaultRoute::Fail,
        _ => DefaultRoute::Next,
    }
}

/// The reasons that an action can give as it is configured, `error` among them; every reason for one of an unknown kind.
pub fn possible(facts: &SemanticModel<'_>, action: &ActionFact) -> impl Iterator<Item = &'static str> {
    let own = action.described.as_ref().and_then(|described| described.exits);
    let given = own.or_else(|| facts.kind_of(action).map(|kind| kind.exits()));
    REASONS.into_iter().filter(move |reason| *reason == ERROR || given.is_none_or(|given| given.contains(reason)))
}

/// The routes of a table, by the numbers of their reasons in [`REASONS`]. A table is asked for each action below it, so it
/// is looked through once.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReasonTable<'a>([Option<&'a WrittenRoute>; REASONS.len()]);

impl<'a> ReasonTable<'a> {
    /// The routes of a table, when there is one.
    pub fn of(on_exit: Option<&'a OnExit>) -> Self {
        let mut table = Self::default();
        for route in on_exit.into_iter().flat_map(|on_exit| &on_exit.routes) {
            let slots = REASONS.iter().zip(&mut table.0);
            slots.filter(|(reason, _)| **reason == route.reason.value).for_each(|(_, slot)| *slot = Some(route));
        }
        table
    }

    pub fn route(&self, reason: &str) -> Option<&'a WrittenRoute> {
        REASONS.iter().zip(&self.0).find(|(known, _)| **known == reason).and_then(|(_, route)| *route)
    }
}
