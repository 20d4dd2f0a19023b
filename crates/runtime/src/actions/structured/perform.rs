//! Carries out the operations of a reply, one after the other, each in a turn of its own, so that none is lost or repeated if the
//! process dies.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::value::quoting::quote_after_label;
use serde_json::{Map, Value, json};

use crate::actions::plans::bound::{bound_plan, plan_of};
use crate::actions::plans::edits::{OperationOutcome, RejectedOperation, run_plan_operation};
use crate::actions::plans::execution::{PlanRun, PlanRunStep};
use crate::actions::plans::generation::{Generation, GenerationStep, create_plan};
use crate::actions::structured::config::ActConfig;
use crate::actions::structured::frame::{ActFrame, MadeCall, OperationProgress, RunningOperation};
use crate::actions::structured::instruction::{Instruction, PermittedOperations};
use crate::actions::structured::operations::OperationInfo;
use crate::actions::structured::results::{bounded, remember_tool_result};
use crate::actions::tools::call::{
    CallOptions, CallStep, RequestedCall, ToolCallState, is_made_now, proceed, proceed_with,
};
use crate::actions::tools::result::{ToolResult, ToolStatus};
use crate::effects::tools::ToolDescription;
use crate::program::flow::{ActionError, Flow};
use crate::program::turn::Turn;
use bcc_store::rows::TextRow;

/// The maximum number of calls of tools in one round.
const MAX_TOOL_CALLS: usize = 20;

/// How an operation goes on.
enum Step {
    Flow(Flow),
    Ended(Box<Ended>),
}

/// How an operation ended.
struct Ended {
    /// `success`, `refused`, `failed`, …
    status: &'static str,
    result: Result<Value, Message>,
    /// Whether another attempt may succeed.
    may_retry: bool,
    tool: Option<ToolResult>,
}

impl Ended {
    fn of(outcome: OperationOutcome) -> Self {
        match outcome {
            Ok(result) => Self { status: "success", result: Ok(result), may_retry: false, tool: None },
            Err(refused) => {
                let status = if refused.may_retry { "failed" } else { "refused" };
                Self { status, result: Err(refused.why), may_retry: refused.may_retry, tool: None }
            }
        }
    }

    fn boxed(outcome: OperationOutcome) -> Box<Self> {
        Box::new(Self::of(outcome))
    }

    fn of_tool(result: ToolResult) -> Self {
        let may_retry = matches!(result.status, ToolStatus::Failed | ToolStatus::TimedOut) && !result.is_effect_unknown;
        let value = match result.status.has_value() {
            true => Ok(result.value.clone().into_value()),
            false => Err(result.error.clone().unwrap_or_else(|| Message::word("there is no result"))),
        };
        Self { status: result.status.name(), result: value, may_retry, tool: Some(result) }
    }
}

impl ActConfig {
    /// One turn of the operations.
    pub(crate) async fn perform(&self, turn: &Turn<'_>, mut frame: ActFrame) -> Result<Flow, ActionError> {
        let Some(mut running) = self.next_operation(turn, &mut frame).await? else {
            return self.performed(turn, frame).await;
        };
        if std::mem::take(&mut running.pauses) {
            let pause = running.instruction.backoff_ms.saturating_mul(1 << running.failures.saturating_sub(1).min(16));
            turn.services.host.commands.pause(Duration::from_millis(pause)).await;
        }
        let calls = match takes_time(turn, &running).await {
            true => self.background_calls(turn, &mut frame)?,
            false => vec![],
        };
        let (step, called) = both(self.step(turn, &frame, &mut running), call_all(turn, calls)).await;
        self.note_called(turn, &mut frame, called)?;
        match step? {
            Step::Flow(flow) => {
                frame.running = Some(running);
                turn.store_state(&frame)?;
                Ok(flow)
            }
            Step::Ended(ended) if ended.may_retry && running.failures < running.instruction.max_retries => {
                running.failures += 1;
                // In the next turn, so that nothing that was done is lost if the process dies during the pause.
                running.pauses = true;
                match &mut running.progress {
                    // What was decided about the call stays.
                    OperationProgress::Tool(state) => state.start_again(),
                    progress => *progress = OperationProgress::Starting,
                }
                frame.running = Some(running);
                turn.store_state(&frame)?;
                Ok(Flow::Onward)
            }
            Step::Ended(ended) => {
                if let (Some(tool), OperationProgress::Tool(state)) = (&ended.tool, &running.progress)
                    && let Some(edited) = state.edited()
                {
                    note_call(turn, &mut frame, (&running.instruction.name, edited), tool.status);
                }
                self.note(turn, &mut frame, &running.instruction, *ended)?;
                turn.store_state(&frame)?;
                Ok(Flow::Onward)
            }
        }
    }

    /// The operation that this turn works on; none if all are done.
    async fn next_operation(
        &self,
        turn: &Turn<'_>,
        frame: &mut ActFrame,
    ) -> Result<Option<Box<RunningOperation>>, ActionError> {
        if let Some(running) = frame.running.take() {
            return Ok(Some(running));
        }
        let started = |instruction| {
            Box::new(RunningOperation {
                instruction,
                failures: 0,
                pauses: false,
                progress: OperationProgress::Starting,
            })
        };
        while let Some(next) = frame.queue.pop_front() {
            if next.blocking {
                return Ok(Some(started(next)));
            }
            frame.joined.push_back(next);
        }
        // Alone, a call is made as any other.
        if frame.joined.len() > 1 {
            let calls = self.background_calls(turn, frame)?;
            let called = call_all(turn, calls).await;
            self.note_called(turn, frame, called)?;
        }
        Ok(frame.joined.pop_front().map(started))
    }

    /// Takes the calls of tools among the operations that hold up nothing, to make them at the same time and while another operation
    /// runs. They are made in one turn, and again if it is interrupted: only tools that change nothing are called. What
    /// needs a decision or an announcement is left for turns of its own.
    fn background_calls(&self, turn: &Turn<'_>, frame: &mut ActFrame) -> Result<Vec<Instruction>, ActionError> {
        let mut calls: Vec<Instruction> = Vec::new();
        let mut left: VecDeque<Instruction> = VecDeque::new();
        for next in std::mem::take(&mut frame.joined) {
            let is_over = frame.tool_results.len() + calls.len() >= MAX_TOOL_CALLS;
            // The same call twice: the second one finds the result of the first.
            let is_twice = calls.iter().any(|other| other.name == next.name && other.parameters == next.parameters);
            if !next.is_tool() || next.max_retries > 0 || next.is_left || is_over || is_twice {
                left.push_back(next);
            } else if let Some(rejection) = repeated(turn, frame, &next) {
                self.note(turn, frame, &next, rejection)?;
            } else {
                calls.push(next);
            }
        }
        frame.joined = left;
        Ok(calls)
    }

    /// Adds what calls gave; those that need a turn of their own are left.
    fn note_called(&self, turn: &Turn<'_>, frame: &mut ActFrame, called: Vec<Called>) -> Result<(), ActionError> {
        let mut left: VecDeque<Instruction> = VecDeque::new();
        for (instruction, step) in called {
            match step? {
                CallStep::Ended(result) => self.note(turn, frame, &instruction, Ended::of_tool(result))?,
                CallStep::Flow(_) => left.push_back(Instruction { is_left: true, ..instruction }),
            }
        }
        left.append(&mut frame.joined);
        frame.joined = left;
        Ok(())
    }

    /// One step of an operation.
    async fn step(
        &self,
        turn: &Turn<'_>,
        frame: &ActFrame,
        running: &mut RunningOperation,
    ) -> Result<Step, ActionError> {
        let instruction = &running.instruction;
        let key = edit_key(turn, frame, running);
        if instruction.is_tool() {
            if let Some(rejection) = repeated(turn, frame, instruction).or_else(|| too_many_calls(frame)) {
                return Ok(Step::Ended(Box::new(rejection)));
            }
            let state = match &mut running.progress {
                OperationProgress::Tool(state) => state,
                progress => {
                    *progress = OperationProgress::Tool(Box::default());
                    let OperationProgress::Tool(state) = progress else { return Ok(Step::Flow(Flow::Onward)) };
                    state
                }
            };
            return Ok(match proceed(turn, &requested(&running.instruction), state).await? {
                CallStep::Flow(flow) => Step::Flow(flow),
                CallStep::Ended(result) => Step::Ended(Box::new(Ended::of_tool(result))),
            });
        }
        let plan = self.plan_id(turn)?;
        match instruction.name.as_str() {
            "help" => Ok(Step::Ended(Ended::boxed(Ok(self.help(turn).await)))),
            "create_plan" => {
                let outcome = create_plan(turn, &self.plans, &instruction.parameters, &key).await?;
                Ok(Step::Ended(Ended::boxed(outcome)))
            }
            "decompose_task" => {
                let mut state = match std::mem::take(&mut running.progress) {
                    OperationProgress::Generation(state) => state,
                    _ => match Generation::start(turn, plan, &instruction.parameters).await? {
                        Ok(state) => state,
                        Err(refused) => return Ok(Step::Ended(Ended::boxed(Err(refused)))),
                    },
                };
                let step = state.proceed(turn, &self.plans, &key).await?;
                running.progress = OperationProgress::Generation(state);
                Ok(match step {
                    GenerationStep::Onward => Step::Flow(Flow::Onward),
                    GenerationStep::Ended(outcome) => Step::Ended(Ended::boxed(outcome)),
                })
            }
            "execute_plan" | "rerun_task" => {
                let mut state = match std::mem::take(&mut running.progress) {
                    OperationProgress::Execution(state) => state,
                    _ => match PlanRun::start(turn, plan, &instruction.name, &instruction.parameters, &key).await? {
                        Ok(state) => state,
                        Err(refused) => return Ok(Step::Ended(Ended::boxed(Err(refused)))),
                    },
                };
                let step = state.proceed(turn, &key).await?;
                running.progress = OperationProgress::Execution(state);
                Ok(match step {
                    PlanRunStep::Flow(flow) => Step::Flow(flow),
                    PlanRunStep::Ended(outcome) => Step::Ended(Ended::boxed(outcome)),
                })
            }
            name => {
                if let Some(tool) = self.forbidden_tool(&instruction.parameters) {
                    let why = RejectedOperation::new(msg!("the tool `{tool}` is not permitted here"));
                    return Ok(Step::Ended(Ended::boxed(Err(why))));
                }
                let outcome = run_plan_operation(turn, plan, name, &instruction.parameters, &key).await?;
                Ok(Step::Ended(Ended::boxed(outcome)))
            }
        }
    }

    /// Adds the entry of an operation that ended.
    fn note(
        &self,
        turn: &Turn<'_>,
        frame: &mut ActFrame,
        instruction: &Instruction,
        ended: Ended,
    ) -> Result<(), ActionError> {
        let entry = match &ended.result {
            Ok(result) => instruction.entry(ended.status, "result", result.clone()),
            Err(why) => instruction.entry(ended.status, "error", why.to_string().into()),
        };
        frame.results.push(bounded(entry));
        frame.tells_model |= ended.result.is_err() || Self::informs_model(OperationInfo::of(&instruction.name));
        if let Some(tool) = &ended.tool {
            note_call(turn, frame, (&instruction.name, &instruction.parameters), tool.status);
            let result = bounded(tool.to_json());
            remember_tool_result(turn, &result)?;
            frame.tool_results.push(result);
        }
        Ok(())
    }

    /// The plan that the operations work on: that of the author, else the one that the session made last.
    pub(crate) fn plan_id(&self, turn: &Turn<'_>) -> Result<Option<u64>, ActionError> {
        let Some(plan) = &self.plan else { return Ok(bound_plan(turn)) };
        plan_of(turn, plan)
    }

    /// The tools that the model may call, with their parameters, for the prompt.
    pub(crate) async fn offered_tools(&self, turn: &Turn<'_>) -> Vec<Value> {
        let permitted = self.permissions(turn.program);
        let patterns: Vec<String> = turn.program.tools.iter().map(|rule| rule.pattern.clone()).collect();
        if patterns.is_empty() {
            return vec![];
        }
        let (tools, errors) = turn.services.host.tools.describe(&patterns).await;
        for error in errors {
            turn.warn("tool-unavailable", error.to_message(), None);
        }
        let tool = |tool: &ToolDescription| {
            let names = |is_required: bool| {
                let required = tool.parameters.get("required").and_then(Value::as_array);
                let is_in = |name: &str| required.is_some_and(|names| names.iter().any(|other| other == name));
                let all = tool.parameters.get("properties").and_then(Value::as_object).into_iter().flatten();
                let chosen = all.map(|(name, _)| name.as_str()).filter(|name| is_in(name) == is_required);
                chosen.collect::<Vec<_>>().join(", ")
            };
            json!({
                "kind": "tool_operation", "name": tool.name, "required": names(true), "optional": names(false),
                "note": quote_after_label(&tool.description),
            })
        };
        tools.iter().filter(|found| permitted.allows_tool(&found.name)).map(tool).collect()
    }

    async fn help(&self, turn: &Turn<'_>) -> Value {
        let language = self.model.language;
        let operations = self.operations.iter().map(|operation| operation.to_json(language));
        let tools = self.offered_tools(turn).await;
        json!({ "operations": operations.chain(tools).collect::<Vec<_>>() })
    }
}

/// The key under which an edit of a plan is made once.
fn edit_key(turn: &Turn<'_>, frame: &ActFrame, running: &RunningOperation) -> String {
    let RunningOperation { instruction, failures, .. } = running;
    match frame.has_place {
        // Other branches may begin at the same event.
        true => turn.plans.key(frame.batch, &format!("{}/{}.{failures}", turn.place.path, instruction.number)),
        false => turn.plans.key(frame.batch, &format!("{}.{failures}", instruction.number)),
    }
}

fn requested(instruction: &Instruction) -> RequestedCall {
    RequestedCall { tool: instruction.name.clone(), arguments: instruction.parameters.clone(), inexact: None }
}

/// Remembers a call that ended. One that was refused was not made, and may be made when its reason is gone.
fn note_call(turn: &Turn<'_>, frame: &mut ActFrame, call: (&str, &Map<String, Value>), status: ToolStatus) {
    if status != ToolStatus::Refused {
        frame.calls.push(MadeCall { digest: digest(turn, call), status: status.name().to_owned() });
    }
}

/// Tells a call from others of the session. It is stored in place of the arguments, which may contain sensitive values.
fn digest(turn: &Turn<'_>, (tool, arguments): (&str, &Map<String, Value>)) -> String {
    let mut call = json!([turn.session_id, tool, arguments]);
    // In whichever order they are written.
    call.sort_all_objects();
    TextRow::new(call.to_string()).sha256
}

/// The refusal of a call that was made, or decided about, with the same arguments in this round.
fn repeated(turn: &Turn<'_>, frame: &ActFrame, instruction: &Instruction) -> Option<Ended> {
    let name = &instruction.name;
    let wanted = digest(turn, (name, &instruction.parameters));
    let made = frame.calls.iter().find(|call| call.digest == wanted);
    // Frames of earlier releases have no digests, but the results of the calls.
    let is_same = |result: &Value| {
        result.get("tool").is_some_and(|tool| *tool == **name)
            && result.get("status").is_some_and(|status| status == ToolStatus::Success.name())
            && result.get("arguments").and_then(Value::as_object) == Some(&instruction.parameters)
    };
    if made.is_none() && !frame.tool_results.iter().any(is_same) {
        return None;
    }
    let with_value = [ToolStatus::Success, ToolStatus::Answered].map(ToolStatus::name);
    let why = match made.filter(|call| !with_value.contains(&call.status.as_str())) {
        None => msg!("`{name}` was called with these arguments in this round already; use its result"),
        Some(MadeCall { status, .. }) => {
            msg!(
                "`{name}` was requested with these arguments in this round already, and the call ended with `{status}`; it is not made again before the person has written"
            )
        }
    };
    Some(Ended { status: "refused", result: Err(why), may_retry: false, tool: None })
}

/// The refusal of a call after too many others in this round.
fn too_many_calls(frame: &ActFrame) -> Option<Ended> {
    let why = msg!("at most {MAX_TOOL_CALLS} calls of tools are made in one round");
    let is_over = frame.tool_results.len() >= MAX_TOOL_CALLS;
    is_over.then(|| Ended { status: "refused", result: Err(why), may_retry: false, tool: None })
}

/// An operation that calls a tool, and how far the call is.
type Called = (Instruction, Result<CallStep, ActionError>);

/// Whether this turn of the operation may take long, so that others can run while it does: one that only changes a plan, announces a
/// call or asks somebody would be held up by them.
async fn takes_time(turn: &Turn<'_>, running: &RunningOperation) -> bool {
    let RunningOperation { instruction, progress, .. } = running;
    match progress {
        _ if ["create_plan", "decompose_task"].contains(&instruction.name.as_str()) => true,
        _ if !instruction.is_tool() => false,
        OperationProgress::Tool(state) => is_made_now(turn, &requested(instruction), state).await,
        _ => is_made_now(turn, &requested(instruction), &ToolCallState::default()).await,
    }
}

/// Makes calls at the same time.
async fn call_all(turn: &Turn<'_>, calls: Vec<Instruction>) -> Vec<Called> {
    let options = CallOptions { in_background: true, ..CallOptions::default() };
    let call = |instruction: Instruction| async move {
        let requested = requested(&instruction);
        let step = proceed_with(turn, &requested, &mut ToolCallState::default(), options).await;
        (instruction, step)
    };
    all(calls.into_iter().map(call).collect()).await
}

/// Runs two futures at the same time.
async fn both<A, B>(first: impl Future<Output = A>, second: impl Future<Output = B>) -> (A, B) {
    tokio::join!(first, second)
}

/// Runs futures at the same time, and returns their results in order.
async fn all<T>(futures: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut running: Vec<_> = futures.into_iter().map(|future| (Some(Box::pin(future)), None)).collect();
    poll_fn(|context| {
        let mut is_pending = false;
        for (future, result) in &mut running {
            if let Some(active) = future {
                match Pin::new(active).poll(context) {
                    Poll::Ready(value) => {
                        *result = Some(value);
                        *future = None;
                    }
                    Poll::Pending => is_pending = true,
                }
            }
        }
        if is_pending { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    running.into_iter().filter_map(|(_, result)| result).collect()
}
