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
        if let Some(note) = missing_traces(environment) {
            report::note(&note);
        }
        Self
    }

    pub fn layer(&self) -> Option<Identity> {
        None
    }

    pub fn end(self) {}
}

/// Says that there are no traces, if the environment names a collector, even one that cannot be used.
fn missing_traces(environment: &Environment) -> Option<Message> {
    let is_wanted = !matches!(trace_destination(environment), Ok(None));
    is_wanted.then(|| Message::word("traces are not exported: the program is built without the feature `otel`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_traces_says_so_if_there_should_be_some() {
        let note = |variables: &[(&'static str, &str)]| {
            missing_traces(&Environment::of(variables.iter().map(|(name, value)| (*name, (*value).to_owned()))))
        };
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318");
        assert!(note(&[endpoint]).unwrap().to_string().contains("built without the feature `otel`"));
        assert!(note(&[endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).is_some());
        for variables in
            [&[][..], &[endpoint, ("OTEL_SDK_DISABLED", "true")], &[endpoint, ("OTEL_TRACES_EXPORTER", "none")]]
        {
            assert_eq!(note(variables), None, "{variables:?}");
        }
    }
}
