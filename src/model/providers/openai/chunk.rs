//! What is received: one chunk of a stream, or a whole answer, which have nearly the same shape.
//!
//! Servers differ in every detail, so only what is used is looked at, and a field of another type counts as absent.

use serde_json::Value;

/// What one piece of the server's answer says.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Chunk {
    /// The model that answers, when it says so.
    pub(crate) model: Option<String>,
    /// The next piece of the reply's text; empty for pieces of something else.
    pub(crate) text: String,
    /// Whether the model is at work: it wrote text, or reasoning, which is otherwise ignored.
    pub(crate) working: bool,
    /// Whether it has an entry for the reply.
    pub(crate) choice: bool,
    /// Whether the reply ends here, for whatever reason.
    pub(crate) finished: bool,
    /// Tokens of the prompt, by the server's count.
    pub(crate) tokens_in: Option<u64>,
    /// Tokens of the reply, by the server's count.
    pub(crate) tokens_out: Option<u64>,
    /// An error that the server reports in place of a reply.
    pub(crate) error: Option<Refusal>,
}

/// An error object of the server.
#[derive(Debug, PartialEq)]
pub(crate) struct Refusal {
    /// The HTTP status that it stands for, when that can be told.
    pub(crate) status: Option<u16>,
    /// Its message; may be empty.
    pub(crate) message: String,
}

/// Reads one piece. `None` when it is no JSON object.
pub(crate) fn read(data: &[u8]) -> Option<Chunk> {
    let Ok(Value::Object(fields)) = serde_json::from_slice(data) else { return None };
    let mut chunk = Chunk { model: text_of(fields.get("model")), ..Chunk::default() };
    if let Some(error) = fields.get("error").filter(|error| !error.is_null()) {
        chunk.error = Some(refusal(error));
    } else if fields.get("object").is_some_and(|object| object == "error") {
        chunk.error = Some(refusal(&Value::Object(fields.clone())));
    }
    if let Some(usage) = fields.get("usage") {
        chunk.tokens_in = usage.get("prompt_tokens").and_then(Value::as_u64);
        chunk.tokens_out = usage.get("completion_tokens").and_then(Value::as_u64);
    }
    let choices = fields.get("choices").and_then(Value::as_array);
    let first = choices.into_iter().flatten().find(|choice| choice.get("index").is_none_or(|index| index == 0));
    if let Some(choice) = first {
        chunk.choice = true;
        chunk.finished = choice.get("finish_reason").is_some_and(|reason| !reason.is_null());
        if let Some(said) = choice.get("delta").or_else(|| choice.get("message")) {
            chunk.text = content(said.get("content"));
            let thought = ["reasoning_content", "reasoning"].iter().any(|key| text_of(said.get(*key)).is_some());
            chunk.working = thought || !chunk.text.is_empty();
        }
    }
    Some(chunk)
}

/// The error that a body reports, in any of the shapes that servers use.
pub(crate) fn read_error(body: &[u8]) -> Refusal {
    match serde_json::from_slice::<Value>(body) {
        Ok(Value::Object(fields)) => {
            let inner = ["error", "detail", "message"].iter().find_map(|key| fields.get(*key));
            inner.map_or_else(|| Refusal { status: None, message: String::new() }, refusal)
        }
        Ok(Value::String(message)) => Refusal { status: None, message },
        Ok(_) => Refusal { status: None, message: String::new() },
        Err(_) => {
            let text = String::from_utf8_lossy(body);
            let page = text.trim_start().starts_with('<');
            Refusal { status: None, message: if page { String::new() } else { text.trim().to_owned() } }
        }
    }
}

fn refusal(error: &Value) -> Refusal {
    let message = match error {
        Value::String(message) => message.clone(),
        other => text_of(other.get("message")).unwrap_or_default(),
    };
    let word = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
    let number = ["code", "status", "status_code"].iter().find_map(|key| {
        let code = error.get(*key)?;
        code.as_u64().or_else(|| code.as_str()?.parse().ok())
    });
    let status = match (number, word("type"), word("code")) {
        (Some(code), ..) if (400..600).contains(&code) => u16::try_from(code).ok(),
        (_, "rate_limit_error", _) | (_, _, "rate_limit_exceeded") => Some(429),
        (_, "overloaded_error", _) => Some(529),
        (_, "server_error" | "api_error", _) => Some(500),
        _ => None,
    };
    Refusal { status, message }
}

/// The text of a `content`: a string, or a list of parts of which those of type `text` count.
fn content(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts
            .iter()
            .filter(|part| part.get("type").is_none_or(|kind| kind == "text"))
            .filter_map(|part| part.get("text").and_then(Value::as_str))
            .collect(),
        _ => String::new(),
    }
}

/// A string that is not empty.
fn text_of(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn chunk(value: &Value) -> Chunk {
        read(value.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn text_is_found_in_every_shape_that_servers_write() {
        let table = [
            (json!({ "choices": [{ "index": 0, "delta": { "content": "您好" } }] }), "您好"),
            (json!({ "choices": [{ "delta": { "role": "assistant", "content": null } }] }), ""),
            (json!({ "choices": [{ "message": { "role": "assistant", "content": "您好" } }] }), "您好"),
            (json!({ "choices": [{ "index": 1, "delta": { "content": "other" } }] }), ""),
            (
                json!({ "choices": [{ "delta": { "content": [
                { "type": "thinking", "text": "hm" }, { "type": "text", "text": "a" }, { "type": "text", "text": "b" },
            ] } }] }),
                "ab",
            ),
            (json!({ "choices": [{ "delta": { "content": 5 } }] }), ""),
            (json!({ "choices": null }), ""),
            (json!({ "choices": "x", "usage": "y", "model": 5 }), ""),
            (json!({}), ""),
        ];
        for (value, expected) in table {
            assert_eq!(chunk(&value).text, expected, "{value}");
        }
    }

    #[test]
    fn reasoning_shows_that_the_model_works_but_is_no_text() {
        for key in ["reasoning_content", "reasoning"] {
            let read = chunk(&json!({ "choices": [{ "delta": { key: "let me think" } }] }));
            assert!(read.working && read.text.is_empty(), "{key}");
        }
        assert!(!chunk(&json!({ "choices": [{ "delta": { "role": "assistant", "content": "" } }] })).working);
    }

    #[test]
    fn usage_and_model_come_along_when_they_are_there() {
        let read = chunk(&json!({ "model": "qwen3:8b", "choices": [],
            "usage": { "prompt_tokens": 12, "completion_tokens": 7, "total_tokens": 19 } }));
        assert_eq!((read.model.as_deref(), read.tokens_in, read.tokens_out), (Some("qwen3:8b"), Some(12), Some(7)));
        assert!(!read.choice && !read.finished);
    }

    #[test]
    fn errors_are_read_in_every_shape_that_servers_write() {
        let table = [
            (json!({ "error": { "message": "m", "code": 503 } }), Some(503)),
            (json!({ "error": { "message": "m", "code": "429" } }), Some(429)),
            (json!({ "error": { "message": "m", "type": "server_error", "code": null } }), Some(500)),
            (json!({ "error": { "message": "m", "type": "overloaded_error" } }), Some(529)),
            (json!({ "error": { "message": "m", "code": "rate_limit_exceeded" } }), Some(429)),
            (json!({ "error": { "message": "m", "code": 7 } }), None),
            (json!({ "error": "m" }), None),
        ];
        for (value, status) in table {
            let expected = Refusal { status, message: "m".into() };
            assert_eq!(read_error(value.to_string().as_bytes()), expected, "{value}");
            assert_eq!(chunk(&value).error, Some(expected), "{value}");
        }
        let bare = json!({ "object": "error", "message": "m", "code": 400 });
        assert_eq!(chunk(&bare).error, Some(Refusal { status: Some(400), message: "m".into() }));
        let bodies = [
            ("{\"detail\": \"m\"}", "m"),
            ("{\"message\": \"m\"}", "m"),
            ("m\n", "m"),
            ("<html>m", ""),
            ("", ""),
            ("[]", ""),
        ];
        for (body, message) in bodies {
            assert_eq!(read_error(body.as_bytes()).message, message, "{body}");
        }
        assert_eq!(chunk(&json!({ "error": null })).error, None);
    }

    #[test]
    fn what_is_no_object_is_no_chunk() {
        for data in [&b"[]"[..], b"null", b"{", b"", b"\xFF\xFE", b"{\"a\": \"\xFF\"}"] {
            assert_eq!(read(data), None);
        }
        assert_eq!(read("[".repeat(100_000).as_bytes()), None);
    }
}
