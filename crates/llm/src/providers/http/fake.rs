//! A test server that runs one script per connection, byte by byte.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::model::provider::LiveObserver;

#[derive(Clone)]
pub(crate) enum Step {
    Send(Vec<u8>),
    /// Sends the block repeatedly until this number of bytes is sent or the client disconnects.
    Repeat(Vec<u8>, usize),
    Hang,
    NextRequest,
    /// Waits until the client closes the connection, and records it.
    AwaitClose,
}

pub(crate) struct FakeServer {
    pub(crate) base_url: String,
    pub(crate) host: String,
    observed: Arc<Observed>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Observed {
    requests: Mutex<Vec<String>>,
    waiting: AtomicBool,
    closed: AtomicBool,
}

impl FakeServer {
    /// Serves one connection per script, in order, and closes each at the end of its script.
    pub(crate) async fn start(scripts: impl IntoIterator<Item = Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let observed = Arc::new(Observed::default());
        let shared = Arc::clone(&observed);
        let scripts: Vec<Vec<Step>> = scripts.into_iter().collect();
        let task = tokio::spawn(async move {
            for script in scripts {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, script, Arc::clone(&shared)));
            }
        });
        Self { base_url: format!("http://{host}/v1"), host, observed, task }
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.observed.requests.lock().unwrap().clone()
    }

    /// Whether a response was read completely and the connection waits for the next request.
    pub(crate) fn is_waiting(&self) -> bool {
        self.observed.waiting.load(Ordering::SeqCst)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.observed.closed.load(Ordering::SeqCst)
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, script: Vec<Step>, observed: Arc<Observed>) {
    let Some(request) = read_request(&mut stream).await else { return };
    observed.requests.lock().unwrap().push(request);
    // Each step is sent separately, so that tests mostly control the chunk boundaries.
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
                observed.waiting.store(true, Ordering::SeqCst);
                let Some(request) = read_request(&mut stream).await else { return };
                observed.waiting.store(false, Ordering::SeqCst);
                observed.requests.lock().unwrap().push(request);
                Ok(())
            }
            Step::AwaitClose => {
                let read = stream.read(&mut [0; 1]).await;
                observed.closed.store(matches!(read, Ok(0) | Err(_)), Ordering::SeqCst);
                Ok(())
            }
        };
        if sent.is_err() {
            observed.closed.store(true, Ordering::SeqCst);
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

/// The head of a successful response that ends with its connection.
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

/// A response that streams events with these data.
pub(crate) fn stream(data: &[&str]) -> Vec<Step> {
    vec![Step::Send(head("text/event-stream")), Step::Send(events(data))]
}

/// Records the text that a live observer receives, including restarts.
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
