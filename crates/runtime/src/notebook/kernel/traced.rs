//! The span of code that a kernel runs, with the names of OpenTelemetry (docs/observability.md). It contains neither code nor outputs.

use std::time::Duration;

use tracing::Instrument;
use tracing::field::Empty;

use crate::effects::output::OutputObserver;
use crate::notebook::cell::CellEnd;
use crate::notebook::kernel::contract::{Execution, Kernel, KernelError, KernelSettings};

/// The session and its last event, if a session runs the code.
pub type CellCaller<'a> = Option<(&'a str, u64)>;

/// [`Kernel::execute_shown`] in a span.
///
/// # Errors
/// As [`Kernel::execute`].
pub async fn execute_traced(
    kernel: &dyn Kernel,
    code: &str,
    timeout: Duration,
    settings: &KernelSettings,
    caller: CellCaller<'_>,
    observer: &dyn OutputObserver,
) -> Result<Execution, KernelError> {
    let span = tracing::info_span!(
        "execute_tool",
        otel.name = "execute_tool kernel",
        otel.status_code = Empty,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = "kernel",
        gen_ai.tool.call.id = Empty,
        gen_ai.tool.type = "extension",
        gen_ai.conversation.id = caller.map(|(session, _)| session),
        error.type = Empty,
    );
    if let Some((session, last_seq)) = caller {
        // The call has no id of its own: this is its turn.
        span.record("gen_ai.tool.call.id", tracing::field::display(format_args!("{session}:{last_seq}")));
    }
    let execution = kernel.execute_shown(code, timeout, settings, observer).instrument(span.clone()).await;
    let error = match execution.as_ref().map(|execution| execution.ended) {
        Ok(CellEnd::Ok) => None,
        Ok(CellEnd::Error) => Some("code_error"),
        Ok(CellEnd::TimedOut) => Some("timeout"),
        Ok(CellEnd::Died) => Some("kernel_died"),
        Ok(CellEnd::Interrupted) => Some("interrupted"),
        Err(error) => Some(error.code),
    };
    if let Some(error) = error {
        span.record("otel.status_code", "ERROR");
        span.record("error.type", error);
    }
    execution
}
