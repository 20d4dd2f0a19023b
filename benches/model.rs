//! Measures the cost of a model call through our client, compared with a bare `reqwest` call to the same server on this machine (the
//! issue asks for at most 1.1 ×, with 1 and with 64 concurrent calls).
//!
//! The bare call sends the same bytes with an equally configured client and reads the complete answer without parsing it. Both sides are
//! measured alternately in the same process, so that other load affects both. The server has its own thread and answers from memory,
//! once as fast as possible and once with a token every millisecond, like a fast model. `BCC_BENCH_PAIRS` sets the number of pairs of
//! rounds (200).

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a bench may fail where it stands, and prints its table"
)]

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bcc_llm::model::message::{ChatMessage, Role};
use bcc_llm::model::provider::{NoLiveOutput, Provider};
use bcc_llm::model::request::{ModelRequest, Task};
use bcc_llm::providers::anthropic::MESSAGES;
use bcc_llm::providers::http::caller::Caller;
use bcc_llm::providers::http::config::{ServerConfig, Structured};
use bcc_llm::providers::openai::CHAT_COMPLETIONS;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use crate::support::median;

mod support;

/// The tokens of a reply, about as many as a turn of an `ai_ask` has.
const TOKENS: usize = 120;

/// The numbers of concurrent calls.
const WIDTHS: [usize; 2] = [1, 64];

#[derive(Clone, Copy, PartialEq)]
enum Protocol {
    Chat,
    Messages,
}

/// The events of a reply, one for each token.
fn events(protocol: Protocol) -> Vec<Vec<u8>> {
    let mut events: Vec<String> = Vec::new();
    match protocol {
        Protocol::Chat => {
            let chunk = |delta: serde_json::Value, reason: Option<&str>| {
                json!({ "id": "chatcmpl-8f1c2d3e4b5a69788796a5b4c3d2e1f0", "object": "chat.completion.chunk",
                    "created": 1_795_000_000, "model": "qwen3-32b", "system_fingerprint": null,
                    "choices": [{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": reason }] })
                .to_string()
            };
            events.extend((0..TOKENS).map(|_| chunk(json!({ "content": "睡得好" }), None)));
            events.push(chunk(json!({}), Some("stop")));
            let usage = json!({ "prompt_tokens": 1_800, "completion_tokens": TOKENS });
            events.push(json!({ "model": "qwen3-32b", "choices": [], "usage": usage }).to_string());
            events.push("[DONE]".to_owned());
        }
        Protocol::Messages => {
            let usage = json!({ "input_tokens": 1_800, "output_tokens": 1 });
            events.push(json!({ "type": "message_start", "message": { "model": "m", "usage": usage } }).to_string());
            let delta = json!({ "type": "content_block_delta", "index": 0,
                "delta": { "type": "text_delta", "text": "睡得好" } });
            events.extend((0..TOKENS).map(|_| delta.to_string()));
            let usage = json!({ "output_tokens": TOKENS });
            events.push(
                json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": usage }).to_string(),
            );
            events.push(json!({ "type": "message_stop" }).to_string());
        }
    }
    let framed = events.iter().map(|event| format!("data: {event}\n\n"));
    framed.map(|event| format!("{:x}\r\n{event}\r\n", event.len()).into_bytes()).collect()
}

/// Starts a server in its own thread and returns its address. `pace` is the time between two events.
fn serve(protocol: Protocol, pace: Option<Duration>) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let host = listener.local_addr().expect("its address").to_string();
    listener.set_nonblocking(true).expect("a socket of the runtime");
    std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            let listener = TcpListener::from_std(listener).expect("a socket of the runtime");
            let events: Arc<Vec<Vec<u8>>> = Arc::new(events(protocol));
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve_connection(stream, Arc::clone(&events), pace));
            }
        });
    });
    host
}

async fn serve_connection(mut stream: TcpStream, events: Arc<Vec<Vec<u8>>>, pace: Option<Duration>) -> Option<()> {
    const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.set_nodelay(true).ok()?;
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        loop {
            if stream.read_buf(&mut bytes).await.ok()? == 0 {
                return None;
            }
            let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
            let head = String::from_utf8_lossy(bytes.get(..end)?).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
            if bytes.len() >= end + 4 + length.unwrap_or(0_usize) {
                break;
            }
        }
        match pace {
            None => stream.write_all(&[HEAD, &events.concat(), b"0\r\n\r\n"].concat()).await.ok()?,
            Some(pace) => {
                stream.write_all(HEAD).await.ok()?;
                for event in events.iter() {
                    tokio::time::sleep(pace).await;
                    stream.write_all(event).await.ok()?;
                }
                stream.write_all(b"0\r\n\r\n").await.ok()?;
            }
        }
    }
}

/// A request as large as the prompt of an `ai_ask` in the middle of a conversation.
fn request() -> ModelRequest {
    let text = "来访者最近晚上总是睡得不太好，白天也提不起精神，不过今天比前些天好些了。".repeat(20);
    ModelRequest {
        messages: vec![
            ChatMessage { role: Role::System, content: text.clone() },
            ChatMessage { role: Role::User, content: text },
        ],
        schema: None,
        temperature: Some(0.4),
        max_tokens: Some(2_000),
        task: Task { kind: "ai_ask".into(), action_id: "a".into(), path: "a".into(), round: 1, ..Task::default() },
    }
}

/// The time per call in microseconds, with `width` concurrent calls.
async fn round<F: Future<Output = ()> + Send + 'static>(width: usize, call: impl Fn() -> F) -> f64 {
    let began = Instant::now();
    let mut calls = JoinSet::new();
    for _ in 0..width {
        calls.spawn(call());
    }
    while let Some(done) = calls.join_next().await {
        done.expect("a call");
    }
    began.elapsed().as_secs_f64() * 1e6 / width as f64
}

async fn compare(name: &str, protocol: Protocol, pace: Option<Duration>, pairs: usize) {
    let host = serve(protocol, pace);
    let config = ServerConfig {
        structured: Structured::Off,
        max_attempts: 1,
        ..ServerConfig::new(format!("http://{host}/v1"), "m")
    };
    let provider: Arc<dyn Provider> = match protocol {
        Protocol::Chat => Arc::new(Caller::new(&CHAT_COMPLETIONS, config).expect("a provider")),
        Protocol::Messages => Arc::new(Caller::new(&MESSAGES, config).expect("a provider")),
    };
    let request = Arc::new(request());
    let path = if protocol == Protocol::Chat { "chat/completions" } else { "messages" };
    let url = format!("http://{host}/v1/{path}");
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let body = json!({ "model": "m", "messages": request.messages, "stream": true, "temperature": 0.4,
        "max_tokens": 2_000, "stream_options": { "include_usage": true } })
    .to_string()
    .into_bytes();
    let ours = || {
        let (provider, request) = (Arc::clone(&provider), Arc::clone(&request));
        async move {
            let reply = provider.complete(&request, &mut NoLiveOutput).await.expect("a reply");
            assert_eq!(reply.text.chars().count(), 3 * TOKENS);
        }
    };
    let bare = || {
        let sent = client.post(&url).header("content-type", "application/json").body(body.clone()).send();
        async move {
            let answer = sent.await.expect("an answer").bytes().await.expect("all of it");
            assert!(answer.len() > TOKENS * 20);
        }
    };
    for width in WIDTHS {
        // Opens the connections before the measurement.
        for _ in 0..3 {
            round(width, &ours).await;
            round(width, &bare).await;
        }
        let (mut our_times, mut bare_times) = (Vec::new(), Vec::new());
        for _ in 0..pairs.div_ceil(width.min(8)) {
            our_times.push(round(width, &ours).await);
            bare_times.push(round(width, &bare).await);
        }
        let (our_median, bare_median) = (median(&mut our_times), median(&mut bare_times));
        println!(
            "  {name:34} {width:3} at a time   ours {our_median:9.1} µs   bare {bare_median:9.1} µs   {:.3} ×",
            our_median / bare_median
        );
    }
}

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let pairs: usize = std::env::var("BCC_BENCH_PAIRS").ok().and_then(|pairs| pairs.parse().ok()).unwrap_or(200);
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    println!("a call of {TOKENS} tokens, {pairs} pairs (at most 1.1 ×)");
    runtime.block_on(async {
        for (name, protocol) in [("chat completions", Protocol::Chat), ("messages", Protocol::Messages)] {
            compare(&format!("{name}, all at once"), protocol, None, pairs).await;
            compare(&format!("{name}, 1 ms a token"), protocol, Some(Duration::from_millis(1)), pairs.min(20)).await;
        }
    });
}
