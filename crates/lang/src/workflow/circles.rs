//! Finds circles of conditions: from such a condition, the workflow only comes to other conditions, and never to a step that does something.

use std::collections::HashMap;

use crate::script::findings::Findings;
use crate::source::diagnostic::Diagnostic;
use crate::source::span::Span;
use crate::workflow::order::execution_order;
use crate::workflow::state_file::{END, StateFile, StateStep};
use crate::workflow::status::StepType;

/// What is known of a step during the search.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    Open,
    Closed,
}

pub(crate) fn check_circles(state: &StateFile, findings: &Findings) {
    let order = execution_order(&state.steps);
    let mut after: Vec<Option<usize>> = vec![None; state.steps.len()];
    for (step, next) in order.iter().zip(order.iter().skip(1)) {
        if let Some(after) = after.get_mut(*step) {
            *after = Some(*next);
        }
    }
    let positions: HashMap<&str, usize> =
        state.steps.iter().enumerate().map(|(position, step)| (step.id.value.as_str(), position)).collect();
    let edges = |position: usize| -> Vec<(usize, Span)> {
        let Some(step) = state.steps.get(position) else { return vec![] };
        let follows = after.get(position).copied().flatten();
        edges_of(step, follows, &positions).into_iter().filter(|(target, _)| is_condition(state, *target)).collect()
    };
    let mut visits: Vec<Option<Visit>> = vec![None; state.steps.len()];
    for start in (0..state.steps.len()).filter(|start| is_condition(state, *start)) {
        if visits.get(start).copied().flatten().is_some() {
            continue;
        }
        // Depth first, with a stack of its own: a file may have many conditions in a row.
        let mut stack: Vec<(usize, Vec<(usize, Span)>)> = vec![(start, edges(start))];
        set(&mut visits, start, Visit::Open);
        while let Some((position, rest)) = stack.last_mut() {
            let Some((target, span)) = rest.pop() else {
                set(&mut visits, *position, Visit::Closed);
                stack.pop();
                continue;
            };
            match visits.get(target).copied().flatten() {
                Some(Visit::Closed) => {}
                Some(Visit::Open) => report(state, findings, span),
                None => {
                    set(&mut visits, target, Visit::Open);
                    stack.push((target, edges(target)));
                }
            }
        }
    }
}

fn set(visits: &mut [Option<Visit>], position: usize, visit: Visit) {
    if let Some(entry) = visits.get_mut(position) {
        *entry = Some(visit);
    }
}

fn is_condition(state: &StateFile, position: usize) -> bool {
    state.steps.get(position).is_some_and(|step| step.kind == StepType::Condition)
}

/// The steps that may follow a condition.
fn edges_of(step: &StateStep, follows: Option<usize>, positions: &HashMap<&str, usize>) -> Vec<(usize, Span)> {
    let cases = step.cases.iter().map(|case| &case.target);
    let named = cases.chain(&step.otherwise).chain(step.next.iter().filter(|_| step.otherwise.is_none()));
    let named = named.filter(|target| target.value != END);
    let mut edges: Vec<(usize, Span)> =
        named.filter_map(|target| Some((*positions.get(target.value.as_str())?, target.span))).collect();
    if step.otherwise.is_none() && step.next.is_none() {
        edges.extend(follows.map(|next| (next, step.id.span)));
    }
    edges
}

fn report(state: &StateFile, findings: &Findings, span: Span) {
    let message = "from here, the workflow can go round in a circle of conditions: no step between them does anything that could change a condition";
    let help = "let a condition of the circle go on at a step that is not a condition, or at `end`";
    findings.report(Diagnostic::error("endless-loop", message, &state.file, span).with_help(help));
}
