//! The span of a call of a tool or a program, with the names of OpenTelemetry (docs/observability.md). It contains neither arguments nor results.

use tracing::Span;
use tracing::field::Empty;

use crate::effects::tools::{ToolError, ToolOutput};
use crate::program::turn::Turn;

/// The tool that only searches documents of the project.
const DATASTORE_TOOL: &str = "graph_rag";

/// A span for a call of the tool, or for what an action of the kind `tool` runs.
pub(crate) fn call_span(turn: &Turn<'_>, tool: &str) -> Span {
    tracing::info_span!(
        "execute_tool",
        otel.name = format_args!("execute_tool {tool}"),
        otel.status_code = Empty,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = tool,
        // The call has no id of its own: this is its turn.
        gen_ai.tool.call.id = format_args!("{}:{}", turn.session_id, turn.last_seq),
        gen_ai.tool.type = if tool == DATASTORE_TOOL { "datastore" } else { "extension" },
        gen_ai.conversation.id = turn.session_id,
        bcc_script.tool.cached = Empty,
        process.exit.code = Empty,
        error.type = Empty,
    )
}

/// Records how the call ended.
pub(super) fn record_result(span: &Span, result: &Result<ToolOutput, ToolError>) {
    if span.is_disabled() {
        return;
    }
    let kind = match result {
        Ok(output) => {
            span.record("bcc_script.tool.cached", output.is_cached);
            return;
        }
        // The call goes on when somebody has answered.
        Err(ToolError::NeedsInput { .. }) => {
            span.record("error.type", "needs_input");
            return;
        }
        Err(ToolError::Unknown { .. }) => "unknown",
        Err(ToolError::InvalidArguments { .. }) => "invalid_arguments",
        Err(ToolError::Unavailable { .. }) => "unavailable",
        Err(ToolError::Failed { .. }) => "failed",
        Err(ToolError::Lost { .. }) => "lost",
        Err(ToolError::TimedOut { .. }) => "timeout",
    };
    span.record("otel.status_code", "ERROR");
    span.record("error.type", kind);
}
