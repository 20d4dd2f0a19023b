//! Actions that change the plan and the state machine.

use crate::notebook::action::fields::snake;
use crate::notebook::error::ActionRejection;
use crate::notebook::state::{NotebookState, WORKFLOW_UPDATE_PENDING};
use crate::notebook::workflow::{PlanStep, Workflow};

/// `update_workflow`: the new plan becomes active when the behavior in progress ends, or immediately if there is none. The
/// state machine reports the update in both cases.
pub(crate) fn replace(state: &mut NotebookState, workflow: &Workflow, at: &str) -> Result<(), ActionRejection> {
    workflow.check()?;
    let mut workflow = workflow.clone();
    if workflow.name.is_empty() {
        workflow.name = state.workflow.as_ref().map(|plan| plan.name.clone()).unwrap_or_default();
    }
    state.workflow_pending = Some(workflow);
    if !state.behavior_is_open {
        state.apply_pending_plan();
    }
    state.set_fsm(WORKFLOW_UPDATE_PENDING, "UPDATE_WORKFLOW", at);
    Ok(())
}

/// `update_stage_steps`: sets the steps of a stage in the plan and in the pending plan.
pub(crate) fn update_steps(state: &mut NotebookState, stage: &str, steps: &[PlanStep]) -> Result<(), ActionRejection> {
    let changed = |plan: &Option<Workflow>| -> Result<Option<Workflow>, ActionRejection> {
        let Some(mut plan) = plan.clone() else { return Ok(None) };
        let Some(target) = plan.stages.iter_mut().find(|target| target.id == stage) else { return Ok(None) };
        target.steps = steps.to_vec();
        plan.check().map(|()| Some(plan))
    };
    let (current, pending) = (changed(&state.workflow)?, changed(&state.workflow_pending)?);
    if current.is_none() && pending.is_none() {
        return Err(ActionRejection::new("unknown-stage", "the plan has no stage with the id in `stage_id`"));
    }
    if let Some(plan) = current {
        state.workflow = Some(plan);
        state.reopen_stage(stage);
        state.update_location();
    }
    if pending.is_some() {
        state.workflow_pending = pending;
    }
    Ok(())
}

/// `next_event`: the event name in upper case becomes the state of the state machine.
pub(crate) fn event(state: &mut NotebookState, event: &str, at: &str) {
    let name = snake(event).to_uppercase();
    state.set_fsm(&name, &name, at);
}
