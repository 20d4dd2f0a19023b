//! What a call of a tool gave.

use bcc_lang::message::message::Message;
use bcc_lang::message::stored;
use bcc_lang::value::exact::ExactValue;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// How a call of a tool ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    Success,
    #[default]
    Failed,
    /// It was not called: the script does not permit it, there is no such tool, or its arguments are wrong.
    Refused,
    /// It was not called: a person decided against it.
    Rejected,
    /// It was not called: a person gave the result.
    Answered,
    TimedOut,
    /// It is not known how far it got.
    Interrupted,
}

impl ToolStatus {
    /// The name in events, results and variables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Rejected => "rejected",
            Self::Answered => "answered",
            Self::TimedOut => "timed_out",
            Self::Interrupted => "interrupted",
        }
    }

    /// Whether there is a result.
    pub const fn has_value(self) -> bool {
        matches!(self, Self::Success | Self::Answered)
    }
}

/// What a call gave. It is data of others: never rendered, never executed, delimited in prompts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    pub tool: String,
    /// The arguments of the call, with sensitive values masked.
    pub arguments: Map<String, Value>,
    pub status: ToolStatus,
    /// The result; null if there is none.
    pub value: ExactValue,
    /// Why there is no result. None for a call that was interrupted and is skipped.
    #[serde(default, with = "stored::option", skip_serializing_if = "Option::is_none")]
    pub error: Option<Message>,
    /// Who decided about the call, if somebody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Whether the value is only a part of the result.
    #[serde(default)]
    pub is_truncated: bool,
    /// Whether it is the result of an earlier call.
    #[serde(default)]
    pub is_cached: bool,
    /// Whether it failed, and it is not known what it did. Nothing repeats such a call by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_effect_unknown: bool,
}

impl ToolResult {
    /// The result for prompts and metadata: without fields that say nothing.
    pub fn to_json(&self) -> Value {
        let mut fields = Map::new();
        fields.insert("tool".into(), self.tool.as_str().into());
        fields.insert("arguments".into(), Value::Object(self.arguments.clone()));
        fields.insert("status".into(), self.status.name().into());
        if self.status.has_value() {
            fields.insert("result".into(), self.value.clone().into_value());
        }
        let texts = [("error", self.error.as_ref().map(Message::to_string)), ("by", self.by.clone())];
        for (name, text) in texts.into_iter().chain([("comment", self.comment.clone())]) {
            fields.extend(text.map(|text| (name.to_owned(), Value::from(text))));
        }
        if self.is_truncated {
            fields.insert("truncated".into(), json!(true));
        }
        Value::Object(fields)
    }
}
