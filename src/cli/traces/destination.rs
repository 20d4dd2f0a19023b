//! Where traces go: the standard environment variables of OpenTelemetry.

use std::time::Duration;

use bcc_engine::environment::Environment;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;

/// The path of a collector for traces, below `OTEL_EXPORTER_OTLP_ENDPOINT`.
const TRACES_PATH: &str = "/v1/traces";

/// The only protocol of the program.
const PROTOCOL: &str = "http/protobuf";

/// How long a request to a collector may take if nothing is configured.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// A collector, to which traces are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceDestination {
    /// The address for traces. It may contain a password.
    pub endpoint: String,
    /// How long a request may take.
    pub timeout: Duration,
}

/// The collector that the environment names, if any. The variables for traces precede those for all signals; an empty one counts as not
/// set.
///
/// # Errors
/// When traces are to be exported in a way that the program does not know.
pub fn trace_destination(environment: &Environment) -> Result<Option<TraceDestination>, Message> {
    let variable = |name: &str| environment.get(name).map(str::trim).filter(|value| !value.is_empty());
    let of_traces = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").map(str::to_owned);
    let of_all =
        || variable("OTEL_EXPORTER_OTLP_ENDPOINT").map(|all| format!("{}{TRACES_PATH}", all.trim_end_matches('/')));
    let is_disabled = variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let Some(endpoint) = of_traces.or_else(of_all).filter(|_| !is_disabled) else { return Ok(None) };
    match variable("OTEL_TRACES_EXPORTER") {
        None | Some("otlp") => {}
        Some("none") => return Ok(None),
        Some(other) => {
            return Err(msg!("traces are not exported: OTEL_TRACES_EXPORTER must be otlp or none, not {other}"));
        }
    }
    let protocol = variable("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL").or_else(|| variable("OTEL_EXPORTER_OTLP_PROTOCOL"));
    if let Some(other) = protocol.filter(|protocol| *protocol != PROTOCOL) {
        return Err(msg!("traces are not exported: OTEL_EXPORTER_OTLP_PROTOCOL must be {PROTOCOL}, not {other}"));
    }
    let timeout = variable("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT").or_else(|| variable("OTEL_EXPORTER_OTLP_TIMEOUT"));
    let timeout = timeout.and_then(|milliseconds| milliseconds.parse().ok()).map(Duration::from_millis);
    Ok(Some(TraceDestination { endpoint, timeout: timeout.unwrap_or(DEFAULT_TIMEOUT) }))
}

/// The scheme and the host of an address, without what may be secret.
pub fn public_address(endpoint: &str) -> String {
    let (scheme, rest) = endpoint.split_once("://").unwrap_or(("", endpoint));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    match scheme {
        "" => host.to_owned(),
        scheme => format!("{scheme}://{host}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn destination(variables: &[(&'static str, &str)]) -> Result<Option<String>, String> {
        let environment = Environment::of(variables.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let found = trace_destination(&environment).map_err(|error| error.to_string())?;
        Ok(found.map(|found| found.endpoint))
    }

    #[test]
    fn the_variables_for_traces_precede_those_for_all_signals() {
        const ALL: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/");
        const TRACES: (&str, &str) = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t:1/x");
        let found = |address: &str| Ok(Some(address.to_owned()));
        assert_eq!(destination(&[]), Ok(None));
        assert_eq!(destination(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]), Ok(None));
        assert_eq!(destination(&[ALL]), found("http://c:4318/v1/traces"));
        assert_eq!(destination(&[ALL, TRACES]), found("http://t:1/x"));
        assert_eq!(destination(&[ALL, ("OTEL_SDK_DISABLED", "True")]), Ok(None));
        assert_eq!(destination(&[ALL, ("OTEL_SDK_DISABLED", "1")]), found("http://c:4318/v1/traces"));
        assert_eq!(destination(&[ALL, ("OTEL_TRACES_EXPORTER", "none")]), Ok(None));
        assert!(destination(&[ALL, ("OTEL_TRACES_EXPORTER", "zipkin")]).unwrap_err().contains("zipkin"));
        assert!(destination(&[ALL, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).unwrap_err().contains("grpc"));
        let overridden =
            [ALL, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", PROTOCOL)];
        assert_eq!(destination(&overridden), found("http://c:4318/v1/traces"));
    }

    #[test]
    fn what_may_be_secret_is_not_shown() {
        for (endpoint, shown) in [
            ("http://user:word@host:4318/v1/traces?key=x", "http://host:4318"),
            ("https://host", "https://host"),
            ("host:4318/v1", "host:4318"),
        ] {
            assert_eq!(public_address(endpoint), shown);
        }
    }
}
