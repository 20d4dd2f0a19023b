//! One turn of a behavior loop: runs the stage that its frame names.

use async_trait::async_trait;

use crate::actions::behaviors::config::{BehaviorSource, LoopConfig};
use crate::actions::behaviors::frame::{Current, LoopFrame, LoopPoint};
use crate::actions::behaviors::plan;
use crate::actions::behaviors::planning::PlannedTask;
use crate::actions::notebook::initial_plan;
use crate::notebook::given::{AskedPart, FirstQuestion};
use crate::notebook::protocol::feedback::Feedback;
use crate::notebook::state::{MAX_TODO_ITEM_BYTES, MAX_TODO_ITEMS, NotebookState};
use crate::program::action::Action;
use crate::program::flow::{ActionError, Flow};
use crate::program::turn::Turn;

#[async_trait]
impl Action for LoopConfig {
    async fn turn(&self, turn: &Turn<'_>) -> Result<Flow, ActionError> {
        let frame: LoopFrame = turn.state()?;
        match frame.at {
            // In the same turn as the first question: a loop that fails to ask has not started.
            LoopPoint::Start => {
                let mut state = self.start(turn)?;
                let mut frame = LoopFrame { at: LoopPoint::Ask, ..frame };
                if let Some(first) = state.given.as_mut().and_then(|given| given.next.take()) {
                    go_on(&mut frame, &mut state, first);
                }
                // An answer that cannot be used does not undo the start.
                turn.set_notebook_state(state.clone());
                match frame.at {
                    LoopPoint::Reflect => self.reflect(turn, frame).await,
                    _ => self.plan_or_ask(turn, frame, state).await,
                }
            }
            LoopPoint::Ask => {
                let state = turn.notebook_state();
                self.plan_or_ask(turn, frame, state).await
            }
            LoopPoint::Perform => self.perform_next(turn, frame).await,
            LoopPoint::Reflect => self.reflect(turn, frame).await,
        }
    }

    fn handles_failed_skills(&self) -> bool {
        true
    }

    fn asks_model(&self) -> bool {
        matches!(self.source, BehaviorSource::Model(_))
    }
}

impl LoopConfig {
    /// Asks for actions, or first for the plan of a server that plans.
    async fn plan_or_ask(&self, turn: &Turn<'_>, frame: LoopFrame, state: NotebookState) -> Result<Flow, ActionError> {
        match self.planner(turn)? {
            Some(server) if frame.task.is_none() => self.plan(turn, frame, state, server.as_ref()).await,
            _ => self.ask(turn, frame, state).await,
        }
    }

    /// The state at the start of the loop: at the step of its topic, with the todo list and the plan of the author.
    fn start(&self, turn: &Turn<'_>) -> Result<NotebookState, ActionError> {
        let at = turn.services.clock.at(turn.last_seq + 1);
        let mut state = turn.notebook_state();
        initial_plan::enter(turn, &mut state, &at);
        if let Some(plan) = &self.workflow {
            state.workflow = Some(plan.clone());
        }
        let topic = turn.topic.id.as_str();
        let known = state.workflow.as_ref().is_some_and(|plan| plan.stage_of(topic).is_some());
        if known {
            if state.location.step_id.as_deref() != Some(topic) {
                // The step was found above, so this cannot fail.
                let _ = state.go_to(None, Some(topic), &at);
            }
        } else if let Some(stage) = self.workflow.as_ref().and_then(|plan| plan.stages.first()) {
            // A plan of the author starts at its first stage. If that stage has no steps, the location does not change.
            let _ = state.go_to(Some(&stage.id), None, &at);
        }
        if state.given.is_some() && state.location.stage_id.is_none() {
            // A state that is in no step of its plan goes on with the first that is open.
            if let Some((stage, step)) = state.next_step().map(|(stage, step)| (stage.id.clone(), step.id.clone())) {
                let _ = state.go_to(Some(&stage), Some(&step), &at);
            }
        }
        if state.given.is_some()
            && plan::current(&state).is_some_and(|at| state.location.completed_steps.contains(&at.step))
        {
            // So does one whose current step is completed.
            let _ = state.complete_step(None, &at);
        }
        let names = turn.names(self.max_behaviors);
        if let Some(items) = &self.todo_list {
            let mut list = Vec::with_capacity(items.len());
            for item in items.iter().take(MAX_TODO_ITEMS) {
                let mut item = turn.text(item, &names)?;
                item.truncate(item.floor_char_boundary(MAX_TODO_ITEM_BYTES));
                if !item.trim().is_empty() {
                    list.push(item);
                }
            }
            state.todo_list = list;
        }
        if let Some(total) = self.total_expected {
            state.section_progress.total_expected = Some(u64::from(total));
        }
        if known && self.target.is_some() {
            let target = self.target_of(turn, &state)?;
            let step = state.workflow.as_mut().and_then(|plan| {
                plan.stages.iter_mut().flat_map(|stage| &mut stage.steps).find(|step| step.id == topic)
            });
            if let Some(step) = step {
                step.goal = target;
                step.goal.truncate(step.goal.floor_char_boundary(crate::notebook::workflow::MAX_GOAL_BYTES));
            }
        }
        Ok(state)
    }
}

/// Continues at the first question of a session that began from a state of the protocol.
fn go_on(frame: &mut LoopFrame, state: &mut NotebookState, first: FirstQuestion) {
    let FirstQuestion { asks_for, feedback, task } = first;
    let id = state.location.behavior_id.clone();
    match asks_for {
        AskedPart::Behavior => frame.feedback = feedback,
        AskedPart::Actions => {
            frame.task = Some(PlannedTask { id, task });
            frame.feedback = feedback;
            // The behavior that is asked for is the current one, not the next.
            state.location.behavior_iteration = state.location.behavior_iteration.saturating_sub(1);
            state.location.behaviors = state.location.behaviors.saturating_sub(1);
        }
        AskedPart::Judgement => {
            let id = id.unwrap_or_default();
            let counts = Feedback { behavior_id: id.clone(), ..feedback.unwrap_or_default() };
            frame.current = Some(Current {
                id,
                iteration: state.location.behavior_iteration,
                target: task,
                start_step: plan::current(state),
                start_stage: plan::stage_without_step(state),
                goal: plan::goal(state),
                counts,
                ..Current::default()
            });
            frame.at = LoopPoint::Reflect;
            frame.behaviors += 1;
        }
    }
}
