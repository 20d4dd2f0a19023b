//! Load over HTTP: connections that are kept, and the times of the requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A conversation without an end, which the offline responder leads. Each message is one turn: the answers never say yes or no, as
/// the question demands, so that each is followed up.
pub(crate) const SCRIPT: &str = "
session:
  session_id: echo
  declare: [{ var: heard, type: string }, { var: finished, type: boolean }]
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - action_type: ai_ask
              action_id: listen
              config:
                content: \"You said {{ heard or 'nothing' }}. Is that all?\"
                max_rounds: 50
                output: [{ get: heard }, { get: finished, required: true }]
              on_exit: { max_rounds_reached: { goto: listen } }
";

pub(crate) fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// A connection that is kept.
pub(crate) struct HttpClient {
    stream: TcpStream,
    read: Vec<u8>,
}

impl HttpClient {
    pub(crate) async fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.expect("the server listens");
        stream.set_nodelay(true).expect("it is TCP");
        Self { stream, read: vec![0; 64 * 1024] }
    }

    /// Posts a body, and returns that of the response.
    pub(crate) async fn post(&mut self, path: &str, body: &str) -> Vec<u8> {
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await.expect("the server reads");
        let mut filled = 0;
        loop {
            let rest = self.read.get_mut(filled..).expect("the response fits");
            let count = self.stream.read(rest).await.expect("the server answers");
            assert!(count > 0, "the server closed the connection");
            filled += count;
            let text = self.read.get(..filled).expect("it was read");
            let Some(end) = text.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
            let head = String::from_utf8_lossy(text.get(..end).expect("it was read")).to_lowercase();
            assert!(head.starts_with("http/1.1 20"), "{head}");
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            let length: usize = length.expect("it has a length");
            if filled >= end + 4 + length {
                return text.get(end + 4..end + 4 + length).expect("it was read").to_vec();
            }
        }
    }
}

/// How many requests were answered in a second, and the times of each in milliseconds, sorted.
pub(crate) struct Measured {
    pub(crate) per_second: f64,
    pub(crate) times: Vec<f64>,
}

impl Measured {
    pub(crate) fn at(&self, part: f64) -> f64 {
        let index = (self.times.len() as f64 * part) as usize;
        self.times.get(index.min(self.times.len().saturating_sub(1))).copied().unwrap_or_default()
    }
}

/// Sends all requests, many of them at a time; `request` makes the path and the body of the n-th one.
pub(crate) async fn load(
    address: &str,
    clients: usize,
    count: usize,
    request: impl Fn(usize) -> (String, String) + Send + Sync + 'static,
) -> Measured {
    let (next, request) = (Arc::new(AtomicUsize::new(0)), Arc::new(request));
    let began = Instant::now();
    let tasks = (0..clients).map(|_| {
        let (next, request, address) = (Arc::clone(&next), Arc::clone(&request), address.to_owned());
        tokio::spawn(async move {
            let mut client = HttpClient::connect(&address).await;
            let mut times = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return times;
                }
                let (path, body) = request(number);
                let began = Instant::now();
                client.post(&path, &body).await;
                times.push(began.elapsed().as_secs_f64() * 1e3);
            }
        })
    });
    let mut times = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        times.extend(task.await.expect("it does not panic"));
    }
    let per_second = count as f64 / began.elapsed().as_secs_f64();
    times.sort_by(f64::total_cmp);
    Measured { per_second, times }
}
