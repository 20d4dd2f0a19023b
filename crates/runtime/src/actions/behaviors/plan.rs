//! Where a loop goes on: which step of the plan is meant, and whether the script itself goes on there.

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

/// How often the sources of one session may move it to a topic of its script. Each such move begins a topic anew, and two servers
/// that send a session back and forth would do so for ever.
pub const MOST_MOVES: u32 = 50;

pub fn here(state: &NotebookState) -> Option<PlanTarget> {
    Some(PlanTarget { stage: state.location.stage_id.clone()?, step: state.location.step_id.clone()? })
}

/// The step that these ids mean, when the plan has it: nothing is moved.
pub fn meant(
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
    Ok(here(&moved))
}

/// Whether a step is a topic of the script, where the script itself goes on.
pub fn is_topic(program: &Program, there: &PlanTarget) -> bool {
    program.phases.iter().any(|phase| phase.topics.iter().any(|topic| topic.id == there.step))
}

/// What the step that the session is in is for, in the words of the plan; empty when the plan does not say.
pub fn goal(state: &NotebookState) -> String {
    let Some(step) = state.current_step() else { return String::new() };
    let goal = step.goal.trim();
    if goal.is_empty() { step.name.clone() } else { goal.to_owned() }
}
