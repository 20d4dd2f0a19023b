//! Routes as they are drawn: an arrow where one leads elsewhere, a line in the part where it stays or goes on.

use crate::graph::build::Gathering;
use crate::graph::script_graph::EdgeKind;
use bcc_lang::script::routes::Go;
use bcc_runtime::program::outcome::ExitReason;
use bcc_runtime::program::routes::{Route, RouteTable};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Around {
    /// What `skip_topic` leads to; none where that depends on the action.
    pub(crate) behind_topic: Option<usize>,
    /// What `skip_phase` leads to.
    pub(crate) behind_phase: Option<usize>,
    pub(crate) action: bool,
}

impl Gathering<'_> {
    /// Draws the routes of a table that belongs to `from`.
    pub(crate) fn routes(&mut self, from: usize, table: &RouteTable, around: Around) {
        for (reason, route) in table.iter() {
            self.route(from, reason, route, around);
        }
    }

    fn route(&mut self, from: usize, reason: ExitReason, route: &Route, around: Around) {
        let target = route.then.as_ref().and_then(|go| self.target(go, from, around));
        let set = if route.set.is_empty() { "" } else { "set, " };
        let inserted = route.insert.as_deref().and_then(|id| Some((id, self.inserted(id)?)));
        let reason = reason.name();
        match (inserted, target, &route.then) {
            (Some((_, skill)), None, then) => {
                let then = then.as_ref().map(|then| format!(", then {then}")).unwrap_or_default();
                self.link(from, skill, EdgeKind::Call, format!("{reason}: {set}insert{then}"), reason);
            }
            (Some((id, skill)), Some(to), Some(then)) => {
                self.link(from, skill, EdgeKind::Call, format!("{reason}: {set}insert"), reason);
                self.link(from, to, EdgeKind::Route, format!("{reason}: {} after {id}", word(then)), reason);
            }
            (None, Some(to), Some(then)) => {
                self.link(from, to, EdgeKind::Route, format!("{reason}: {set}{}", word(then)), reason);
            }
            // What is usual and changes nothing is not worth a line.
            (None, _, Some(Go::Next)) if set.is_empty() && usual_is_next(reason) => {}
            (_, _, then) => {
                let then = then.as_ref().map(Go::to_string).unwrap_or_default();
                let told = format!("{reason}: {set}{then}");
                if let Some(part) = self.whole.parts.get_mut(from) {
                    part.notes.push(told.trim_end_matches([' ', ',']).to_owned());
                }
            }
        }
    }

    /// Where a route leads, when that is a place of its own.
    fn target(&self, go: &Go, from: usize, around: Around) -> Option<usize> {
        match go {
            Go::Next | Go::Resume => None,
            Go::Retry => around.action.then_some(from),
            Go::SkipTopic => around.behind_topic,
            Go::SkipPhase => around.behind_phase,
            Go::Goto(id) => self.places.get(id.as_str()).copied(),
            Go::End => Some(self.end),
            Go::Fail => Some(self.fail),
        }
    }
}

/// A route as an arrow tells it: where it leads is what the arrow shows.
fn word(go: &Go) -> String {
    match go {
        Go::Goto(_) => "goto".to_owned(),
        other => other.to_string(),
    }
}

fn usual_is_next(reason: &str) -> bool {
    ExitReason::parse(reason)
        .is_some_and(|reason| !reason.fails() && !matches!(reason, ExitReason::UserBlocked | ExitReason::OffTopic))
}
