//! Starts the server on a free port, and sends requests to it.

use std::process::Command;
use std::time::{Duration, Instant};

use bcc_llm::http::client::plain_client;
use reqwest::{Client, Method, Response};
use serde_json::Value;

use crate::complete_reply::complete_reply;
use crate::process::{Finished, Home, Next, Running, TIMEOUT};
use crate::server::Server;

/// A conversation of two questions, after which it says what it knows.
pub const TALK: &str = "
session:
  session_id: talk
  declare:
    - { var: name, type: string }
    - { var: likes, type: string }
    - { var: greeting, type: string, value: Hello. }
    - { var: secret, type: string, value: classified, sensitive: true }
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_say, action_id: hello, config: { content: '{{ greeting }}' } }
            - { action_type: ai_ask, action_id: ask_name, config: { content: 'Who are you?', output: [{ get: name }] } }
            - { action_type: ai_ask, action_id: ask_likes, config: { content: 'What do you like?', output: [{ get: likes }] } }
            - { action_type: ai_say, action_id: bye, config: { content: '{{ name }} likes {{ likes }}.' } }
";

/// A reply of a model that says something, and asks on.
pub fn said(text: &str) -> String {
    complete_reply(&serde_json::json!({ "$ask": { "content": text, "name": null } })).to_string()
}

/// What a request gave.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub text: String,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// A running server.
pub struct Serving {
    running: Running,
    pub url: String,
    client: Client,
    /// Sent with each request.
    token: Option<String>,
}

impl Serving {
    /// Serves the project of this home.
    pub fn start(home: &Home) -> Self {
        Self::with(home, &[])
    }

    pub fn with(home: &Home, arguments: &[&str]) -> Self {
        let all = [&["serve", "--addr", "127.0.0.1:0"], arguments].concat();
        Self::of(home.start(all))
    }

    /// The server that was started so.
    pub fn of(running: Running) -> Self {
        let line = match running.line_until(Instant::now() + TIMEOUT) {
            Next::Line(line) => line,
            Next::TimedOut => panic!("the server does not listen"),
            Next::End => panic!("the server ended: {}", running.finish().err),
        };
        let url = line.split(' ').next_back().unwrap().to_owned();
        Self::at(running, &url)
    }

    /// The server at this address.
    pub fn at(running: Running, url: &str) -> Self {
        let url = url.to_owned();
        let client = plain_client(&url.parse().unwrap(), Some("none"), None).unwrap();
        Self { running, url, client, token: None }
    }

    /// The same server for another caller.
    pub fn as_caller(&self, token: &str) -> Caller<'_> {
        Caller { serving: self, token: Some(token.to_owned()) }
    }

    pub fn caller(&self) -> Caller<'_> {
        Caller { serving: self, token: self.token.clone() }
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.caller().get(path).await
    }

    /// The response for a client that reads these encodings, as it is sent.
    pub async fn encoded(&self, path: &str, accepted: &str) -> reqwest::Response {
        let request = self.client.get(format!("{}{path}", self.url)).header("accept-encoding", accepted);
        request.send().await.unwrap()
    }

    pub async fn post(&self, path: &str, body: Value) -> Reply {
        self.caller().post(path, body).await
    }

    pub async fn post_owned(&self, path: String, body: Value) -> Reply {
        self.post(&path, body).await
    }

    pub async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: Option<Vec<u8>>) -> Reply {
        self.caller().send(method, path, headers, body).await
    }

    /// Starts a session of the script, and returns its id.
    pub async fn session(&self, script: &str) -> String {
        let reply = self.post("/v1/sessions", serde_json::json!({ "script": script })).await;
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.json()["id"].as_str().unwrap().to_owned()
    }

    /// Says something in a session.
    pub async fn say(&self, id: &str, text: &str) -> Value {
        let reply = self.post(&format!("/v1/sessions/{id}/messages"), serde_json::json!({ "text": text })).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()
    }

    /// The events of a session after this one.
    pub async fn events(&self, id: &str, after: Option<&str>) -> EventStream {
        let mut request = self.client.get(format!("{}/v1/sessions/{id}/events", self.url));
        if let Some(after) = after {
            request = request.header("last-event-id", after);
        }
        EventStream::new(request.send().await.unwrap())
    }

    /// The events at this path.
    pub async fn listen(&self, path: &str) -> EventStream {
        EventStream::new(self.client.get(format!("{}{path}", self.url)).send().await.unwrap())
    }

    /// A response whose body is read piece by piece.
    pub async fn stream(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> EventStream {
        let mut request = self.client.post(format!("{}{path}", self.url)).header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        EventStream::new(request.body(body.to_string()).send().await.unwrap())
    }

    /// What other tasks need to send requests.
    pub fn target(&self) -> Target {
        Target { client: self.client.clone(), url: self.url.clone() }
    }

    pub fn kill(&mut self) {
        self.running.kill();
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        assert!(Command::new("kill").arg(self.running.id().to_string()).status().unwrap().success());
    }

    /// Waits for the end.
    pub fn finish(self) -> Finished {
        self.running.finish()
    }
}

/// A server, for other tasks.
#[derive(Clone)]
pub struct Target {
    client: Client,
    url: String,
}

impl Target {
    /// Posts a body. Nothing if the connection fails.
    pub async fn attempt(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Option<Reply> {
        let mut request = self.client.post(format!("{}{path}", self.url)).header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.body(body.to_string()).send().await.ok()?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Some(Reply { status, headers, text: response.text().await.ok()? })
    }
}

/// Someone who calls the server.
pub struct Caller<'s> {
    serving: &'s Serving,
    token: Option<String>,
}

impl Caller<'_> {
    pub async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, &[], None).await
    }

    /// The text of a stream of events, up to the first event of this type.
    pub async fn until(&self, path: &str, kind: &str) -> String {
        let mut request = self.serving.client.get(format!("{}{path}", self.serving.url));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let events = EventStream::new(request.send().await.unwrap()).until(kind).await;
        events.into_iter().map(|event| event.data + "\n").collect()
    }

    pub async fn post(&self, path: &str, body: Value) -> Reply {
        self.send(Method::POST, path, &[("content-type", "application/json")], Some(body.to_string().into_bytes()))
            .await
    }

    pub async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: Option<Vec<u8>>) -> Reply {
        let mut request = self.serving.client.request(method, format!("{}{path}", self.serving.url));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.body(body.unwrap_or_default()).send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Reply { status, headers, text: response.text().await.unwrap() }
    }
}

/// An event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentEvent {
    pub id: String,
    pub event: String,
    pub data: String,
}

impl SentEvent {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

/// Server-sent events.
pub struct EventStream {
    response: Response,
    pub status: u16,
    unread: String,
}

impl EventStream {
    fn new(response: Response) -> Self {
        let status = response.status().as_u16();
        Self { response, status, unread: String::new() }
    }

    /// The next event; none at the end of the stream.
    pub async fn next(&mut self) -> Option<SentEvent> {
        loop {
            if let Some((block, rest)) = self.unread.split_once("\n\n") {
                let mut event = SentEvent::default();
                for line in block.lines() {
                    match line.split_once(": ") {
                        Some(("id", id)) => id.clone_into(&mut event.id),
                        Some(("event", kind)) => kind.clone_into(&mut event.event),
                        Some(("data", data)) => data.clone_into(&mut event.data),
                        _ => {}
                    }
                }
                self.unread = rest.to_owned();
                // A comment keeps the connection alive.
                if event != SentEvent::default() {
                    return Some(event);
                }
                continue;
            }
            let next = tokio::time::timeout(TIMEOUT, self.response.chunk()).await.expect("the stream says nothing");
            let chunk = next.ok()??;
            self.unread.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// All events up to the end of the stream.
    pub async fn rest(&mut self) -> Vec<SentEvent> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }

    /// The events up to the first of this type.
    pub async fn until(&mut self, kind: &str) -> Vec<SentEvent> {
        let mut all = Vec::new();
        loop {
            let event = self.next().await.unwrap_or_else(|| panic!("there is no `{kind}` after {all:?}"));
            let found = event.event == kind;
            all.push(event);
            if found {
                return all;
            }
        }
    }
}

/// Waits until a model is asked.
pub async fn asked(model: &Server) {
    let asked = async {
        while model.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, asked).await.unwrap();
}
