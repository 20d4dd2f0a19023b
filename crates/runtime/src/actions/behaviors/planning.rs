//! Plans of a server that is asked for them before each behavior (docs/protocol.md): the stages of the session, the steps of a stage, or
//! the task of the next behavior.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::actions::behaviors::config::{BehaviorSource, LoopConfig};
use crate::actions::behaviors::frame::{Current, LoopFrame};
use crate::actions::behaviors::plan;
use crate::actions::behaviors::source::unusable;
use crate::actions::call_spans::traced_plan;
use crate::effects::behaviors::BehaviorServer;
use crate::notebook::protocol::brief::cut;
use crate::notebook::protocol::response::{Reflection, reflection};
use crate::notebook::state::{IDLE, NotebookState, STAGE_RUNNING, STEP_RUNNING};
use crate::notebook::workflow::{PlanStep, Workflow, is_id, read_steps};
use crate::program::flow::{ActionError, Flow};
use crate::program::turn::Turn;

/// How many plans a server may send before a behavior: stages, their steps, and the task, with some to spare for corrections.
const MAX_PLANS: u32 = 6;

/// The maximum size of the task of a behavior, in bytes.
const MAX_TASK_BYTES: usize = 4_000;

/// The task of the next behavior, as its server planned it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PlannedTask {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What it should achieve, with the conditions that it must meet.
    pub task: String,
}

/// An answer to the question for a plan.
enum PlanAnswer {
    Stages(Workflow),
    Steps(Vec<PlanStep>),
    Task(PlannedTask),
    /// A judgement of the step instead of a plan for it.
    Judgement(Box<Reflection>),
}

impl LoopConfig {
    /// The server of this loop, if it plans.
    pub(crate) fn planner(&self, turn: &Turn<'_>) -> Result<Option<std::sync::Arc<dyn BehaviorServer>>, ActionError> {
        let BehaviorSource::Server(name) = &self.source else { return Ok(None) };
        let server = turn.services.host.servers.server(name)?;
        Ok(Some(server).filter(|server| server.plans()))
    }

    /// Asks for a plan and applies it. The next turn asks for the next one, or for actions once there is a task.
    pub(crate) async fn plan(
        &self,
        turn: &Turn<'_>,
        mut frame: LoopFrame,
        mut state: NotebookState,
        server: &dyn BehaviorServer,
    ) -> Result<Flow, ActionError> {
        let at = turn.services.clock.at(turn.last_seq + 1);
        turn.in_round(frame.behaviors + 1);
        let (fsm, transition) = match (&state.location.stage_id, &state.location.step_id) {
            (_, Some(_)) => (STEP_RUNNING, "START_STEP"),
            (Some(_), None) => (STAGE_RUNNING, "START_STAGE"),
            (None, None) => (IDLE, "START_WORKFLOW"),
        };
        state.set_fsm(fsm, transition, &at);
        // The feedback of a behavior would ask for a judgement.
        let goal = self.step_goal(turn, &state)?;
        let mut observation = self.observe(turn, (&state, goal.as_deref()), None, server).await?;
        if state.location.stage_id.is_none() {
            set_goal(&mut observation, "stage", &self.target_of(turn, &state)?);
        }
        let answer = match traced_plan(turn, self.server_name(), server, &observation).await {
            Ok(answer) => plan_answer(&answer),
            Err(error) => unusable(error)?,
        };
        let applied = match answer {
            Ok(PlanAnswer::Task(task)) => {
                frame.task = Some(task);
                Ok(())
            }
            Ok(PlanAnswer::Stages(plan)) => enter_stages(&mut state, plan, &at),
            Ok(PlanAnswer::Steps(steps)) => enter_steps(&mut state, steps, &at),
            Ok(PlanAnswer::Judgement(judged)) if judged.is_target_achieved() == Some(true) => {
                return self.conclude_without_behavior(turn, frame, state, *judged);
            }
            // The step goes on, without a task that says how.
            Ok(PlanAnswer::Judgement(_)) => {
                frame.task = Some(PlannedTask::default());
                Ok(())
            }
            Err(error) => Err(error),
        };
        frame.plans += 1;
        let applied = match applied {
            Ok(()) if frame.plans > MAX_PLANS && frame.task.is_none() => {
                Err(msg!("it sent {MAX_PLANS} plans, but no task for a behavior"))
            }
            other => other,
        };
        if let Err(error) = applied {
            return self.retry(turn, frame, &error);
        }
        frame.unusable_answers = 0;
        turn.set_notebook_state(state);
        turn.store_state(&frame)?;
        Ok(Flow::Onward)
    }

    /// The step is judged as achieved before anything was done in it.
    fn conclude_without_behavior(
        &self,
        turn: &Turn<'_>,
        mut frame: LoopFrame,
        mut state: NotebookState,
        judged: Reflection,
    ) -> Result<Flow, ActionError> {
        state.start_behavior(&turn.services.clock.at(turn.last_seq + 1));
        let mut current = Current {
            id: state.location.behavior_id.clone().unwrap_or_default(),
            iteration: state.location.behavior_iteration,
            start_step: plan::current(&state),
            start_stage: plan::stage_without_step(&state),
            goal: plan::goal(&state),
            ..Current::default()
        };
        current.counts.behavior_id.clone_from(&current.id);
        frame.behaviors += 1;
        turn.set_notebook_state(state);
        self.conclude(turn, frame, current, Some(judged))
    }

    fn server_name(&self) -> &str {
        match &self.source {
            BehaviorSource::Server(name) => name,
            BehaviorSource::Model(_) => "",
        }
    }
}

/// Sets a goal of an observation.
pub(crate) fn set_goal(observation: &mut Value, level: &str, goal: &str) {
    let Some(location) = observation.pointer_mut("/observation/location").and_then(Value::as_object_mut) else {
        return;
    };
    let goals = location.entry("goals").or_insert_with(|| Value::Object(Map::new()));
    if let Some(goals) = goals.as_object_mut() {
        goals.insert(level.to_owned(), Value::from(cut(goal, MAX_TASK_BYTES)));
    }
}

/// The plan becomes that of the session, which enters its first stage that is not completed.
fn enter_stages(state: &mut NotebookState, plan: Workflow, at: &str) -> Result<(), Message> {
    plan.check().map_err(|rejection| rejection.message)?;
    state.workflow = Some(plan);
    state.location.step_id = None;
    let stage = state.open_stage(None);
    let stage = stage.ok_or_else(|| Message::word("all stages of the plan are completed"))?;
    let (id, is_unplanned) = (stage.id.clone(), stage.steps.is_empty());
    if is_unplanned {
        state.enter_unplanned_stage(id, at);
        return Ok(());
    }
    state.go_to(Some(&id), None, at).map_err(|rejection| rejection.message)
}

/// The steps become those of the current stage, which the session enters.
fn enter_steps(state: &mut NotebookState, steps: Vec<PlanStep>, at: &str) -> Result<(), Message> {
    let stage = state.location.stage_id.clone().or_else(|| state.unplanned_stage());
    let Some((stage, mut plan)) = stage.zip(state.workflow.clone()) else {
        return Err(Message::word("it sent steps, but the session is in no stage"));
    };
    if let Some(found) = plan.stages.iter_mut().find(|found| found.id == stage) {
        found.steps = steps;
    }
    plan.check().map_err(|rejection| rejection.message)?;
    state.workflow = Some(plan);
    state.reopen_stage(&stage);
    state.go_to(Some(&stage), None, at).map_err(|rejection| rejection.message)
}

fn plan_answer(answer: &Value) -> Result<PlanAnswer, Message> {
    if answer.get("stages").is_some_and(Value::is_array) {
        return Workflow::read(answer).map(PlanAnswer::Stages).map_err(|error| error.message);
    }
    if let Some(steps) = answer.get("steps").filter(|steps| steps.is_array()) {
        return read_steps(steps).map(PlanAnswer::Steps).map_err(|error| error.message);
    }
    if let Some(task) = planned_task(answer.get("behavior").unwrap_or(answer)) {
        return Ok(PlanAnswer::Task(task));
    }
    match reflection(answer) {
        Ok(judged) if judged.is_target_achieved().is_some() => Ok(PlanAnswer::Judgement(Box::new(judged))),
        _ => Err(Message::word("a plan contains `stages`, `steps` or `behavior`, but this contains none of them")),
    }
}

fn planned_task(behavior: &Value) -> Option<PlannedTask> {
    let text = |name: &str| behavior.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    let mut task = ["task", "target", "goal"].iter().find_map(|name| text(name))?.to_owned();
    for condition in behavior.get("acceptance").and_then(Value::as_array).into_iter().flatten() {
        if let Some(condition) = condition.as_str() {
            task.push_str("\n- ");
            task.push_str(condition.trim());
        }
    }
    let id = text("behavior_id").or_else(|| text("id")).filter(|id| is_id(id)).map(str::to_owned);
    Some(PlannedTask { id, task: cut(&task, MAX_TASK_BYTES) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_plan_begins_at_its_first_stage_that_is_not_completed_wherever_the_session_was() {
        let stage = |id: &str| json!({ "stage_id": id, "title": id });
        let stages = [
            json!({ "stage_id": "a", "title": "a", "steps": [{ "step_id": "x", "title": "x" }] }),
            stage("b"),
            stage("c"),
        ];
        for (before, completed, expected) in
            [(None, vec![], "a"), (Some("b"), vec![], "a"), (Some("c"), vec!["b"], "a"), (Some("other"), vec![], "a")]
        {
            let Ok(PlanAnswer::Stages(plan)) = plan_answer(&json!({ "stages": stages })) else {
                panic!("it is a plan")
            };
            let mut state = NotebookState::default();
            state.location.stage_id = before.map(str::to_owned);
            state.location.completed_stages = completed.into_iter().map(str::to_owned).collect();
            enter_stages(&mut state, plan, "now").unwrap();
            assert_eq!(state.location.stage_id.as_deref(), Some(expected), "{before:?}");
        }
    }

    #[test]
    fn each_answer_to_the_question_for_a_plan_is_told_apart() {
        for (answer, expected) in [
            (json!({ "title": "T", "stages": [{ "stage_id": "s", "title": "S", "goal": "g" }] }), "stages"),
            (json!({ "steps": [{ "step_id": "a", "title": "A" }], "focus": "f" }), "steps"),
            (
                json!({ "behavior": { "behavior_id": "a_b1", "task": "Load", "acceptance": ["len(df) > 0", 7] } }),
                "task",
            ),
            (json!({ "task": "Load" }), "task"),
            (json!({ "targetAchieved": true }), "judgement"),
            (json!({ "behavior": {} }), "error"),
            (json!({ "stages": [7] }), "error"),
            (json!({ "steps": [{}] }), "error"),
            (json!({}), "error"),
            (json!(null), "error"),
        ] {
            let found = match plan_answer(&answer) {
                Ok(PlanAnswer::Stages(plan)) => {
                    assert_eq!(
                        (plan.name.as_str(), plan.stages[0].id.as_str(), plan.stages[0].goal.as_str()),
                        ("T", "s", "g")
                    );
                    "stages"
                }
                Ok(PlanAnswer::Steps(steps)) => {
                    assert_eq!(steps[0].id, "a");
                    "steps"
                }
                Ok(PlanAnswer::Task(task)) => {
                    assert!(task.task.starts_with("Load"));
                    assert_eq!(task.id.is_some(), task.task == "Load\n- len(df) > 0");
                    "task"
                }
                Ok(PlanAnswer::Judgement(_)) => "judgement",
                Err(_) => "error",
            };
            assert_eq!(found, expected, "{answer}");
        }
    }
}
