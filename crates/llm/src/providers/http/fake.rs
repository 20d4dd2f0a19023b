//! A server that does exactly what a test says, byte by byte, one script per connection.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::model::provider::LiveObserver;

#[derive(Clone)]
pub(crate) enum Step {
    Send(Vec<u8>),
    /// Sends the block again and again until so many bytes are out or the client has gone.
    Repeat(Vec<u8>, usize),
    Hang,
    NextRequest,
    /// Waits until the client has closed the connection, and notes that.
    AwaitClose,
}

pub(crate) struct FakeServer {
    pub(crate) base_url: String,
    pub(crate) host: String,
    seen: Arc<Seen>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    requests: Mutex<Vec<String>>,
    waiting: AtomicBool,
    closed: AtomicBool,
}

impl FakeServer {
    /// Serves one connection per script, in order, and closes each when its script is over.
    pub(crate) async fn start(scripts: impl IntoIterator<Item = Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let seen = Arc::new(Seen::default());
        let noting = Arc::clone(&seen);
        let scripts: Vec<Vec<Step>> = scripts.into_iter().collect();
        let task = tokio::spawn(async move {
            for script in scripts {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, script, Arc::clone(&noting)));
            }
        });
        Self { base_url: format!("http://{host}/v1"), host, seen, task }
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.requests.lock().unwrap().clone()
    }

    /// Whether an answer was read to its end and the connection waits for the next request.
    pub(crate) fn is_waiting(&self) -> bool {
        self.seen.waiting.load(Ordering::SeqCst)
    }

    pub(crate) fn saw_close(&self) -> bool {
        self.seen.closed.load(Ordering::SeqCst)
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, script: Vec<Step>, seen: Arc<Seen>) {
    let Some(request) = read_request(&mut stream).await else { return };
    seen.requests.lock().unwrap().push(request);
    // Each step goes out by itself, so that a test mostly says where chunks end.
    stream.set_nodelay(true).unwrap();
    for step in script {
        let sent = match step {
            Step::Send(bytes) => {
                let sent = stream.write_all(&bytes).await;
                tokio::task::yield_now().await;
                sent
            }
            Step::Repeat(block, total) => repeat(&mut stream, &block, total).await,
            Step::Hang => std::future::pending().await,
            Step::NextRequest => {
                seen.waiting.store(true, Ordering::SeqCst);
                let Some(request) = read_request(&mut stream).await else { return };
                seen.waiting.store(false, Ordering::SeqCst);
                seen.requests.lock().unwrap().push(request);
                Ok(())
            }
            Step::AwaitClose => {
                let read = stream.read(&mut [0; 1]).await;
                seen.closed.store(matches!(read, Ok(0) | Err(_)), Ordering::SeqCst);
                Ok(())
            }
        };
        if sent.is_err() {
            seen.closed.store(true, Ordering::SeqCst);
            return;
        }
    }
}

async fn repeat(stream: &mut TcpStream, block: &[u8], total: usize) -> std::io::Result<()> {
    for _ in 0..total / block.len() {
        stream.write_all(block).await?;
    }
    Ok(())
}

async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().unwrap())
            });
            if body.len() >= length.unwrap_or(0) {
                return Some(text.into_owned());
            }
        }
    }
}

/// The head of a good answer that ends with its connection.
pub(crate) fn head(content_type: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n").into_bytes()
}

pub(crate) fn plain(status: u16, content_type: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}"
    )
    .into_bytes()
}

pub(crate) fn events(data: &[&str]) -> Vec<u8> {
    data.iter().map(|data| format!("data: {data}\n\n")).collect::<String>().into_bytes()
}

/// An answer that streams events with these data.
pub(crate) fn stream(data: &[&str]) -> Vec<Step> {
    vec![Step::Send(head("text/event-stream")), Step::Send(events(data))]
}

/// What a listener heard, restarts included.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct CapturedDeltas(pub(crate) Vec<String>);

impl LiveObserver for CapturedDeltas {
    fn text(&mut self, piece: &str) {
        self.0.push(piece.to_owned());
    }

    fn restart(&mut self) {
        self.0.push("<restart>".to_owned());
    }
}
