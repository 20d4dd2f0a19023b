//! One part of a response, independent of the protocol, and the errors that servers report.

use serde_json::Value;

/// The reasons for the end of a reply that the model refused or that a filter removed, in the words of different servers.
const REFUSALS: [&str; 6] = ["content_filter", "refusal", "safety", "prohibited_content", "blocklist", "sensitive"];

const MAX_FINISH_REASON_CHARS: usize = 64;

/// One event of a stream, or a complete response.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Chunk {
    pub(crate) model: Option<String>,
    /// The next piece of the reply's text; empty for other parts.
    pub(crate) text: String,
    /// The next piece of the arguments of a tool call, which are the reply if it was requested as a tool call.
    pub(crate) arguments: String,
    /// Whether the model generated text or reasoning; reasoning is otherwise ignored.
    pub(crate) is_working: bool,
    /// Whether it contains a known part of the protocol.
    pub(crate) known: bool,
    /// Whether the reply has ended, for any reason.
    pub(crate) finished: bool,
    /// Whether it ended because of the token limit.
    pub(crate) cut_off: bool,
    /// Why it ended, in the words of the server.
    pub(crate) finish_reason: Option<String>,
    /// Whether the model refused to answer, or a filter removed the answer.
    pub(crate) refused: bool,
    pub(crate) done: bool,
    pub(crate) tokens_in: Option<u64>,
    /// How many of those were cached by the server.
    pub(crate) tokens_cached: Option<u64>,
    pub(crate) tokens_out: Option<u64>,
    /// An error that the server reports instead of a reply.
    pub(crate) error: Option<ServerRejection>,
}

impl Chunk {
    /// The error in an event, or in a response with a success status.
    pub(crate) fn reported(answer: &Value) -> Self {
        let error = answer.get("error").filter(|error| !error.is_null()).unwrap_or(answer);
        Self { error: Some(parse_error(error)), known: true, ..Self::default() }
    }
}

impl Chunk {
    /// Sets the reason for the end. Null means that the reply has not ended, and so do an empty text and the text `null`, which some
    /// servers write in every chunk but the last.
    pub(crate) fn finish(&mut self, reason: &Value, cut_off: &[&str]) {
        let Some(word) = reason.as_str() else {
            self.finished = !reason.is_null();
            return;
        };
        let lower = word.trim().to_ascii_lowercase();
        self.finished = !lower.is_empty() && lower != "null";
        if !self.finished {
            return;
        }
        self.cut_off = cut_off.contains(&lower.as_str());
        self.refused |= REFUSALS.contains(&lower.as_str());
        self.finish_reason = Some(word.chars().take(MAX_FINISH_REASON_CHARS).collect());
    }
}

/// Parses a JSON object. Fields of an unexpected type are treated as absent, because servers differ in details.
pub(crate) fn object(data: &[u8]) -> Option<Value> {
    serde_json::from_slice(data).ok().filter(Value::is_object)
}

/// The value at a JSON pointer; null if there is none.
pub(crate) fn at<'v>(value: &'v Value, pointer: &str) -> &'v Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

/// The text of a string; `None` for empty strings and other values.
pub(crate) fn non_empty_text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A JSON document as text, which may be encoded as a string.
pub(crate) fn json_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => value.to_string(),
        _ => String::new(),
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ServerRejection {
    /// The HTTP status, or the equivalent status if it can be determined.
    pub(crate) status: Option<u16>,
    pub(crate) message: String,
    /// The field of the request that it refers to, if it is reported separately.
    pub(crate) field: String,
}

/// Parses the error in a body, in any of the formats that servers use.
pub(crate) fn read_error(body: &[u8]) -> ServerRejection {
    match serde_json::from_slice::<Value>(body) {
        Ok(Value::Object(fields)) => {
            let inner = ["error", "detail", "message"].iter().find_map(|key| fields.get(*key));
            inner.map(parse_error).unwrap_or_default()
        }
        Ok(Value::String(message)) => ServerRejection { message, ..ServerRejection::default() },
        Ok(_) => ServerRejection::default(),
        Err(_) => {
            let text = String::from_utf8_lossy(body);
            let page = text.trim_start().starts_with('<');
            ServerRejection {
                message: if page { String::new() } else { text.trim().to_owned() },
                ..ServerRejection::default()
            }
        }
    }
}

fn parse_error(error: &Value) -> ServerRejection {
    // A list of errors of single fields, as written by pydantic: the first is used.
    let error = error.as_array().map_or(error, |list| list.first().unwrap_or(error));
    let text_of = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
    let message = match error {
        Value::String(message) => message.clone(),
        _ if text_of("message").is_empty() => text_of("msg").to_owned(),
        _ => text_of("message").to_owned(),
    };
    let field = match error.get("loc").and_then(Value::as_array) {
        Some(place) => place.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("."),
        None => text_of("param").to_owned(),
    };
    let number = ["code", "status", "status_code"].iter().find_map(|key| {
        let code = error.get(*key)?;
        code.as_u64().or_else(|| code.as_str()?.parse().ok())
    });
    let status = match number {
        Some(code) if (400..600).contains(&code) => u16::try_from(code).ok(),
        _ => status_of(text_of("type")).or_else(|| status_of(text_of("code"))),
    };
    ServerRejection { status, message, field }
}

/// The HTTP status that corresponds to a kind of error.
fn status_of(kind: &str) -> Option<u16> {
    Some(match kind {
        "invalid_request_error" => 400,
        "authentication_error" | "invalid_api_key" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" | "model_not_found" => 404,
        "request_too_large" => 413,
        "rate_limit_error" | "rate_limit_exceeded" => 429,
        "server_error" | "api_error" => 500,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_are_parsed_in_every_format_of_servers() {
        let table = [
            (json!({ "error": { "message": "m", "code": 503 } }), Some(503)),
            (json!({ "error": { "message": "m", "code": "429" } }), Some(429)),
            (json!({ "error": { "message": "m", "type": "server_error", "code": null } }), Some(500)),
            (json!({ "type": "error", "error": { "type": "overloaded_error", "message": "m" } }), Some(529)),
            (json!({ "type": "error", "error": { "type": "timeout_error", "message": "m" } }), Some(504)),
            (json!({ "error": { "message": "m", "type": "invalid_request_error" } }), Some(400)),
            (json!({ "error": { "message": "m", "code": "rate_limit_exceeded" } }), Some(429)),
            (json!({ "error": { "message": "m", "code": 7 } }), None),
            (json!({ "error": "m" }), None),
        ];
        for (value, status) in table {
            let expected = ServerRejection { status, message: "m".into(), field: String::new() };
            let body = value.to_string();
            assert_eq!(read_error(body.as_bytes()), expected, "{value}");
            assert_eq!(Chunk::reported(&value).error, Some(expected), "{value}");
        }
        let bare = Chunk::reported(&json!({ "object": "error", "message": "m", "code": 400 })).error.unwrap();
        assert_eq!((bare.status, bare.message.as_str()), (Some(400), "m"));
        let bodies = [
            ("{\"detail\": \"m\"}", "m"),
            ("{\"message\": \"m\"}", "m"),
            ("m\n", "m"),
            ("<html>m", ""),
            ("", ""),
            ("[]", ""),
            ("{\"detail\": []}", ""),
        ];
        for (body, message) in bodies {
            assert_eq!(read_error(body.as_bytes()).message, message, "{body}");
        }
    }

    #[test]
    fn the_field_of_an_error_is_parsed() {
        let table = [
            json!({ "error": { "message": "m", "param": "response_format.type" } }),
            json!({ "detail": [{ "loc": ["body", "response_format", "type", 0], "msg": "m", "input": "private" }] }),
        ];
        for (value, field) in table.iter().zip(["response_format.type", "body.response_format.type"]) {
            let read = read_error(value.to_string().as_bytes());
            assert_eq!((read.message.as_str(), read.field.as_str()), ("m", field), "{value}");
        }
    }

    #[test]
    fn a_document_may_be_encoded_as_a_string() {
        assert_eq!(json_text(&json!(r#"{"a": 1}"#)), r#"{"a": 1}"#);
        assert_eq!(json_text(&json!({ "b": 1, "a": [2] })), r#"{"b":1,"a":[2]}"#);
        assert_eq!(json_text(&json!(5)), "");
    }
}
