//! A search server on loopback that answers each request in the same way.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

#[derive(Clone, Debug)]
pub enum SearchAnswer {
    /// The status, lines of the head, and the body.
    Whole(u16, &'static str, String),
    /// Reads the request and sends nothing until the client closes the connection.
    Hangs,
    /// Sends this many bytes of JSON without an end.
    Large(usize),
    /// Announces more bytes than it sends.
    CutOff,
}

/// The server, which ends with the process.
pub struct SearchProcess {
    pub url: String,
    requests: Arc<Mutex<Vec<String>>>,
    closed: std::sync::mpsc::Receiver<()>,
}

impl SearchProcess {
    pub fn start(answer: SearchAnswer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (close, closed) = std::sync::mpsc::channel();
        let received = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                serve(stream.unwrap(), &answer, &received);
                let _ = close.send(());
            }
        });
        Self { url, requests, closed }
    }

    pub fn json(body: &serde_json::Value) -> Self {
        Self::start(SearchAnswer::Whole(200, "content-type: application/json", body.to_string()))
    }

    /// The heads of the requests, each with its body.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits until a connection is closed.
    pub fn wait_until_closed(&self) {
        self.closed.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
    }
}

fn serve(mut stream: TcpStream, answer: &SearchAnswer, received: &Mutex<Vec<String>>) -> Option<()> {
    let request = read(&stream)?;
    received.lock().unwrap().push(request);
    match answer {
        SearchAnswer::Whole(status, head, body) => {
            let length = body.len();
            let text =
                format!("HTTP/1.1 {status} X\r\n{head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
            stream.write_all(text.as_bytes()).ok()
        }
        SearchAnswer::Hangs => {
            // Reading blocks until the client closes the connection.
            let _ = stream.read(&mut [0; 1]);
            None
        }
        SearchAnswer::Large(bytes) => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"results\": \"").ok()?;
            let piece = [b'x'; 16 * 1024];
            for _ in 0..bytes / piece.len() {
                stream.write_all(&piece).ok()?;
            }
            Some(())
        }
        SearchAnswer::CutOff => stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\nconnection: close\r\n\r\n{\"results\": [")
            .ok(),
    }
}

fn read(stream: &TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut text = String::new();
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
        text.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    text.push_str(&String::from_utf8(body).ok()?);
    Some(text)
}
