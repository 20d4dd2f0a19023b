//! What is received: one chunk of a stream, or a whole answer, which have nearly the same shape.

use std::borrow::Cow;

use serde::Deserialize;

use crate::providers::http::chunk::{Chunk, reported};
use crate::providers::http::lenient::{Content, Count, Document, List, Object, Text};

/// The data of the event that ends a stream.
const DONE: &[u8] = b"[DONE]";

#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer<'a> {
    #[serde(borrow)]
    model: Text<'a>,
    #[serde(borrow)]
    object: Text<'a>,
    #[serde(borrow)]
    error: Text<'a>,
    #[serde(borrow)]
    choices: List<Object<Choice<'a>>>,
    usage: Object<Usage>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Choice<'a> {
    index: Count,
    #[serde(borrow)]
    delta: Object<Said<'a>>,
    #[serde(borrow)]
    message: Object<Said<'a>>,
    #[serde(borrow)]
    finish_reason: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Said<'a> {
    #[serde(borrow)]
    content: Content<'a>,
    #[serde(borrow)]
    reasoning_content: Text<'a>,
    #[serde(borrow)]
    reasoning: Text<'a>,
    #[serde(borrow)]
    tool_calls: List<Object<Call<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Call<'a> {
    index: Count,
    #[serde(borrow)]
    function: Object<Function<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Function<'a> {
    #[serde(borrow)]
    arguments: Document<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Usage {
    prompt_tokens: Count,
    completion_tokens: Count,
    prompt_tokens_details: Object<Details>,
    /// DeepSeek's name for what stands in the details elsewhere.
    prompt_cache_hit_tokens: Count,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Details {
    cached_tokens: Count,
}

/// Reads one piece. `None` when it is no JSON object.
pub(crate) fn read(data: &[u8]) -> Option<Chunk<'_>> {
    if data == DONE {
        return Some(Chunk { done: true, known: true, ..Chunk::default() });
    }
    // A list would do for serde's derived structures.
    if data.trim_ascii_start().first() != Some(&b'{') {
        return None;
    }
    let answer: Answer<'_> = serde_json::from_slice(data).ok()?;
    if answer.error.present || answer.object.is("error") {
        return Some(Chunk { error: reported(data), known: true, ..Chunk::default() });
    }
    let mut chunk = Chunk { model: answer.model.said(), known: answer.choices.present, ..Chunk::default() };
    if let Some(usage) = answer.usage.0 {
        chunk.known = true;
        chunk.tokens_in = usage.prompt_tokens.number;
        chunk.tokens_out = usage.completion_tokens.number;
        let details = usage.prompt_tokens_details.0.and_then(|details| details.cached_tokens.number);
        chunk.tokens_cached = details.or(usage.prompt_cache_hit_tokens.number);
    }
    let mut choices = answer.choices.items.into_iter().filter_map(|choice| choice.0);
    let Some(choice) = choices.find(|choice| first(choice.index)) else { return Some(chunk) };
    chunk.finished = choice.finish_reason.present;
    chunk.cut_off = choice.finish_reason.is("length");
    if let Some(said) = choice.delta.0.or(choice.message.0) {
        chunk.text = said.content.0;
        let call = said.tool_calls.items.into_iter().filter_map(|call| call.0).find(|call| first(call.index));
        chunk.arguments = call.and_then(|call| call.function.0).map_or(Cow::Borrowed(""), |made| made.arguments.0);
        let thought = said.reasoning_content.said().or(said.reasoning.said()).is_some();
        chunk.working = thought || !chunk.text.is_empty() || !chunk.arguments.is_empty();
    }
    Some(chunk)
}

/// Whether an entry is the first of its list, or the only one of a server that does not number them.
fn first(index: Count) -> bool {
    !index.present || index.number == Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn with<T>(value: &Value, look: impl FnOnce(Chunk<'_>) -> T) -> T {
        look(read(value.to_string().as_bytes()).unwrap_or_else(|| panic!("{value}")))
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
            (json!({ "choices": [7, { "delta": "x" }] }), ""),
            (json!({ "choices": null }), ""),
            (json!({ "choices": "x", "usage": "y", "model": 5 }), ""),
            (json!({}), ""),
        ];
        for (value, expected) in table {
            with(&value, |chunk| assert_eq!(chunk.text, expected, "{value}"));
        }
    }

    #[test]
    fn tokens_that_the_server_had_kept_are_found_under_both_names() {
        let usage = |more: Value| {
            let mut usage = json!({ "prompt_tokens": 9, "completion_tokens": 1 });
            usage.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({ "choices": [], "usage": usage })
        };
        for (value, expected) in [
            (usage(json!({})), None),
            (usage(json!({ "prompt_tokens_details": { "cached_tokens": 4 } })), Some(4)),
            (usage(json!({ "prompt_cache_hit_tokens": 5, "prompt_cache_miss_tokens": 4 })), Some(5)),
            (usage(json!({ "prompt_tokens_details": null })), None),
        ] {
            with(&value, |chunk| assert_eq!((chunk.tokens_in, chunk.tokens_cached), (Some(9), expected), "{value}"));
        }
    }

    #[test]
    fn what_a_tool_is_called_with_is_found_as_text_and_as_an_object() {
        let call = |arguments: Value| json!([{ "index": 0, "function": { "name": "reply", "arguments": arguments } }]);
        let table = [
            (json!({ "choices": [{ "delta": { "content": null, "tool_calls": call(json!("{\"a\"")) } }] }), "{\"a\""),
            (json!({ "choices": [{ "message": { "tool_calls": call(json!({ "a": "您" })) } }] }), "{\"a\":\"您\"}"),
            (
                json!({ "choices": [{ "delta": { "tool_calls": [{ "index": 1, "function": { "arguments": "x" } }] } }] }),
                "",
            ),
            (json!({ "choices": [{ "delta": { "tool_calls": [{ "function": { "name": "reply" } }] } }] }), ""),
        ];
        for (value, expected) in table {
            with(&value, |chunk| {
                assert_eq!(chunk.arguments, expected, "{value}");
                assert_eq!(chunk.working, !expected.is_empty(), "{value}");
            });
        }
    }

    #[test]
    fn reasoning_shows_that_the_model_works_but_is_no_text() {
        for key in ["reasoning_content", "reasoning"] {
            let value = json!({ "choices": [{ "delta": { key: "let me think" } }] });
            with(&value, |chunk| assert!(chunk.working && chunk.text.is_empty(), "{key}"));
        }
        let empty = json!({ "choices": [{ "delta": { "role": "assistant", "content": "" } }] });
        with(&empty, |chunk| assert!(!chunk.working));
    }

    #[test]
    fn usage_and_model_come_along_when_they_are_there() {
        let value = json!({ "model": "qwen3:8b", "choices": [],
            "usage": { "prompt_tokens": 12, "completion_tokens": 7, "total_tokens": 19 } });
        with(&value, |read| {
            assert_eq!((read.model.as_deref(), read.tokens_in, read.tokens_out), (Some("qwen3:8b"), Some(12), Some(7)));
            assert!(read.known && !read.finished);
        });
    }

    #[test]
    fn why_a_reply_ends_is_told() {
        for (reason, finished, cut_off) in [
            (json!("stop"), true, false),
            (json!("length"), true, true),
            (json!("tool_calls"), true, false),
            (json!(7), true, false),
            (json!(null), false, false),
        ] {
            let value = json!({ "choices": [{ "delta": {}, "finish_reason": reason }] });
            with(&value, |chunk| assert_eq!((chunk.finished, chunk.cut_off), (finished, cut_off), "{value}"));
        }
        assert!(read(b"[DONE]").unwrap().done);
    }

    #[test]
    fn errors_take_the_place_of_what_else_stands_there() {
        let value = json!({ "choices": [{ "delta": { "content": "x" } }], "error": { "message": "m", "code": 503 } });
        with(&value, |chunk| {
            assert_eq!(chunk.error.unwrap().status, Some(503));
            assert_eq!(chunk.text, "");
        });
        with(&json!({ "object": "error", "message": "m", "code": 400 }), |chunk| {
            assert_eq!(chunk.error.unwrap().status, Some(400));
        });
        with(&json!({ "error": null, "choices": [] }), |chunk| assert_eq!(chunk.error, None));
    }

    #[test]
    fn what_is_no_object_is_no_chunk() {
        for data in
            [&b"[]"[..], b"null", b"{", b"", b"\xFF\xFE", b"{\"model\": \"\xFF\"}", b"{\"a\": \"\0\"}", b"[DONE"]
        {
            assert_eq!(read(data), None);
        }
        assert_eq!(read("[".repeat(100_000).as_bytes()), None);
        assert_eq!(read("{\"a\":".repeat(100_000).as_bytes()), None);
    }
}
