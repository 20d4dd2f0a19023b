//! Starts and ends the export of traces. Spans are exported by a thread of their own, in batches, so that no turn waits for a collector.

use std::sync::Arc;
use std::time::Duration;

use bcc_engine::environment::Environment;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{TraceContextExt, TracerProvider};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{SpanExporter as OtlpExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Level, Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::registry::LookupSpan;

use crate::cli::report;
use crate::cli::traces::collector_client::CollectorClient;
use crate::cli::traces::destination::{TraceDestination, public_address, trace_destination};
use crate::cli::traces::exporter::TraceExporter;
use crate::cli::traces::failures::ExportFailures;

/// The name of the program in traces, unless `OTEL_SERVICE_NAME` is set.
const SERVICE_NAME: &str = "bcc-script";

/// How long the last spans may take to be exported when the program ends.
const FLUSH_TIME: Duration = Duration::from_secs(2);

/// The traces of the program, if the environment names a collector.
pub struct Traces(Option<Export>);

struct Export {
    provider: SdkTracerProvider,
    failures: Arc<ExportFailures>,
}

impl Traces {
    /// Starts to export traces to the collector that the environment names. If they cannot be exported, this is a warning, which is
    /// written at once or by [`Traces::end`].
    pub fn start(environment: &Environment, warns_at_once: bool) -> Self {
        let destination = match trace_destination(environment) {
            Ok(Some(destination)) => destination,
            Ok(None) => return Self(None),
            Err(warning) => {
                report::note(&warning);
                return Self(None);
            }
        };
        let address = public_address(&destination.endpoint);
        let failures = Arc::new(ExportFailures::new(address.clone(), warns_at_once));
        match provider(environment, destination, &failures) {
            Ok(provider) => Self(Some(Export { provider, failures })),
            Err(reason) => {
                report::note(&msg!("traces are not exported to {address}: {reason}"));
                Self(None)
            }
        }
    }

    /// What takes the spans of the program, whatever the log contains. Events are not taken: they may contain texts.
    pub fn layer<S: Subscriber + for<'a> LookupSpan<'a>>(&self) -> Option<impl Layer<S> + use<S>> {
        let Export { provider, .. } = self.0.as_ref()?;
        let scope = InstrumentationScope::builder(SERVICE_NAME).with_version(env!("CARGO_PKG_VERSION")).build();
        let layer = tracing_opentelemetry::layer()
            .with_tracer(provider.tracer_with_scope(scope))
            .with_location(false)
            .with_target(false)
            .with_threads(false)
            .with_tracked_inactivity(false);
        let is_own_span =
            filter_fn(|span| span.is_span() && *span.level() <= Level::INFO && span.target().starts_with("bcc_"));
        Some(layer.with_filter(is_own_span.with_max_level_hint(LevelFilter::INFO)))
    }

    /// Exports the last spans, within [`FLUSH_TIME`].
    pub fn end(self) {
        let Some(Export { provider, failures }) = self.0 else { return };
        if provider.shutdown_with_timeout(FLUSH_TIME).is_err() {
            failures.late();
        }
        failures.report();
    }
}

fn provider(
    environment: &Environment,
    destination: TraceDestination,
    failures: &Arc<ExportFailures>,
) -> Result<SdkTracerProvider, Message> {
    let client = CollectorClient::new(destination.clone(), Arc::clone(failures))?;
    let otlp = OtlpExporter::builder()
        .with_http()
        .with_http_client(client)
        .with_endpoint(destination.endpoint)
        .with_timeout(destination.timeout)
        .build()
        .map_err(|_| Message::word("one of the variables OTEL_EXPORTER_OTLP_… is invalid"))?;
    let exporter = TraceExporter { otlp, failures: Arc::clone(failures) };
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource(environment)).build())
}

/// What describes the program in traces; the rest is in `OTEL_RESOURCE_ATTRIBUTES`.
fn resource(environment: &Environment) -> Resource {
    let is_set = |name: &str| environment.get(name).is_some_and(|value| !value.is_empty());
    let attributes = environment.get("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    let is_named = attributes.split(',').any(|attribute| attribute.trim_start().starts_with("service.name="));
    let resource = Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    match is_named || is_set("OTEL_SERVICE_NAME") {
        true => resource.build(),
        false => resource.with_service_name(SERVICE_NAME).build(),
    }
}

/// The headers of a request that name a trace.
struct TraceHeaders<'a> {
    parent: &'a str,
    state: Option<&'a str>,
}

impl Extractor for TraceHeaders<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            "traceparent" => Some(self.parent),
            "tracestate" => self.state,
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent", "tracestate"]
    }
}

/// Makes `span` a child of the span that the headers name. Invalid headers are ignored.
pub fn continue_trace(span: &Span, parent: &str, state: Option<&str>) {
    let context = TraceContextPropagator::new().extract(&TraceHeaders { parent, state });
    if context.span().span_context().is_valid() {
        // An error means that the span is not exported.
        let _ = span.set_parent(context);
    }
}
