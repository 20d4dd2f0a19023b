//! Traces for a collector of OpenTelemetry (docs/observability.md). [`destination`] says where they go, and [`traces`] exports them, if the
//! program is built with the feature `otel`.

#[cfg(feature = "otel")]
mod collector_client;
pub mod destination;
#[cfg(feature = "otel")]
mod exporter;
#[cfg(feature = "otel")]
mod failures;
#[cfg(feature = "otel")]
pub mod traces;
#[cfg(any(test, not(feature = "otel")))]
pub mod without_otel;
