//! Routes and triggers at run time (docs/routes.md and docs/triggers.md).

use std::sync::Arc;

use crate::program::assigned::Assignment;
use crate::program::outcome::ExitReason;
use bcc_lang::expr::parse::Expr;
use bcc_lang::script::route_parser::RouteTarget;

/// A table of routes: at most one for each reason. Cloning is cheap.
#[derive(Clone, Default)]
pub struct RouteTable(Arc<Vec<(ExitReason, Arc<Route>)>>);

/// A table `on_change`: routes by the names of variables. Cloning is cheap.
#[derive(Clone, Default)]
pub struct ChangeTable(Arc<Vec<(String, Route)>>);

impl ChangeTable {
    pub fn new(routes: Vec<(String, Route)>) -> Self {
        Self(Arc::new(routes))
    }

    pub fn get(&self, name: &str) -> Option<&Route> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, route)| route)
    }

    /// The variables, in the author's order, each with its route.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Route)> {
        self.0.iter().map(|(name, route)| (name.as_str(), route))
    }
}

/// The level that a table of routes belongs to, the narrowest first (docs/routes.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RouteLevel {
    Action,
    Topic,
    Phase,
    Session,
}

impl RouteLevel {
    /// The name in events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Action => "action",
            Self::Topic => "topic",
            Self::Phase => "phase",
            Self::Session => "session",
        }
    }
}

/// What happens for one exit reason.
pub struct Route {
    /// Assignments that are made first.
    pub set: Vec<Assignment>,
    /// The skill, or the action of the script, that runs first. A skill takes precedence over an action with the same id.
    pub insert: Option<String>,
    /// Where the session continues; if not set, as without a route.
    pub then: Option<RouteTarget>,
}

impl Route {
    /// Whether it leads away from an action that is not finished.
    pub(crate) fn leads_away(&self) -> bool {
        self.insert.is_some() || !matches!(self.then, None | Some(RouteTarget::Resume))
    }
}

/// A condition that interrupts a session (docs/triggers.md).
pub struct Trigger {
    pub id: String,
    pub when: Expr,
    /// The skill, or the action of the script, that runs first.
    pub insert: Option<String>,
    /// Where the session continues: `resume`, `end` or a `goto`.
    pub then: RouteTarget,
    /// Whether it fires at most once in a session.
    pub once: bool,
}

impl Trigger {
    /// What it does, as events show it.
    pub fn route(&self) -> String {
        let then = &self.then;
        match &self.insert {
            Some(id) => format!("insert: {}, then: {then}", id),
            None => then.to_string(),
        }
    }
}

impl RouteTable {
    pub fn new(routes: Vec<(ExitReason, Route)>) -> Self {
        Self(Arc::new(routes.into_iter().map(|(reason, route)| (reason, Arc::new(route))).collect()))
    }

    /// The reasons with a route, in the author's order, each with the route.
    pub fn iter(&self) -> impl Iterator<Item = (ExitReason, &Route)> {
        self.0.iter().map(|(reason, route)| (*reason, route.as_ref()))
    }

    pub fn get(&self, reason: ExitReason) -> Option<&Arc<Route>> {
        self.0.iter().find(|(found, _)| *found == reason).map(|(_, route)| route)
    }
}
