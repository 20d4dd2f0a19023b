//! A model server on loopback with a configured behavior for each request.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Barrier, Mutex};

#[derive(Clone, Debug)]
pub enum ServerBehavior {
    /// Streams this text as a model would, a few characters at a time.
    Answers(String),
    /// Streams this text as the model `m1-2026`, and reports these tokens of the prompt and the reply.
    Counts(String, u64, u64),
    /// Responds with this status and body.
    Rejects(u16, &'static str),
    /// Reads the request and sends nothing until the client closes the connection.
    Hangs,
    /// Streams this text and closes the connection in the middle of it.
    CutsOff(String),
    Floods,
    /// Streams the first half of this text, waits for the test at the barrier, and streams the rest.
    Paused(Arc<Barrier>, String),
    /// Waits for the test at the barrier, and then streams this text.
    Held(Arc<Barrier>, String),
    /// Streams each text that the test sends; the reply ends when the test drops the sender.
    Fed(Arc<Mutex<Receiver<String>>>),
}

#[derive(Clone, Debug)]
pub struct Request {
    pub headers: String,
    pub body: String,
}

/// The server, which ends with the process.
pub struct Server {
    /// `http://127.0.0.1:<port>/v1`
    pub base_url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Starts a server whose n-th request gets the n-th behavior; the last one is repeated.
    pub fn start(behaviors: Vec<ServerBehavior>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let received = Arc::clone(&requests);
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let behavior = behaviors.get(number).or(behaviors.last()).unwrap().clone();
                let received = Arc::clone(&received);
                // A client that disconnects early ends only its own thread.
                std::thread::spawn(move || serve(stream.unwrap(), behavior, &received));
            }
        });
        Self { base_url, requests }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, behavior: ServerBehavior, received: &Mutex<Vec<Request>>) -> Option<()> {
    let request = read(&stream)?;
    received.lock().unwrap().push(request);
    match behavior {
        ServerBehavior::Rejects(status, body) => {
            let length = body.len();
            let head = format!("HTTP/1.1 {status} No\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
            stream.write_all(head.as_bytes()).ok()
        }
        ServerBehavior::Hangs => {
            // Reading blocks until the client closes the connection.
            let _ = stream.read(&mut [0; 1]);
            None
        }
        ServerBehavior::Answers(text) => {
            start_stream(&mut stream)?;
            pieces(&mut stream, &text)?;
            stream.write_all(b"data: [DONE]\n\n").ok()
        }
        ServerBehavior::Counts(text, prompt, reply) => {
            start_stream(&mut stream)?;
            pieces(&mut stream, &text)?;
            let end = serde_json::json!({
                "model": "m1-2026", "choices": [{ "delta": {}, "finish_reason": "stop" }],
                "usage": { "prompt_tokens": prompt, "completion_tokens": reply },
            });
            stream.write_all(format!("data: {end}\n\ndata: [DONE]\n\n").as_bytes()).ok()
        }
        ServerBehavior::CutsOff(text) => {
            start_stream(&mut stream)?;
            let half: String = text.chars().take(text.chars().count() / 2).collect();
            pieces(&mut stream, &half)
        }
        ServerBehavior::Paused(barrier, text) => {
            start_stream(&mut stream)?;
            let half = text.chars().count() / 2;
            pieces(&mut stream, &text.chars().take(half).collect::<String>())?;
            barrier.wait();
            pieces(&mut stream, &text.chars().skip(half).collect::<String>())?;
            stream.write_all(b"data: [DONE]\n\n").ok()
        }
        ServerBehavior::Held(barrier, text) => {
            barrier.wait();
            start_stream(&mut stream)?;
            pieces(&mut stream, &text)?;
            stream.write_all(b"data: [DONE]\n\n").ok()
        }
        ServerBehavior::Fed(texts) => {
            start_stream(&mut stream)?;
            while let Ok(text) = texts.lock().unwrap().recv() {
                pieces(&mut stream, &text)?;
            }
            stream.write_all(b"data: [DONE]\n\n").ok()
        }
        ServerBehavior::Floods => {
            start_stream(&mut stream)?;
            loop {
                pieces(&mut stream, &"x".repeat(4000))?;
            }
        }
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut headers = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        headers.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { headers, body: String::from_utf8(body).ok()? })
}

fn start_stream(stream: &mut TcpStream) -> Option<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n").ok()
}

fn pieces(stream: &mut TcpStream, text: &str) -> Option<()> {
    let characters: Vec<char> = text.chars().collect();
    for piece in characters.chunks(7) {
        let piece: String = piece.iter().collect();
        let event = serde_json::json!({ "choices": [{ "delta": { "content": piece } }] });
        stream.write_all(format!("data: {event}\n\n").as_bytes()).ok()?;
    }
    Some(())
}
