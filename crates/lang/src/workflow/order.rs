//! The order of the steps: that of the file, except that a step comes after those that it depends on.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::message::message::{Joint, Message};
use crate::message::msg;

use crate::script::findings::Findings;
use crate::source::diagnostic::Diagnostic;
use crate::workflow::fields::report_unknown;
use crate::workflow::state_file::{StateFile, StateStep};

/// The positions of the steps in the order in which they run without `next`. Steps in a circle of dependencies, which is an error, are left out.
pub fn execution_order(steps: &[StateStep]) -> Vec<usize> {
    let positions: HashMap<&str, usize> =
        steps.iter().enumerate().map(|(position, step)| (step.id.value.as_str(), position)).collect();
    let mut waiting_for = vec![0_usize; steps.len()];
    let mut dependents: HashMap<usize, Vec<usize>> = HashMap::new();
    for (position, step) in steps.iter().enumerate() {
        for needed in step.depends_on.iter().filter_map(|needed| positions.get(needed.value.as_str())) {
            dependents.entry(*needed).or_default().push(position);
            if let Some(count) = waiting_for.get_mut(position) {
                *count += 1;
            }
        }
    }
    let ready = waiting_for.iter().enumerate().filter(|(_, count)| **count == 0);
    let mut ready: BinaryHeap<Reverse<usize>> = ready.map(|(position, _)| Reverse(position)).collect();
    let mut order = Vec::with_capacity(steps.len());
    while let Some(Reverse(position)) = ready.pop() {
        order.push(position);
        for dependent in dependents.remove(&position).unwrap_or_default() {
            let Some(count) = waiting_for.get_mut(dependent) else { continue };
            *count = count.saturating_sub(1);
            if *count == 0 {
                ready.push(Reverse(dependent));
            }
        }
    }
    order
}

/// Reports dependencies on steps that do not exist, and circles.
pub(crate) fn check_dependencies(state: &StateFile, findings: &Findings) {
    check_list(state, &state.steps, findings);
    state.steps.iter().filter(|step| !step.sub_tasks.is_empty()).for_each(|step| {
        check_list(state, &step.sub_tasks, findings);
    });
}

fn check_list(state: &StateFile, steps: &[StateStep], findings: &Findings) {
    if steps.iter().all(|step| step.depends_on.is_empty()) {
        return;
    }
    let ids: Vec<&str> = steps.iter().map(|step| step.id.value.as_str()).collect();
    let known: std::collections::HashSet<&str> = ids.iter().copied().collect();
    for needed in steps.iter().flat_map(|step| &step.depends_on) {
        if !known.contains(needed.value.as_str()) {
            report_unknown(&state.file, findings, ("depends_on", needed), &ids);
        }
    }
    let mut is_in_order = vec![false; steps.len()];
    for position in execution_order(steps) {
        if let Some(is_in_order) = is_in_order.get_mut(position) {
            *is_in_order = true;
        }
    }
    let circular: Vec<&StateStep> =
        steps.iter().zip(&is_in_order).filter(|(_, is_in_order)| !**is_in_order).map(|(step, _)| step).collect();
    let Some(first) = circular.first() else { return };
    const MAX_LISTED: usize = 8;
    let names = circular.iter().take(MAX_LISTED).map(|step| Message::text(format!("`{}`", step.id.value)));
    let message = match circular.as_slice() {
        [only] => msg!("`{}` depends on itself", only.id.value),
        _ => msg!(
            "these steps depend on each other, so that none of them can run first: {names}",
            names = Message::list(Joint::Comma, names)
        ),
    };
    let span = first.depends_on.first().map_or(first.id.span, |needed| needed.span);
    let diagnostic = Diagnostic::error("invalid-dependency", message, &state.file, span);
    findings.report(diagnostic.with_help("remove one of the ids from `depends_on`"));
}
