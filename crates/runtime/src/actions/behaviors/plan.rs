//! The steps of a plan that a loop may continue at.

use serde::{Deserialize, Serialize};

use crate::notebook::error::ActionRejection;
use crate::notebook::state::NotebookState;
use crate::program::program::Program;

/// A step of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanTarget {
    pub stage: String,
    pub step: String,
}

/// How often the sources of one session may move it to a topic of its script. Each move restarts a topic, so two servers could
/// otherwise move a session back and forth without end.
pub(crate) const MAX_MOVES: u32 = 50;

pub fn current(state: &NotebookState) -> Option<PlanTarget> {
    Some(PlanTarget { stage: state.location.stage_id.clone()?, step: state.location.step_id.clone()? })
}

/// The current stage, if the session is in no step of it.
pub(crate) fn stage_without_step(state: &NotebookState) -> Option<String> {
    state.location.stage_id.clone().filter(|_| state.location.step_id.is_none())
}

/// The step that these ids refer to, if the plan has it. The state is not changed.
pub fn resolve(
    state: &NotebookState,
    stage: Option<&str>,
    step: Option<&str>,
    at: &str,
) -> Result<Option<PlanTarget>, ActionRejection> {
    if stage.is_none() && step.is_none() {
        return Ok(None);
    }
    let mut moved = state.clone();
    moved.go_to(stage, step, at)?;
    Ok(current(&moved))
}

/// Whether a step is a topic of the script. The script itself then continues there.
pub(crate) fn is_topic(program: &Program, target: &PlanTarget) -> bool {
    program.phases.iter().any(|phase| phase.topics.iter().any(|topic| topic.id == target.step))
}

/// The goal of the current step according to the plan, else the name of the step; empty without a current step.
pub fn goal(state: &NotebookState) -> String {
    let Some(step) = state.current_step() else { return String::new() };
    let goal = step.goal.trim();
    if goal.is_empty() { step.name.clone() } else { goal.to_owned() }
}
