//! Tests of the provider with a local server: requests and responses.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::model::error::{ModelError, TimeoutPhase};
use crate::model::message::{ChatMessage, Role};
use crate::model::provider::{NoLiveOutput, Provider};
use crate::model::reply::ModelReply;
use crate::model::request::{ModelRequest, Task};
use crate::providers::anthropic::MESSAGES;
use crate::providers::http::caller::Caller;
use crate::providers::http::config::{ServerConfig, Structured};
use crate::providers::http::fake::{CapturedDeltas, FakeServer, Step, plain, stream};

const KEY: &str = "sk-ant-very-secret";

/// Long enough for a busy machine, for tests that expect no timeout.
const LONG: Duration = Duration::from_secs(20);

const SHORT: Duration = Duration::from_millis(60);

fn config(server: &FakeServer) -> ServerConfig {
    ServerConfig {
        api_key: Some(KEY.into()),
        timeout: LONG,
        first_token_timeout: LONG,
        idle_timeout: LONG,
        first_backoff: Duration::from_millis(1),
        ..ServerConfig::new(format!("http://{}", server.host), "claude-x")
    }
}

fn request() -> ModelRequest {
    ModelRequest {
        messages: vec![
            ChatMessage { role: Role::System, content: "您是咨询师".into() },
            ChatMessage { role: Role::Assistant, content: "您好".into() },
            ChatMessage { role: Role::User, content: "你好".into() },
        ],
        schema: Some(Arc::new(json!({ "type": "object" }))),
        task: Task {
            kind: "TASK".into(),
            action_id: "TASK".into(),
            path: "TASK".into(),
            content: "TASK".into(),
            round: 1,
            ..Task::default()
        },
        ..ModelRequest::default()
    }
}

fn start() -> String {
    json!({ "type": "message_start", "message": { "model": "claude-x-1", "usage": { "input_tokens": 11,
        "cache_read_input_tokens": 100, "output_tokens": 1 } } })
    .to_string()
}

fn delta(delta: &Value) -> String {
    json!({ "type": "content_block_delta", "index": 0, "delta": delta }).to_string()
}

fn text_event(text: &str) -> String {
    delta(&json!({ "type": "text_delta", "text": text }))
}

fn end(reason: &str) -> String {
    json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": { "output_tokens": 7 } }).to_string()
}

const STOP: &str = "{\"type\": \"message_stop\"}";

fn good(text: &str) -> Vec<Step> {
    stream(&[&start(), "{\"type\": \"ping\"}", &text_event(text), &end("end_turn"), STOP])
}

fn reject(status: u16, kind: &str, message: &str) -> Vec<Step> {
    let body = json!({ "type": "error", "error": { "type": kind, "message": message } }).to_string();
    vec![Step::Send(plain(status, "application/json", "", &body))]
}

fn bodies(server: &FakeServer) -> Vec<Value> {
    let body = |sent: &String| serde_json::from_str(sent.split_once("\r\n\r\n").unwrap().1).unwrap();
    server.requests().iter().map(body).collect()
}

async fn ask(settings: ServerConfig) -> (Result<ModelReply, ModelError>, CapturedDeltas) {
    let mut captured = CapturedDeltas::default();
    let result = Caller::new(&MESSAGES, settings).unwrap().complete(&request(), &mut captured).await;
    (result, captured)
}

#[tokio::test]
async fn a_request_has_the_format_of_the_api() {
    let server = FakeServer::start([good("好"), good("好")]).await;
    let mut settings = config(&server);
    settings.extra = Map::from_iter([("top_k".to_owned(), json!(5))]);
    let provider = Caller::new(&MESSAGES, settings).unwrap();
    assert_eq!(provider.name(), "anthropic:claude-x");
    provider.complete(&request(), &mut NoLiveOutput).await.unwrap();
    let sent = server.requests().remove(0);
    let (headers, _) = sent.split_once("\r\n\r\n").unwrap();
    let headers = headers.to_ascii_lowercase();
    assert!(headers.starts_with("post /v1/messages http/1.1"), "{headers}");
    assert!(headers.contains(&format!("\r\nx-api-key: {KEY}")), "{headers}");
    assert!(headers.contains("\r\nanthropic-version: 2023-06-01"), "{headers}");
    assert!(!headers.contains("authorization") && !sent.contains("TASK"), "{sent}");
    let expected = json!({
        "model": "claude-x",
        "max_tokens": 4096,
        "system": "您是咨询师",
        "messages": [{ "role": "user", "content": "…" }, { "role": "assistant", "content": "您好" },
            { "role": "user", "content": "你好" }],
        "stream": true,
        "tools": [{ "name": "reply", "description": "Gives the reply. Call it exactly once.",
            "input_schema": { "type": "object" } }],
        "tool_choice": { "type": "tool", "name": "reply", "disable_parallel_tool_use": true },
        "top_k": 5,
    });
    assert_eq!(bodies(&server)[0], expected);
    let asked = ModelRequest { schema: None, temperature: Some(0.5), max_tokens: Some(9), ..request() };
    provider.complete(&asked, &mut NoLiveOutput).await.unwrap();
    let body = &bodies(&server)[1];
    assert_eq!((&body["temperature"], &body["max_tokens"]), (&json!(0.5), &json!(9)));
    assert!(body.get("tools").is_none() && body.get("tool_choice").is_none());
}

#[tokio::test]
async fn text_and_tool_calls_are_streamed_and_counted() {
    let thinking = delta(&json!({ "type": "thinking_delta", "thinking": "hm" }));
    let input = |text: &str| delta(&json!({ "type": "input_json_delta", "partial_json": text }));
    let server = FakeServer::start([
        stream(&[&start(), &thinking, &text_event("您"), &text_event("好"), &end("max_tokens"), STOP]),
        stream(&[&start(), &text_event("好的："), &input("{\"a\""), &input(": 1}"), &end("tool_use"), STOP]),
    ])
    .await;
    let provider = Caller::new(&MESSAGES, config(&server)).unwrap();
    let mut captured = CapturedDeltas::default();
    let reply = provider.complete(&request(), &mut captured).await.unwrap();
    assert_eq!(captured.0, ["您", "好"]);
    assert_eq!((reply.text.as_str(), reply.model.as_str(), reply.attempts), ("您好", "claude-x-1", 1));
    assert_eq!((reply.tokens_in, reply.tokens_out, reply.cut_off), (Some(111), Some(7), true));
    let mut captured = CapturedDeltas::default();
    let reply = provider.complete(&request(), &mut captured).await.unwrap();
    assert_eq!(captured.0, ["好的：", "<restart>", "{\"a\"", ": 1}"]);
    assert_eq!((reply.text.as_str(), reply.cut_off), ("{\"a\": 1}", false));
}

#[tokio::test]
async fn responses_without_streaming_are_supported() {
    let body = json!({ "type": "message", "model": "m", "content": [{ "type": "tool_use", "input": { "a": 1 } }],
        "stop_reason": "tool_use", "usage": { "input_tokens": 3, "output_tokens": 2 } });
    let server = FakeServer::start([vec![Step::Send(plain(200, "application/json", "", &body.to_string()))]]).await;
    let reply = ask(config(&server)).await.0.unwrap();
    assert_eq!((reply.text.as_str(), reply.tokens_in, reply.tokens_out), ("{\"a\":1}", Some(3), Some(2)));
}

#[tokio::test]
async fn transient_errors_are_retried() {
    let overloaded = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
    let table = [
        reject(529, "overloaded_error", "Overloaded"),
        reject(429, "rate_limit_error", "slow down"),
        stream(&[&start(), &overloaded.to_string()]),
        stream(&[&start(), &text_event("您"), &overloaded.to_string()]),
        stream(&[&start(), &text_event("您")]),
        stream(&[&start(), &text_event("您"), "{\"type\": \"content_bl"]),
        vec![],
    ];
    for steps in table {
        let server = FakeServer::start([steps, good("好")]).await;
        let (reply, captured) = ask(config(&server)).await;
        let reply = reply.unwrap();
        assert_eq!((reply.text.as_str(), reply.attempts), ("好", 2));
        assert_eq!(captured.0[captured.0.len() - 2..], ["<restart>", "好"]);
    }
}

#[tokio::test]
async fn permanent_errors_are_returned_immediately() {
    let table = [
        (401, "authentication_error", "invalid x-api-key sk-ant-very-secret", "API key"),
        (400, "invalid_request_error", "max_tokens: 90000 > 8192", "settings"),
        (404, "not_found_error", "model: claude-9", "`model`"),
        (413, "request_too_large", "too large", "prompt"),
    ];
    for (status, kind, message, advice) in table {
        let in_stream = json!({ "type": "error", "error": { "type": kind, "message": message } }).to_string();
        for steps in [reject(status, kind, message), stream(&[&start(), &in_stream])] {
            let server = FakeServer::start([steps]).await;
            let error = ask(config(&server)).await.0.unwrap_err();
            assert!(
                matches!(error, ModelError::Http { status: actual, attempts: 1, .. } if actual == status),
                "{error:?}"
            );
            let line = error.to_string();
            assert!(line.contains(advice) && !line.contains(KEY), "{line}");
        }
    }
}

#[tokio::test]
async fn after_a_rejection_of_tools_requests_contain_none() {
    let message = "Thinking may not be enabled when tool_choice forces tool use.";
    let server = FakeServer::start([reject(400, "invalid_request_error", message), good("一"), good("二")]).await;
    let provider = Caller::new(&MESSAGES, ServerConfig { max_attempts: 1, ..config(&server) }).unwrap();
    assert_eq!(provider.complete(&request(), &mut NoLiveOutput).await.unwrap().text, "一");
    assert_eq!(provider.complete(&request(), &mut NoLiveOutput).await.unwrap().text, "二");
    let asked: Vec<bool> = bodies(&server).iter().map(|body| body.get("tools").is_some()).collect();
    assert_eq!(asked, [true, false, false]);
}

#[tokio::test]
async fn timeouts_without_data_are_reported() {
    let first = [stream(&[&start()]), vec![Step::Hang]].concat();
    let idle = [stream(&[&start(), &text_event("您")]), vec![Step::Hang]].concat();
    for (steps, phase) in [(first, TimeoutPhase::FirstToken), (idle, TimeoutPhase::Idle)] {
        let server = FakeServer::start([steps]).await;
        let mut settings = ServerConfig { max_attempts: 1, ..config(&server) };
        match phase {
            TimeoutPhase::FirstToken => settings.first_token_timeout = SHORT,
            _ => settings.idle_timeout = SHORT,
        }
        let error = ask(settings).await.0.unwrap_err();
        assert_eq!(error, ModelError::Timeout { host: server.host.clone(), phase, after: SHORT, attempts: 1 });
    }
}

#[tokio::test]
async fn unsupported_settings_are_rejected() {
    let server = FakeServer::start([]).await;
    for form in [Structured::JsonSchema, Structured::JsonObject] {
        let error =
            Caller::new(&MESSAGES, ServerConfig { structured: form, ..config(&server) }).unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "`structured` cannot be \"{}\" for the provider `anthropic`; write \"auto\", \"tool\", \"off\"",
                form.name()
            )
        );
    }
    for key in ["system", "messages", "max_tokens"] {
        let mut settings = config(&server);
        settings.extra = Map::from_iter([(key.to_owned(), json!("x"))]);
        assert!(Caller::new(&MESSAGES, settings).unwrap_err().to_string().contains(key), "{key}");
    }
    let mut settings = config(&server);
    settings.headers = vec![("X-Api-Key".to_owned(), "other".into())];
    assert!(Caller::new(&MESSAGES, settings).unwrap_err().to_string().contains("API key"));
    let shown = format!("{:?}", Caller::new(&MESSAGES, config(&server)).unwrap());
    assert!(!shown.contains(KEY), "{shown}");
}
