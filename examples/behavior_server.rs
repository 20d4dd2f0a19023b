//! A small behavior server: it speaks the protocol of docs/protocol.md, by itself or from a plan, and misbehaves when told to.
//!
//! `cargo run --example behavior_server -- --port 8799`
//!
//! The first line of its standard output is `listening on http://127.0.0.1:PORT`; without `--port` the port is a free one.
//! It takes `POST` and `GET` on `/v1/actions` (also `/generating`) and `POST` on `/v1/reflection` (also `/planning`).
//!
//! What it sends
//!
//! * `--behaviors N` (2): so many behaviors until a step is done. Each adds a section, a line of text and, with `--code`,
//!   a code cell that runs at once. The last one's reflection says that the target is achieved.
//! * `--plan FILE`: JSON `{"actions": [response, …], "reflections": [judgement, …]}`, given in this order, the last one of
//!   each again and again, instead of the above.
//! * `--form new | older` (new): the fields and names of the answers.
//! * `--stream json | lines | sse | array` (json): one document; a line for each action, and one for what stands around
//!   them; the same as server-sent events; or a list that arrives in pieces.
//! * `--token TEXT`: whoever does not send it as a bearer token gets 401.
//! * `--log FILE`: a line for each request: `{"method", "path", "token": BOOL, "body"}`.
//! * `--pause MS` (20): between two pieces of a stream.
//!
//! What goes wrong: `--fault NAME`, on `--on actions | reflection | both` (actions), for the first `--times N` requests
//! there (for ever). Before it, `--after N` (0) requests go well.
//!
//! * `status:CODE` answers with this status and a body that must be told to nobody; `redirect` leads elsewhere;
//! * `hang` never answers; `hang-body` begins and falls silent; `close` hangs up; `empty` answers nothing at all;
//! * `garbage` sends what is no JSON, `web-page` a page, `bad-utf8` broken characters, `deep` 100,000 brackets;
//! * `endless` sends actions without end, `endless-line` one line without end, `huge` a body of 64 MiB;
//! * `cut` breaks off in the middle of the second action; `drip` sends single bytes, each `--pause` apart;
//! * `wrong-types` sends numbers where lists belong; `many` sends 5,000 actions;
//! * `unknown-cells` runs cells that are not there; `unknown-steps` moves to a step that nobody planned;
//!   `unknown-actions` sends kinds that nobody knows; `forever` never says that anything is achieved.

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
const MOST_REQUEST_BYTES: usize = 4 * 1024 * 1024;

/// What was asked for on the command line.
#[derive(Default)]
struct Options {
    port: u16,
    behaviors: u64,
    code: bool,
    plan: Option<Value>,
    older: bool,
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
    fn read(mut words: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let mut options = Self {
            behaviors: 2,
            stream: "json".to_owned(),
            pause: Duration::from_millis(20),
            on: "actions".to_owned(),
            times: u64::MAX,
            ..Self::default()
        };
        while let Some(word) = words.next() {
            if word == "--code" {
                options.code = true;
                continue;
            }
            let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
            match word.as_str() {
                "--port" => options.port = value.parse()?,
                "--behaviors" => options.behaviors = value.parse()?,
                "--plan" => options.plan = Some(serde_json::from_str(&read_to_string(value)?)?),
                "--form" => options.older = value == "older",
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
                        format!("{word} is not known; the head of examples/behavior_server.rs lists all").into()
                    );
                }
            }
        }
        Ok(options)
    }
}

/// What was asked so far.
#[derive(Default)]
struct Asked {
    /// How often, by endpoint.
    requests: HashMap<&'static str, u64>,
    /// How many behaviors were given, by step.
    behaviors: HashMap<String, u64>,
    /// How many planned answers were given, by endpoint.
    planned: HashMap<&'static str, usize>,
}

struct Server {
    options: Options,
    asked: Mutex<Asked>,
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
    let server = Arc::new(Server { options, asked: Mutex::default() });
    for stream in listener.incoming() {
        let (server, stream) = (Arc::clone(&server), stream?);
        // A connection that breaks is the other side's business.
        thread::spawn(move || drop(server.serve(stream)));
    }
    Ok(())
}

fn request(stream: &TcpStream) -> Result<Request, Box<dyn Error>> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (mut length, mut token) = (0, None);
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 || header.trim().is_empty() {
            break;
        }
        let Some((name, value)) = header.split_once(':') else { continue };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse::<usize>()?.min(MOST_REQUEST_BYTES),
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
        let token_is_right = self.options.token.is_none() || request.token == self.options.token;
        if let Some(log) = &self.options.log {
            let mut line = json!({"method": request.method, "path": request.path, "token": request.token.is_some(), "body": request.body}).to_string();
            line.push('\n');
            log.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes())?;
        }
        let endpoint = match (request.method.as_str(), request.path.as_str()) {
            ("POST" | "GET", "/v1/actions" | "/generating") => "actions",
            ("POST", "/v1/reflection" | "/planning") => "reflection",
            _ => return Ok(whole(&mut stream, 404, "application/json", br#"{"error": "no such endpoint"}"#)?),
        };
        if !token_is_right {
            return Ok(whole(&mut stream, 401, "application/json", br#"{"error": "who are you?"}"#)?);
        }
        match self.fault(endpoint) {
            Some(fault) => self.misbehave(&mut stream, fault, endpoint, &request.body),
            None => self.send(&mut stream, endpoint, &self.answer(endpoint, &request.body)),
        }
    }

    /// The fault that this request meets.
    fn fault(&self, endpoint: &'static str) -> Option<&str> {
        let options = &self.options;
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let count = asked.requests.entry(endpoint).or_default();
        *count += 1;
        let due = *count > options.after && *count - options.after <= options.times;
        let here = options.on == "both" || options.on == endpoint;
        options.fault.as_deref().filter(|_| due && here)
    }

    fn answer(&self, endpoint: &'static str, body: &Value) -> Value {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = &self.options.plan {
            let key = if endpoint == "actions" { "actions" } else { "reflections" };
            let answers = plan.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let next = asked.planned.entry(endpoint).or_default();
            let answer = answers.get(*next).or(answers.last()).cloned().unwrap_or_else(|| json!({}));
            *next += 1;
            return answer;
        }
        let location = body.pointer("/observation/location").unwrap_or(&Value::Null);
        let step = location.get("current_step_id").or_else(|| location.pointer("/current/step_id"));
        let step = step.and_then(Value::as_str).unwrap_or("step").to_owned();
        let given = asked.behaviors.entry(step.clone()).or_default();
        if endpoint == "actions" {
            *given += 1;
        }
        let achieved = *given >= self.options.behaviors && self.options.fault.as_deref() != Some("forever");
        match (endpoint, self.options.older) {
            ("actions", false) => json!({
                "behavior": {"id": format!("{step}_b{given}"), "iteration": given, "target": format!("part {given} of {step}")},
                "actions": actions(&step, *given, self.options.code),
                "transition": {"strategy": "server_controlled", "next_stage_id": null, "next_step_id": null,
                               "continue_behaviors": !achieved},
                "context_update": {"variables": {"parts": given},
                                   "todo_list_update": {"operation": "add", "items": [format!("look at part {given}")]}},
                "metadata": {"actions_count": 2},
            }),
            ("actions", true) => Value::Array(
                actions(&step, *given, self.options.code).into_iter().map(|action| json!({"action": action})).collect(),
            ),
            (_, false) => json!({
                "target_achieved": achieved,
                "reason": format!("{given} of {} parts are there", self.options.behaviors),
                "transition": {"continue_behaviors": !achieved},
                "context_update": {"todo_list_update": {"operation": "remove", "items": [format!("look at part {given}")]}},
            }),
            (_, true) => json!({"targetAchieved": achieved}),
        }
    }

    /// Sends an answer as it should be.
    fn send(&self, stream: &mut TcpStream, endpoint: &str, answer: &Value) -> Result<(), Box<dyn Error>> {
        if endpoint != "actions" || self.options.stream == "json" {
            return Ok(whole(stream, 200, "application/json", answer.to_string().as_bytes())?);
        }
        begin(stream, if self.options.stream == "sse" { "text/event-stream" } else { "application/x-ndjson" })?;
        for piece in self.pieces(answer) {
            chunk(stream, piece.as_bytes())?;
            thread::sleep(self.options.pause);
        }
        Ok(end(stream)?)
    }

    /// An answer as it is streamed.
    fn pieces(&self, answer: &Value) -> Vec<String> {
        let actions = answer.get("actions").unwrap_or(answer).as_array().cloned().unwrap_or_default();
        let wrapped =
            |action: &Value| if action.get("action").is_some() { action.clone() } else { json!({"action": action}) };
        let mut rest = answer.clone();
        if let Some(rest) = rest.as_object_mut() {
            rest.remove("actions");
        }
        if self.options.stream == "array" {
            let mut pieces = vec!["[".to_owned()];
            for (at, action) in actions.iter().enumerate() {
                pieces.push(format!("{}{}", if at == 0 { "" } else { "," }, wrapped(action)));
            }
            pieces.push("]".to_owned());
            return pieces;
        }
        let lines = actions.iter().map(wrapped).chain(rest.is_object().then_some(rest.clone()));
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
            return Ok(whole(stream, code.parse()?, json, br#"{"error": "a-secret-of-the-server"}"#)?);
        }
        let run = |cell: &str| json!({"type": "exec", "codecell_id": cell});
        match fault {
            "redirect" => {
                stream.write_all(b"HTTP/1.1 307 Elsewhere\r\nlocation: /v1/reflection\r\ncontent-length: 0\r\n\r\n")?;
            }
            "hang" => self.silence(),
            "hang-body" => {
                begin(stream, json)?;
                chunk(stream, b"{\"actions\": [")?;
                self.silence();
            }
            "close" => {}
            "empty" => whole(stream, 200, json, b"")?,
            "garbage" => whole(stream, 200, json, b"I would rather not. a-secret-of-the-server")?,
            "web-page" => whole(stream, 200, "text/html", b"<html><body>Welcome</body></html>")?,
            "bad-utf8" => whole(stream, 200, json, b"{\"actions\": [{\"type\": \"add\", \"content\": \"\xff\xfe\"}]}")?,
            "deep" => whole(stream, 200, json, "[".repeat(100_000).as_bytes())?,
            "huge" => {
                begin(stream, json)?;
                chunk(stream, b"{\"actions\": [], \"reason\": \"")?;
                for _ in 0..1_024 {
                    chunk(stream, &vec![b'a'; 64 * 1024])?;
                }
                chunk(stream, b"\"}")?;
                end(stream)?;
            }
            "endless" => {
                begin(stream, "application/x-ndjson")?;
                for number in 0_u64.. {
                    let action = json!({"action": {"type": "add", "content": format!("line {number}")}});
                    chunk(stream, format!("{action}\n").as_bytes())?;
                    thread::sleep(self.options.pause);
                }
            }
            "endless-line" => {
                begin(stream, "application/x-ndjson")?;
                chunk(stream, b"{\"action\": {\"type\": \"add\", \"content\": \"")?;
                loop {
                    chunk(stream, &vec![b'a'; 64 * 1024])?;
                }
            }
            "cut" => {
                begin(stream, "application/x-ndjson")?;
                chunk(stream, b"{\"action\": {\"type\": \"add\", \"content\": \"the first\"}}\n")?;
                chunk(stream, b"{\"action\": {\"type\": \"add\", \"cont")?;
                thread::sleep(self.options.pause);
            }
            "drip" => {
                begin(stream, "application/x-ndjson")?;
                for byte in self.pieces(&self.answer(endpoint, body)).concat().as_bytes() {
                    chunk(stream, &[*byte])?;
                    thread::sleep(self.options.pause);
                }
                end(stream)?;
            }
            "wrong-types" => whole(
                stream,
                200,
                json,
                br#"{"behavior": 7, "actions": 12, "transition": "on", "context_update": [], "target_achieved": {}}"#,
            )?,
            "many" => {
                let actions: Vec<Value> =
                    (0..5_000).map(|n| json!({"type": "add", "content": format!("{n}")})).collect();
                whole(stream, 200, json, json!({ "actions": actions }).to_string().as_bytes())?;
            }
            "unknown-cells" => {
                whole(
                    stream,
                    200,
                    json,
                    json!({"actions": [run("nobody-added-this"), run("lastAddedCellId")]}).to_string().as_bytes(),
                )?;
            }
            "unknown-steps" => {
                let to = json!({"next_stage_id": "nowhere", "next_step_id": "never", "target_achieved": true});
                whole(
                    stream,
                    200,
                    json,
                    json!({"actions": [], "transition": to, "target_achieved": true}).to_string().as_bytes(),
                )?;
            }
            "unknown-actions" => {
                let actions =
                    json!([{"type": "dance", "content": "a waltz"}, {"type": "add", "content": "after the dance"}]);
                whole(stream, 200, json, json!({ "actions": actions }).to_string().as_bytes())?;
            }
            _ => self.send(stream, endpoint, &self.answer(endpoint, body))?,
        }
        Ok(())
    }

    /// Says nothing until the process ends.
    fn silence(&self) {
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

fn whole(stream: &mut TcpStream, status: u16, kind: &str, body: &[u8]) -> io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} So\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    )?;
    stream.write_all(body)?;
    stream.flush()
}

fn begin(stream: &mut TcpStream, kind: &str) -> io::Result<()> {
    write!(stream, "HTTP/1.1 200 So\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n")
}

fn chunk(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    write!(stream, "{:x}\r\n", bytes.len())?;
    stream.write_all(bytes)?;
    stream.write_all(b"\r\n")?;
    stream.flush()
}

fn end(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(b"0\r\n\r\n")
}
