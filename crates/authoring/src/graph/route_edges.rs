//! Adds routes to the graph: an edge for a route that leads elsewhere, a note for one that stays or continues.

use crate::graph::build::GraphBuilder;
use crate::graph::script_graph::EdgeKind;
use bcc_lang::script::route_parser::RouteTarget;
use bcc_runtime::program::outcome::ExitReason;
use bcc_runtime::program::route_table::{ChangeTable, Route, RouteTable};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RouteContext {
    /// The target of `skip_topic`; `None` if it depends on the action.
    pub(crate) after_topic: Option<usize>,
    /// The target of `skip_phase`.
    pub(crate) after_phase: Option<usize>,
    pub(crate) action: bool,
}

/// The routes of a table, by the texts of their reasons.
pub(crate) type TableRoutes<'p> = Vec<(String, &'p Route)>;

/// The routes of `on_exit` and `on_change` of one part.
pub(crate) fn table_routes<'p>(exits: &'p RouteTable, changes: &'p ChangeTable) -> TableRoutes<'p> {
    let exits = exits.iter().map(|(reason, route)| (reason.name().to_owned(), route));
    exits.chain(changes.iter().map(|(name, route)| (format!("{name} changed"), route))).collect()
}

impl GraphBuilder<'_> {
    /// Adds the routes of the table of `from`.
    pub(crate) fn routes(&mut self, from: usize, table: TableRoutes<'_>, context: RouteContext) {
        for (reason, route) in table {
            self.route(from, &reason, route, context);
        }
    }

    fn route(&mut self, from: usize, reason: &str, route: &Route, context: RouteContext) {
        let target = route.then.as_ref().and_then(|target| self.target(target, from, context));
        let set = if route.set.is_empty() { "" } else { "set, " };
        let inserted = route.insert.as_deref().and_then(|id| Some((id, self.insert_target(id)?)));
        match (inserted, target, &route.then) {
            (Some((_, skill)), None, then) => {
                let then = then.as_ref().map(|then| format!(", then {then}")).unwrap_or_default();
                self.link(from, skill, EdgeKind::Call, format!("{reason}: {set}insert{then}"), reason);
            }
            (Some((id, skill)), Some(to), Some(then)) => {
                self.link(from, skill, EdgeKind::Call, format!("{reason}: {set}insert"), reason);
                self.link(from, to, EdgeKind::Route, format!("{reason}: {} after {id}", route_label(then)), reason);
            }
            (None, Some(to), Some(then)) => {
                self.link(from, to, EdgeKind::Route, format!("{reason}: {set}{}", route_label(then)), reason);
            }
            // A default route without side effects needs no note.
            (None, _, Some(RouteTarget::Next)) if set.is_empty() && continues_by_default(reason) => {}
            (_, _, then) => {
                let then = then.as_ref().map(RouteTarget::to_string).unwrap_or_default();
                let note = format!("{reason}: {set}{then}");
                if let Some(part) = self.graph.parts.get_mut(from) {
                    part.notes.push(note.trim_end_matches([' ', ',']).to_owned());
                }
            }
        }
    }

    /// The target of a route, if it is a separate node.
    fn target(&self, target: &RouteTarget, from: usize, context: RouteContext) -> Option<usize> {
        match target {
            RouteTarget::Next | RouteTarget::Resume => None,
            RouteTarget::Retry => context.action.then_some(from),
            RouteTarget::SkipTopic => context.after_topic,
            RouteTarget::SkipPhase => context.after_phase,
            RouteTarget::Goto(id) => self.jump_target(from, id),
            RouteTarget::End => Some(self.end),
            RouteTarget::Fail => Some(self.fail),
        }
    }
}

/// The label of a route. The arrow already shows the target.
fn route_label(target: &RouteTarget) -> String {
    match target {
        RouteTarget::Goto(_) => "goto".to_owned(),
        other => other.to_string(),
    }
}

fn continues_by_default(reason: &str) -> bool {
    ExitReason::parse(reason)
        .is_some_and(|reason| !reason.fails() && !matches!(reason, ExitReason::UserBlocked | ExitReason::OffTopic))
}
