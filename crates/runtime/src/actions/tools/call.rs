//! One call of a tool under the rules of the script: permitted, checked, decided about, announced, made and closed, turn by turn.

use std::time::Duration;

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tracing::Instrument;

use crate::actions::tools::checks::{argument_error, described, rule_for, unmet_rule, wants_approval};
use crate::actions::tools::progress::TurnToolProgress;
use crate::actions::tools::report::report;
use crate::actions::tools::requests::{approval_request, input_request};
use crate::actions::tools::result::{ToolResult, ToolStatus};
use crate::actions::tools::span::{call_span, record_result};
use crate::effects::tools::{
    ToolCall, ToolDescription, ToolError, ToolInputRequest, ToolLimits, ToolOutput, within_time,
};
use crate::plan::numbers::inexact_integer;
use crate::plan::task::TaskId;
use crate::program::decision::{DecisionKind, GivenDecision};
use crate::program::flow::{ActionError, EffectAnnouncement, Flow};
use crate::program::interrupted_effects::{Decision, decide, interrupted_error};
use crate::program::tool_rule::{ToolApproval, ToolRule};
use crate::program::transcript::cut_in_the_middle;
use crate::program::turn::Turn;
use bcc_lang::value::exact::ExactValues;
use bcc_store::rows::TextRow;

/// The names of the arguments and of the tool in the expressions of rules, and of the values of decisions.
pub const ARGUMENTS: &str = "arguments";
pub const TOOL: &str = "tool";
pub const ANSWER: &str = "answer";

/// The kind of the effect.
pub const TOOL_EFFECT: &str = "tool";

/// How often a tool may ask a person in one call.
const MAX_INPUTS: u32 = 10;

/// The maximum number of characters of the arguments in the announcement of a call.
const MAX_SUMMARY_CHARS: usize = 500;

/// A call that an author or a model wants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestedCall {
    pub tool: String,
    pub arguments: Map<String, Value>,
    /// An integer of the arguments that they contain as another number. Such a call is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inexact: Option<String>,
}

impl RequestedCall {
    /// A call with these arguments.
    pub(crate) fn of(tool: String, arguments: &ExactValues) -> Self {
        Self { tool, arguments: plain(arguments), inexact: inexact_argument(arguments) }
    }
}

/// The values without the digits of their numbers, which a tool cannot be given.
fn plain(values: &ExactValues) -> Map<String, Value> {
    values.iter().map(|(name, value)| (name.clone(), Value::clone(value))).collect()
}

/// An integer that a tool would be given as another number.
fn inexact_argument(arguments: &ExactValues) -> Option<String> {
    arguments.values().find_map(|value| value.digits().and_then(inexact_integer)).map(str::to_owned)
}

fn inexact_error(number: &str) -> Message {
    msg!("the number {number} cannot be kept exactly; write it as text, in quotes")
}

/// How far a call is. The action that makes the call stores it, and passes it on in its next turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolCallState {
    stage: Stage,
    /// The arguments that somebody decided to use in place of those of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    edited: Option<Map<String, Value>>,
    /// Who decided about the call, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    comment: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input: Option<StoredInput>,
    /// How often the tool asked.
    #[serde(default)]
    inputs: u32,
    /// What the tool was when somebody was asked to decide about the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decided_about: Option<String>,
}

impl ToolCallState {
    /// The arguments that somebody decided to use in place of those of the call.
    pub(crate) fn edited(&self) -> Option<&Map<String, Value>> {
        self.edited.as_ref()
    }

    /// Prepares another attempt of a call that failed. What was decided about it remains.
    pub fn start_again(&mut self) {
        if self.stage != Stage::New {
            self.stage = Stage::Ready;
        }
        self.input = None;
        self.inputs = 0;
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stage {
    /// Nothing was checked.
    #[default]
    New,
    /// Somebody decides about it.
    Approval,
    /// It may be made, and is announced if that is necessary.
    Ready,
    /// Somebody answers the question of the tool.
    Input,
}

/// What a tool asked for, and the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct StoredInput {
    prompt: String,
    schema: Value,
    token: Value,
    /// The values; none if the person declined or has not answered yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    values: Option<Map<String, Value>>,
}

/// What an action sets for its calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallOptions<'a> {
    /// The `timeout` of the action, which applies if it is shorter than that of the rule.
    pub timeout: Option<Duration>,
    /// Whether the result must not be stored in the journal, because a variable that takes it is sensitive.
    pub hides_result: bool,
    /// Whether the call is made while its action does something else in the same turn, whose decision and effect are not those of the
    /// call. What needs one of its own is left.
    pub in_background: bool,
    pub called_for: Option<CalledFor<'a>>,
}

/// The task of a plan that calls a tool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CalledFor<'a> {
    pub task: TaskId,
    pub name: &'a str,
}

/// What the action must do after a step of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum CallStep {
    /// Store the state and return this flow. The next turn calls [`proceed`] again.
    Flow(Flow),
    /// The call is over.
    Ended(ToolResult),
}

/// Continues a call. An action makes one call at a time.
///
/// # Errors
/// If an author text cannot be rendered. What prevents the call is its result.
pub async fn proceed(
    turn: &Turn<'_>,
    call: &RequestedCall,
    state: &mut ToolCallState,
) -> Result<CallStep, ActionError> {
    proceed_with(turn, call, state, CallOptions::default()).await
}

/// [`proceed`] with options of the action.
pub(crate) async fn proceed_with(
    turn: &Turn<'_>,
    call: &RequestedCall,
    state: &mut ToolCallState,
    options: CallOptions<'_>,
) -> Result<CallStep, ActionError> {
    let started = turn.services.clock.elapsed_ms();
    let step = next_step(turn, call, state, options).await?;
    if let CallStep::Ended(result) = &step {
        let ms = turn.services.clock.elapsed_ms().saturating_sub(started);
        report(turn, result, ms, options.hides_result);
    }
    Ok(step)
}

async fn next_step(
    turn: &Turn<'_>,
    call: &RequestedCall,
    state: &mut ToolCallState,
    options: CallOptions<'_>,
) -> Result<CallStep, ActionError> {
    let tool = call.tool.as_str();
    // Whoever decides about the call would be shown another number.
    if let Some(number) = &call.inexact {
        return Ok(ended(turn, call, state, ToolStatus::Refused, Some(inexact_error(number))));
    }
    let rule = match rule_for(turn, tool).await {
        Ok(rule) => rule,
        Err(refused) => return Ok(ended(turn, call, state, ToolStatus::Refused, Some(refused))),
    };
    let description = match described(turn, tool).await {
        Ok(description) => description,
        Err((status, error)) => return Ok(ended(turn, call, state, status, Some(error))),
    };
    match (state.stage, turn.decision) {
        (Stage::New | Stage::Ready, _) => {}
        // A request that nobody answered is opened again, as after a return to an earlier state.
        (Stage::Approval, None) => return request_approval(turn, call, state, rule, &description),
        (Stage::Input, None) => return request_input(turn, call, state),
        (Stage::Approval, Some(given)) => {
            if let Some(result) = decided(turn, call, state, given) {
                return Ok(CallStep::Ended(result));
            }
        }
        (Stage::Input, Some(given)) => {
            if let Some(number) = inexact_argument(&given.values) {
                return Ok(ended(turn, call, state, ToolStatus::Refused, Some(inexact_error(&number))));
            }
            answer_input(state, given);
        }
    }
    let arguments = state.edited.clone().unwrap_or_else(|| call.arguments.clone());
    let close_effect = |how: &'static str| {
        if !options.in_background {
            turn.close_effect(how);
        }
    };
    // What was decided or announced before may have changed since: the tool, or a variable.
    let refused = argument_error(&description, &arguments).or_else(|| unmet_rule(turn, rule, tool, &arguments));
    if let Some(refused) = refused {
        close_effect(match turn.effect_is_due {
            true => "no longer permitted; it was not called",
            false => "interrupted; it is not called again",
        });
        return Ok(ended(turn, call, state, ToolStatus::Refused, Some(refused)));
    }
    if state.stage == Stage::New && wants_approval(turn, rule, tool, &arguments) {
        return request_approval(turn, call, state, rule, &description);
    }
    // A decision is about the tool as it was. How to go on after an interruption is decided first.
    let is_undecided = |asked: &String| *asked != fingerprint(&description);
    if (turn.effect.is_none() || turn.effect_is_due) && state.decided_about.as_ref().is_some_and(is_undecided) {
        close_effect("the tool has changed; it was not called");
        return request_approval(turn, call, state, rule, &description);
    }
    state.stage = Stage::Ready;
    if options.in_background && !description.is_read_only {
        return Ok(CallStep::Flow(Flow::Onward));
    }
    // A call that changes nothing is simply made again after an interruption.
    if !options.in_background && (!description.is_read_only || turn.effect.is_some()) {
        match decide(turn, || announcement(turn, tool, &arguments, options.called_for)) {
            Decision::First(flow) => return Ok(CallStep::Flow(flow)),
            Decision::Run => {}
            Decision::Skip => return Ok(ended(turn, call, state, ToolStatus::Interrupted, None)),
            Decision::Fail => {
                let error = interrupted_error().to_message();
                return Ok(ended(turn, call, state, ToolStatus::Interrupted, Some(error)));
            }
        }
    }
    match make(turn, tool, &arguments, limits(rule, options), state.input.as_ref()).await {
        Ok(ToolOutput { value, is_truncated, is_cached }) => {
            close_effect("it is done");
            let result = result(turn, call, state, ToolStatus::Success, None);
            Ok(CallStep::Ended(ToolResult { value, is_truncated, is_cached, ..result }))
        }
        Err(ToolError::NeedsInput { request, .. }) if state.inputs < MAX_INPUTS => {
            close_effect("it asks for values");
            let ToolInputRequest { prompt, schema, token } = *request;
            state.input = Some(StoredInput { prompt, schema, token, values: None });
            state.inputs += 1;
            state.stage = Stage::Input;
            request_input(turn, call, state)
        }
        Err(error) => {
            close_effect(match error {
                ToolError::TimedOut { .. } => "it took too long and was stopped",
                ToolError::Lost { .. } => "it failed; it is not known what it did",
                _ => "it failed",
            });
            let status = match state.input.as_ref().is_some_and(|input| input.values.is_none()) {
                // The tool could not go on without the values, so this is what somebody decided.
                true => ToolStatus::Rejected,
                false => status_of(&error),
            };
            let result = result(turn, call, state, status, Some(error.to_message()));
            // A tool that only reads has no effect.
            let is_effect_unknown = matches!(error, ToolError::Lost { .. }) && !description.is_read_only;
            Ok(CallStep::Ended(ToolResult { is_effect_unknown, ..result }))
        }
    }
}

/// Makes the call.
async fn make(
    turn: &Turn<'_>,
    tool: &str,
    arguments: &Map<String, Value>,
    limits: ToolLimits,
    input: Option<&StoredInput>,
) -> Result<ToolOutput, ToolError> {
    let action = turn.place.action_id.as_deref().unwrap_or_default();
    let call = ToolCall { tool, arguments, action, limits };
    let tools = turn.services.host.tools.as_ref();
    let progress = TurnToolProgress::new(turn, tool);
    let span = call_span(turn, tool);
    let result = async {
        match input {
            None => within_time(&call, tools.call(&call, &progress)).await,
            Some(StoredInput { prompt, schema, token, values }) => {
                let request = ToolInputRequest { prompt: prompt.clone(), schema: schema.clone(), token: token.clone() };
                within_time(&call, tools.call_with_input(&call, &request, values.as_ref(), &progress)).await
            }
        }
    };
    let result = result.instrument(span.clone()).await;
    record_result(&span, &result);
    result
}

fn limits(rule: &ToolRule, options: CallOptions<'_>) -> ToolLimits {
    let limits = rule.limits();
    ToolLimits { timeout: options.timeout.unwrap_or(limits.timeout), ..limits }
}

fn announcement(
    turn: &Turn<'_>,
    tool: &str,
    arguments: &Map<String, Value>,
    called_for: Option<CalledFor<'_>>,
) -> EffectAnnouncement {
    let action = turn.place.action_id.as_deref().unwrap_or_default();
    let summary = match called_for {
        None => msg!("`{action}`: calls the tool {tool}"),
        // The branches of all tasks have the same action, and a plan may have the same tool many times.
        Some(CalledFor { task, name }) => {
            let mut arguments = json!(arguments);
            turn.masker.data(&mut arguments);
            let arguments = cut_in_the_middle(&arguments.to_string(), MAX_SUMMARY_CHARS);
            let name = turn.masker.text(name);
            msg!("task {task} ({name}): calls the tool {tool} with {arguments}")
        }
    };
    EffectAnnouncement { kind: TOOL_EFFECT, summary }
}

fn request_approval(
    turn: &Turn<'_>,
    call: &RequestedCall,
    state: &mut ToolCallState,
    rule: &ToolRule,
    description: &ToolDescription,
) -> Result<CallStep, ActionError> {
    let asked = fingerprint(description);
    let has_changed = state.decided_about.as_ref().is_some_and(|before| *before != asked);
    let arguments = state.edited.as_ref().unwrap_or(&call.arguments);
    let request = approval_request(turn, (&call.tool, arguments), rule, description, has_changed)?;
    state.stage = Stage::Approval;
    state.decided_about = Some(asked);
    Ok(CallStep::Flow(Flow::Request(Box::new(request))))
}

fn request_input(turn: &Turn<'_>, call: &RequestedCall, state: &ToolCallState) -> Result<CallStep, ActionError> {
    let Some(StoredInput { prompt, schema, .. }) = &state.input else {
        return Err(ActionError::failed("frame-unreadable", Message::word("the question of the tool is not stored")));
    };
    Ok(CallStep::Flow(Flow::Request(Box::new(input_request(turn, &call.tool, prompt, schema)))))
}

/// What those who decide about a call know of its tool: another description or schema makes it another tool.
fn fingerprint(description: &ToolDescription) -> String {
    let ToolDescription { name, description, parameters, is_read_only } = description;
    TextRow::new(json!([name, description, parameters, is_read_only]).to_string()).sha256
}

/// Whether the next turn of this call makes it, rather than announcing it or asking somebody.
pub(crate) async fn is_made_now(turn: &Turn<'_>, call: &RequestedCall, state: &ToolCallState) -> bool {
    if turn.effect.is_some() {
        return turn.effect_is_due;
    }
    let Some(rule) = ToolRule::of(&turn.program.tools, &call.tool) else { return false };
    let is_decided = match state.stage {
        Stage::New => matches!(rule.approve, ToolApproval::Never),
        Stage::Ready => true,
        Stage::Approval | Stage::Input => turn.decision.is_some(),
    };
    is_decided && described(turn, &call.tool).await.is_ok_and(|description| description.is_read_only)
}

/// Takes what was decided about the call. Returns how it ended, if it is not made.
fn decided(
    turn: &Turn<'_>,
    call: &RequestedCall,
    state: &mut ToolCallState,
    given: &GivenDecision,
) -> Option<ToolResult> {
    state.by.clone_from(&given.by);
    state.comment.clone_from(&given.comment);
    let value = |name: &str| given.values.get(name);
    match (given.decision, value(ARGUMENTS)) {
        (Some(DecisionKind::Approve), _) => {}
        (Some(DecisionKind::Edit), Some(arguments)) if arguments.is_object() => {
            if let Some(number) = arguments.digits().and_then(inexact_integer) {
                return Some(result(turn, call, state, ToolStatus::Refused, Some(inexact_error(number))));
            }
            state.edited = arguments.as_object().cloned();
        }
        (Some(DecisionKind::Answer), _) => {
            let result = result(turn, call, state, ToolStatus::Answered, None);
            return Some(ToolResult { value: value(ANSWER).cloned().unwrap_or_default(), ..result });
        }
        // The request permits nothing else.
        _ => {
            let rejection = Message::word("the call was rejected, and the tool was not called");
            return Some(result(turn, call, state, ToolStatus::Rejected, Some(rejection)));
        }
    }
    state.stage = Stage::Ready;
    None
}

/// Takes the values that the tool asked for.
fn answer_input(state: &mut ToolCallState, given: &GivenDecision) {
    let values = || plain(&given.values);
    if let Some(input) = &mut state.input {
        input.values = (given.decision == Some(DecisionKind::Approve)).then(values);
    }
    state.stage = Stage::Ready;
}

const fn status_of(error: &ToolError) -> ToolStatus {
    match error {
        ToolError::Unknown { .. } | ToolError::InvalidArguments { .. } => ToolStatus::Refused,
        ToolError::TimedOut { .. } => ToolStatus::TimedOut,
        ToolError::Unavailable { .. }
        | ToolError::Failed { .. }
        | ToolError::Lost { .. }
        | ToolError::NeedsInput { .. } => ToolStatus::Failed,
    }
}

fn ended(
    turn: &Turn<'_>,
    call: &RequestedCall,
    state: &ToolCallState,
    status: ToolStatus,
    error: Option<Message>,
) -> CallStep {
    CallStep::Ended(result(turn, call, state, status, error))
}

/// What a call gave, without a value.
fn result(
    turn: &Turn<'_>,
    call: &RequestedCall,
    state: &ToolCallState,
    status: ToolStatus,
    error: Option<Message>,
) -> ToolResult {
    let mut arguments = state.edited.clone().unwrap_or_else(|| call.arguments.clone());
    arguments.values_mut().for_each(|argument| turn.masker.data(argument));
    ToolResult {
        tool: call.tool.clone(),
        arguments,
        status,
        error,
        by: state.by.clone(),
        comment: state.comment.clone(),
        ..ToolResult::default()
    }
}
