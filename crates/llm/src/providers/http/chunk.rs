//! What one piece of a server's answer says, in whatever protocol it said it; and the errors that servers report.

use serde_json::Value;

/// One event of a stream, or a whole answer.
#[derive(Debug, Default, PartialEq)]
pub struct Chunk {
    pub(crate) model: Option<String>,
    /// The next piece of the reply's text; empty for pieces of something else.
    pub(crate) text: String,
    /// The next piece of what a tool is called with: the reply, where it was asked for as a call of a tool.
    pub(crate) arguments: String,
    /// Whether the model is at work: it wrote text, or reasoning, which is otherwise ignored.
    pub(crate) working: bool,
    /// Whether it is what the protocol says; an object with nothing known in it is not.
    pub(crate) known: bool,
    /// Whether the model has ended its reply, for whatever reason.
    pub(crate) finished: bool,
    /// Whether it ended because it may not say more.
    pub(crate) cut_off: bool,
    pub(crate) done: bool,
    pub(crate) tokens_in: Option<u64>,
    /// How many of those the server had kept from an earlier call.
    pub(crate) tokens_cached: Option<u64>,
    pub(crate) tokens_out: Option<u64>,
    /// An error that the server reports in place of a reply.
    pub(crate) error: Option<ServerRejection>,
}

impl Chunk {
    /// What an event that reports an error, or an answer whose status is good, says in place of a reply.
    pub(crate) fn reported(answer: &Value) -> Self {
        let error = answer.get("error").filter(|error| !error.is_null()).unwrap_or(answer);
        Self { error: Some(refusal(error)), known: true, ..Self::default() }
    }
}

/// The JSON object that `data` is. Fields of it that have another type than they should count as absent: servers differ in every
/// detail.
pub(crate) fn object(data: &[u8]) -> Option<Value> {
    serde_json::from_slice(data).ok().filter(Value::is_object)
}

/// What stands at a JSON pointer; null when nothing does.
pub(crate) fn at<'v>(value: &'v Value, pointer: &str) -> &'v Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

/// A text that may be something else, which is none then; an empty one is none, too.
pub(crate) fn said(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A JSON document as text: a string holds it, or it stands there itself.
pub(crate) fn document(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => value.to_string(),
        _ => String::new(),
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ServerRejection {
    /// The HTTP status that it has, or stands for when that can be told.
    pub(crate) status: Option<u16>,
    pub(crate) message: String,
    /// The field of the request that it complains about, where it names one apart.
    pub(crate) about: String,
}

/// The error that a body reports, in any of the shapes that servers use.
pub(crate) fn read_error(body: &[u8]) -> ServerRejection {
    match serde_json::from_slice::<Value>(body) {
        Ok(Value::Object(fields)) => {
            let inner = ["error", "detail", "message"].iter().find_map(|key| fields.get(*key));
            inner.map(refusal).unwrap_or_default()
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

fn refusal(error: &Value) -> ServerRejection {
    // A list of what is wrong with single fields, as pydantic writes it: the first is told.
    let error = error.as_array().map_or(error, |list| list.first().unwrap_or(error));
    let word = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
    let message = match error {
        Value::String(message) => message.clone(),
        _ if word("message").is_empty() => word("msg").to_owned(),
        _ => word("message").to_owned(),
    };
    let about = match error.get("loc").and_then(Value::as_array) {
        Some(place) => place.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("."),
        None => word("param").to_owned(),
    };
    let number = ["code", "status", "status_code"].iter().find_map(|key| {
        let code = error.get(*key)?;
        code.as_u64().or_else(|| code.as_str()?.parse().ok())
    });
    let status = match number {
        Some(code) if (400..600).contains(&code) => u16::try_from(code).ok(),
        _ => stands_for(word("type")).or_else(|| stands_for(word("code"))),
    };
    ServerRejection { status, message, about }
}

/// The status that a kind of error has where it is no error inside a stream.
fn stands_for(kind: &str) -> Option<u16> {
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
    fn errors_are_read_in_every_shape_that_servers_write() {
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
            let expected = ServerRejection { status, message: "m".into(), about: String::new() };
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
    fn the_field_that_a_server_complains_about_is_read() {
        let table = [
            json!({ "error": { "message": "m", "param": "response_format.type" } }),
            json!({ "detail": [{ "loc": ["body", "response_format", "type", 0], "msg": "m", "input": "private" }] }),
        ];
        for (value, about) in table.iter().zip(["response_format.type", "body.response_format.type"]) {
            let read = read_error(value.to_string().as_bytes());
            assert_eq!((read.message.as_str(), read.about.as_str()), ("m", about), "{value}");
        }
    }

    #[test]
    fn a_document_is_a_string_or_stands_there_itself() {
        assert_eq!(document(&json!(r#"{"a": 1}"#)), r#"{"a": 1}"#);
        assert_eq!(document(&json!({ "b": 1, "a": [2] })), r#"{"b":1,"a":[2]}"#);
        assert_eq!(document(&json!(5)), "");
    }
}
