//! The results of tools in a test. No tool is called.
//!
//! ```yaml
//! tools:
//!   web_search:
//!     - { results: [] }               # the result of the first call
//!     - { error: no connection }      # the call fails
//!     - timeout
//!     - { result: [1, 2], truncated: true }
//!     - { ask: { prompt: Which account?, schema: { type: object } } }
//!   mcp.mail.send:
//!     read_only: false
//!     schema: { type: object, required: [to] }
//!     results: [sent]
//! ```

use std::sync::Arc;

use serde_json::{Value, json};

use crate::message::msg;
use crate::script::fields::Fields;
use crate::script::test::effects::entries;
use crate::source::span::Spanned;
use crate::source::yaml::{NodeKind, YamlNode};
use crate::value::exact::ExactValue;

/// A tool of a test.
#[derive(Clone, Debug)]
pub struct TestTool {
    pub name: Spanned<String>,
    pub description: Option<String>,
    /// The JSON Schema of its arguments.
    pub schema: Option<Value>,
    pub is_read_only: Option<bool>,
    /// The results, one for each call.
    pub results: Vec<WrittenToolResult>,
}

/// The result of a tool that is not called.
#[derive(Clone, Debug, PartialEq)]
pub enum WrittenToolResult {
    Value {
        value: ExactValue,
        is_truncated: bool,
    },
    Error(String),
    TimedOut,
    /// The tool asks a person; the next result is that of the continued call.
    Ask {
        prompt: String,
        schema: Value,
    },
}

/// Reads `tools`.
pub(crate) fn tools(fields: &Fields<'_>) -> Vec<TestTool> {
    let help = "write for example `web_search: [{ results: [] }]`";
    entries(fields, "tools", "results by tool", help)
        .into_iter()
        .filter_map(|(name, node)| tool(name, node, fields))
        .collect()
}

fn tool(name: Spanned<String>, node: &Arc<YamlNode>, fields: &Fields<'_>) -> Option<TestTool> {
    match &node.kind {
        NodeKind::Sequence(items) => {
            let results = items.iter().filter_map(|item| result(item, fields)).collect();
            Some(TestTool { name, description: None, schema: None, is_read_only: None, results })
        }
        NodeKind::Mapping(_) => {
            let inner = fields.inner(node, msg!("the tool `{}`", name.value))?;
            let description = inner.text("description").map(|text| text.text);
            let schema = inner.take("schema").and_then(|node| inner.inner(node, "`schema`").map(|_| node.to_json()));
            let is_read_only = inner.has("read_only").then(|| inner.boolean("read_only")).flatten();
            let items = inner.take("results").and_then(|_| inner.list("results")).unwrap_or_default();
            let results = items.iter().filter_map(|item| result(item, fields)).collect();
            inner.finish();
            Some(TestTool { name, description, schema, is_read_only, results })
        }
        NodeKind::Scalar(_) => {
            let message = msg!("the results of `{}` must be a list, but this is {}", name.value, node.describe());
            let help = "write the results in order, each on its own line with `- `";
            fields.error("wrong-type", message, node.span, help);
            None
        }
    }
}

/// One result. A mapping with no other field than `error`, `ask`, or `result` and `truncated` is not the value itself.
fn result(item: &Arc<YamlNode>, fields: &Fields<'_>) -> Option<WrittenToolResult> {
    if item.as_scalar().is_some_and(|scalar| scalar.text == "timeout") {
        return Some(WrittenToolResult::TimedOut);
    }
    let value = item.to_exact();
    let keys: Vec<&str> = value.as_object().into_iter().flat_map(|object| object.keys()).map(String::as_str).collect();
    match keys.as_slice() {
        ["error"] => {
            let inner = fields.inner(item, "the result of a tool")?;
            let error = inner.required_text("error");
            inner.finish();
            Some(WrittenToolResult::Error(error?.text))
        }
        ["ask"] => {
            let inner = fields.inner(item, "the result of a tool")?;
            let ask = inner.take("ask").and_then(|node| fields.inner(node, "`ask`"))?;
            let prompt = ask.required_text("prompt");
            let schema = ask.take("schema").map_or_else(|| json!({ "type": "object" }), |node| node.to_json());
            ask.finish();
            Some(WrittenToolResult::Ask { prompt: prompt?.text, schema })
        }
        ["result"] | ["result", "truncated"] | ["truncated", "result"] => {
            let is_truncated = value.get("truncated") == Some(&Value::Bool(true));
            let value = value.field("result").unwrap_or_default();
            Some(WrittenToolResult::Value { value, is_truncated })
        }
        _ => Some(WrittenToolResult::Value { value, is_truncated: false }),
    }
}
