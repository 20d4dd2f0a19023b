//! Tests of every error at every byte of streams and complete responses, in both protocols. The bytes are in memory and time is
//! virtual.

use std::collections::VecDeque;
use std::future::pending;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::http::timeouts::TimeoutLimits;
use crate::model::error::TimeoutPhase;
use crate::providers::anthropic::MESSAGES;
use crate::providers::openai::CHAT_COMPLETIONS;

const HOST: &str = "h";

const TEXT: &str = "您好，😀 \"hi\"\n";

#[derive(Clone)]
enum Step {
    Bytes(Vec<u8>),
    Wait(Duration),
    /// The connection breaks; without this step it ends normally.
    Break,
    /// No more data arrives.
    Stall,
}

struct Script(VecDeque<Step>);

#[async_trait::async_trait]
impl ByteSource for Script {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, BodyError> {
        loop {
            match self.0.pop_front() {
                None => return Ok(None),
                Some(Step::Bytes(bytes)) => return Ok(Some(bytes)),
                Some(Step::Wait(time)) => tokio::time::sleep(time).await,
                Some(Step::Break) => return Err(BodyError::CutOff),
                Some(Step::Stall) => pending().await,
            }
        }
    }
}

#[derive(Default)]
struct CapturedDeltas(String);

impl LiveObserver for CapturedDeltas {
    fn text(&mut self, piece: &str) {
        assert!(!piece.is_empty());
        self.0.push_str(piece);
    }

    fn restart(&mut self) {
        self.0.clear();
    }
}

/// The result of reading: the text, or the kind of the error.
type Outcome = Result<String, String>;

async fn read_as(dialect: &Dialect, sample: &Sample, steps: Vec<Step>) -> Outcome {
    let limits = TimeoutLimits {
        total: Duration::from_hours(24),
        first: Duration::from_secs(60),
        idle: Duration::from_secs(30),
    };
    let mut captured = CapturedDeltas::default();
    let body = ResponseBody::new(Box::new(Script(steps.into())), Timeouts::new(limits), MAX_REPLY_BYTES);
    match ResponseReader::new(body, dialect, HOST).answer(sample.content_type, sample.tool, &mut captured).await {
        Ok(answer) => {
            assert_eq!(captured.0, answer.text, "what was heard is not what came");
            Ok(answer.text)
        }
        Err(ReadError::Model(error)) => Err(match error {
            ModelError::Timeout { phase: TimeoutPhase::FirstToken, .. } => "first".to_owned(),
            ModelError::Timeout { phase: TimeoutPhase::Idle, .. } => "idle".to_owned(),
            other => other.kind().to_owned(),
        }),
        Err(ReadError::Reported(rejection)) => Err(format!("reported {:?}", rejection.status)),
    }
}

/// A successful response, and the positions of its parts.
struct Sample {
    name: &'static str,
    content_type: &'static str,
    /// Whether it is a stream instead of one JSON body.
    streamed: bool,
    tool: bool,
    bytes: Vec<u8>,
    /// The position after the first event, which identifies the protocol.
    first_event_end: usize,
    /// The position after the first text.
    text_end: usize,
    /// The position after the end of the reply.
    reply_end: usize,
    anthropic: bool,
}

impl Sample {
    async fn read(&self, steps: Vec<Step>) -> Outcome {
        read_as(if self.anthropic { &MESSAGES } else { &CHAT_COMPLETIONS }, self, steps).await
    }

    fn head(&self, at: usize) -> Step {
        Step::Bytes(self.bytes[..at].to_vec())
    }

    fn tail(&self, at: usize) -> Step {
        Step::Bytes(self.bytes[at..].to_vec())
    }
}

/// A stream of these events; `text_end` and `reply_end` are the indices of the first text and of the end.
fn stream(
    name: &'static str,
    anthropic: bool,
    tool: bool,
    events: &[Value],
    text_end: usize,
    reply_end: usize,
) -> Sample {
    let mut bytes = Vec::new();
    let mut ends = Vec::new();
    for event in events {
        if let (true, Some(kind)) = (anthropic, event["type"].as_str()) {
            bytes.extend_from_slice(format!("event: {kind}\n").as_bytes());
        }
        let data = event.as_str().map_or_else(|| event.to_string(), str::to_owned);
        bytes.extend_from_slice(format!("data: {data}\n\n").as_bytes());
        ends.push(bytes.len());
    }
    let (first_event_end, text_end, reply_end) = (ends[0], ends[text_end], ends[reply_end]);
    let content_type = "text/event-stream; charset=utf-8";
    Sample { name, content_type, streamed: true, tool, bytes, first_event_end, text_end, reply_end, anthropic }
}

fn json_body(name: &'static str, anthropic: bool, tool: bool, body: &Value) -> Sample {
    let bytes = body.to_string().into_bytes();
    let end = bytes.len();
    let content_type = "application/json";
    Sample {
        name,
        content_type,
        streamed: false,
        tool,
        bytes,
        first_event_end: 2,
        text_end: 1,
        reply_end: end,
        anthropic,
    }
}

fn samples() -> Vec<Sample> {
    let (first, rest) = TEXT.split_at("您".len());
    let choice = |delta: Value, reason: Value| json!({ "choices": [{ "delta": delta, "finish_reason": reason }] });
    let call = |arguments: &str| json!({ "tool_calls": [{ "index": 0, "function": { "arguments": arguments } }] });
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 3, "completion_tokens": 5 } });
    let role = choice(json!({ "role": "assistant", "content": "" }), Value::Null);
    let chat = |pieces: [Value; 2], reason: &str| {
        let [one, two] = pieces.map(|piece| choice(piece, Value::Null));
        [role.clone(), one, two, choice(json!({}), json!(reason)), usage.clone(), json!("[DONE]")]
    };
    let text = chat([json!({ "content": first }), json!({ "content": rest })], "stop");
    let called = chat([call(first), call(rest)], "tool_calls");
    let start = json!({ "type": "message_start", "message": { "model": "c", "usage": { "input_tokens": 3 } } });
    let delta = |delta: Value| json!({ "type": "content_block_delta", "index": 0, "delta": delta });
    let message = |block: Value, one: Value, two: Value| {
        [
            start.clone(),
            json!({ "type": "content_block_start", "index": 0, "content_block": block }),
            json!({ "type": "ping" }),
            delta(one),
            delta(two),
            json!({ "type": "content_block_stop", "index": 0 }),
            json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 5 } }),
            json!({ "type": "message_stop" }),
        ]
    };
    let text_delta = |text: &str| json!({ "type": "text_delta", "text": text });
    let input = |text: &str| json!({ "type": "input_json_delta", "partial_json": text });
    let text_message = message(json!({ "type": "text", "text": "" }), text_delta(first), text_delta(rest));
    let tool_message = message(json!({ "type": "tool_use", "name": "reply", "input": {} }), input(first), input(rest));
    let answer = json!({ "choices": [{ "message": { "content": TEXT }, "finish_reason": "stop" }] });
    let block = json!({ "type": "message", "content": [{ "type": "text", "text": TEXT }], "stop_reason": "end_turn" });
    vec![
        stream("chat", false, false, &text, 1, 3),
        stream("chat, tool", false, true, &called, 1, 3),
        stream("messages", true, false, &text_message, 3, 6),
        stream("messages, tool", true, true, &tool_message, 3, 6),
        json_body("chat, whole", false, false, &answer),
        json_body("messages, whole", true, false, &block),
    ]
}

/// Every sample and every position in it, including the end.
fn samples_with_positions() -> Vec<(Sample, Vec<usize>)> {
    samples()
        .into_iter()
        .map(|sample| {
            let positions = (0..=sample.bytes.len()).collect();
            (sample, positions)
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn piece_boundaries_and_slow_bytes_do_not_matter() {
    for (sample, positions) in samples_with_positions() {
        for at in positions {
            let read = sample.read(vec![sample.head(at), sample.tail(at)]).await;
            assert_eq!(read.as_deref(), Ok(TEXT), "{} in two at {at}", sample.name);
        }
        for wait in [Duration::ZERO, Duration::from_millis(100)] {
            let drip = sample.bytes.iter().flat_map(|byte| [Step::Wait(wait), Step::Bytes(vec![*byte])]).collect();
            assert_eq!(sample.read(drip).await.as_deref(), Ok(TEXT), "{} with {wait:?} between bytes", sample.name);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_truncated_response_is_an_error_unless_the_reply_is_complete() {
    for (sample, positions) in samples_with_positions() {
        for at in positions {
            let broken = sample.read(vec![sample.head(at), Step::Break]).await;
            // A JSON body ends only with the connection.
            let complete = sample.streamed && at >= sample.reply_end;
            let expected = if complete { Ok(TEXT.to_owned()) } else { Err("cut_off".to_owned()) };
            assert_eq!(broken, expected, "{} breaks at {at}", sample.name);
            let ended = sample.read(vec![sample.head(at)]).await;
            // The blank line after the last event may be missing.
            let slack = if sample.streamed { 2 } else { 0 };
            let expected = if at + slack >= sample.reply_end { Ok(TEXT.to_owned()) } else { Err("cut_off".to_owned()) };
            assert_eq!(ended, expected, "{} ends at {at}", sample.name);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_finish_reason_in_every_chunk_completes_no_reply() {
    for reason in ["", "null"] {
        let chunk = |text: &str, reason: &str| {
            let chunk = json!({ "choices": [{ "delta": { "content": text }, "finish_reason": reason }] });
            Step::Bytes(format!("data: {chunk}\n\n").into_bytes())
        };
        let sample = stream("finish reasons", false, false, &[json!({})], 0, 0);
        let read = |steps: Vec<Step>| read_as(&CHAT_COMPLETIONS, &sample, steps);
        let first = chunk("a", reason);
        assert!(read(vec![first.clone(), Step::Break]).await.is_err(), "{reason}");
        assert!(read(vec![first.clone()]).await.is_err(), "{reason}");
        let pause = Step::Wait(Duration::from_secs(10));
        let whole = vec![first.clone(), pause, chunk("b", reason), chunk("c", "stop"), Step::Break];
        assert_eq!(read(whole).await.as_deref(), Ok("abc"), "{reason}");
    }
}

#[tokio::test(start_paused = true)]
async fn silence_at_any_position_ends_with_the_current_limit() {
    for (sample, positions) in samples_with_positions() {
        for at in positions {
            let read = sample.read(vec![sample.head(at), Step::Stall]).await;
            let expected = match at {
                at if sample.streamed && at >= sample.reply_end => Ok(TEXT.to_owned()),
                at if at >= sample.text_end => Err("idle".to_owned()),
                _ => Err("first".to_owned()),
            };
            assert_eq!(read, expected, "{} falls silent at {at}", sample.name);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_bytes_are_never_accepted_as_a_reply() {
    for (sample, positions) in samples_with_positions() {
        for at in positions {
            // In one piece with the rest of the response, including the end of the reply.
            let bytes = [&sample.bytes[..at], b"\xFF\x00", &sample.bytes[at..]].concat();
            let read = sample.read(vec![Step::Bytes(bytes)]).await;
            let complete = sample.streamed && at >= sample.reply_end;
            assert_eq!(read.is_ok(), complete, "{} at {at}: {read:?}", sample.name);
            for garbage in [&b"\xFF\x00"[..], b"\x00", b"\x00{}\n\n\xFE"] {
                let read = sample.read(vec![sample.head(at), Step::Bytes(garbage.to_vec()), sample.tail(at)]).await;
                let good = || Ok(TEXT.to_owned());
                let garbled = || Err("garbled".to_owned());
                let expected: &[Outcome] = match at {
                    at if sample.streamed && at >= sample.reply_end => &[good()],
                    // A blank line inside the garbage may end the last event that counts.
                    at if sample.streamed && at + 2 >= sample.reply_end => &[good(), garbled()],
                    at if at >= sample.first_event_end => &[garbled()],
                    _ => &[Err("protocol".to_owned()), garbled()],
                };
                assert!(expected.contains(&read), "{} with {garbage:?} at {at}: {read:?}", sample.name);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn incomplete_characters_are_never_accepted_as_a_reply() {
    for sample in samples() {
        let inside: Vec<usize> = (0..sample.bytes.len()).filter(|at| sample.bytes[*at] >= 0x80).collect();
        assert!(inside.len() >= 13, "{}", sample.name);
        for at in inside {
            let mut bytes = sample.bytes.clone();
            bytes.remove(at);
            let read = sample.read(vec![Step::Bytes(bytes)]).await;
            assert_eq!(read, Err("garbled".to_owned()), "{} without the byte at {at}", sample.name);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_endless_response_is_aborted() {
    let fillings: [&[u8]; 4] = [b": keepalive\n", b"data: endless ", b" ", b"{\"a\":"];
    for sample in samples() {
        for filling in fillings {
            for at in [0, sample.first_event_end] {
                let block = filling.repeat(100_000 / filling.len());
                let mut steps = vec![sample.head(at)];
                steps.extend(std::iter::repeat_n(Step::Bytes(block), MAX_REPLY_BYTES / 90_000));
                let read = sample.read(steps).await;
                // Some fillings are invalid in a stream, which is detected earlier.
                let kinds = ["too_large", "garbled", "protocol"];
                assert!(read.as_ref().is_err_and(|kind| kinds.contains(&kind.as_str())), "{}: {read:?}", sample.name);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn repeated_events_repeat_the_text_without_errors() {
    for sample in samples().into_iter().filter(|sample| sample.streamed) {
        let text = String::from_utf8(sample.bytes.clone()).unwrap();
        let twice: String = text.split_inclusive("\n\n").map(|event| event.repeat(2)).collect();
        let read = sample.read(vec![Step::Bytes(twice.into_bytes())]).await.unwrap();
        let (first, rest) = TEXT.split_at("您".len());
        assert_eq!(read, format!("{first}{first}{rest}{rest}"), "{}", sample.name);
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_inside_a_stream_is_reported_unless_the_reply_is_complete() {
    let error = b"data: {\"type\": \"error\", \"error\": {\"type\": \"overloaded_error\", \"message\": \"m\"}}\n\n";
    for sample in samples().into_iter().filter(|sample| sample.streamed) {
        let ends: Vec<usize> = (0..sample.bytes.len()).filter(|at| sample.bytes[..*at].ends_with(b"\n\n")).collect();
        for at in std::iter::once(0).chain(ends) {
            let read = sample.read(vec![sample.head(at), Step::Bytes(error.to_vec())]).await;
            let expected =
                if at >= sample.reply_end { Ok(TEXT.to_owned()) } else { Err("reported Some(529)".to_owned()) };
            assert_eq!(read, expected, "{} at {at}", sample.name);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn text_next_to_a_tool_call_is_not_part_of_the_reply() {
    let events = [
        json!({ "choices": [{ "delta": { "content": "好的，" } }] }),
        json!({ "choices": [{ "delta": { "tool_calls": [{ "function": { "arguments": "{}" } }] } }] }),
        json!({ "choices": [{ "delta": { "content": "完成" }, "finish_reason": "tool_calls" }] }),
    ];
    let called = stream("chat, tool", false, true, &events, 0, 2);
    assert_eq!(called.read(vec![called.tail(0)]).await.as_deref(), Ok("{}"));
    // A model that does not call the tool replies with text; the last request contains no tool.
    let without_call = stream("chat, tool", false, true, &[events[0].clone(), events[2].clone()], 0, 1);
    assert_eq!(without_call.read(vec![without_call.tail(0)]).await.as_deref(), Ok("好的，完成"));
    let unasked = stream("chat", false, false, &events, 0, 2);
    assert_eq!(unasked.read(vec![unasked.tail(0)]).await.as_deref(), Ok("好的，完成"));
}

/// Reads the bytes of `sample` with `bytes` instead, cut in two at every place.
async fn read_cut(sample: &Sample, bytes: &[u8]) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for at in 0..=bytes.len() {
        let steps = [&bytes[..at], &bytes[at..]].into_iter().filter(|part| !part.is_empty());
        outcomes.push(sample.read(steps.map(|part| Step::Bytes(part.to_vec())).collect()).await);
    }
    outcomes.dedup();
    outcomes
}

#[tokio::test(start_paused = true)]
async fn a_byte_order_mark_is_ignored() {
    for sample in samples() {
        let bytes = ["\u{feff}".as_bytes(), &sample.bytes].concat();
        assert_eq!(read_cut(&sample, &bytes).await, [Ok(TEXT.to_owned())], "{}", sample.name);
    }
}

#[tokio::test(start_paused = true)]
async fn halves_of_a_character_are_joined_across_events() {
    let event = |text: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
    let table: [(&[&str], &str); 6] = [
        (&["a\\ud83d", "\\ude00b"], "a😀b"),
        (&["\\ud83d\\ude00\\ud83d", "", "\\ude00\\ud83d", "\\ude00"], "😀😀😀"),
        (&["\\ud83d", "x"], "\u{fffd}x"),
        (&["x\\ud83d"], "x\u{fffd}"),
        (&["\\ude00", "\\ud83dx\\ude00"], "\u{fffd}\u{fffd}x\u{fffd}"),
        (&["\\\\ud83d", "\\\\ude00"], "\\ud83d\\ude00"),
    ];
    let sample = samples().swap_remove(0);
    for (pieces, expected) in table {
        let bytes = pieces.iter().map(|text| event(text)).collect::<String>() + "data: [DONE]\n\n";
        assert_eq!(sample.read(vec![Step::Bytes(bytes.into_bytes())]).await, Ok(expected.to_owned()), "{pieces:?}");
    }
}
