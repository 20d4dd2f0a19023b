//! A model server on loopback that answers each connection with exactly the bytes of the test, in either protocol, and valid responses
//! from which faulty ones are made.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Sends these bytes and closes the connection.
    Bytes(Vec<u8>),
    /// Sends these bytes one by one.
    Drip(Vec<u8>),
    /// Sends these bytes and then nothing until the client closes the connection.
    Stall(Vec<u8>),
    /// Sends the first bytes, then the second again and again until the client closes the connection.
    Flood(Vec<u8>, Vec<u8>),
}

/// A running server, which stops on drop.
pub(crate) struct FaultyModelServer {
    pub(crate) host: String,
    plan: Arc<Mutex<Plan>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Plan {
    answers: VecDeque<Answer>,
    requests: usize,
}

impl FaultyModelServer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let plan = Arc::new(Mutex::new(Plan::default()));
        let shared = Arc::clone(&plan);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Self { host, plan, task }
    }

    /// Sets the responses to the next requests, in order; the last one is repeated.
    pub(crate) fn answers(&self, answers: impl IntoIterator<Item = Answer>) {
        *self.plan.lock().unwrap() = Plan { answers: answers.into_iter().collect(), requests: 0 };
    }

    /// The number of requests since the responses were set.
    pub(crate) fn requests(&self) -> usize {
        self.plan.lock().unwrap().requests
    }
}

impl Drop for FaultyModelServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, plan: Arc<Mutex<Plan>>) -> Option<()> {
    read_request(&mut stream).await?;
    let answer = {
        let mut plan = plan.lock().unwrap();
        plan.requests += 1;
        if plan.answers.len() > 1 { plan.answers.pop_front()? } else { plan.answers.front()?.clone() }
    };
    // Each piece is sent separately, so that the test mostly decides where pieces end.
    stream.set_nodelay(true).ok()?;
    match answer {
        Answer::Bytes(bytes) => stream.write_all(&bytes).await.ok()?,
        Answer::Drip(bytes) => {
            for byte in bytes {
                stream.write_all(&[byte]).await.ok()?;
                tokio::task::yield_now().await;
            }
        }
        Answer::Stall(bytes) => {
            stream.write_all(&bytes).await.ok()?;
            // Reading waits until the client closes the connection.
            stream.read_exact(&mut [0; 1]).await.ok()?;
        }
        Answer::Flood(head, block) => {
            stream.write_all(&head).await.ok()?;
            loop {
                stream.write_all(&block).await.ok()?;
            }
        }
    }
    stream.shutdown().await.ok()
}

async fn read_request(stream: &mut TcpStream) -> Option<()> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
        if bytes.len() >= end + 4 + length.unwrap_or(0) {
            return Some(());
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Chat,
    Messages,
}

pub(crate) const PROTOCOLS: [Protocol; 2] = [Protocol::Chat, Protocol::Messages];

/// A valid response as bytes, with the positions of its parts.
#[derive(Clone)]
pub(crate) struct Good {
    pub(crate) raw: Vec<u8>,
    /// Where the body starts.
    pub(crate) body: usize,
    /// Where the first event ends.
    pub(crate) known: usize,
    /// Where the end of the reply is known.
    pub(crate) finished: usize,
    pub(crate) streamed: bool,
}

/// A stream with the reply `text`.
pub(crate) fn streamed(protocol: Protocol, text: &str) -> Good {
    let (first, rest) = text.split_at(text.char_indices().nth(1).map_or(text.len(), |(at, _)| at));
    let events: Vec<String> = match protocol {
        Protocol::Chat => {
            let choice =
                |delta: Value, reason: Value| json!({ "choices": [{ "delta": delta, "finish_reason": reason }] });
            let mut events = vec![
                choice(json!({ "role": "assistant" }), Value::Null).to_string(),
                choice(json!({ "content": first }), Value::Null).to_string(),
                choice(json!({ "content": rest }), Value::Null).to_string(),
                choice(json!({}), json!("stop")).to_string(),
            ];
            events.push("[DONE]".to_owned());
            events
        }
        Protocol::Messages => {
            let delta = |text: &str| {
                json!({ "type": "content_block_delta", "delta": { "type": "text_delta", "text": text } }).to_string()
            };
            vec![
                json!({ "type": "message_start", "message": { "usage": { "input_tokens": 3 } } }).to_string(),
                delta(first),
                delta(rest),
                json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } }).to_string(),
                json!({ "type": "message_stop" }).to_string(),
            ]
        }
    };
    let mut raw = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".to_vec();
    let body = raw.len();
    let mut ends = Vec::new();
    for event in events {
        raw.extend_from_slice(format!("data: {event}\n\n").as_bytes());
        ends.push(raw.len());
    }
    Good { raw, body, known: ends[0], finished: ends[3], streamed: true }
}

/// A response with the reply `text` from a server that does not stream.
pub(crate) fn whole(protocol: Protocol, text: &str) -> Good {
    let answer = match protocol {
        Protocol::Chat => json!({ "choices": [{ "message": { "content": text }, "finish_reason": "stop" }] }),
        Protocol::Messages => {
            json!({ "type": "message", "content": [{ "type": "text", "text": text }], "stop_reason": "end_turn" })
        }
    };
    let raw = http(200, "content-type: application/json\r\n", &answer.to_string());
    let body = raw.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    Good { known: body + 2, finished: raw.len(), raw, body, streamed: false }
}

pub(crate) fn http(status: u16, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}").into_bytes()
}
