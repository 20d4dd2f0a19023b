//! The headers of all responses of pages.

use axum::http::{HeaderValue, header};
use axum::response::Response;

/// Adds the headers that keep a page to itself. `policy` is its content security policy.
pub(crate) fn with_page_headers(mut response: Response, policy: &'static str) -> Response {
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, policy),
        // The address of a talk is a secret, and that of the studio names sessions.
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    for (name, value) in [
        ("cross-origin-resource-policy", "same-origin"),
        ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
        ("x-robots-tag", "noindex, nofollow"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
