//! Parses a chunk of a stream or a complete response, which have nearly the same format.

use serde_json::Value;

use crate::providers::http::chunk::{Chunk, at, json_text, non_empty_text, object};

const DONE: &[u8] = b"[DONE]";

/// Parses a chunk or a response. `None` if it is not a JSON object.
pub(crate) fn read(data: &[u8]) -> Option<Chunk> {
    if data == DONE {
        return Some(Chunk { done: true, known: true, ..Chunk::default() });
    }
    let answer = object(data)?;
    if !at(&answer, "/error").is_null() || at(&answer, "/object") == "error" {
        return Some(Chunk::reported(&answer));
    }
    let usage = at(&answer, "/usage");
    let cached = at(usage, "/prompt_tokens_details/cached_tokens");
    let mut chunk = Chunk {
        model: non_empty_text(at(&answer, "/model")),
        known: at(&answer, "/choices").is_array() || usage.is_object(),
        tokens_in: at(usage, "/prompt_tokens").as_u64(),
        tokens_out: at(usage, "/completion_tokens").as_u64(),
        // DeepSeek uses another field for the cached tokens.
        tokens_cached: cached.as_u64().or_else(|| at(usage, "/prompt_cache_hit_tokens").as_u64()),
        ..Chunk::default()
    };
    let Some(choice) = first(at(&answer, "/choices")) else { return Some(chunk) };
    let reason = at(choice, "/finish_reason");
    chunk.finish(reason, &["length"]);
    let message = if at(choice, "/delta").is_object() { at(choice, "/delta") } else { at(choice, "/message") };
    chunk.text = content(at(message, "/content"));
    // The words of a refusal are not part of the reply.
    let is_refusal = |part: &Value| at(part, "/type") == "refusal";
    chunk.refused |= non_empty_text(at(message, "/refusal")).is_some()
        || at(message, "/content").as_array().is_some_and(|parts| parts.iter().any(is_refusal));
    let call = first(at(message, "/tool_calls"));
    chunk.arguments = call.map(|call| json_text(at(call, "/function/arguments"))).unwrap_or_default();
    let has_reasoning = non_empty_text(at(message, "/reasoning_content"))
        .or_else(|| non_empty_text(at(message, "/reasoning")))
        .is_some();
    chunk.is_working = has_reasoning || !chunk.text.is_empty() || !chunk.arguments.is_empty();
    Some(chunk)
}

/// The object with index 0 in a list, or without an index, which some servers omit.
fn first(list: &Value) -> Option<&Value> {
    let objects = list.as_array()?.iter().filter(|entry| entry.is_object());
    objects.into_iter().find(|entry| at(entry, "/index").is_null() || *at(entry, "/index") == 0)
}

/// The content of a message, which is a string or a list of parts; only parts of type `text` are used.
fn content(value: &Value) -> String {
    let parts = value.as_array().into_iter().flatten();
    let texts = parts.filter(|part| at(part, "/type").is_null() || at(part, "/type") == "text");
    let texts = texts.filter_map(|part| at(part, "/text").as_str());
    value.as_str().map_or_else(|| texts.collect(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn with<T>(value: &Value, check: impl FnOnce(Chunk) -> T) -> T {
        check(read(value.to_string().as_bytes()).unwrap_or_else(|| panic!("{value}")))
    }

    #[test]
    fn text_is_parsed_in_every_format_of_servers() {
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
    fn cached_tokens_are_parsed_under_both_names() {
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
    fn tool_arguments_may_be_text_or_an_object() {
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
                assert_eq!(chunk.is_working, !expected.is_empty(), "{value}");
            });
        }
    }

    #[test]
    fn reasoning_counts_as_activity_but_not_as_text() {
        for key in ["reasoning_content", "reasoning"] {
            let value = json!({ "choices": [{ "delta": { key: "let me think" } }] });
            with(&value, |chunk| assert!(chunk.is_working && chunk.text.is_empty(), "{key}"));
        }
        let empty = json!({ "choices": [{ "delta": { "role": "assistant", "content": "" } }] });
        with(&empty, |chunk| assert!(!chunk.is_working));
    }

    #[test]
    fn usage_and_model_are_parsed() {
        let value = json!({ "model": "qwen3:8b", "choices": [],
            "usage": { "prompt_tokens": 12, "completion_tokens": 7, "total_tokens": 19 } });
        with(&value, |read| {
            assert_eq!((read.model.as_deref(), read.tokens_in, read.tokens_out), (Some("qwen3:8b"), Some(12), Some(7)));
            assert!(read.known && !read.finished);
        });
    }

    #[test]
    fn the_finish_reason_is_parsed() {
        for (reason, finished, cut_off) in [
            (json!("stop"), true, false),
            (json!("length"), true, true),
            (json!("tool_calls"), true, false),
            (json!("content_filter"), true, false),
            (json!(7), true, false),
            (json!(null), false, false),
            (json!(""), false, false),
            (json!(" "), false, false),
            (json!("null"), false, false),
        ] {
            let value = json!({ "choices": [{ "delta": {}, "finish_reason": reason }] });
            with(&value, |chunk| assert_eq!((chunk.finished, chunk.cut_off), (finished, cut_off), "{value}"));
            with(&value, |chunk| assert!(chunk.finish_reason.is_none() || chunk.finished, "{value}"));
        }
        assert!(read(b"[DONE]").unwrap().done);
    }

    #[test]
    fn a_refusal_is_recognized_wherever_servers_write_it() {
        let refused = [
            json!({ "choices": [{ "delta": {}, "finish_reason": "content_filter" }] }),
            json!({ "choices": [{ "delta": { "refusal": "I can't help with that." } }] }),
            json!({ "choices": [{ "message": { "content": null, "refusal": "No." }, "finish_reason": "stop" }] }),
            json!({ "choices": [{ "message": { "content": [{ "type": "refusal", "refusal": "No." }] } }] }),
            json!({ "choices": [{ "delta": {}, "finish_reason": "SAFETY" }] }),
        ];
        for value in refused {
            with(&value, |chunk| assert!(chunk.refused && chunk.text.is_empty(), "{value}"));
        }
        let answered =
            json!({ "choices": [{ "message": { "content": "x", "refusal": null }, "finish_reason": "stop" }] });
        with(&answered, |chunk| assert_eq!((chunk.refused, chunk.finish_reason.as_deref()), (false, Some("stop"))));
    }

    #[test]
    fn errors_take_precedence_over_other_fields() {
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
    fn data_that_is_not_an_object_is_rejected() {
        for data in
            [&b"[]"[..], b"null", b"{", b"", b"\xFF\xFE", b"{\"model\": \"\xFF\"}", b"{\"a\": \"\0\"}", b"[DONE"]
        {
            assert_eq!(read(data), None);
        }
        assert_eq!(read("[".repeat(100_000).as_bytes()), None);
        assert_eq!(read("{\"a\":".repeat(100_000).as_bytes()), None);
    }

    #[test]
    fn a_field_of_another_type_is_ignored() {
        let values = json!([null, true, -1, 7, 1.5, "s", [1, [2], { "name": 3 }], { "name": "n" }]);
        for value in values.as_array().unwrap() {
            let call = json!({ "index": value, "function": { "arguments": value } });
            let message =
                json!({ "content": value, "reasoning": value, "reasoning_content": value, "tool_calls": [call] });
            let choice = |message: &Value| json!({ "index": value, "delta": message, "message": message, "finish_reason": value });
            let usage = json!({ "prompt_tokens": value, "completion_tokens": value, "prompt_tokens_details": value });
            for answer in [
                json!({ "model": value, "object": value, "choices": value, "usage": value }),
                json!({ "choices": [choice(value), value], "usage": usage }),
                json!({ "choices": [{ "delta": { "content": value, "tool_calls": value } }], "usage": usage }),
                json!({ "choices": [choice(&message)] }),
                json!({ "choices": [{ "delta": message }] }),
            ] {
                with(&answer, |chunk| {
                    assert_eq!(chunk.model.is_some(), answer["model"] == "s", "{answer}");
                    let counted = (answer["usage"]["prompt_tokens"] == 7).then_some(7);
                    assert_eq!((chunk.tokens_in, chunk.tokens_cached), (counted, None), "{answer}");
                    assert!(chunk.text.is_empty() || chunk.text == "s", "{answer}");
                });
            }
            assert!(read(json!({ "error": value }).to_string().as_bytes()).is_some(), "{value}");
        }
    }
}
