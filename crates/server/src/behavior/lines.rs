//! Answers of one JSON object a line.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

/// Their content type.
pub(crate) const LINES: &str = "application/x-ndjson";

/// One object a line, each ended by a newline.
pub(crate) fn lines(objects: impl IntoIterator<Item = Value>) -> Response {
    let mut text = String::new();
    for object in objects {
        text.push_str(&object.to_string());
        text.push('\n');
    }
    ([(header::CONTENT_TYPE, LINES)], text).into_response()
}
