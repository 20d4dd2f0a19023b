//! The tools of conversation tests: none is called. Their results are those of the test.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::script::test::tools::{TestTool, WrittenToolResult};
use bcc_lang::script::tools::BUILT_IN_TOOLS;
use bcc_lang::source::span::Span;
use bcc_runtime::effects::tools::{
    ToolCall, ToolDescription, ToolError, ToolInputRequest, ToolOutput, ToolProgress, Tools, matches,
};
use serde_json::{Map, Value, json};

/// A call for which the test has no result.
#[derive(Clone, Debug)]
pub(crate) struct MissingToolResult {
    pub tool: String,
    /// The position of the list that has no more results, and the number of its results.
    pub list: Option<(Span, usize)>,
}

pub(crate) struct TestTools {
    tools: Vec<TestTool>,
    /// The names that the script permits as they are, without a `*`.
    permitted: Vec<String>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The number of calls of each tool.
    calls: BTreeMap<String, usize>,
    missing: Option<MissingToolResult>,
}

impl TestTools {
    pub(crate) fn new(tools: Vec<TestTool>, permitted: Vec<String>) -> Self {
        Self { tools, permitted, state: Mutex::default() }
    }

    /// The first call without a result.
    pub(crate) fn missing(&self) -> Option<MissingToolResult> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).missing.clone()
    }

    fn next_result(&self, tool: &str) -> Result<ToolOutput, ToolError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = state.calls.entry(tool.to_owned()).or_default();
        *calls += 1;
        let number = *calls - 1;
        let written = self.tools.iter().find(|written| written.name.value == tool);
        let failed = |why| Err(ToolError::Failed { tool: tool.to_owned(), why });
        match written.and_then(|written| written.results.get(number)) {
            Some(WrittenToolResult::Value { value, is_truncated }) => {
                Ok(ToolOutput { value: value.clone(), is_truncated: *is_truncated, is_cached: false })
            }
            Some(WrittenToolResult::Error(why)) => failed(Message::text(why.clone())),
            Some(WrittenToolResult::TimedOut) => Err(ToolError::TimedOut { tool: tool.to_owned() }),
            Some(WrittenToolResult::Ask { prompt, schema }) => Err(ToolError::NeedsInput {
                tool: tool.to_owned(),
                request: Box::new(ToolInputRequest {
                    prompt: prompt.clone(),
                    schema: schema.clone(),
                    token: Value::from(number),
                }),
            }),
            None => {
                let list = written.map(|written| (written.name.span, written.results.len()));
                state.missing.get_or_insert(MissingToolResult { tool: tool.to_owned(), list });
                failed(msg!("the test has no result for it"))
            }
        }
    }
}

#[async_trait]
impl Tools for TestTools {
    async fn describe(&self, patterns: &[String]) -> (Vec<ToolDescription>, Vec<ToolError>) {
        let written = self.tools.iter().map(|tool| tool.name.value.as_str());
        let names = written.chain(self.permitted.iter().map(String::as_str));
        let mut found: Vec<ToolDescription> = names
            .filter(|name| patterns.iter().any(|pattern| matches(pattern, name)))
            .map(|name| describe(name, self.tools.iter().find(|tool| tool.name.value == name)))
            .collect();
        found.sort_by(|one, other| one.name.cmp(&other.name));
        found.dedup_by(|one, other| one.name == other.name);
        (found, vec![])
    }

    async fn call(&self, call: &ToolCall<'_>, _: &dyn ToolProgress) -> Result<ToolOutput, ToolError> {
        self.next_result(call.tool)
    }

    /// The next result, which may use what was given: `{ result: "{{ … }}" }` is not rendered.
    async fn call_with_input(
        &self,
        call: &ToolCall<'_>,
        _: &ToolInputRequest,
        input: Option<&Map<String, Value>>,
        _: &dyn ToolProgress,
    ) -> Result<ToolOutput, ToolError> {
        match input {
            Some(_) => self.next_result(call.tool),
            None => {
                let why = Message::word("the user declined");
                Err(ToolError::Failed { tool: call.tool.to_owned(), why })
            }
        }
    }
}

/// The description of a tool: that of the test, else that of a tool of the program, else one that takes any arguments.
fn describe(name: &str, written: Option<&TestTool>) -> ToolDescription {
    let is_built_in = BUILT_IN_TOOLS.contains(&name);
    ToolDescription {
        name: name.to_owned(),
        description: written.and_then(|tool| tool.description.clone()).unwrap_or_default(),
        parameters: written.and_then(|tool| tool.schema.clone()).unwrap_or_else(|| parameters(name)),
        is_read_only: written.and_then(|tool| tool.is_read_only).unwrap_or(is_built_in),
    }
}

/// The parameters of the tools of the program, for which every configuration has its own defaults.
fn parameters(name: &str) -> Value {
    let text = json!({ "type": "string" });
    let properties = match name {
        "web_search" => json!({
            "query": { "type": "string", "minLength": 1 },
            "max_results": { "type": "integer", "minimum": 1 },
            "locale": text, "time_range": text, "provider": text,
        }),
        "graph_rag" => json!({
            "query": { "type": "string", "minLength": 1 },
            "top_k": { "type": "integer", "minimum": 1 },
            "hops": { "type": "integer", "minimum": 0 },
            "return_subgraph": { "type": "boolean" },
            "focus_entities": { "type": "array", "items": text },
        }),
        _ => return json!({ "type": "object" }),
    };
    json!({ "type": "object", "properties": properties, "required": ["query"], "additionalProperties": false })
}
