//! What the program does with traces if it is built without the feature `otel`: nothing.

use bcc_engine::environment::Environment;
use bcc_lang::message::message::Message;
use tracing_subscriber::layer::Identity;

use crate::cli::report;
use crate::cli::traces::destination::trace_destination;

pub struct NoTraces;

impl NoTraces {
    /// Says that there are no traces, if there should be some.
    pub fn start(environment: &Environment, _warns_at_once: bool) -> Self {
        if !matches!(trace_destination(environment), Ok(None)) {
            report::note(&Message::word("traces are not exported: the program is built without the feature `otel`"));
        }
        Self
    }

    pub fn layer(&self) -> Option<Identity> {
        None
    }

    pub fn end(self) {}
}
