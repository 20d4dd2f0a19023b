//! What decides how a task of a plan runs: the tool that it names, and whether somebody must approve it, as its metadata says.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_store::rows::TextRow;
use serde_json::{Map, Value, json};

use crate::actions::tools::call::RequestedCall;
use crate::actions::tools::requests::shown_arguments;
use crate::plan::task::PlanTask;
use crate::program::decision::{DecisionKind, DecisionRequest, RequestKind};
use crate::program::interrupted_effects::is_in_chinese;
use crate::program::turn::Turn;

/// Whether somebody must approve the task. What cannot be understood is not run without a decision.
pub(crate) fn needs_approval(task: &PlanTask) -> bool {
    match task.metadata.get("approve") {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(approve) => approve != "never",
    }
}

/// The tool that the task names: `metadata.tool`, a name or `{ name, arguments }`.
/// Errors: it names none.
pub(crate) fn call_of(task: &PlanTask) -> Result<Option<RequestedCall>, Message> {
    let unreadable = || msg!("the `tool` in its metadata must be a name, or an object with `name` and `arguments`");
    let (tool, arguments) = match task.metadata.get("tool") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(tool)) => (tool.get("name").and_then(Value::as_str), tool.get("arguments")),
        Some(tool) => (tool.as_str(), None),
    };
    let arguments = match arguments {
        None | Some(Value::Null) => Map::new(),
        Some(arguments) => arguments.as_object().cloned().ok_or_else(unreadable)?,
    };
    match tool.map(str::trim).filter(|tool| !tool.is_empty()) {
        Some(tool) => Ok(Some(RequestedCall { tool: tool.to_owned(), arguments, inexact: None })),
        None => Err(unreadable()),
    }
}

/// What those who decide about a task know of it: with another name, instruction or metadata, it is another task.
pub(crate) fn fingerprint(task: &PlanTask) -> String {
    TextRow::new(json!([task.name, task.instruction, task.metadata]).to_string()).sha256
}

/// The request for a decision about a task. `has_changed`: it was requested before, but the task has changed since.
pub(crate) fn approval(turn: &Turn<'_>, task: &PlanTask, has_changed: bool) -> DecisionRequest {
    let is_chinese = is_in_chinese(turn.program, turn.recent);
    let mut prompt = String::new();
    if has_changed {
        prompt += match is_chinese {
            true => "任务在上次询问之后发生了变化：\n",
            false => "The task has changed since the last question:\n",
        };
    }
    prompt += format!("{}\n{}", task.name, task.instruction).trim();
    if let Ok(Some(RequestedCall { tool, arguments, .. })) = call_of(task) {
        let arguments = shown_arguments(&arguments);
        prompt += &match is_chinese {
            true => format!("\n用以下参数调用工具 {tool}：\n{arguments}"),
            false => format!("\nIt calls the tool {tool} with these arguments:\n{arguments}"),
        };
    }
    DecisionRequest {
        kind: RequestKind::Approval,
        prompt,
        schema: None,
        decisions: vec![DecisionKind::Approve, DecisionKind::Reject],
        approvers: vec![],
        due_at: None,
    }
}
