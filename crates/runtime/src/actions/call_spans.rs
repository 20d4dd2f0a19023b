//! The spans of what actions call outside the session besides models and tools: programs and behavior servers, with the names of
//! OpenTelemetry where it has some (docs/observability.md). They contain neither what is sent nor what comes back.

use std::future::Future;

use async_trait::async_trait;
use serde_json::Value;
use tracing::field::Empty;
use tracing::{Instrument, Span};

use crate::actions::tools::span::call_span;
use crate::effects::behaviors::{BehaviorPiece, BehaviorServer, ResponseStream, ServerError};
use crate::effects::process::{ProcessEnd, ProcessResult, StartError};
use crate::program::open_question::OpenQuestion;
use crate::program::question::Asked;
use crate::program::turn::Turn;

/// Runs a program for an action, in a span. `tool` is the kind of the action; `is_ok` says which exit codes are no errors.
pub(crate) async fn traced_command(
    turn: &Turn<'_>,
    tool: &str,
    is_ok: impl Fn(i32) -> bool,
    run: impl Future<Output = Result<ProcessResult, StartError>>,
) -> Result<ProcessResult, StartError> {
    let span = call_span(turn, tool);
    let result = run.instrument(span.clone()).await;
    if span.is_disabled() {
        return result;
    }
    let error = match result.as_ref().map(|result| result.ended) {
        Ok(ProcessEnd::Code(code)) => {
            span.record("process.exit.code", i64::from(code));
            (!is_ok(code)).then_some("exit_code")
        }
        Ok(ProcessEnd::Signal(_)) => Some("signal"),
        Ok(ProcessEnd::TimedOut) => Some("timeout"),
        Err(_) => Some("not_started"),
    };
    record_error(&span, error);
    result
}

fn record_error(span: &Span, error: Option<&str>) {
    if let Some(error) = error {
        span.record("otel.status_code", "ERROR");
        span.record("error.type", error);
    }
}

/// A span for a request to the behavior server of this name.
fn server_span(turn: &Turn<'_>, server: &str, request: &'static str) -> Span {
    tracing::info_span!(
        "invoke_agent",
        otel.name = format_args!("invoke_agent {server}"),
        otel.kind = "client",
        otel.status_code = Empty,
        gen_ai.operation.name = "invoke_agent",
        gen_ai.provider.name = "behavior_server",
        gen_ai.agent.name = server,
        gen_ai.conversation.id = turn.session_id,
        bcc_script.request = request,
        error.type = Empty,
    )
}

/// Asks a server for actions, in a span that lasts until the answer is complete or given up.
pub(crate) async fn traced_actions(
    turn: &Turn<'_>,
    name: &str,
    server: &dyn BehaviorServer,
    observation: &Value,
) -> Result<Box<dyn ResponseStream>, ServerError> {
    let span = server_span(turn, name, "actions");
    let stream = server.actions(observation).instrument(span.clone()).await;
    record_error(&span, stream.as_ref().err().map(|error| error.code));
    Ok(match stream? {
        stream if span.is_disabled() => stream,
        stream => Box::new(TracedResponse { stream, span }),
    })
}

/// Asks a server for a judgement, in a span.
pub(crate) async fn traced_reflection(
    turn: &Turn<'_>,
    name: &str,
    server: &dyn BehaviorServer,
    observation: &Value,
) -> Result<Value, ServerError> {
    let span = server_span(turn, name, "reflection");
    let question = OpenQuestion::ask(turn, Asked::Server(name));
    let reflection = server.reflection(observation).instrument(span.clone()).await;
    drop(question);
    record_error(&span, reflection.as_ref().err().map(|error| error.code));
    reflection
}

/// Asks a server for a plan, in a span.
pub(crate) async fn traced_plan(
    turn: &Turn<'_>,
    name: &str,
    server: &dyn BehaviorServer,
    observation: &Value,
) -> Result<Value, ServerError> {
    let span = server_span(turn, name, "plan");
    let question = OpenQuestion::ask(turn, Asked::Server(name));
    let plan = server.plan(observation).instrument(span.clone()).await;
    drop(question);
    record_error(&span, plan.as_ref().err().map(|error| error.code));
    plan
}

/// An answer that is being received, and the span of its request.
struct TracedResponse {
    stream: Box<dyn ResponseStream>,
    span: Span,
}

#[async_trait]
impl ResponseStream for TracedResponse {
    async fn next(&mut self) -> Result<Option<BehaviorPiece>, ServerError> {
        let next = self.stream.next().instrument(self.span.clone()).await;
        record_error(&self.span, next.as_ref().err().map(|error| error.code));
        next
    }
}
