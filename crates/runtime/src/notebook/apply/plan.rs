//! Actions that change the plan, and the machine.

use crate::notebook::action::fields::snake;
use crate::notebook::error::ActionRejection;
use crate::notebook::state::{NotebookState, WORKFLOW_UPDATE_PENDING};
use crate::notebook::workflow::{PlanStep, Workflow};

/// `update_workflow`: the new plan waits for the end of the behavior under way; without one, it takes its place at once, and
/// the machine still tells that it came.
pub(crate) fn replace(state: &mut NotebookState, workflow: &Workflow, at: &str) -> Result<(), ActionRejection> {
    workflow.check()?;
    let mut workflow = workflow.clone();
    if workflow.name.is_empty() {
        workflow.name = state.workflow.as_ref().map(|plan| plan.name.clone()).unwrap_or_default();
    }
    state.workflow_pending = Some(workflow);
    if !state.behavior_is_open {
        state.swap_pending();
    }
    state.machine(WORKFLOW_UPDATE_PENDING, "UPDATE_WORKFLOW", at);
    Ok(())
}

/// `update_stage_steps`: the stage of the plan, and of the one that waits, gets these steps.
pub(crate) fn update_steps(state: &mut NotebookState, stage: &str, steps: &[PlanStep]) -> Result<(), ActionRejection> {
    let changed = |plan: &Option<Workflow>| -> Result<Option<Workflow>, ActionRejection> {
        let Some(mut plan) = plan.clone() else { return Ok(None) };
        let Some(found) = plan.stages.iter_mut().find(|found| found.id == stage) else { return Ok(None) };
        found.steps = steps.to_vec();
        plan.check().map(|()| Some(plan))
    };
    let (now, pending) = (changed(&state.workflow)?, changed(&state.workflow_pending)?);
    if now.is_none() && pending.is_none() {
        return Err(ActionRejection::new("unknown-stage", "the plan has no stage with the id in `stage_id`"));
    }
    if let Some(plan) = now {
        state.workflow = Some(plan);
        state.reopen_stage(stage);
        state.find_place();
    }
    if pending.is_some() {
        state.workflow_pending = pending;
    }
    Ok(())
}

/// `next_event`: its type in capitals is the state of the machine.
pub(crate) fn event(state: &mut NotebookState, event: &str, at: &str) {
    let name = snake(event).to_uppercase();
    state.machine(&name, &name, at);
}
