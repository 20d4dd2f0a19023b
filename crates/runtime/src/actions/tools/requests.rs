//! What a call asks people for: a decision about the call, and the values that a tool needs.

use serde_json::{Map, Value, json};

use crate::actions::tools::call::{ANSWER, ARGUMENTS};
use crate::effects::tools::ToolDescription;
use crate::program::decision::{DecisionKind, DecisionRequest, RequestKind};
use crate::program::flow::ActionError;
use crate::program::interrupted_effects::is_in_chinese;
use crate::program::tool_rule::ToolRule;
use crate::program::transcript::cut_in_the_middle;
use crate::program::turn::Turn;
use bcc_lang::message::message::Message;

/// The maximum size of the schema of a tool in a request, in bytes. A longer one is checked when the decision is carried out.
const MAX_SCHEMA_BYTES: usize = 16 * 1024;

/// The maximum number of characters of the arguments in the text for those who decide.
const MAX_ARGUMENT_CHARS: usize = 64 * 1024;

/// The maximum number of characters of what a tool asks.
const MAX_QUESTION_CHARS: usize = 4_000;

/// The decisions about a call.
const DECISIONS: [DecisionKind; 4] =
    [DecisionKind::Approve, DecisionKind::Reject, DecisionKind::Edit, DecisionKind::Answer];

/// The arguments of a call for those who decide about it.
pub(crate) fn shown_arguments(arguments: &Map<String, Value>) -> String {
    let shown = serde_json::to_string_pretty(arguments).unwrap_or_else(|_| json!(arguments).to_string());
    cut_in_the_middle(&shown, MAX_ARGUMENT_CHARS)
}

/// The request for a decision about a call with these arguments. `has_changed`: it was decided about, but the tool has changed since.
pub(crate) fn approval_request(
    turn: &Turn<'_>,
    (tool, arguments): (&str, &Map<String, Value>),
    rule: &ToolRule,
    description: &ToolDescription,
    has_changed: bool,
) -> Result<DecisionRequest, ActionError> {
    let names = turn.names(1);
    let mut approvers = Vec::new();
    for approver in &rule.approvers {
        let name = turn.text(approver, &names)?.trim().to_owned();
        // A name that renders as nothing would otherwise let everybody decide.
        if name.is_empty() {
            return Err(ActionError::failed("approver-empty", Message::word("a name in `approvers` is empty")));
        }
        approvers.push(name);
    }
    let arguments = shown_arguments(arguments);
    let prompt = match (is_in_chinese(turn.program, turn.recent), has_changed) {
        (true, false) => format!("是否用以下参数调用工具 {tool}？\n{arguments}"),
        (true, true) => format!("工具 {tool} 在上次询问之后发生了变化。是否仍用以下参数调用？\n{arguments}"),
        (false, false) => format!("Call the tool {tool} with these arguments?\n{arguments}"),
        (false, true) => {
            format!("The tool {tool} has changed since the last question. Call it with these arguments?\n{arguments}")
        }
    };
    let parameters = match description.parameters.to_string().len() {
        0..=MAX_SCHEMA_BYTES => description.parameters.clone(),
        _ => json!({ "type": "object" }),
    };
    let properties = json!({ ARGUMENTS: parameters, ANSWER: {} });
    let schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    Ok(DecisionRequest {
        kind: RequestKind::Approval,
        prompt,
        schema: Some(schema),
        decisions: DECISIONS.to_vec(),
        approvers,
        due_at: None,
    })
}

/// The request for the values that a tool needs: they are given with `approve`, and `reject` declines.
pub(crate) fn input_request(turn: &Turn<'_>, tool: &str, question: &str, schema: &Value) -> DecisionRequest {
    let question = cut_in_the_middle(question, MAX_QUESTION_CHARS);
    // The text is that of the tool: whoever answers must know this.
    let prompt = match is_in_chinese(turn.program, turn.recent) {
        true => format!("工具 {tool} 请您提供信息：\n{question}"),
        false => format!("The tool {tool} asks for information:\n{question}"),
    };
    DecisionRequest {
        kind: RequestKind::Approval,
        prompt,
        schema: Some(schema.clone()),
        decisions: vec![DecisionKind::Approve, DecisionKind::Reject],
        approvers: vec![],
        due_at: None,
    }
}
