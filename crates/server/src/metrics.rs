//! What `/metrics` shows, in the text format of OpenMetrics.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// The upper bounds of the durations of turns, in seconds: from a turn without a model to a slow one.
const SECONDS: [f64; 12] = [0.001, 0.005, 0.02, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0];

/// The route and the status of a response. No path: it contains ids.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct ResponseLabels {
    pub(crate) route: String,
    pub(crate) status: u16,
}

/// The counters of a server.
pub struct Metrics {
    registry: Registry,
    pub(crate) responses: Family<ResponseLabels, Counter>,
    pub(crate) live_sessions: Gauge,
    pub(crate) streams: Gauge,
    pub(crate) turns: Counter,
    pub(crate) failed_turns: Counter,
    pub(crate) turn_seconds: Histogram,
    pub(crate) rejected: Counter<u64, AtomicU64>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("bcc_script");
        let metrics = Self {
            responses: Family::default(),
            live_sessions: Gauge::default(),
            streams: Gauge::default(),
            turns: Counter::default(),
            failed_turns: Counter::default(),
            turn_seconds: Histogram::new(SECONDS),
            rejected: Counter::default(),
            registry: Registry::default(),
        };
        registry.register("responses", "Responses by route and status", metrics.responses.clone());
        registry.register("live_sessions", "Sessions in memory", metrics.live_sessions.clone());
        registry.register("event_streams", "Open streams of events", metrics.streams.clone());
        registry.register("turns", "Turns that ended", metrics.turns.clone());
        registry.register("failed_turns", "Turns that the server could not end", metrics.failed_turns.clone());
        registry.register("turn_seconds", "Durations of turns, with their model calls", metrics.turn_seconds.clone());
        registry.register("rejected_requests", "Requests above the limit of a client", metrics.rejected.clone());
        Self { registry, ..metrics }
    }
}

impl Metrics {
    /// All of them as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a text does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
