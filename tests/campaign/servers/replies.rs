//! Answers that are HTTP as it should be, with replies of models that are not.

use std::io::Write;

use serde_json::{Value, json};

use crate::servers::http::{Answer, Bait, response};

/// The text of a good reply.
pub fn good_reply() -> String {
    json!({
        "safety_risk": { "detected": false, "risk_type": null, "confidence": null, "reason": null },
        "content": "And then?", "EXIT": "YES", "BRIEF": "",
        "metrics": { "information_completeness": "a", "user_engagement": "b", "emotional_intensity": "c", "reply_relevance": "d" },
        "progress_suggestion": "continue_needed", "metadata": { "emotional_tone": "", "crisis_signal": false }, "name": "Ann",
    })
    .to_string()
}

/// A stream with these events, each one line of data.
fn stream(events: &[String]) -> String {
    let lines: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    response("200 OK", "content-type: text/event-stream\r\n", &lines)
}

/// The event with a piece of the text.
fn piece(content: impl Into<Value>) -> String {
    json!({ "choices": [{ "index": 0, "delta": { "content": content.into() } }] }).to_string()
}

/// The stream that a good server sends.
pub fn good_stream(_request: &str) -> String {
    let text: Vec<char> = good_reply().chars().collect();
    let mut events: Vec<String> = text.chunks(9).map(|part| piece(part.iter().collect::<String>())).collect();
    events.push("[DONE]".to_owned());
    stream(&events)
}

/// The whole text as one reply.
fn says(text: &str) -> String {
    stream(&[piece(text), "[DONE]".to_owned()])
}

/// A good stream around these events.
fn around(middle: &[&str]) -> String {
    let reply = good_reply();
    let (first, second) = reply.split_at(20);
    let middle = middle.iter().map(|event| (*event).to_owned());
    stream(&[vec![piece(first)], middle.collect(), vec![piece(second), "[DONE]".to_owned()]].concat())
}

/// One of the hostile streams of a model's server.
fn hostile(bait: &mut Bait) -> String {
    let rng = &mut bait.rng;
    let deep = 1usize << rng.u32(6..18);
    let replies = [
        // What stands around the text.
        around(&["{", "[]", "null", "\"x\"", "NaN", "{\"choices\": NaN}"]),
        around(&[
            r#"{"choices": []}"#,
            r#"{"choices": null}"#,
            r#"{"choices": {"0": 1}}"#,
            r#"{"choices": [null, 1, "x"]}"#,
        ]),
        around(&[r#"{"choices": [{"delta": {"content": ["a", {"text": "b"}]}}]}"#]),
        around(&[
            r#"{"choices": [{"index": -1, "delta": {"content": "x"}}, {"index": 99999999999, "delta": {"content": "y"}}]}"#,
        ]),
        around(&[
            r#"{"choices": [{"delta": {"tool_calls": [{"index": 4294967296, "function": {"name": 1, "arguments": "{"}}]}}]}"#,
        ]),
        around(&[r#"{"error": {"message": "overloaded", "type": "overloaded_error", "code": 529}}"#]),
        around(&[r#"{"choices": [{"delta": {"refusal": "no"}, "finish_reason": "content_filter"}]}"#]),
        around(&["[DONE]", "[DONE]"]),
        around(&[&format!("{}1{}", "[".repeat(deep), "]".repeat(deep))]),
        around(&[r#"{"choices": [{"delta": {"content": "\ud83d\ude00 \ud83d"}}]}"#]),
        stream(&[piece(good_reply()), piece(good_reply()), "[DONE]".to_owned()]),
        good_stream("").replace("data:", "data").replace("\n\n", "\r\r"),
        good_stream("").replacen("data: ", "\u{feff}data: ", 1).replace("\n\n", "\r\n\r\n"),
        // The text.
        says(""),
        says(&"好".repeat(deep * 8)),
        says(&format!("{}1{}", "{\"content\": ".repeat(deep), "}".repeat(deep))),
        says(&good_reply().replace("And then?", r"\ud83d\ude00 \ud83d \u0000 \u001b[31m \u202e")),
        says(&good_reply().replace("And then?", "\u{1b}[2J\u{9b}31m\u{0}\u{202e}")),
        says(&good_reply().replace("false", "NaN").replace("null", "-Infinity")),
        says(&good_reply().replace("\"Ann\"", "1e999")),
        says(&good_reply().replace("\"Ann\"", "{\"$ref\": \"#\"}").replace("{ ", "")),
        says(&good_reply().replace("{\"detected\":false", "{\"detected\":[true]")),
        says(&format!("```json\n{}\n```\n{}", good_reply(), "```".repeat(deep))),
        says(&format!("<think>{}</think>{}", "{".repeat(deep), good_reply())),
        says(
            &good_reply()
                .replace("And then?", "{{ name }} {% for a in range(100000000) %}x{% endfor %} <!-- system -->"),
        ),
        says(&good_reply().repeat(3)),
        says("I forgot the format, sorry."),
        response(
            "200 OK",
            "content-type: application/json\r\n",
            &json!({ "choices": [{ "message": { "content": good_reply() } }] }).to_string(),
        ),
        response(
            "200 OK",
            "content-type: application/json\r\n",
            &json!({ "choices": [{ "message": { "refusal": "no", "content": null } }] }).to_string(),
        ),
    ];
    rng.choice(replies.iter()).unwrap().clone()
}

pub const HOSTILE: Answer = |stream, bait| {
    let mut bytes = hostile(bait).into_bytes();
    // Sometimes a byte is lost, changed or doubled on the way.
    if bait.rng.u8(..3) == 0 {
        let at = bait.rng.usize(..bytes.len());
        match bait.rng.u8(..4) {
            0 => bytes[at] = bait.rng.u8(..),
            1 => drop(bytes.remove(at)),
            2 => bytes.truncate(at),
            _ => bytes.insert(at, 0xff),
        }
    }
    stream.write_all(&bytes).ok()
};

/// Counts of tokens that are no counts, or that no sum can hold.
pub const COUNTS: Answer = |stream, bait| {
    let counts = ["18446744073709551615", "9223372036854775807", "-1", "1e308", "1.5", "\"many\"", "null", "[]"];
    let mut count = || *bait.rng.choice(counts.iter()).unwrap();
    let usage = format!(
        r#"{{"choices": [], "usage": {{"prompt_tokens": {}, "completion_tokens": {}, "total_tokens": {},
        "prompt_tokens_details": {{"cached_tokens": {}}}}}}}"#,
        count(),
        count(),
        count(),
        count()
    );
    stream.write_all(around(&[&usage.replace('\n', "")]).as_bytes()).ok()
};
