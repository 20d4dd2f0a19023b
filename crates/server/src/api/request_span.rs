//! The span of an HTTP request, with the names of OpenTelemetry (docs/observability.md). It names the route: the path contains ids.

use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode};
use tracing::Span;
use tracing::field::Empty;

/// Makes a span the child of a span of the client, which the values of `traceparent` and `tracestate` name.
pub type ContinueTrace = fn(span: &Span, traceparent: &str, tracestate: Option<&str>);

/// The routes that are asked all the time, by those who watch over the server.
const UNTRACED_ROUTES: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// The methods that have a name in traces. A client can send any word.
const METHODS: [Method; 9] = [
    Method::CONNECT,
    Method::DELETE,
    Method::GET,
    Method::HEAD,
    Method::OPTIONS,
    Method::PATCH,
    Method::POST,
    Method::PUT,
    Method::TRACE,
];

/// The span of a request to `route`, if there is such a route.
pub(super) fn request_span(request: &Request, route: Option<&str>, continue_trace: Option<ContinueTrace>) -> Span {
    if route.is_some_and(|route| UNTRACED_ROUTES.contains(&route)) {
        return Span::none();
    }
    let method = METHODS.iter().find(|method| *method == request.method());
    let span = tracing::info_span!(
        "request",
        otel.name = format_args!(
            "{}{}{}",
            method.map_or("HTTP", Method::as_str),
            if route.is_some() { " " } else { "" },
            route.unwrap_or_default()
        ),
        otel.kind = "server",
        otel.status_code = Empty,
        http.request.method = method.map_or("_OTHER", Method::as_str),
        http.route = route,
        http.response.status_code = Empty,
        url.scheme = "http",
        error.type = Empty,
    );
    if let Some(continue_trace) = continue_trace
        && !span.is_disabled()
        && let Some(parent) = header(request.headers(), "traceparent")
    {
        continue_trace(&span, parent, header(request.headers(), "tracestate"));
    }
    span
}

/// Records the status of the response.
pub(super) fn record_response(span: &Span, status: StatusCode) {
    if span.is_disabled() {
        return;
    }
    span.record("http.response.status_code", i64::from(status.as_u16()));
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
        span.record("error.type", status.as_str());
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
