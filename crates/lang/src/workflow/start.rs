//! Where a state file goes on: its statuses and `current_step` say what has run.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::workflow::order::execution_order;
use crate::workflow::state_file::{END, OnStepFailure, StateFile, StateStep};
use crate::workflow::status::{StateStatus, StepType};

/// What ran before the session of a state file began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EarlierProgress {
    /// The step at which the session begins; the first one if none.
    pub start: Option<String>,
    /// Steps and sub tasks that are done: they are passed over when the session first comes to them.
    pub done: BTreeSet<String>,
    /// What follows those of them that name it: a step, or none for the end.
    pub followers: BTreeMap<String, Option<String>>,
    /// Steps and sub tasks that were running: it is not known how far they got.
    pub interrupted: BTreeSet<String>,
    /// Whether no step is left to run.
    pub is_over: bool,
}

/// The position of the first step that must run, and `None` if there is none: everything is done.
pub fn first_to_run(state: &StateFile) -> Option<usize> {
    let order = execution_order(&state.steps);
    let positions: HashMap<&str, usize> =
        state.steps.iter().enumerate().map(|(position, step)| (step.id.value.as_str(), position)).collect();
    let follower: HashMap<usize, usize> = order.iter().copied().zip(order.iter().copied().skip(1)).collect();
    let current = state.current_step.as_ref().and_then(|current| positions.get(current.value.as_str()).copied());
    let mut position = current.or_else(|| order.first().copied())?;
    // Every step is visited at most once, so that a circle of finished steps ends.
    for _ in 0..=state.steps.len() {
        let step = state.steps.get(position)?;
        let is_done = match step.status {
            StateStatus::Failed => matches!(step.on_failure, OnStepFailure::Continue) && is_last(state, step),
            StateStatus::Completed if step.kind == StepType::Condition => is_last(state, step),
            status => status.is_done(),
        };
        if !is_done {
            return Some(position);
        }
        position = match &step.next {
            Some(next) if next.value == END => return None,
            Some(next) => *positions.get(next.value.as_str())?,
            None => *follower.get(&position)?,
        };
    }
    None
}

/// Whether the file says that the workflow ended with this step, so that a condition is not evaluated again, and what failed is not repeated.
fn is_last(state: &StateFile, step: &StateStep) -> bool {
    state.status == Some("completed")
        && state.current_step.as_ref().is_some_and(|current| current.value == step.id.value)
}

/// What ran before, for a session that begins at `start`.
pub fn earlier_progress(state: &StateFile) -> EarlierProgress {
    let Some(start) = first_to_run(state) else {
        let done = state.all().map(|step| step.id.value.clone()).collect();
        return EarlierProgress { done, is_over: true, ..EarlierProgress::default() };
    };
    let order = execution_order(&state.steps);
    let from = order.iter().position(|position| *position == start).unwrap_or(0);
    let mut earlier = EarlierProgress {
        start: state.steps.get(start).map(|step| step.id.value.clone()),
        ..EarlierProgress::default()
    };
    // Steps before the start run only if a route goes back to them, and then they run again.
    let later = order.iter().skip(from).filter_map(|position| state.steps.get(*position));
    for step in later.flat_map(|step| std::iter::once(step).chain(&step.sub_tasks)) {
        let is_start = earlier.start.as_deref() == Some(step.id.value.as_str());
        // Without its targets, a condition that is passed over would lead elsewhere.
        let is_passed_over = step.kind != StepType::Condition || step.status == StateStatus::Skipped;
        if step.status.is_done() && is_passed_over && !is_start {
            earlier.done.insert(step.id.value.clone());
            if let Some(next) = &step.next {
                let follower = Some(next.value.clone()).filter(|next| next != END);
                earlier.followers.insert(step.id.value.clone(), follower);
            }
        }
        if step.status == StateStatus::Running && step.kind == StepType::Action && step.runs() {
            earlier.interrupted.insert(step.id.value.clone());
        }
    }
    earlier
}
