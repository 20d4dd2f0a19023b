//! The routes of a step: where the workflow goes on after it, as the `on_exit` of an action.

use std::sync::Arc;

use crate::script::fields::is_null;
use crate::source::span::{Span, Spanned};
use crate::source::yaml::{YamlEntry, YamlNode};
use crate::workflow::state_file::{END, OnStepFailure, StateStep};
use crate::workflow::tree::{entry, mapping, text};

/// The exit reasons of an action that stands for a step.
pub(crate) struct StepReasons {
    pub success: &'static str,
    pub failures: &'static [&'static str],
}

/// `on_exit` of the action. A failure that is not provided for fails the workflow, also if it is an error, after which a conversation would
/// go on.
pub(crate) fn on_exit(step: &StateStep, reasons: &StepReasons) -> YamlEntry {
    let span = step.id.span;
    let next = step.next.as_ref().map(route_to);
    let failure = match &step.on_failure {
        OnStepFailure::Stop => None,
        OnStepFailure::Continue => Some(next.clone().unwrap_or_else(|| text("next", span))),
        OnStepFailure::Goto(target) => Some(route_to(target)),
    };
    // Also a step whose condition does not hold is followed by the one that it names.
    let skipped = step.node.get("condition").filter(|node| !is_null(node)).map(|_| "skipped");
    let followed = std::iter::once(reasons.success).chain(skipped).zip(next.iter().cycle());
    let mut routes: Vec<YamlEntry> = followed.map(|(reason, next)| entry(reason, span, Arc::clone(next))).collect();
    if let Some(failure) = &failure {
        routes.extend(reasons.failures.iter().map(|reason| entry(reason, span, Arc::clone(failure))));
    }
    routes.push(entry("error", span, failure.unwrap_or_else(|| text("fail", span))));
    entry("on_exit", span, mapping(routes, span))
}

/// The route to a step, or to the end.
fn route_to(target: &Spanned<String>) -> Arc<YamlNode> {
    if target.value == END {
        return text("end", target.span);
    }
    mapping(vec![goto(target, target.span)], target.span)
}

/// `goto` of a route or a case.
pub(crate) fn goto(target: &Spanned<String>, span: Span) -> YamlEntry {
    entry("goto", span, text(target.value.clone(), target.span))
}
