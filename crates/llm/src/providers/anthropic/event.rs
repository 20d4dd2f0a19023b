//! Parses an event of a stream or a complete message.

use serde_json::Value;

use crate::providers::http::chunk::{Chunk, at, json_text, non_empty_text, object};

/// Parses an event or a message. `None` if it is not a JSON object.
pub(crate) fn read(data: &[u8]) -> Option<Chunk> {
    let event = object(data)?;
    let kind = at(&event, "/type").as_str().unwrap_or_default();
    if !at(&event, "/error").is_null() || kind == "error" {
        return Some(Chunk::reported(&event));
    }
    let mut chunk = Chunk { known: true, ..Chunk::default() };
    match kind {
        "message_start" => {
            chunk.model = non_empty_text(at(&event, "/message/model"));
            set_usage(&mut chunk, at(&event, "/message/usage"));
        }
        "content_block_start" => {
            // A block usually starts empty. The input of a tool call starts as an empty object, which is not part of it.
            let block = at(&event, "/content_block");
            chunk.text =
                non_empty_text(at(block, "/text")).filter(|_| at(block, "/type") == "text").unwrap_or_default();
            chunk.is_working = !chunk.text.is_empty();
        }
        "content_block_delta" => {
            chunk.text = non_empty_text(at(&event, "/delta/text")).unwrap_or_default();
            chunk.arguments = non_empty_text(at(&event, "/delta/partial_json")).unwrap_or_default();
            // Thinking and its signatures are deltas of other types.
            chunk.is_working = true;
        }
        "message_delta" => {
            set_stop_reason(&mut chunk, at(&event, "/delta/stop_reason"));
            set_usage(&mut chunk, at(&event, "/usage"));
        }
        "message_stop" => chunk.done = true,
        _ if at(&event, "/content").is_array() => read_message(&mut chunk, &event),
        "content_block_stop" | "ping" => {}
        _ => chunk.known = false,
    }
    Some(chunk)
}

/// Parses a complete message.
fn read_message(chunk: &mut Chunk, message: &Value) {
    chunk.model = non_empty_text(at(message, "/model"));
    set_stop_reason(chunk, at(message, "/stop_reason"));
    set_usage(chunk, at(message, "/usage"));
    chunk.is_working = true;
    for part in at(message, "/content").as_array().into_iter().flatten() {
        if at(part, "/type") == "text" {
            chunk.text.push_str(at(part, "/text").as_str().unwrap_or_default());
        } else if at(part, "/type") == "tool_use" && chunk.arguments.is_empty() {
            chunk.arguments = json_text(at(part, "/input"));
        }
    }
}

fn set_stop_reason(chunk: &mut Chunk, reason: &Value) {
    chunk.finish(reason, &["max_tokens", "model_context_window_exceeded"]);
}

/// Sets the token counts. The tokens of the prompt are counted in three parts: uncached, written to the cache, and read from it.
fn set_usage(chunk: &mut Chunk, usage: &Value) {
    let part = |name: &str| usage.get(name).and_then(Value::as_u64);
    let cached = ["cache_creation_input_tokens", "cache_read_input_tokens"].map(|name| part(name).unwrap_or_default());
    chunk.tokens_in =
        part("input_tokens").map(|new| cached.iter().fold(new, |sum, cached| sum.saturating_add(*cached)));
    chunk.tokens_cached = part("cache_read_input_tokens");
    chunk.tokens_out = part("output_tokens");
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn with<T>(value: &Value, check: impl FnOnce(Chunk) -> T) -> T {
        check(read(value.to_string().as_bytes()).unwrap_or_else(|| panic!("{value}")))
    }

    #[test]
    fn text_and_arguments_are_parsed_and_thinking_is_ignored() {
        let delta = |delta: Value| json!({ "type": "content_block_delta", "index": 0, "delta": delta });
        let table = [
            (delta(json!({ "type": "text_delta", "text": "您" })), "您", "", true),
            (delta(json!({ "type": "input_json_delta", "partial_json": "{\"a\"" })), "", "{\"a\"", true),
            (delta(json!({ "type": "thinking_delta", "thinking": "hm" })), "", "", true),
            (delta(json!({ "type": "signature_delta", "signature": "x" })), "", "", true),
            (json!({ "type": "content_block_start", "content_block": { "type": "text", "text": "" } }), "", "", false),
            (json!({ "type": "content_block_start", "content_block": { "type": "text", "text": "a" } }), "a", "", true),
            (
                json!({ "type": "content_block_start", "content_block": { "type": "tool_use", "input": {} } }),
                "",
                "",
                false,
            ),
            (json!({ "type": "ping" }), "", "", false),
            (json!({ "type": "content_block_delta", "delta": 5 }), "", "", true),
        ];
        for (value, text, arguments, is_working) in table {
            with(&value, |chunk| {
                assert_eq!(
                    (&*chunk.text, &*chunk.arguments, chunk.is_working),
                    (text, arguments, is_working),
                    "{value}"
                );
                assert!(chunk.known && !chunk.finished && !chunk.done, "{value}");
            });
        }
    }

    #[test]
    fn model_usage_and_stop_reason_are_parsed() {
        let start = json!({ "type": "message_start", "message": { "model": "claude", "content": [],
            "usage": { "input_tokens": 3, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 100,
                "output_tokens": 1 } } });
        with(&start, |chunk| {
            assert_eq!(chunk.tokens_cached, Some(100));
            assert_eq!(
                (chunk.model.as_deref(), chunk.tokens_in, chunk.tokens_out),
                (Some("claude"), Some(113), Some(1))
            );
        });
        for (reason, cut_off) in [("end_turn", false), ("max_tokens", true), ("tool_use", false), ("refusal", false)] {
            let delta = json!({ "type": "message_delta", "delta": { "stop_reason": reason },
                "usage": { "output_tokens": 9 } });
            with(&delta, |chunk| {
                assert!(chunk.finished && !chunk.done, "{reason}");
                assert_eq!((chunk.refused, chunk.finish_reason.as_deref()), (reason == "refusal", Some(reason)));
                assert_eq!((chunk.cut_off, chunk.tokens_in, chunk.tokens_out), (cut_off, None, Some(9)), "{reason}");
            });
        }
        with(&json!({ "type": "message_delta", "delta": { "stop_reason": null } }), |chunk| assert!(!chunk.finished));
        with(&json!({ "type": "message_stop" }), |chunk| assert!(chunk.done && chunk.known));
    }

    #[test]
    fn a_complete_message_is_parsed() {
        let message = json!({ "type": "message", "model": "claude", "stop_reason": "end_turn",
            "content": [{ "type": "thinking", "thinking": "hm" }, { "type": "text", "text": "您" },
                { "type": "text", "text": "好" }, { "type": "tool_use", "name": "reply", "input": { "a": 1 } }],
            "usage": { "input_tokens": 3, "output_tokens": 2 } });
        with(&message, |chunk| {
            assert_eq!((&*chunk.text, &*chunk.arguments), ("您好", "{\"a\":1}"));
            assert!(chunk.known && chunk.finished);
            assert_eq!((chunk.tokens_in, chunk.tokens_out), (Some(3), Some(2)));
        });
    }

    #[test]
    fn errors_are_distinguished_from_unknown_events() {
        let error = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
        with(&error, |chunk| assert_eq!(chunk.error.unwrap().status, Some(529)));
        for unknown in [json!({}), json!({ "ok": true }), json!({ "type": "new_event" }), json!({ "content": "x" })] {
            with(&unknown, |chunk| assert!(!chunk.known && chunk.error.is_none(), "{unknown}"));
        }
        for data in [&b"[]"[..], b"null", b"{", b"", b"[DONE]", b"{\"type\": \"\xFF\"}"] {
            assert_eq!(read(data), None);
        }
    }

    #[test]
    fn a_field_of_another_type_is_ignored() {
        let values = json!([null, true, -1, 7, 1.5, "s", [1, [2], { "name": 3 }], { "name": "n" }]);
        let kinds = ["message_start", "content_block_start", "content_block_delta", "message_delta", "message", "ping"];
        for value in values.as_array().unwrap() {
            let inner = json!({ "model": value, "usage": { "input_tokens": value }, "type": value, "text": value,
                "partial_json": value, "stop_reason": value, "input": value });
            for (kind, inner) in kinds.iter().flat_map(|kind| [(kind, value), (kind, &inner)]) {
                let event = json!({ "type": kind, "message": inner, "content_block": inner, "delta": inner,
                    "usage": inner, "content": [inner], "model": value, "stop_reason": value });
                with(&event, |chunk| {
                    assert!(chunk.known && chunk.tokens_in.is_none_or(|tokens| tokens == 7), "{event}");
                    assert!([None, Some("s")].contains(&chunk.model.as_deref()), "{event}");
                    assert!(chunk.text.is_empty() || chunk.text == "s", "{event}");
                });
            }
        }
    }
}
