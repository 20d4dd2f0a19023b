//! How a session moves through its plan (docs/protocol.md): steps are entered, completed and left, behaviors
//! begin and end. Only the plan of this session moves; what the script does next is decided elsewhere.
//!
//! A step is never both current and completed: entering a completed one opens it again. Changes of the plan that come while
//! a behavior is under way wait for its end.

use crate::notebook::error::ActionRejection;
use crate::notebook::state::{
    BEHAVIOR_RUNNING, MOST_COMPLETED_STEPS, NotebookState, STEP_COMPLETED, STEP_RUNNING, WORKFLOW_UPDATE_PENDING,
};
use crate::notebook::workflow::{PlanStep, Stage, Workflow, is_id};

impl NotebookState {
    pub fn current_stage(&self) -> Option<&Stage> {
        self.workflow.as_ref()?.stage(self.location.stage_id.as_deref()?)
    }

    pub fn current_step(&self) -> Option<&PlanStep> {
        self.current_stage()?.step(self.location.step_id.as_deref()?)
    }

    /// The stages that are neither completed nor the one that the session is in, in the order of the plan.
    pub fn remaining_stages(&self) -> Vec<&Stage> {
        let Some(workflow) = &self.workflow else { return vec![] };
        let is_left = |stage: &&Stage| {
            self.location.stage_id.as_ref() != Some(&stage.id) && !self.location.completed_stages.contains(&stage.id)
        };
        workflow.stages.iter().filter(is_left).collect()
    }

    /// The steps of the current stage that are neither completed nor the one that the session is in, in the order of the plan.
    pub fn remaining_steps(&self) -> Vec<&PlanStep> {
        let Some(stage) = self.current_stage() else { return vec![] };
        let current = self.location.step_id.as_ref();
        stage.steps.iter().filter(|step| current != Some(&step.id) && self.is_left(step)).collect()
    }

    /// The steps of the current stage that are completed, in the order of the plan.
    pub fn completed_steps_here(&self) -> Vec<&PlanStep> {
        let Some(stage) = self.current_stage() else { return vec![] };
        stage.steps.iter().filter(|step| !self.is_left(step)).collect()
    }

    fn is_left(&self, step: &PlanStep) -> bool {
        !self.location.completed_steps.contains(&step.id)
    }

    /// What follows the current step: the next one of its stage that is not completed, then an earlier one that was passed over,
    /// then the first of the next stage that has one. Nothing when the plan is at its end, or there is none.
    pub fn next_step(&self) -> Option<(&Stage, &PlanStep)> {
        let workflow = self.workflow.as_ref()?;
        let here = self.location.stage_id.as_deref();
        let current = self.location.step_id.as_deref();
        let open = |step: &&PlanStep| current != Some(step.id.as_str()) && self.is_left(step);
        let at = here.and_then(|id| workflow.stages.iter().position(|stage| stage.id == id));
        if let Some(stage) = at.and_then(|at| workflow.stages.get(at)) {
            let after = stage.steps.iter().position(|step| Some(step.id.as_str()) == current).map_or(0, |at| at + 1);
            let found = stage.steps.iter().skip(after).find(open).or_else(|| stage.steps.iter().find(open));
            if let Some(step) = found {
                return Some((stage, step));
            }
        }
        let after = at.map_or(0, |at| at + 1);
        let mut others = workflow.stages.iter().skip(after).chain(workflow.stages.iter().take(after));
        others.find_map(|stage| stage.steps.iter().find(open).map(|step| (stage, step)))
    }

    /// The script entered this topic. The first time, `plan` makes the plan from the script. Entering another topic than the
    /// last one moves the location to it, and completes the step of the topic that was left when the session was still there;
    /// a topic that the plan no longer has moves nothing. Whether anything changed.
    pub fn enter_home(&mut self, phase: &str, topic: &str, plan: impl FnOnce() -> Workflow, at: &str) -> bool {
        let home = format!("{phase}/{topic}");
        if self.location.home == home && self.workflow.is_some() {
            return false;
        }
        // A behavior does not outlive the topic that it was for.
        self.behavior_is_open = false;
        self.swap_pending();
        let stage = self.workflow.get_or_insert_with(|| plan().cut()).stage_of(topic).map(|stage| stage.id.clone());
        let left = std::mem::replace(&mut self.location.home, home);
        let Some(stage) = stage else { return true };
        if let Some(step) = self.location.step_id.clone()
            && step != topic
            && left.ends_with(&format!("/{step}"))
        {
            self.mark_completed(step);
        }
        self.stand(stage, topic.to_owned());
        self.machine(STEP_RUNNING, "START_STEP", at);
        true
    }

    /// Moves to a stage and a step of the plan, as a server or a model says: to the step; or to the first one of the stage that
    /// is not completed. With neither, nothing happens.
    /// Errors: `unknown-stage`, `unknown-step` when the plan has no such one, or the stage not this step; `empty-stage` when the stage
    /// has no steps. Nothing is changed then.
    pub fn go_to(&mut self, stage_id: Option<&str>, step_id: Option<&str>, at: &str) -> Result<(), ActionRejection> {
        let workflow = self.workflow.as_ref();
        let (stage, step) = match (stage_id, step_id) {
            (None, None) => return Ok(()),
            (Some(stage), step) => {
                let stage = workflow.and_then(|plan| plan.stage(stage)).ok_or_else(unknown_stage)?;
                let step = match step {
                    Some(step) => stage.step(step).ok_or_else(unknown_step)?,
                    None => {
                        let open = stage.steps.iter().find(|step| self.is_left(step));
                        open.or_else(|| stage.steps.first())
                            .ok_or_else(|| ActionRejection::new("empty-stage", "the stage to enter has no steps"))?
                    }
                };
                (stage, step)
            }
            (None, Some(id)) => {
                let stage = workflow.and_then(|plan| plan.stage_of(id)).ok_or_else(unknown_step)?;
                (stage, stage.step(id).ok_or_else(unknown_step)?)
            }
        };
        let (stage, step) = (stage.id.clone(), step.id.clone());
        self.stand(stage, step);
        self.machine(STEP_RUNNING, "START_STEP", at);
        Ok(())
    }

    /// Marks a step as completed, the current one when none is named; from the current one, the session moves on to
    /// [`NotebookState::next_step`], or to no step when the plan is at its end. Gives the id of the step.
    /// Errors: `unknown-step` when the plan has no such step; `no-step` when none is named and the session is in none.
    pub fn complete_step(&mut self, step_id: Option<&str>, at: &str) -> Result<String, ActionRejection> {
        let done = match step_id {
            Some(id) => {
                let known = self.workflow.as_ref().is_some_and(|plan| plan.stage_of(id).is_some());
                if !known {
                    return Err(unknown_step());
                }
                id.to_owned()
            }
            None => self.location.step_id.clone().ok_or_else(|| {
                ActionRejection::new("no-step", "there is no step in progress that could be completed")
            })?,
        };
        let next = self.next_step().map(|(stage, step)| (stage.id.clone(), step.id.clone()));
        let is_current = self.location.step_id.as_ref() == Some(&done);
        self.mark_completed(done.clone());
        if is_current {
            self.move_to(next);
        }
        self.machine(STEP_COMPLETED, "COMPLETE_STEP", at);
        Ok(done)
    }

    /// Begins a behavior of the current step, and gives its id, which no other behavior of the session has.
    pub fn begin_behavior(&mut self, at: &str) -> String {
        self.location.behaviors = self.location.behaviors.saturating_add(1);
        self.location.behavior_iteration = self.location.behavior_iteration.saturating_add(1);
        let id = format!("behavior_{:03}", self.location.behaviors);
        self.location.behavior_id = Some(id.clone());
        self.behavior_is_open = true;
        self.machine(BEHAVIOR_RUNNING, "START_BEHAVIOR", at);
        id
    }

    /// The behavior under way has another id, or another place in its step, for whoever sent it. What is no id is passed over.
    pub fn name_behavior(&mut self, id: Option<&str>, iteration: Option<u32>) {
        if let Some(id) = id.filter(|id| is_id(id)) {
            self.location.behavior_id = Some(id.to_owned());
        }
        if let Some(iteration) = iteration {
            self.location.behavior_iteration = iteration;
        }
    }

    /// The behavior under way came to its end, well or not: a plan that waited takes its place. What the machine was told
    /// beside that stays. Whether the plan is another one now.
    pub fn end_behavior(&mut self, at: &str) -> bool {
        self.behavior_is_open = false;
        let swapped = self.swap_pending();
        if [BEHAVIOR_RUNNING, WORKFLOW_UPDATE_PENDING].contains(&self.fsm.state.as_str()) {
            self.machine(STEP_RUNNING, "COMPLETE_BEHAVIOR", at);
        }
        swapped
    }

    /// Puts the plan that waits into its place. The session stays in its step when the new plan has it, in whatever stage; else
    /// it moves to the first step that is not completed. Whether one waited.
    pub fn swap_pending(&mut self) -> bool {
        let Some(workflow) = self.workflow_pending.take() else { return false };
        self.workflow = Some(workflow);
        self.find_place();
        true
    }

    /// After a change of the plan: stays in the current step when the plan has it, else moves to the first one that is not
    /// completed, of the same stage rather than of another.
    pub(crate) fn find_place(&mut self) {
        let Some(workflow) = &self.workflow else { return };
        let known = |id: &String| workflow.stages.iter().any(|stage| stage.id == *id);
        self.location.completed_stages.retain(known);
        let place = match self.location.step_id.as_deref().and_then(|id| Some((workflow.stage_of(id)?, id))) {
            Some((stage, step)) => Some((stage.id.clone(), step.to_owned())),
            None => self.next_step().map(|(stage, step)| (stage.id.clone(), step.id.clone())),
        };
        self.move_to(place);
    }

    fn move_to(&mut self, place: Option<(String, String)>) {
        match place {
            Some((stage, step)) => self.stand(stage, step),
            None => {
                self.location.stage_id = None;
                self.location.step_id = None;
                self.location.behavior_iteration = 0;
            }
        }
    }

    /// After a change of its steps: a stage whose steps are not all completed is not completed.
    pub(crate) fn reopen_stage(&mut self, stage: &str) {
        let Some(found) = self.workflow.as_ref().and_then(|plan| plan.stage(stage)) else { return };
        if found.steps.iter().any(|step| self.is_left(step)) {
            self.location.completed_stages.retain(|done| done != stage);
        }
    }

    /// Stands in this step, which is not completed then; nor is its stage.
    fn stand(&mut self, stage: String, step: String) {
        if self.location.step_id.as_ref() != Some(&step) {
            self.location.behavior_iteration = 0;
        }
        self.location.completed_steps.retain(|done| *done != step);
        self.location.completed_stages.retain(|done| *done != stage);
        self.location.stage_id = Some(stage);
        self.location.step_id = Some(step);
    }

    /// A step is completed; so is its stage when it was the last of it. What is completed and no longer planned is forgotten
    /// first when there is too much of it.
    fn mark_completed(&mut self, step: String) {
        let workflow = self.workflow.as_ref();
        let stage = workflow.and_then(|plan| plan.stage_of(&step));
        let location = &mut self.location;
        if !location.completed_steps.contains(&step) {
            location.completed_steps.push(step);
        }
        if let Some(stage) = stage
            && stage.steps.iter().all(|step| location.completed_steps.contains(&step.id))
            && !location.completed_stages.contains(&stage.id)
        {
            location.completed_stages.push(stage.id.clone());
        }
        if location.completed_steps.len() > MOST_COMPLETED_STEPS {
            let gone = |id: &String| workflow.is_none_or(|plan| plan.stage_of(id).is_none());
            let forgotten = location.completed_steps.iter().position(gone).unwrap_or_default();
            location.completed_steps.remove(forgotten);
        }
    }

    /// The machine is in this state now.
    pub(crate) fn machine(&mut self, state: &str, transition: &str, at: &str) {
        state.clone_into(&mut self.fsm.state);
        self.fsm.last_transition = Some(transition.to_owned());
        self.fsm.timestamp = Some(at.to_owned());
    }
}

fn unknown_stage() -> ActionRejection {
    ActionRejection::new("unknown-stage", "the plan has no such stage")
}

fn unknown_step() -> ActionRejection {
    ActionRejection::new("unknown-step", "the plan has no such step there")
}
