//! Exports spans over OTLP, and notes what fails.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::{Array, Value};
use opentelemetry_otlp::SpanExporter as OtlpExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

use crate::cli::traces::failures::ExportFailures;

/// The attributes that are lists by convention. A span of `tracing` has none.
const LISTS: [&str; 1] = ["gen_ai.response.finish_reasons"];

#[derive(Debug)]
pub(super) struct TraceExporter {
    pub(super) otlp: OtlpExporter,
    pub(super) failures: Arc<ExportFailures>,
}

impl SpanExporter for TraceExporter {
    async fn export(&self, mut batch: Vec<SpanData>) -> OTelSdkResult {
        batch.iter_mut().for_each(make_lists);
        let exported = self.otlp.export(batch).await;
        if exported.is_err() {
            self.failures.export_failed();
        }
        exported
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.otlp.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.otlp.set_resource(resource);
    }
}

fn make_lists(span: &mut SpanData) {
    for attribute in &mut span.attributes {
        if LISTS.contains(&attribute.key.as_str())
            && let Value::String(value) = &attribute.value
        {
            attribute.value = Value::Array(Array::String(vec![value.clone()]));
        }
    }
}
