//! The span of one request to a model, with the names of OpenTelemetry (docs/observability.md). It contains no text of prompts or replies.

use std::future::Future;

use tracing::field::Empty;
use tracing::{Instrument, Span};

use crate::model::error::ModelError;
use crate::model::reply::ModelReply;
use crate::model::request::Task;

/// The maximum length of a finish reason that is recorded.
const MAX_REASON_BYTES: usize = 40;

/// Who is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CalledModel<'a> {
    /// The kind of the provider: `openai`.
    pub(crate) provider: &'static str,
    /// The model that is requested.
    pub(crate) model: &'a str,
    /// The host and the port of its server.
    pub(crate) server: Option<(&'a str, Option<u16>)>,
}

/// What a server reported about a reply.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReportedUsage<'a> {
    pub(crate) model: Option<&'a str>,
    pub(crate) tokens_in: Option<u64>,
    pub(crate) tokens_cached: Option<u64>,
    pub(crate) tokens_out: Option<u64>,
    pub(crate) finish_reason: Option<&'a str>,
}

/// A span for a request to `called`. `sent` counts the requests of the call so far, starting at 1.
pub(crate) fn call_span(called: CalledModel<'_>, task: &Task, sent: u32) -> Span {
    let CalledModel { provider, model, server } = called;
    tracing::info_span!(
        "chat",
        otel.name = format_args!("chat {model}"),
        otel.kind = "client",
        otel.status_code = Empty,
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = provider,
        gen_ai.request.model = model,
        gen_ai.conversation.id = (!task.session.is_empty()).then_some(task.session.as_str()),
        gen_ai.response.model = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        server.address = server.map(|(host, _)| host),
        server.port = server.and_then(|(_, port)| port).map(i64::from),
        error.type = Empty,
        bcc_script.purpose = task.purpose.name(),
        http.request.resend_count = (sent > 1).then(|| i64::from(sent) - 1),
    )
}

/// A number for a span. One that is not an `i64` becomes a text in traces.
pub fn span_number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Makes a call of a provider without a server, in a span.
pub(crate) async fn local_call(
    provider: &'static str,
    task: &Task,
    call: impl Future<Output = Result<ModelReply, ModelError>>,
) -> Result<ModelReply, ModelError> {
    let span = call_span(CalledModel { provider, model: provider, server: None }, task, 1);
    let end = call.instrument(span.clone()).await;
    // Nothing was used: recorded and estimated tokens do not count.
    record_end(
        &span,
        end.as_ref().map(|reply| ReportedUsage { model: Some(&reply.model), ..ReportedUsage::default() }),
    );
    end
}

/// Records how the request ended.
pub(crate) fn record_end(span: &Span, end: Result<ReportedUsage<'_>, &ModelError>) {
    if span.is_disabled() {
        return;
    }
    match end {
        Ok(ReportedUsage { model, tokens_in, tokens_cached, tokens_out, finish_reason }) => {
            span.record("gen_ai.response.model", model);
            span.record("gen_ai.usage.input_tokens", tokens_in.map(span_number));
            span.record("gen_ai.usage.cache_read.input_tokens", tokens_cached.map(span_number));
            span.record("gen_ai.usage.output_tokens", tokens_out.map(span_number));
            span.record("gen_ai.response.finish_reasons", finish_reason.filter(|reason| is_reason(reason)));
        }
        Err(error) => {
            span.record("otel.status_code", "ERROR");
            match error {
                ModelError::Http { status, .. } => span.record("error.type", tracing::field::display(status)),
                error => span.record("error.type", error.kind()),
            };
        }
    }
}

/// Whether this is a reason, and not some text of a server.
fn is_reason(reason: &str) -> bool {
    reason.len() <= MAX_REASON_BYTES && reason.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}
