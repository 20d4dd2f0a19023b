//! Tools that actions and models may call: what describes one, a call and its result. The host provides them; conversation tests have
//! written results instead.

use std::future::Future;
use std::time::Duration;

use async_trait::async_trait;
use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::value::exact::ExactValue;
use serde_json::{Map, Value};

/// What a script and a model know of a tool. The texts of a tool of somebody else are data: they are shown in a delimited form and
/// never followed.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDescription {
    /// The name with which it is called: `web_search`, `mcp.files.read`.
    pub name: String,
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    pub parameters: Value,
    /// Whether it changes nothing outside of the session, so that a call that was interrupted can be repeated.
    pub is_read_only: bool,
}

/// The limits of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolLimits {
    /// The maximum time that it takes.
    pub timeout: Duration,
    /// The maximum size of its result as JSON, in bytes; a longer one is truncated.
    pub max_bytes: usize,
    /// How long the result of a tool that is read-only may be used again for the same arguments.
    pub cache: Option<Duration>,
}

impl Default for ToolLimits {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(30), max_bytes: 64 * 1024, cache: None }
    }
}

/// A call. Its arguments have been checked against the schema of the tool.
#[derive(Clone, Copy, Debug)]
pub struct ToolCall<'a> {
    pub tool: &'a str,
    pub arguments: &'a Map<String, Value>,
    /// The id of the action that calls it.
    pub action: &'a str,
    pub limits: ToolLimits,
}

/// What a tool gave. It is data of others: never rendered, never executed, delimited in prompts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    pub value: ExactValue,
    /// Whether the result was longer than the limit, so that `value` contains only a part of it.
    pub is_truncated: bool,
    /// Whether an earlier result was used.
    pub is_cached: bool,
}

/// Why a call gave no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error, ToMessage)]
pub enum ToolError {
    #[error("there is no tool `{name}`")]
    Unknown { name: String },
    /// The arguments do not fit the schema of the tool.
    #[error("the arguments for `{tool}` are not valid: {why}")]
    InvalidArguments { tool: String, why: Message },
    /// The tool needs configuration, or its server cannot be reached.
    #[error("the tool `{tool}` cannot be used: {why}")]
    Unavailable { tool: String, why: Message },
    #[error("the tool `{tool}` failed: {why}")]
    Failed { tool: String, why: Message },
    /// What made the call is gone, and it is not known what it did: it must not be repeated.
    #[error("the tool `{tool}` failed: {why}")]
    Lost { tool: String, why: Message },
    #[error("the tool `{tool}` gave no result in time")]
    TimedOut { tool: String },
    /// The tool asks a person for values before it goes on. The call is made again with [`Tools::call_with_input`].
    #[error("the tool `{tool}` needs an answer of a person")]
    NeedsInput { tool: String, request: Box<ToolInputRequest> },
}

/// What a tool asks a person for (an elicitation of MCP).
#[derive(Clone, Debug, PartialEq)]
pub struct ToolInputRequest {
    /// The text of the tool, for the person.
    pub prompt: String,
    /// The JSON Schema of the answer.
    pub schema: Value,
    /// What the tool wants to have back with the answer.
    pub token: Value,
}

/// Receives the progress of calls that run for long.
pub trait ToolProgress: Send + Sync {
    /// `done` of `total`, in the unit of the tool.
    fn progress(&self, done: f64, total: Option<f64>);
}

/// Ignores all progress, where nobody sees it.
pub struct NoToolProgress;

impl ToolProgress for NoToolProgress {
    fn progress(&self, _: f64, _: Option<f64>) {}
}

/// The tools of a session.
#[async_trait]
pub trait Tools: Send + Sync {
    /// The tools whose names match one of `patterns` ([`matches()`]), in the order of their names, and what could not be asked for its
    /// tools.
    async fn describe(&self, patterns: &[String]) -> (Vec<ToolDescription>, Vec<ToolError>);

    /// Calls a tool. Dropping the future cancels the call.
    async fn call(&self, call: &ToolCall<'_>, progress: &dyn ToolProgress) -> Result<ToolOutput, ToolError>;

    /// Goes on with a call that answered [`ToolError::NeedsInput`]; `input` is none if the person declined.
    async fn call_with_input(
        &self,
        call: &ToolCall<'_>,
        request: &ToolInputRequest,
        input: Option<&Map<String, Value>>,
        progress: &dyn ToolProgress,
    ) -> Result<ToolOutput, ToolError> {
        let _ = (request, input, progress);
        Err(ToolError::Unknown { name: call.tool.to_owned() })
    }
}

/// How much longer than its timeout a call may take until it is given up: those that end in time themselves can say more.
const GRACE: Duration = Duration::from_secs(5);

/// The result of a call, or an error if it takes much longer than its timeout.
pub(crate) async fn within_time(
    call: &ToolCall<'_>,
    result: impl Future<Output = Result<ToolOutput, ToolError>>,
) -> Result<ToolOutput, ToolError> {
    let timed_out = || ToolError::TimedOut { tool: call.tool.to_owned() };
    tokio::time::timeout(call.limits.timeout.saturating_add(GRACE), result).await.unwrap_or_else(|_| Err(timed_out()))
}

/// Whether a name is one that `pattern` permits: the name itself, or with a `*` at the end, every name that begins with what precedes it.
pub fn matches(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |prefix| name.starts_with(prefix))
}

/// Has no tools.
pub(crate) struct NoTools;

#[async_trait]
impl Tools for NoTools {
    async fn describe(&self, _: &[String]) -> (Vec<ToolDescription>, Vec<ToolError>) {
        (vec![], vec![])
    }

    async fn call(&self, call: &ToolCall<'_>, _: &dyn ToolProgress) -> Result<ToolOutput, ToolError> {
        Err(ToolError::Unavailable { tool: call.tool.to_owned(), why: msg!("there are no tools here") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_permits_one_name_or_all_with_a_prefix() {
        assert!(matches("web_search", "web_search"));
        assert!(!matches("web", "web_search"));
        assert!(matches("mcp.files.*", "mcp.files.read"));
        assert!(!matches("mcp.files.*", "mcp.file.read"));
        assert!(matches("*", "graph_rag"));
    }
}
