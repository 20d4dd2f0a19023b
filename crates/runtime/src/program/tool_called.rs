//! The event about a call of a tool.

use bcc_lang::message::message::Message;
use bcc_lang::value::exact::ExactValue;
use serde::Serialize;
use serde_json::Value;

/// One call of a tool: what it was given, and what it gave. What is too long for the journal is stored as a text of its own.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ToolCalled {
    pub tool: String,
    /// The arguments; none if they are too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The SHA-256 of the JSON of arguments that are too long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments_sha256: Option<String>,
    pub status: &'static str,
    /// The result, if there is one, and it is neither too long nor hidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<ExactValue>,
    /// The size of the JSON of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_sha256: Option<String>,
    /// Whether the tool gave more than the result contains.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Whether an earlier result was used, and the tool was not called again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Message>,
    /// Who decided about the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Milliseconds of its last turn.
    pub ms: u64,
}
