//! Moves a session through its plan (docs/protocol.md): enters, completes and leaves steps, and starts and ends behaviors. Only
//! the plan of the session changes; the flow of the script is decided elsewhere.
//!
//! A step is never both current and completed: entering a completed step reopens it. Changes of the plan that arrive during a
//! behavior take effect when it ends.

use crate::notebook::error::ActionRejection;
use crate::notebook::state::{
    BEHAVIOR_RUNNING, MAX_COMPLETED_STEPS, NotebookState, STAGE_RUNNING, STEP_COMPLETED, STEP_RUNNING,
    WORKFLOW_UPDATE_PENDING,
};
use crate::notebook::workflow::{PlanStep, Stage, Workflow, is_id};

impl NotebookState {
    pub(crate) fn current_stage(&self) -> Option<&Stage> {
        self.workflow.as_ref()?.stage(self.location.stage_id.as_deref()?)
    }

    pub fn current_step(&self) -> Option<&PlanStep> {
        self.current_stage()?.step(self.location.step_id.as_deref()?)
    }

    /// The stages that are neither completed nor current, in plan order.
    pub fn remaining_stages(&self) -> Vec<&Stage> {
        let Some(workflow) = &self.workflow else { return vec![] };
        let is_remaining = |stage: &&Stage| {
            self.location.stage_id.as_ref() != Some(&stage.id) && !self.location.completed_stages.contains(&stage.id)
        };
        workflow.stages.iter().filter(is_remaining).collect()
    }

    /// The steps of the current stage that are neither completed nor current, in plan order.
    pub fn remaining_steps(&self) -> Vec<&PlanStep> {
        let Some(stage) = self.current_stage() else { return vec![] };
        let current = self.location.step_id.as_ref();
        stage.steps.iter().filter(|step| current != Some(&step.id) && self.is_incomplete(step)).collect()
    }

    /// The completed steps of the current stage, in plan order.
    pub fn completed_steps_of_stage(&self) -> Vec<&PlanStep> {
        let Some(stage) = self.current_stage() else { return vec![] };
        stage.steps.iter().filter(|step| !self.is_incomplete(step)).collect()
    }

    fn is_incomplete(&self, step: &PlanStep) -> bool {
        !self.location.completed_steps.contains(&step.id)
    }

    /// The step after the current one: the next incomplete step of its stage, else an earlier incomplete step of the stage,
    /// else the first incomplete step of the following stages. `None` at the end of the plan or without a plan.
    pub fn next_step(&self) -> Option<(&Stage, &PlanStep)> {
        let workflow = self.workflow.as_ref()?;
        let stage_id = self.location.stage_id.as_deref();
        let current = self.location.step_id.as_deref();
        let open = |step: &&PlanStep| current != Some(step.id.as_str()) && self.is_incomplete(step);
        let stage_index = stage_id.and_then(|id| workflow.stages.iter().position(|stage| stage.id == id));
        if let Some(stage) = stage_index.and_then(|stage_index| workflow.stages.get(stage_index)) {
            let after =
                stage.steps.iter().position(|step| Some(step.id.as_str()) == current).map_or(0, |index| index + 1);
            let found = stage.steps.iter().skip(after).find(open).or_else(|| stage.steps.iter().find(open));
            if let Some(step) = found {
                return Some((stage, step));
            }
        }
        let after = stage_index.map_or(0, |index| index + 1);
        let mut others = workflow.stages.iter().skip(after).chain(workflow.stages.iter().take(after));
        others.find_map(|stage| stage.steps.iter().find(open).map(|step| (stage, step)))
    }

    /// Called when the script enters a topic. The first time, `plan` creates the plan from the script. Entering a different
    /// topic moves the location to its step, and completes the step of the previous topic if the session was still there. A
    /// topic that is not in the plan moves nothing. Returns whether anything changed.
    pub fn enter_topic(&mut self, phase: &str, topic: &str, plan: impl FnOnce() -> Workflow, at: &str) -> bool {
        let topic_path = format!("{phase}/{topic}");
        if self.location.topic_path == topic_path && (self.workflow.is_some() || self.given.is_some()) {
            return false;
        }
        if self.given.is_some() && self.workflow.is_none() {
            // Nobody has planned yet, and the topics of the script are no plan of this work.
            self.location.topic_path = topic_path;
            return true;
        }
        // A behavior ends with its topic.
        self.behavior_is_open = false;
        self.apply_pending_plan();
        let stage = self.workflow.get_or_insert_with(|| plan().cut()).stage_of(topic).map(|stage| stage.id.clone());
        let previous_path = std::mem::replace(&mut self.location.topic_path, topic_path);
        let Some(stage) = stage else { return true };
        if let Some(step) = self.location.step_id.clone()
            && step != topic
            && previous_path.ends_with(&format!("/{step}"))
        {
            self.mark_completed(step);
        }
        self.set_step(stage, topic.to_owned());
        self.set_fsm(STEP_RUNNING, "START_STEP", at);
        true
    }

    /// Moves to a stage and a step of the plan as requested by a server or a model: to the step, or to the first incomplete
    /// step of the stage. Without both, nothing happens.
    /// Errors: `unknown-stage` or `unknown-step` if the plan has no such stage or step, or the stage does not have the step;
    /// `empty-stage` if the stage has no steps. Nothing is changed then.
    pub fn go_to(&mut self, stage_id: Option<&str>, step_id: Option<&str>, at: &str) -> Result<(), ActionRejection> {
        let workflow = self.workflow.as_ref();
        let (stage, step) = match (stage_id, step_id) {
            (None, None) => return Ok(()),
            (Some(stage), step) => {
                let stage = workflow.and_then(|plan| plan.stage(stage)).ok_or_else(unknown_stage)?;
                let step = match step {
                    Some(step) => stage.step(step).ok_or_else(unknown_step)?,
                    None => {
                        let open = stage.steps.iter().find(|step| self.is_incomplete(step));
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
        self.set_step(stage, step);
        self.set_fsm(STEP_RUNNING, "START_STEP", at);
        Ok(())
    }

    /// Marks a step as completed, by default the current one. If it is the current one, the session moves to
    /// [`NotebookState::next_step`], or to no step at the end of the plan. Returns the id of the step.
    /// Errors: `unknown-step` if the plan has no such step; `no-step` if no step is given and there is no current step.
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
        self.set_fsm(STEP_COMPLETED, "COMPLETE_STEP", at);
        Ok(done)
    }

    /// This state as if the session were still in a stage and a step of the plan, or in none: what is judged after a behavior that
    /// moved on.
    #[must_use]
    pub fn at_step(mut self, stage: Option<&str>, step: Option<&str>) -> Self {
        self.location.stage_id = stage.map(str::to_owned);
        self.location.step_id = step.map(str::to_owned);
        // Neither is ever both current and completed.
        self.location.completed_steps.retain(|done| Some(done.as_str()) != step);
        self.location.completed_stages.retain(|done| Some(done.as_str()) != stage);
        self
    }

    /// Marks all steps of a stage as completed, by default of the current one. If it is the current one, the session moves on as after
    /// a completed step. Returns the id of the stage.
    /// Errors: `unknown-stage` if the plan has no such stage; `no-step` if no stage is given and there is no current stage.
    pub fn complete_stage(&mut self, stage_id: Option<&str>, at: &str) -> Result<String, ActionRejection> {
        let current = self.location.stage_id.clone();
        let id = stage_id
            .map(str::to_owned)
            .or_else(|| current.clone())
            .ok_or_else(|| ActionRejection::new("no-step", "there is no stage in progress that could be completed"))?;
        let stage = self.workflow.as_ref().and_then(|plan| plan.stage(&id)).ok_or_else(unknown_stage)?;
        let steps: Vec<String> = stage.steps.iter().map(|step| step.id.clone()).collect();
        for step in steps {
            self.mark_completed(step);
        }
        if !self.location.completed_stages.contains(&id) {
            self.location.completed_stages.push(id.clone());
        }
        if current.as_ref() == Some(&id) {
            let next = self.next_step().map(|(stage, step)| (stage.id.clone(), step.id.clone()));
            self.move_to(next);
        }
        self.set_fsm(STEP_COMPLETED, "COMPLETE_STAGE", at);
        Ok(id)
    }

    /// The first stage that has no steps yet and is not completed.
    pub(crate) fn unplanned_stage(&self) -> Option<String> {
        let stages = self.workflow.as_ref().map(|plan| plan.stages.as_slice()).unwrap_or_default();
        let is_open = |stage: &&Stage| stage.steps.is_empty() && !self.location.completed_stages.contains(&stage.id);
        stages.iter().find(is_open).map(|stage| stage.id.clone())
    }

    /// The first stage in which something is left to do, in the order of the plan: this stage, those after it, then those before it.
    pub(crate) fn open_stage(&self, from: Option<&str>) -> Option<&Stage> {
        let stages = self.workflow.as_ref().map(|plan| plan.stages.as_slice()).unwrap_or_default();
        let start = from.and_then(|from| stages.iter().position(|stage| stage.id == from)).unwrap_or_default();
        let is_open = |stage: &&Stage| match stage.steps.is_empty() {
            true => !self.location.completed_stages.contains(&stage.id),
            false => stage.steps.iter().any(|step| self.is_incomplete(step)),
        };
        stages.iter().skip(start).chain(stages.iter().take(start)).find(is_open)
    }

    /// Enters a stage of the plan that has no steps yet.
    pub(crate) fn enter_unplanned_stage(&mut self, stage: String, at: &str) {
        self.location.stage_id = Some(stage);
        self.location.step_id = None;
        self.location.behavior_iteration = 0;
        self.set_fsm(STAGE_RUNNING, "START_STAGE", at);
    }

    /// Starts a behavior of the current step and returns its id, which is unique in the session.
    pub fn start_behavior(&mut self, at: &str) -> String {
        self.location.behaviors = self.location.behaviors.saturating_add(1);
        self.location.behavior_iteration = self.location.behavior_iteration.saturating_add(1);
        let id = format!("behavior_{:03}", self.location.behaviors);
        self.location.behavior_id = Some(id.clone());
        self.behavior_is_open = true;
        // Whoever sends a new behavior knows what ran in the last one.
        self.ran_when_added = None;
        self.set_fsm(BEHAVIOR_RUNNING, "START_BEHAVIOR", at);
        id
    }

    /// Sets the id and the iteration of the current behavior as given by its source. An invalid id is ignored.
    pub fn set_behavior_id(&mut self, id: Option<&str>, iteration: Option<u32>) {
        if let Some(id) = id.filter(|id| is_id(id)) {
            self.location.behavior_id = Some(id.to_owned());
        }
        if let Some(iteration) = iteration {
            self.location.behavior_iteration = iteration;
        }
    }

    /// Ends the current behavior, successful or not. A pending plan becomes active. Other states of the state machine are kept.
    /// Returns whether the plan was replaced.
    pub fn end_behavior(&mut self, at: &str) -> bool {
        self.behavior_is_open = false;
        let swapped = self.apply_pending_plan();
        if [BEHAVIOR_RUNNING, WORKFLOW_UPDATE_PENDING].contains(&self.fsm.state.as_str()) {
            self.set_fsm(STEP_RUNNING, "COMPLETE_BEHAVIOR", at);
        }
        swapped
    }

    /// Makes the pending plan active. The session stays in its step if the new plan has it in any stage; otherwise it moves to
    /// the first incomplete step. Returns whether there was a pending plan.
    pub fn apply_pending_plan(&mut self) -> bool {
        let Some(workflow) = self.workflow_pending.take() else { return false };
        self.workflow = Some(workflow);
        self.update_location();
        true
    }

    /// Updates the location after a change of the plan: stays in the current step if the plan has it, else moves to the first
    /// incomplete step, preferably of the same stage.
    pub(crate) fn update_location(&mut self) {
        let Some(workflow) = &self.workflow else { return };
        let known = |id: &String| workflow.stages.iter().any(|stage| stage.id == *id);
        self.location.completed_stages.retain(known);
        let target = match self.location.step_id.as_deref().and_then(|id| Some((workflow.stage_of(id)?, id))) {
            Some((stage, step)) => Some((stage.id.clone(), step.to_owned())),
            None => self.next_step().map(|(stage, step)| (stage.id.clone(), step.id.clone())),
        };
        self.move_to(target);
    }

    fn move_to(&mut self, target: Option<(String, String)>) {
        match target {
            Some((stage, step)) => self.set_step(stage, step),
            None => {
                self.location.stage_id = None;
                self.location.step_id = None;
                self.location.behavior_iteration = 0;
            }
        }
    }

    /// Reopens a completed stage if a change of its steps added incomplete ones.
    pub(crate) fn reopen_stage(&mut self, stage: &str) {
        let Some(found) = self.workflow.as_ref().and_then(|plan| plan.stage(stage)) else { return };
        if found.steps.iter().any(|step| self.is_incomplete(step)) {
            self.location.completed_stages.retain(|done| done != stage);
        }
    }

    /// Sets the current step. The step and its stage are then not completed.
    fn set_step(&mut self, stage: String, step: String) {
        if self.location.step_id.as_ref() != Some(&step) {
            self.location.behavior_iteration = 0;
        }
        self.location.completed_steps.retain(|done| *done != step);
        self.location.completed_stages.retain(|done| *done != stage);
        self.location.stage_id = Some(stage);
        self.location.step_id = Some(step);
    }

    /// Marks a step as completed, and its stage if all of its steps are. If there are too many completed steps, one that is no
    /// longer in the plan is removed first.
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
        if location.completed_steps.len() > MAX_COMPLETED_STEPS {
            let is_unplanned = |id: &String| workflow.is_none_or(|plan| plan.stage_of(id).is_none());
            let index = location.completed_steps.iter().position(is_unplanned).unwrap_or_default();
            location.completed_steps.remove(index);
        }
    }

    /// Sets the state of the state machine.
    pub(crate) fn set_fsm(&mut self, state: &str, transition: &str, at: &str) {
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
