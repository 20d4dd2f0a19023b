//! Tests of the provider with local servers that respond correctly, incorrectly or not at all.

mod structured;

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::model::error::{ModelError, TimeoutPhase};
use crate::model::message::{ChatMessage, Role};
use crate::model::provider::{NoLiveOutput, Provider, RetryLimiter};
use crate::model::reply::ModelReply;
use crate::model::request::{ModelRequest, Purpose, Task, WantedOutput};
use crate::providers::http::caller::Caller;
use crate::providers::http::config::ServerConfig;
use crate::providers::http::fake::{CapturedDeltas, FakeServer, Step, events, head, plain, stream};
use crate::providers::http::reading::MAX_REPLY_BYTES;
use crate::providers::openai::CHAT_COMPLETIONS;

/// Long enough for a busy machine, for tests that expect no timeout.
const LONG: Duration = Duration::from_secs(20);

const SHORT: Duration = Duration::from_millis(60);

const KEY: &str = "sk-very-secret";

fn config(base_url: &str) -> ServerConfig {
    ServerConfig {
        api_key: Some(KEY.into()),
        timeout: LONG,
        first_token_timeout: LONG,
        idle_timeout: LONG,
        first_backoff: Duration::from_millis(1),
        ..ServerConfig::new(base_url, "qwen3")
    }
}

fn request() -> ModelRequest {
    ModelRequest {
        messages: vec![
            ChatMessage { role: Role::System, content: "您是咨询师".into() },
            ChatMessage { role: Role::User, content: "你好".into() },
        ],
        task: Task {
            purpose: Purpose::Action,
            session: "TASK_session".into(),
            kind: "TASK_kind".into(),
            action_id: "TASK_action".into(),
            path: "TASK_path".into(),
            content: "TASK_content".into(),
            wanted: vec![WantedOutput {
                name: "TASK_output".into(),
                declared: None,
                choices: vec![json!("TASK_choice")],
                define: Some("TASK_define".into()),
                required: true,
                heard: false,
            }],
            answer: Some("TASK_answer".into()),
            inputs: vec![("TASK_input".into(), json!("TASK_value"))],
            round: 4711,
            call: 4712,
            opening: false,
            reply_schema: Some(std::sync::Arc::new(json!({ "title": "TASK_schema" }))),
        },
        ..ModelRequest::default()
    }
}

fn piece(text: &str) -> String {
    json!({ "model": "qwen3:8b", "choices": [{ "index": 0, "delta": { "content": text }, "finish_reason": null }] })
        .to_string()
}

fn end(reason: &str) -> String {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] }).to_string()
}

fn good(text: &str) -> Vec<Step> {
    stream(&[&piece(text), &end("stop"), "[DONE]"])
}

async fn ask(server: &FakeServer) -> (Result<ModelReply, ModelError>, CapturedDeltas) {
    ask_with(config(&server.base_url)).await
}

async fn ask_with(config: ServerConfig) -> (Result<ModelReply, ModelError>, CapturedDeltas) {
    let mut captured = CapturedDeltas::default();
    let result = Caller::new(&CHAT_COMPLETIONS, config).unwrap().complete(&request(), &mut captured).await;
    (result, captured)
}

#[tokio::test]
async fn a_reply_is_streamed_and_counted() {
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 11, "completion_tokens": 5 } }).to_string();
    let thinking = json!({ "choices": [{ "delta": { "reasoning_content": "hm" } }] }).to_string();
    let server = FakeServer::start([vec![
        Step::Send(head("text/event-stream; charset=utf-8")),
        Step::Send(b": keepalive\n\n".to_vec()),
        Step::Send(events(&[&thinking, &piece("您"), &piece("好"), &end("length"), &usage, "[DONE]"])),
    ]])
    .await;
    let (reply, captured) = ask(&server).await;
    let reply = reply.unwrap();
    assert_eq!(captured.0, ["您", "好"]);
    assert_eq!((reply.text.as_str(), reply.model.as_str(), reply.attempts), ("您好", "qwen3:8b", 1));
    assert_eq!((reply.tokens_in, reply.tokens_out), (Some(11), Some(5)));
}

#[tokio::test]
async fn without_usage_the_tokens_are_estimated() {
    let server = FakeServer::start([good("您好啊")]).await;
    let reply = ask(&server).await.0.unwrap();
    assert_eq!((reply.tokens_in, reply.tokens_out), (Some(5 + 4 + 2 + 4), Some(3)));
}

#[tokio::test]
async fn the_task_is_never_sent_to_the_server() {
    let server = FakeServer::start([good("x")]).await;
    ask(&server).await.0.unwrap();
    let sent = server.requests().remove(0);
    // The port of the server may contain the same digits.
    let actual: Vec<&str> = sent.lines().filter(|line| !line.to_ascii_lowercase().starts_with("host:")).collect();
    let actual = actual.join("\n");
    assert!(!actual.contains("TASK") && !actual.contains("471"), "{actual}");
    let (_, body) = sent.split_once("\r\n\r\n").unwrap();
    let expected = json!({
        "model": "qwen3",
        "messages": [{ "role": "system", "content": "您是咨询师" }, { "role": "user", "content": "你好" }],
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    assert_eq!(serde_json::from_str::<Value>(body).unwrap(), expected);
}

#[tokio::test]
async fn settings_of_a_request_override_the_configured_ones() {
    let answer = json!({ "choices": [{ "message": { "content": "x" } }] }).to_string();
    let answer = || vec![Step::Send(plain(200, "application/json", "", &answer))];
    let server = FakeServer::start([answer(), answer()]).await;
    let base_url = format!("{}/", server.base_url);
    let config = ServerConfig { temperature: Some(0.4), max_tokens: Some(100), ..config(&base_url) };
    let provider = Caller::new(&CHAT_COMPLETIONS, config).unwrap();
    assert_eq!(provider.name(), "openai:qwen3");
    provider.complete(&request(), &mut NoLiveOutput).await.unwrap();
    let asked = ModelRequest { temperature: Some(0.0), max_tokens: Some(7), ..request() };
    provider.complete(&asked, &mut NoLiveOutput).await.unwrap();
    let body = |sent: &String| serde_json::from_str(sent.split_once("\r\n\r\n").unwrap().1).unwrap();
    let bodies: Vec<Value> = server.requests().iter().map(body).collect();
    for sent in server.requests() {
        assert!(sent.starts_with("POST /v1/chat/completions "), "{sent}");
        assert!(sent.contains(&format!("\r\nauthorization: Bearer {KEY}\r\n")), "{sent}");
    }
    assert_eq!((&bodies[0]["temperature"], &bodies[0]["max_tokens"]), (&json!(0.4), &json!(100)));
    assert_eq!((&bodies[1]["temperature"], &bodies[1]["max_tokens"]), (&json!(0.0), &json!(7)));
}

#[tokio::test]
async fn responses_without_streaming_are_supported() {
    let body = json!({ "model": "m", "choices": [{ "message": { "content": "您好" }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 3, "completion_tokens": 2 } });
    for kind in ["application/json", "Application/JSON; charset=utf-8", "text/plain", "text/event-stream", "text/html"]
    {
        let server = FakeServer::start([vec![Step::Send(plain(200, kind, "", &format!("\n {body}")))]]).await;
        let (reply, captured) = ask(&server).await;
        assert_eq!(reply.unwrap().text, "您好", "{kind}");
        assert_eq!(captured.0, ["您好"], "{kind}");
    }
}

#[tokio::test]
async fn piece_boundaries_may_be_inside_a_character() {
    let stream = events(&[&piece("您好，😀"), &end("stop"), "[DONE]"]);
    let crlf = String::from_utf8(stream.clone()).unwrap().replace('\n', "\r\n").into_bytes();
    for stream in [stream, crlf] {
        let mut steps = vec![Step::Send(head("text/event-stream"))];
        steps.extend(stream.chunks(7).map(|chunk| Step::Send(chunk.to_vec())));
        let server = FakeServer::start([steps]).await;
        assert_eq!(ask(&server).await.0.unwrap().text, "您好，😀");
    }
}

#[tokio::test]
async fn transient_errors_are_retried() {
    let broken = |status, headers| vec![Step::Send(plain(status, "application/json", headers, "{}"))];
    let table = [
        broken(500, ""),
        broken(429, "retry-after: 0\r\n"),
        broken(503, "retry-after: Wed, 21 Oct 2015 07:28:00 GMT\r\n"),
        broken(529, ""),
        vec![],
        vec![Step::Send(head("text/event-stream"))],
        vec![Step::Send(b"HTTP/1.1 200 OK\r\ncontent-le".to_vec())],
        stream(&[r#"{"error": {"message": "m", "code": 503}}"#]),
    ];
    for steps in table {
        let server = FakeServer::start([steps, good("好")]).await;
        let (reply, captured) = ask(&server).await;
        let reply = reply.unwrap();
        assert_eq!((reply.text.as_str(), reply.attempts), ("好", 2));
        assert_eq!(captured.0, ["<restart>", "好"]);
    }
}

#[tokio::test]
async fn a_truncated_reply_is_restarted() {
    let cut = vec![
        Step::Send(head("text/event-stream")),
        Step::Send(events(&[&piece("您")])),
        Step::Send(b"data: {\"cho".to_vec()),
    ];
    let server = FakeServer::start([cut, good("您好")]).await;
    let (reply, captured) = ask(&server).await;
    assert_eq!(reply.unwrap().text, "您好");
    assert_eq!(captured.0, ["您", "<restart>", "您好"]);
}

#[tokio::test]
async fn the_number_of_attempts_is_limited_and_reported() {
    let cut = || stream(&[&piece("您")]);
    let server = FakeServer::start([cut(), cut(), cut(), cut()]).await;
    let (reply, _) = ask(&server).await;
    assert_eq!(reply.unwrap_err(), ModelError::CutOff { host: server.host.clone(), attempts: 4 });
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn a_stream_without_an_end_marker_is_complete() {
    let table: [&[Vec<u8>]; 3] = [
        &[events(&[&piece("好"), &end("stop")])],
        &[events(&[&piece("好")]), b"data: [DONE]".to_vec()],
        &[events(&[&piece("好")]), format!("data: {}", end("stop")).into_bytes()],
    ];
    for chunks in table {
        let mut steps = vec![Step::Send(head("text/event-stream"))];
        steps.extend(chunks.iter().cloned().map(Step::Send));
        let server = FakeServer::start([steps]).await;
        assert_eq!(ask(&server).await.0.unwrap().text, "好");
    }
}

#[tokio::test]
async fn a_finished_reply_does_not_wait_for_missing_usage() {
    let mut steps = stream(&[&piece("好"), &end("stop")]);
    steps.push(Step::Hang);
    let server = FakeServer::start([steps]).await;
    let (reply, _) = ask_with(ServerConfig { idle_timeout: SHORT, ..config(&server.base_url) }).await;
    assert_eq!(reply.unwrap().text, "好");
}

#[tokio::test]
async fn each_silence_has_its_own_timeout() {
    let first = [vec![Step::Hang], vec![Step::Send(head("text/event-stream")), Step::Hang]];
    for steps in first {
        let server = FakeServer::start([steps.clone(), steps]).await;
        let config = ServerConfig { first_token_timeout: SHORT, max_attempts: 2, ..config(&server.base_url) };
        let error = ask_with(config).await.0.unwrap_err();
        let phase = TimeoutPhase::FirstToken;
        assert_eq!(error, ModelError::Timeout { host: server.host.clone(), phase, after: SHORT, attempts: 2 });
    }
    let steps = || vec![Step::Send(head("text/event-stream")), Step::Send(events(&[&piece("您")])), Step::Hang];
    let server = FakeServer::start([steps(), good("好")]).await;
    let (reply, captured) = ask_with(ServerConfig { idle_timeout: SHORT, ..config(&server.base_url) }).await;
    assert_eq!(reply.unwrap().attempts, 2);
    assert_eq!(captured.0, ["您", "<restart>", "好"]);
    let server = FakeServer::start([steps()]).await;
    let after = Duration::from_millis(800);
    let error = ask_with(ServerConfig { timeout: after, ..config(&server.base_url) }).await.0.unwrap_err();
    assert_eq!(
        error,
        ModelError::Timeout { host: server.host.clone(), phase: TimeoutPhase::Total, after, attempts: 1 }
    );
}

#[tokio::test]
async fn permanent_errors_are_returned_immediately_with_advice() {
    let table =
        [(400, "model"), (401, "API key"), (403, "API key"), (404, "base_url"), (422, "settings"), (307, "redirects")];
    for (status, advice) in table {
        let body = json!({ "error": { "message": format!("bad\nkey {KEY} {}", "长".repeat(400)) } }).to_string();
        let answer = plain(status, "application/json", "location: /elsewhere\r\n", &body);
        let server = FakeServer::start([vec![Step::Send(answer)]]).await;
        let error = ask(&server).await.0.unwrap_err();
        assert_eq!(server.requests().len(), 1);
        let ModelError::Http { status: actual, message, attempts, .. } = &error else { panic!("{error:?}") };
        assert_eq!((*actual, *attempts), (status, 1));
        assert!(message.starts_with("bad key *** 长") && message.chars().count() == 301, "{message}");
        let line = error.to_string();
        assert!(line.contains(advice) && !line.contains(KEY) && !line.contains("/chat"), "{line}");
    }
}

#[tokio::test]
async fn a_long_retry_after_ends_the_call() {
    let server =
        FakeServer::start([vec![Step::Send(plain(429, "text/plain", "retry-after: 3600\r\n", "quota"))]]).await;
    let error = ask(&server).await.0.unwrap_err();
    assert_eq!(error.attempts(), 1);
    let line = error.to_string();
    assert!(line.contains("429 (quota)") && line.contains("asks to wait 1h"), "{line}");
}

#[tokio::test]
async fn after_a_rejection_of_stream_options_requests_contain_none() {
    let rejection = json!({ "error": { "message": "Unrecognized request argument: stream_options" } }).to_string();
    let reject = vec![Step::Send(plain(400, "application/json", "", &rejection))];
    let server = FakeServer::start([reject, good("一"), good("二")]).await;
    let provider =
        Caller::new(&CHAT_COMPLETIONS, ServerConfig { max_attempts: 1, ..config(&server.base_url) }).unwrap();
    assert_eq!(provider.complete(&request(), &mut NoLiveOutput).await.unwrap().text, "一");
    assert_eq!(provider.complete(&request(), &mut NoLiveOutput).await.unwrap().text, "二");
    let asked: Vec<bool> = server.requests().iter().map(|sent| sent.contains("include_usage")).collect();
    assert_eq!(asked, [true, false, false]);
}

/// Records how many requests the server had received before each retry.
struct RecordedRetries<'s>(&'s FakeServer, Mutex<Vec<usize>>);

#[async_trait]
impl RetryLimiter for RecordedRetries<'_> {
    async fn admit_retry(&self) {
        self.1.lock().unwrap().push(self.0.requests().len());
    }
}

#[tokio::test]
async fn every_request_after_the_first_is_admitted() {
    let busy = vec![Step::Send(plain(503, "application/json", "", "{}"))];
    let rejection = json!({ "error": { "message": "Unrecognized request argument: stream_options" } }).to_string();
    let reject = vec![Step::Send(plain(400, "application/json", "", &rejection))];
    let server = FakeServer::start([busy.clone(), reject, busy, good("一")]).await;
    let provider = Caller::new(&CHAT_COMPLETIONS, config(&server.base_url)).unwrap();
    let retries = RecordedRetries(&server, Mutex::default());
    provider.complete_with_retries(&request(), &mut NoLiveOutput, &retries).await.unwrap();
    assert_eq!(*retries.1.lock().unwrap(), [1, 2, 3]);
}

#[tokio::test]
async fn responses_above_four_megabytes_are_aborted() {
    let text = format!("data: {}\n\n", piece(&"长".repeat(10_000)));
    let fillings = [text.as_str(), ": keepalive\n", "data: endless line ", "\n", "data: {\"choices\": []}\n\n"];
    for filling in fillings {
        let block = filling.repeat(65_536 / filling.len() + 1).into_bytes();
        let server =
            FakeServer::start([vec![Step::Send(head("text/event-stream")), Step::Repeat(block, 50 * 1024 * 1024)]])
                .await;
        let error = ask(&server).await.0.unwrap_err();
        let expected = ModelError::TooLarge { host: server.host.clone(), limit: MAX_REPLY_BYTES, attempts: 1 };
        assert_eq!(error, expected, "{filling:.20}");
    }
    let body = vec![b' '; 65_536];
    let server =
        FakeServer::start([vec![Step::Send(head("application/json")), Step::Repeat(body, 50 * 1024 * 1024)]]).await;
    assert!(matches!(ask(&server).await.0, Err(ModelError::TooLarge { .. })));
}

#[tokio::test]
async fn responses_of_other_servers_are_reported() {
    let table = [
        plain(200, "text/html", "", "<html>login</html>"),
        plain(200, "application/json", "", "{\"ok\": true}"),
        plain(200, "application/json", "", "oops"),
        plain(200, "application/json", "", "[]"),
        plain(200, "text/plain", "", "hello"),
        plain(200, "text/event-stream", "", "data: hello\n\n"),
        plain(200, "text/event-stream", "", "data: {\"error\": \"it broke\"}\n\n"),
        plain(200, "application/json", "", "{\"error\": {\"message\": \"it broke\"}}"),
    ];
    for answer in table {
        let server = FakeServer::start([vec![Step::Send(answer.clone())]]).await;
        let error = ask(&server).await.0.unwrap_err();
        assert!(
            matches!(error, ModelError::Protocol { attempts: 1, .. }),
            "{}: {error:?}",
            String::from_utf8_lossy(&answer)
        );
    }
}

#[tokio::test]
async fn a_closed_port_is_unreachable_after_all_attempts() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    drop(listener);
    let error = ask_with(config(&format!("http://{host}/v1"))).await.0.unwrap_err();
    let ModelError::Unreachable { host: actual, reason, attempts } = &error else { panic!("{error:?}") };
    assert_eq!((actual, *attempts), (&host, 4));
    assert!(reason.contains("refused"), "{reason}");
}

#[test]
fn the_key_is_never_shown() {
    let provider = Caller::new(&CHAT_COMPLETIONS, config("http://127.0.0.1:1/v1")).unwrap();
    let shown = format!("{provider:?} {}", provider.name());
    assert!(!shown.contains(KEY), "{shown}");
}

#[test]
fn a_provider_can_be_shared_between_tasks() {
    fn shared<T: Provider + Send + Sync + 'static>() {}
    shared::<Caller>();
}
