//! A small behavior server for the protocol of docs/protocol.md. It generates its answers or reads them from a plan, and can inject errors.
//!
//! `cargo run --example behavior_server -- --port 8799`
//!
//! The first line of its standard output is `listening on http://127.0.0.1:PORT`. Without `--port` it takes a free port.
//! It accepts `POST` and `GET` on `/v1/actions` (also `/generating`) and `POST` on `/v1/reflection` (also `/planning`).
//!
//! Answers
//!
//! * `--behaviors N` (2): the number of behaviors of a step. Each adds a section, a line of text and, with `--code`, a code cell that runs
//!   at once. The reflection of the last one reports that the target is achieved.
//! * `--plan FILE`: JSON `{"actions": [response, …], "reflections": [judgement, …]}`. The answers are sent in this order, and the last one
//!   of each list is repeated.
//! * `--form new | older` (new): the fields and names of the answers.
//! * `--stream json | lines | sse | array` (json): one document; a line for each action and one for the other fields; the same as
//!   server-sent events; or a list that arrives in pieces.
//! * `--token TEXT`: a request without this bearer token gets 401.
//! * `--log FILE`: writes a line for each request: `{"method", "path", "token": BOOL, "body"}`.
//! * `--pause MS` (20): the time between two pieces of a stream.
//!
//! Errors: `--fault NAME`, on `--on actions | reflection | both` (actions), for the first `--times N` requests there (default: all), after
//! `--after N` (0) requests without errors.
//!
//! * `status:CODE` answers with this status and a body that must not be shown; `redirect` redirects to another endpoint;
//! * `hang` never answers, with `--on both` not even whether it is there; `hang-body` starts a body and stops; `close` closes the connection; `empty` sends an empty body;
//! * `garbage` sends invalid JSON, `web-page` an HTML page, `bad-utf8` invalid UTF-8, `deep` 100,000 brackets;
//! * `endless` sends actions without end, `endless-line` one line without end, `huge` a body of 64 MiB;
//! * `cut` stops in the middle of the second action; `drip` sends single bytes, each `--pause` apart;
//! * `wrong-types` sends numbers where lists belong; `many` sends 5,000 actions;
//! * `unknown-cells` runs cells that do not exist; `unknown-steps` moves to a step that is not in the plan;
//!   `unknown-actions` sends unknown kinds; `forever` never reports that anything is achieved.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example tells where it listens")]

use std::collections::HashMap;
use std::error::Error;
use std::fs::{File, OpenOptions, read_to_string};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// The largest request that is read, in bytes.
const MAX_REQUEST_BYTES: usize = 4 * 1024 * 1024;

/// The options of the command line.
#[derive(Default)]
struct Options {
    port: u16,
    behaviors: u64,
    code: bool,
    plan: Option<Value>,
    legacy: bool,
    stream: String,
    token: Option<String>,
    log: Option<Mutex<File>>,
    pause: Duration,
    fault: Option<String>,
    on: String,
    times: u64,
    after: u64,
}

impl Options {
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let mut options = Self {
            behaviors: 2,
            stream: "json".to_owned(),
            pause: Duration::from_millis(20),
            on: "actions".to_owned(),
            times: u64::MAX,
            ..Self::default()
        };
        while let Some(argument) = arguments.next() {
            if argument == "--code" {
                options.code = true;
                continue;
            }
            let value = arguments.next().ok_or_else(|| format!("{argument} needs a value"))?;
            match argument.as_str() {
                "--port" => options.port = value.parse()?,
                "--behaviors" => options.behaviors = value.parse()?,
                "--plan" => options.plan = Some(serde_json::from_str(&read_to_string(value)?)?),
                "--form" => options.legacy = value == "older",
                "--stream" => options.stream = value,
                "--token" => options.token = Some(value),
                "--log" => {
                    options.log = Some(Mutex::new(OpenOptions::new().create(true).append(true).open(value)?));
                }
                "--pause" => options.pause = Duration::from_millis(value.parse()?),
                "--fault" => options.fault = Some(value),
                "--on" => options.on = value,
                "--times" => options.times = value.parse()?,
                "--after" => options.after = value.parse()?,
                _ => {
                    return Err(
                        format!("{argument} is not known; the head of examples/behavior_server.rs lists all").into()
                    );
                }
            }
        }
        Ok(options)
    }
}

/// The requests so far.
#[derive(Default)]
struct Progress {
    /// The number of requests, by endpoint.
    requests: HashMap<&'static str, u64>,
    /// The number of behaviors that were sent, by step.
    behaviors: HashMap<String, u64>,
    /// The number of planned answers that were sent, by endpoint.
    planned: HashMap<&'static str, usize>,
}

struct Server {
    options: Options,
    progress: Mutex<Progress>,
}

struct Request {
    method: String,
    path: String,
    token: Option<String>,
    body: Value,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::read(std::env::args().skip(1))?;
    let listener = TcpListener::bind(("127.0.0.1", options.port))?;
    println!("listening on http://{}", listener.local_addr()?);
    io::stdout().flush()?;
    let server = Arc::new(Server { options, progress: Mutex::default() });
    for stream in listener.incoming() {
        let (server, stream) = (Arc::clone(&server), stream?);
        // Errors of a connection concern only the client.
        thread::spawn(move || drop(server.serve(stream)));
    }
    Ok(())
}

fn request(stream: &TcpStream) -> Result<Request, Box<dyn Error>> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut parts = line.split_whitespace().map(str::to_owned);
    let (method, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let (mut length, mut token) = (0, None);
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 || header.trim().is_empty() {
            break;
        }
        let Some((name, value)) = header.split_once(':') else { continue };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse::<usize>()?.min(MAX_REQUEST_BYTES),
            "authorization" => token = value.trim().strip_prefix("Bearer ").map(str::to_owned),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Request { method, path, token, body: serde_json::from_slice(&body).unwrap_or_default() })
}

impl Server {
    fn serve(&self, mut stream: TcpStream) -> Result<(), Box<dyn Error>> {
        let request = request(&stream)?;
        // Somebody asks whether there is a server.
        if request.method == "GET" {
            if self.options.on == "both" && self.options.fault.as_deref() == Some("hang") {
                self.hang();
            }
            return Ok(send_response(&mut stream, 405, "application/json", br#"{"error": "use POST"}"#)?);
        }
        let token_is_right = self.options.token.is_none() || request.token == self.options.token;
        if let Some(log) = &self.options.log {
            let mut line = json!({"method": request.method, "path": request.path, "token": request.token.is_some(), "body": request.body}).to_string();
            line.push('\n');
            log.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes())?;
        }
        let endpoint = match (request.method.as_str(), request.path.as_str()) {
            ("POST", "/v1/actions" | "/generating") => "actions",
            ("POST", "/v1/reflection" | "/planning") => "reflection",
            _ => return Ok(send_response(&mut stream, 404, "application/json", br#"{"error": "no such endpoint"}"#)?),
        };
        if !token_is_right {
            return Ok(send_response(&mut stream, 401, "application/json", br#"{"error": "who are you?"}"#)?);
        }
        match self.fault_for(endpoint) {
            Some(fault) => self.misbehave(&mut stream, fault, endpoint, &request.body),
            None => self.send(&mut stream, endpoint, &self.answer(endpoint, &request.body)),
        }
    }

    /// The error to inject for this request.
    fn fault_for(&self, endpoint: &'static str) -> Option<&str> {
        let options = &self.options;
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let count = progress.requests.entry(endpoint).or_default();
        *count += 1;
        let due = *count > options.after && *count - options.after <= options.times;
        let on_endpoint = options.on == "both" || options.on == endpoint;
        options.fault.as_deref().filter(|_| due && on_endpoint)
    }

    fn answer(&self, endpoint: &'static str, body: &Value) -> Value {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = &self.options.plan {
            let key = if endpoint == "actions" { "actions" } else { "reflections" };
            let answers = plan.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let next = progress.planned.entry(endpoint).or_default();
            let answer = answers.get(*next).or(answers.last()).cloned().unwrap_or_else(|| json!({}));
            *next += 1;
            return answer;
        }
        let location = body.pointer("/observation/location").unwrap_or(&Value::Null);
        let step = location.get("current_step_id").or_else(|| location.pointer("/current/step_id"));
        let step = step.and_then(Value::as_str).unwrap_or("step").to_owned();
        let count = progress.behaviors.entry(step.clone()).or_default();
        if endpoint == "actions" {
            *count += 1;
        }
        let achieved = *count >= self.options.behaviors && self.options.fault.as_deref() != Some("forever");
        match (endpoint, self.options.legacy) {
            ("actions", false) => json!({
                "behavior": {"id": format!("{step}_b{count}"), "iteration": count, "target": format!("part {count} of {step}")},
                "actions": actions(&step, *count, self.options.code),
                "transition": {"strategy": "server_controlled", "next_stage_id": null, "next_step_id": null,
                               "continue_behaviors": !achieved},
                "context_update": {"variables": {"parts": count},
                                   "todo_list_update": {"operation": "add", "items": [format!("look at part {count}")]}},
                "metadata": {"actions_count": 2},
            }),
            ("actions", true) => Value::Array(
                actions(&step, *count, self.options.code).into_iter().map(|action| json!({"action": action})).collect(),
            ),
            (_, false) => json!({
                "target_achieved": achieved,
                "reason": format!("{count} of {} parts are there", self.options.behaviors),
                "transition": {"continue_behaviors": !achieved},
                "context_update": {"todo_list_update": {"operation": "remove", "items": [format!("look at part {count}")]}},
            }),
            (_, true) => json!({"targetAchieved": achieved}),
        }
    }

    /// Sends an answer without errors.
    fn send(&self, stream: &mut TcpStream, endpoint: &str, answer: &Value) -> Result<(), Box<dyn Error>> {
        if endpoint != "actions" || self.options.stream == "json" {
            return Ok(send_response(stream, 200, "application/json", answer.to_string().as_bytes())?);
        }
        start_chunked(stream, if self.options.stream == "sse" { "text/event-stream" } else { "application/x-ndjson" })?;
        for piece in self.pieces(answer) {
            send_chunk(stream, piece.as_bytes())?;
            thread::sleep(self.options.pause);
        }
        Ok(end_chunked(stream)?)
    }

    /// The pieces of a streamed answer.
    fn pieces(&self, answer: &Value) -> Vec<String> {
        let actions = answer.get("actions").unwrap_or(answer).as_array().cloned().unwrap_or_default();
        let wrapped =
            |action: &Value| if action.get("action").is_some() { action.clone() } else { json!({"action": action}) };
        let mut other_fields = answer.clone();
        if let Some(other_fields) = other_fields.as_object_mut() {
            other_fields.remove("actions");
        }
        if self.options.stream == "array" {
            let mut pieces = vec!["[".to_owned()];
            for (at, action) in actions.iter().enumerate() {
                pieces.push(format!("{}{}", if at == 0 { "" } else { "," }, wrapped(action)));
            }
            pieces.push("]".to_owned());
            return pieces;
        }
        let lines = actions.iter().map(wrapped).chain(other_fields.is_object().then_some(other_fields.clone()));
        match self.options.stream.as_str() {
            "sse" => lines.map(|line| format!("data: {line}\n\n")).chain(["data: [DONE]\n\n".to_owned()]).collect(),
            _ => lines.map(|line| format!("{line}\n")).collect(),
        }
    }

    fn misbehave(
        &self,
        stream: &mut TcpStream,
        fault: &str,
        endpoint: &'static str,
        body: &Value,
    ) -> Result<(), Box<dyn Error>> {
        let json = "application/json";
        if let Some(code) = fault.strip_prefix("status:") {
            return Ok(send_response(stream, code.parse()?, json, br#"{"error": "a-secret-of-the-server"}"#)?);
        }
        let run = |cell: &str| json!({"type": "exec", "codecell_id": cell});
        match fault {
            "redirect" => {
                stream.write_all(b"HTTP/1.1 307 Elsewhere\r\nlocation: /v1/reflection\r\ncontent-length: 0\r\n\r\n")?;
            }
            "hang" => self.hang(),
            "hang-body" => {
                start_chunked(stream, json)?;
                send_chunk(stream, b"{\"actions\": [")?;
                self.hang();
            }
            "close" => {}
            "empty" => send_response(stream, 200, json, b"")?,
            "garbage" => send_response(stream, 200, json, b"I would rather not. a-secret-of-the-server")?,
            "web-page" => send_response(stream, 200, "text/html", b"<html><body>Welcome</body></html>")?,
            "bad-utf8" => {
                send_response(stream, 200, json, b"{\"actions\": [{\"type\": \"add\", \"content\": \"\xff\xfe\"}]}")?
            }
            "deep" => send_response(stream, 200, json, "[".repeat(100_000).as_bytes())?,
            "huge" => {
                start_chunked(stream, json)?;
                send_chunk(stream, b"{\"actions\": [], \"reason\": \"")?;
                for _ in 0..1_024 {
                    send_chunk(stream, &vec![b'a'; 64 * 1024])?;
                }
                send_chunk(stream, b"\"}")?;
                end_chunked(stream)?;
            }
            "endless" => {
                start_chunked(stream, "application/x-ndjson")?;
                for number in 0_u64.. {
                    let action = json!({"action": {"type": "add", "content": format!("line {number}")}});
                    send_chunk(stream, format!("{action}\n").as_bytes())?;
                    thread::sleep(self.options.pause);
                }
            }
            "endless-line" => {
                start_chunked(stream, "application/x-ndjson")?;
                send_chunk(stream, b"{\"action\": {\"type\": \"add\", \"content\": \"")?;
                loop {
                    send_chunk(stream, &vec![b'a'; 64 * 1024])?;
                }
            }
            "cut" => {
                start_chunked(stream, "application/x-ndjson")?;
                send_chunk(stream, b"{\"action\": {\"type\": \"add\", \"content\": \"the first\"}}\n")?;
                send_chunk(stream, b"{\"action\": {\"type\": \"add\", \"cont")?;
                thread::sleep(self.options.pause);
            }
            "drip" => {
                start_chunked(stream, "application/x-ndjson")?;
                for byte in self.pieces(&self.answer(endpoint, body)).concat().as_bytes() {
                    send_chunk(stream, &[*byte])?;
                    thread::sleep(self.options.pause);
                }
                end_chunked(stream)?;
            }
            "wrong-types" => send_response(
                stream,
                200,
                json,
                br#"{"behavior": 7, "actions": 12, "transition": "on", "context_update": [], "target_achieved": {}}"#,
            )?,
            "many" => {
                let actions: Vec<Value> =
                    (0..5_000).map(|n| json!({"type": "add", "content": format!("{n}")})).collect();
                send_response(stream, 200, json, json!({ "actions": actions }).to_string().as_bytes())?;
            }
            "unknown-cells" => {
                send_response(
                    stream,
                    200,
                    json,
                    json!({"actions": [run("nobody-added-this"), run("lastAddedCellId")]}).to_string().as_bytes(),
                )?;
            }
            "unknown-steps" => {
                let to = json!({"next_stage_id": "nowhere", "next_step_id": "never", "target_achieved": true});
                send_response(
                    stream,
                    200,
                    json,
                    json!({"actions": [], "transition": to, "target_achieved": true}).to_string().as_bytes(),
                )?;
            }
            "unknown-actions" => {
                let actions =
                    json!([{"type": "dance", "content": "a waltz"}, {"type": "add", "content": "after the dance"}]);
                send_response(stream, 200, json, json!({ "actions": actions }).to_string().as_bytes())?;
            }
            _ => self.send(stream, endpoint, &self.answer(endpoint, body))?,
        }
        Ok(())
    }

    /// Waits until the process ends.
    fn hang(&self) {
        loop {
            thread::park();
        }
    }
}

fn actions(step: &str, behavior: u64, code: bool) -> Vec<Value> {
    let section = format!("{step}_{behavior}");
    let mut actions = vec![
        json!({"type": "add_content", "content_type": "text", "content": format!("## Part {behavior}"),
               "metadata": {"is_section": true, "section_id": section, "section_number": behavior}}),
        json!({"type": "add_content", "content_type": "text", "content": format!("What part {behavior} is about: 一、二、三。"),
               "metadata": {"belongs_to_section": section}}),
    ];
    if code {
        actions.push(json!({"type": "add_content", "content_type": "code", "content": format!("part = {behavior}\nprint(part * 7)"),
                            "metadata": {"belongs_to_section": section, "should_execute": true}}));
    }
    actions
}

fn send_response(stream: &mut TcpStream, status: u16, kind: &str, body: &[u8]) -> io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} So\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    )?;
    stream.write_all(body)?;
    stream.flush()
}

fn start_chunked(stream: &mut TcpStream, kind: &str) -> io::Result<()> {
    write!(stream, "HTTP/1.1 200 So\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n")
}

fn send_chunk(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    write!(stream, "{:x}\r\n", bytes.len())?;
    stream.write_all(bytes)?;
    stream.write_all(b"\r\n")?;
    stream.flush()
}

fn end_chunked(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(b"0\r\n\r\n")
}
