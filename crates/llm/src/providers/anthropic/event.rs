//! What is received: one event of a stream, or a whole message.

use std::borrow::Cow;

use serde::Deserialize;

use crate::providers::http::chunk::{Chunk, reported};
use crate::providers::http::lenient::{Count, List, Object, Part, Text};

/// The events of a stream that say nothing by themselves.
const SILENT: [&str; 2] = ["content_block_stop", "ping"];

#[derive(Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    message: Object<Message<'a>>,
    #[serde(borrow)]
    content_block: Object<Part<'a>>,
    #[serde(borrow)]
    delta: Object<Delta<'a>>,
    usage: Object<Usage>,
    #[serde(borrow)]
    error: Text<'a>,
    // A whole message has its fields here instead of under `message`.
    #[serde(borrow)]
    model: Text<'a>,
    #[serde(borrow)]
    content: List<Object<Part<'a>>>,
    #[serde(borrow)]
    stop_reason: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message<'a> {
    #[serde(borrow)]
    model: Text<'a>,
    usage: Object<Usage>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Delta<'a> {
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    partial_json: Text<'a>,
    #[serde(borrow)]
    stop_reason: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Usage {
    input_tokens: Count,
    cache_creation_input_tokens: Count,
    cache_read_input_tokens: Count,
    output_tokens: Count,
}

/// Reads one piece. `None` when it is no JSON object.
pub(crate) fn read(data: &[u8]) -> Option<Chunk<'_>> {
    // A list would do for serde's derived structures.
    if data.trim_ascii_start().first() != Some(&b'{') {
        return None;
    }
    let event: Event<'_> = serde_json::from_slice(data).ok()?;
    if event.error.present || event.kind.is("error") {
        return Some(Chunk { error: reported(data), known: true, ..Chunk::default() });
    }
    let mut chunk = Chunk { known: true, ..Chunk::default() };
    if event.kind.is("message_start") {
        let message = event.message.0.unwrap_or_default();
        chunk.model = message.model.said();
        count(&mut chunk, message.usage);
    } else if event.kind.is("content_block_start") {
        // A block mostly begins empty. What a tool is called with begins as an empty object, which is none of it.
        let block = event.content_block.0.unwrap_or_default();
        if block.kind.is("text") {
            chunk.text = block.text.or_empty();
        }
        chunk.working = !chunk.text.is_empty();
    } else if event.kind.is("content_block_delta") {
        let delta = event.delta.0.unwrap_or_default();
        chunk.text = delta.text.or_empty();
        chunk.arguments = delta.partial_json.or_empty();
        // Thinking, and signatures of it, come as deltas of other kinds.
        chunk.working = true;
    } else if event.kind.is("message_delta") {
        end(&mut chunk, &event.delta.0.unwrap_or_default().stop_reason);
        count(&mut chunk, event.usage);
    } else if event.kind.is("message_stop") {
        chunk.done = true;
    } else if event.content.present {
        whole(&mut chunk, event);
    } else {
        chunk.known = SILENT.iter().any(|kind| event.kind.is(kind));
    }
    Some(chunk)
}

fn whole<'a>(chunk: &mut Chunk<'a>, message: Event<'a>) {
    chunk.model = message.model.said();
    end(chunk, &message.stop_reason);
    count(chunk, message.usage);
    chunk.working = true;
    for part in message.content.items.into_iter().filter_map(|part| part.0) {
        if part.kind.is("text") {
            join(&mut chunk.text, part.text.or_empty());
        } else if part.kind.is("tool_use") && chunk.arguments.is_empty() {
            chunk.arguments = part.input.0;
        }
    }
}

fn join<'a>(text: &mut Cow<'a, str>, more: Cow<'a, str>) {
    if text.is_empty() { *text = more } else { text.to_mut().push_str(&more) }
}

fn end(chunk: &mut Chunk<'_>, reason: &Text<'_>) {
    chunk.finished = reason.present;
    chunk.cut_off = reason.is("max_tokens") || reason.is("model_context_window_exceeded");
}

/// The prompt's tokens are counted in three parts: new ones, ones that were kept for later, ones that were kept before.
fn count(chunk: &mut Chunk<'_>, usage: Object<Usage>) {
    let Some(usage) = usage.0 else { return };
    let parts = [usage.input_tokens, usage.cache_creation_input_tokens, usage.cache_read_input_tokens];
    chunk.tokens_in = usage
        .input_tokens
        .number
        .map(|_| parts.iter().fold(0_u64, |sum, part| sum.saturating_add(part.number.unwrap_or_default())));
    chunk.tokens_cached = usage.cache_read_input_tokens.number;
    chunk.tokens_out = usage.output_tokens.number;
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn with<T>(value: &Value, look: impl FnOnce(Chunk<'_>) -> T) -> T {
        look(read(value.to_string().as_bytes()).unwrap_or_else(|| panic!("{value}")))
    }

    #[test]
    fn text_and_arguments_are_found_and_thinking_is_neither() {
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
        for (value, text, arguments, working) in table {
            with(&value, |chunk| {
                assert_eq!((&*chunk.text, &*chunk.arguments, chunk.working), (text, arguments, working), "{value}");
                assert!(chunk.known && !chunk.finished && !chunk.done, "{value}");
            });
        }
    }

    #[test]
    fn a_message_says_who_wrote_it_how_long_it_is_and_why_it_ends() {
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
                assert_eq!((chunk.cut_off, chunk.tokens_in, chunk.tokens_out), (cut_off, None, Some(9)), "{reason}");
            });
        }
        with(&json!({ "type": "message_delta", "delta": { "stop_reason": null } }), |chunk| assert!(!chunk.finished));
        with(&json!({ "type": "message_stop" }), |chunk| assert!(chunk.done && chunk.known));
    }

    #[test]
    fn a_whole_message_is_read_at_once() {
        let whole = json!({ "type": "message", "model": "claude", "stop_reason": "end_turn",
            "content": [{ "type": "thinking", "thinking": "hm" }, { "type": "text", "text": "您" },
                { "type": "text", "text": "好" }, { "type": "tool_use", "name": "reply", "input": { "a": 1 } }],
            "usage": { "input_tokens": 3, "output_tokens": 2 } });
        with(&whole, |chunk| {
            assert_eq!((&*chunk.text, &*chunk.arguments), ("您好", "{\"a\":1}"));
            assert!(chunk.known && chunk.finished);
            assert_eq!((chunk.tokens_in, chunk.tokens_out), (Some(3), Some(2)));
        });
    }

    #[test]
    fn errors_are_told_from_what_is_unknown() {
        let error = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
        with(&error, |chunk| assert_eq!(chunk.error.unwrap().status, Some(529)));
        for unknown in [json!({}), json!({ "ok": true }), json!({ "type": "new_event" }), json!({ "content": "x" })] {
            with(&unknown, |chunk| assert!(!chunk.known && chunk.error.is_none(), "{unknown}"));
        }
        for data in [&b"[]"[..], b"null", b"{", b"", b"[DONE]", b"{\"type\": \"\xFF\"}"] {
            assert_eq!(read(data), None);
        }
    }
}
