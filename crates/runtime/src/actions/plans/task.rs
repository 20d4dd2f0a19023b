//! Runs one task of a plan, in a branch of its own: with a tool if the task names one, else with the model.

use async_trait::async_trait;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::value::quoting::quote_after_label;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::actions::failure::failed_flow;
use crate::actions::plans::approval::{approval, call_of, fingerprint, needs_approval};
use crate::actions::plans::edits::{claim_task, plan_failed, set_task};
use crate::actions::plans::prompts::{PlanPrompts, TASK};
use crate::actions::tools::call::{CallStep, ToolCallState, proceed};
use crate::plan::execution::TaskProgress;
use crate::plan::task::TASK_BLOCK;
use crate::plan::task::{PlanId, PlanTask, TaskId, TaskStatus};
use crate::program::action::Action;
use crate::program::decision::DecisionKind;
use crate::program::flow::{ActionError, Flow};
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::transcript::cut_in_the_middle;
use crate::program::turn::Turn;

/// The maximum number of results of other tasks in a prompt, and of characters of each.
const MAX_INPUTS: usize = 50;
const MAX_INPUT_CHARS: usize = 8_000;

/// The maximum number of characters of all of them.
const MAX_INPUTS_CHARS: usize = 60_000;

/// The task that the branch of this turn runs: 7 for the path `topic/plan_it/task_7/run`.
fn task_of(turn: &Turn<'_>) -> Option<TaskId> {
    turn.place.path.rsplit('/').nth(1)?.strip_prefix(TASK_BLOCK)?.parse().ok()
}

/// Runs the task that its branch names.
pub(crate) struct PlanTaskAction {
    pub prompts: PlanPrompts,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TaskPoint {
    #[default]
    Start,
    Approval,
    Run,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct TaskFrame {
    at: TaskPoint,
    /// Tells this run of the task from others.
    run: u64,
    /// What the task was when its approval was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_about: Option<String>,
    tool: ToolCallState,
}

/// What a task needs from its plan.
struct TaskInput {
    task: PlanTask,
    goal: String,
    style: String,
    /// The results of its children and of the tasks on which it depends, by name.
    inputs: Vec<(String, Value)>,
    has_children: bool,
}

#[async_trait]
impl Action for PlanTaskAction {
    async fn turn(&self, turn: &Turn<'_>) -> Result<Flow, ActionError> {
        turn.in_round(1);
        let id = task_of(turn).ok_or_else(|| {
            ActionError::failed("frame-unreadable", msg!("the path `{}` names no task", turn.place.path))
        })?;
        let mut frame: TaskFrame = turn.state()?;
        let plan = match turn.plans.plan_of_task(id).await {
            Ok(plan) => plan,
            Err(error) if error.is_rejection() => return Ok(gone(turn, id)),
            Err(error) => return Err(plan_failed(&error)),
        };
        let input = turn.plans.with_tree(plan, |tree| input(tree, id)).await.map_err(|error| plan_failed(&error))?;
        let Some(input) = input else { return Ok(gone(turn, id)) };
        match frame.at {
            TaskPoint::Start => {
                frame.run = turn.last_seq;
                approve_or_start(turn, (plan, id), frame, &input.task).await
            }
            TaskPoint::Approval => {
                let decision = turn.decision.and_then(|given| given.decision);
                match decision {
                    Some(DecisionKind::Approve) => approve_or_start(turn, (plan, id), frame, &input.task).await,
                    Some(_) => {
                        let by = turn.decision.and_then(|given| given.by.as_deref());
                        let why = match by {
                            Some(by) => msg!("{by} rejected the task"),
                            None => Message::word("the task was rejected"),
                        };
                        self.failed(turn, (plan, id), &frame, why).await
                    }
                    None => request_approval(turn, frame, &input.task),
                }
            }
            TaskPoint::Run => self.run(turn, (plan, id), frame, input).await,
        }
    }
}

impl PlanTaskAction {
    async fn run(
        &self,
        turn: &Turn<'_>,
        place: (PlanId, TaskId),
        mut frame: TaskFrame,
        input: TaskInput,
    ) -> Result<Flow, ActionError> {
        // Somebody may have changed the task since it was approved. How to go on after an interruption is decided first.
        if is_undecided(&frame, &input.task) && (turn.effect.is_none() || turn.effect_is_due) {
            turn.close_effect("the task has changed; the tool was not called");
            frame.tool = ToolCallState::default();
            return request_approval(turn, frame, &input.task);
        }
        let call = match call_of(&input.task) {
            Ok(call) => call,
            Err(why) => return self.failed(turn, place, &frame, why).await,
        };
        if let Some(call) = call {
            return match proceed(turn, &call, &mut frame.tool).await? {
                CallStep::Flow(flow) => {
                    turn.store_state(&frame)?;
                    Ok(flow)
                }
                CallStep::Ended(result) if result.status.has_value() => {
                    self.completed(turn, place, &frame, result.value).await
                }
                CallStep::Ended(result) => {
                    let why = result.error.unwrap_or_else(|| Message::word("there is no result"));
                    self.failed(turn, place, &frame, why).await
                }
            };
        }
        // A task without an instruction only groups others.
        if input.has_children && input.task.instruction.trim().is_empty() {
            return self.completed(turn, place, &frame, Value::Null).await;
        }
        let mut names = turn.names(1);
        names.set_text("plan_goal", &*quote_after_label(&input.goal));
        names.set_text("style", &*quote_after_label(&input.style));
        names.set("inputs", shown(&input.inputs));
        let PlanTask { name, instruction, .. } = &input.task;
        let content = format!("{name}\n{instruction}").trim().to_owned();
        let Some(reply) = self.prompts.ask(turn, TASK, &quote_after_label(&content), Some(name), names).await? else {
            let why = Message::word("the model gave no reply that could be used");
            return self.failed(turn, place, &frame, why).await;
        };
        let text = |field: &str| reply.object.get(field).and_then(Value::as_str).unwrap_or_default().trim();
        if reply.object.get("done") == Some(&Value::Bool(false)) {
            let problem = text("problem");
            let why = if problem.is_empty() { "the model could not do the task" } else { problem };
            return self.failed(turn, place, &frame, Message::text(why)).await;
        }
        self.completed(turn, place, &frame, text("result").into()).await
    }

    async fn completed(
        &self,
        turn: &Turn<'_>,
        place: (PlanId, TaskId),
        frame: &TaskFrame,
        result: Value,
    ) -> Result<Flow, ActionError> {
        let progress = TaskProgress { result, ..TaskProgress::of(TaskStatus::Completed) };
        if let Err(why) = set_task(turn, place, &key(turn, place.1, frame, "end"), progress).await? {
            return self.failed(turn, place, frame, why).await;
        }
        let mut metadata = Map::new();
        metadata.insert("plan_id".into(), json!(place.0));
        metadata.insert("task_id".into(), json!(place.1));
        Ok(Flow::done(Outcome { metadata, ..Outcome::done(ExitReason::ExitCriteriaMet) }))
    }

    async fn failed(
        &self,
        turn: &Turn<'_>,
        place: (PlanId, TaskId),
        frame: &TaskFrame,
        why: Message,
    ) -> Result<Flow, ActionError> {
        let key = key(turn, place.1, frame, "failed");
        let progress = TaskProgress { error: Some(why.to_string()), ..TaskProgress::of(TaskStatus::Failed) };
        let why = set_task(turn, place, &key, progress).await?.err().unwrap_or(why);
        Ok(failed_flow(turn, &msg!("task {task} failed: {why}", task = place.1, why = why)))
    }
}

/// Claims the task, so that no other session runs it as well. One that has been run in the meantime, or is being run elsewhere, is left.
async fn start(turn: &Turn<'_>, (plan, id): (PlanId, TaskId), frame: &TaskFrame) -> Result<Flow, ActionError> {
    match claim_task(turn, (plan, id), &key(turn, id, frame, "start")).await? {
        Ok(()) => Ok(Flow::Onward),
        Err(why) => Ok(failed_flow(turn, &why)),
    }
}

/// Whether somebody must approve the task as it is now.
fn is_undecided(frame: &TaskFrame, task: &PlanTask) -> bool {
    needs_approval(task) && frame.decided_about.as_ref() != Some(&fingerprint(task))
}

/// Starts the task, unless somebody must approve it as it is now.
async fn approve_or_start(
    turn: &Turn<'_>,
    place: (PlanId, TaskId),
    mut frame: TaskFrame,
    task: &PlanTask,
) -> Result<Flow, ActionError> {
    if is_undecided(&frame, task) {
        return request_approval(turn, frame, task);
    }
    frame.at = TaskPoint::Run;
    turn.store_state(&frame)?;
    start(turn, place, &frame).await
}

/// Asks somebody to approve the task as it is now.
fn request_approval(turn: &Turn<'_>, mut frame: TaskFrame, task: &PlanTask) -> Result<Flow, ActionError> {
    let asked = fingerprint(task);
    let has_changed = frame.decided_about.as_ref().is_some_and(|before| *before != asked);
    (frame.at, frame.decided_about) = (TaskPoint::Approval, Some(asked));
    turn.store_state(&frame)?;
    Ok(Flow::Request(Box::new(approval(turn, task, has_changed))))
}

/// The task was deleted while it waited.
fn gone(turn: &Turn<'_>, id: TaskId) -> Flow {
    failed_flow(turn, &msg!("task {id} does not exist any more"))
}

/// The key of an edit of this run of a task.
fn key(turn: &Turn<'_>, id: TaskId, frame: &TaskFrame, part: &str) -> String {
    turn.plans.key(frame.run, &format!("task_{id}/{part}"))
}

fn input(tree: &crate::plan::tree::PlanTree, id: TaskId) -> Option<TaskInput> {
    let task = tree.task(id)?.clone();
    let has_children = tree.child_count(Some(id)) > 0;
    let needed = task.dependencies.iter().copied().chain(tree.children(Some(id)));
    let result = |id: TaskId| {
        let task = tree.task(id)?;
        (!task.result.is_null()).then(|| (task.name.clone(), task.result.clone()))
    };
    let inputs = needed.filter_map(result).take(MAX_INPUTS).collect();
    let head = tree.head();
    let style = head.style.clone().unwrap_or_default();
    Some(TaskInput { task, goal: head.goal.clone(), style, inputs, has_children })
}

/// The results of other tasks for the prompt: data, so each line is quoted, and bounded.
fn shown(inputs: &[(String, Value)]) -> Value {
    let mut left = MAX_INPUTS_CHARS;
    let shown = inputs.iter().map(|(name, value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let text = cut_in_the_middle(&text, MAX_INPUT_CHARS.min(left));
        left = left.saturating_sub(text.chars().count());
        json!({ "name": quote_after_label(name), "value": quote_after_label(&text) })
    });
    shown.collect()
}
