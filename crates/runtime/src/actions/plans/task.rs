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
use crate::actions::tools::call::{CallOptions, CallStep, CalledFor, ToolCallState, proceed_with};
use crate::actions::tools::result::{ToolResult, ToolStatus};
use crate::effects::tools::matches;
use crate::plan::execution::TaskProgress;
use crate::plan::task::TASK_BLOCK;
use crate::plan::task::{PlanId, PlanTask, TaskId, TaskStatus};
use crate::program::action::Action;
use crate::program::decision::DecisionKind;
use crate::program::event::Event;
use crate::program::flow::{ActionError, Flow, PROMPT_FAILED};
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::transcript::cut_in_the_middle;
use crate::program::turn::Turn;

/// The maximum number of results of other tasks in a prompt, and of characters of each.
const MAX_INPUTS: usize = 50;
const MAX_INPUT_CHARS: usize = 8_000;

/// The maximum number of characters of all of them.
const MAX_INPUTS_CHARS: usize = 60_000;

/// The edits that end a task.
const END: &str = "end";
const FAILED: &str = "failed";

/// The task that the branch of this turn runs: 7 for the path `topic/plan_it/task_7/run`.
fn task_of(turn: &Turn<'_>) -> Option<TaskId> {
    turn.place.path.rsplit('/').nth(1)?.strip_prefix(TASK_BLOCK)?.parse().ok()
}

/// Runs the task that its branch names.
pub(crate) struct PlanTaskAction {
    pub prompts: PlanPrompts,
    /// The tools that a task may call, if the action that runs it limits them.
    pub tools: Option<Vec<String>>,
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
    /// Tells this run of the task from others of the same place.
    run: u64,
    /// Whether the keys of its edits name the place. Those of earlier releases do not, and their edits must be found again.
    has_place: bool,
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
        if frame.at == TaskPoint::Start {
            (frame.run, frame.has_place) = (turn.last_seq, true);
        }
        let plan = match turn.plans.plan_of_task(id).await {
            Ok(plan) => plan,
            Err(error) if error.is_rejection() => return Ok(gone(turn, id)),
            Err(error) => return Err(plan_failed(&error)),
        };
        let input = turn.plans.with_tree(plan, |tree| input(tree, id)).await.map_err(|error| plan_failed(&error))?;
        let Some(input) = input else { return Ok(gone(turn, id)) };
        let kept = frame.clone();
        let flow = match self.step(turn, (plan, id), frame, input).await {
            Ok(flow) if turn.is_in_cleanup && flow.waits_for_person() => Err(ActionError::waits_in_cleanup()),
            // Nobody answered a task, so its plan goes on without it.
            Err(ActionError::Prompt { message, help }) => {
                Err(ActionError::Failed { code: PROMPT_FAILED, message, help })
            }
            flow => flow,
        };
        match flow {
            // Nothing runs it any more, and what needs it must not run.
            Err(ActionError::Failed { code, message, help }) => {
                turn.emit(Event::Error { code, message: message.clone(), help });
                self.failed(turn, (plan, id), &kept, message).await
            }
            flow => flow,
        }
    }
}

impl PlanTaskAction {
    async fn step(
        &self,
        turn: &Turn<'_>,
        (plan, id): (PlanId, TaskId),
        frame: TaskFrame,
        input: TaskInput,
    ) -> Result<Flow, ActionError> {
        if let Some(flow) = self.ended_before(turn, (plan, id), &frame, &input.task).await? {
            return Ok(flow);
        }
        // How to go on after an interruption is decided first.
        if (turn.effect.is_none() || turn.effect_is_due)
            && let Some(why) = self.forbidden(&input.task)
        {
            turn.close_effect("no longer permitted; it was not called");
            return self.failed(turn, (plan, id), &frame, why).await;
        }
        match frame.at {
            TaskPoint::Start => approve_or_start(turn, (plan, id), frame, &input.task).await,
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

    /// The end of a task whose end is in the plan already: the process died before the session had stored it, so the effect is still
    /// open. Nobody is asked about it, and nothing is done again.
    async fn ended_before(
        &self,
        turn: &Turn<'_>,
        place: (PlanId, TaskId),
        frame: &TaskFrame,
        task: &PlanTask,
    ) -> Result<Option<Flow>, ActionError> {
        if frame.at == TaskPoint::Start {
            return Ok(None);
        }
        let is_made = async |part| {
            turn.plans.is_made(&key(turn, place.1, frame, part)).await.map_err(|error| plan_failed(&error))
        };
        if is_made(END).await? {
            turn.close_effect("it is done");
            return self.completed(turn, place, frame, Value::Null).await.map(Some);
        }
        if !is_made(FAILED).await? {
            return Ok(None);
        }
        turn.close_effect("it failed");
        let why = task.error.as_deref().map_or_else(|| Message::word("the task failed"), Message::text);
        self.failed(turn, place, frame, why).await.map(Some)
    }

    /// Why the action that runs the task does not let it call its tool.
    fn forbidden(&self, task: &PlanTask) -> Option<Message> {
        let patterns = self.tools.as_ref()?;
        let tool = call_of(task).ok()??.tool;
        let is_permitted = patterns.iter().any(|pattern| matches(pattern, &tool));
        (!is_permitted).then(|| msg!("`tools` of the action that runs it does not permit the tool `{tool}`"))
    }

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
            let called_for = Some(CalledFor { task: place.1, name: &input.task.name });
            let options = CallOptions { called_for, ..CallOptions::default() };
            return match proceed_with(turn, &call, &mut frame.tool, options).await? {
                CallStep::Flow(flow) => {
                    turn.store_state(&frame)?;
                    Ok(flow)
                }
                CallStep::Ended(result) if result.status.has_value() => {
                    self.completed(turn, place, &frame, result.value.into_value()).await
                }
                CallStep::Ended(result) => {
                    let why = failure_of(result);
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
        if let Err(why) = set_task(turn, place, &key(turn, place.1, frame, END), progress).await? {
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
        let key = key(turn, place.1, frame, FAILED);
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
    match frame.has_place {
        // Other branches may run the same task, and begin at the same event.
        true => turn.plans.key(frame.run, &format!("{}/{part}", turn.place.path)),
        false => turn.plans.key(frame.run, &format!("task_{id}/{part}")),
    }
}

/// Why the task has no result.
fn failure_of(result: ToolResult) -> Message {
    match (result.error, result.status) {
        (Some(error), _) => error,
        (None, ToolStatus::Interrupted) => {
            Message::word("the call of its tool was interrupted, and somebody decided to skip it")
        }
        (None, _) => Message::word("there is no result"),
    }
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
