//! A server on loopback that answers some requests as it should and others in a hostile way.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;

/// What a hostile answer may use.
pub struct Bait {
    /// The key that the client sent.
    pub key: &'static str,
    /// An address where nobody may be redirected to.
    pub elsewhere: String,
    pub rng: Rng,
}

/// Writes an answer. `None`: the client has closed the connection.
pub type Answer = fn(&mut TcpStream, &mut Bait) -> Option<()>;

/// The next answers of a server.
struct State {
    /// The answers that are still to come before the hostile ones.
    good: usize,
    /// How many hostile answers there are.
    hostile: usize,
    bait: Bait,
}

/// The server, which ends with the process.
pub struct Server {
    pub address: String,
    state: Arc<Mutex<State>>,
}

impl Server {
    /// Answers well `good` times, then with `hostile` as often as given, then well again.
    pub fn start(good: usize, hostile: (Answer, usize), good_answer: fn(&str) -> String, bait: Bait) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(Mutex::new(State { good, hostile: hostile.1, bait }));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(stream), shared) = (stream, Arc::clone(&shared)) else { continue };
                std::thread::spawn(move || serve(stream, hostile.0, good_answer, &shared));
            }
        });
        Self { address, state }
    }

    /// From now on it answers well.
    pub fn recover(&self) {
        self.state.lock().unwrap().hostile = 0;
    }
}

fn serve(mut stream: TcpStream, hostile: Answer, good: fn(&str) -> String, state: &Mutex<State>) -> Option<()> {
    // A client that reads nothing does not keep this thread.
    stream.set_write_timeout(Some(Duration::from_secs(20))).ok()?;
    let Some(request) = read(&stream)? else {
        return write(&mut stream, response("405 No", "", "").as_bytes());
    };
    let mut bait = {
        let mut state = state.lock().unwrap();
        let Bait { key, elsewhere, rng } = &mut state.bait;
        let bait = Bait { key, elsewhere: elsewhere.clone(), rng: rng.fork() };
        if state.good > 0 {
            state.good -= 1;
            None
        } else if state.hostile > 0 {
            state.hostile -= 1;
            Some(bait)
        } else {
            None
        }
    };
    match &mut bait {
        Some(bait) => hostile(&mut stream, bait),
        None => stream.write_all(good(&request).as_bytes()).ok(),
    }
}

/// The body of a request; `Some(None)` for the question whether there is a server, which comes before a session.
#[allow(clippy::option_option)] // a closed connection is something else
fn read(stream: &TcpStream) -> Option<Option<String>> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut length = 0;
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    if first.starts_with("GET ") {
        return Some(None);
    }
    String::from_utf8(body).ok().map(Some)
}

/// A whole response.
pub fn response(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n{body}", body.len())
}

/// Writes one piece after the other, slowly and without end.
fn drip(stream: &mut TcpStream, mut piece: impl FnMut() -> Vec<u8>) -> Option<()> {
    loop {
        stream.write_all(&piece()).ok()?;
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Writes as fast as the client reads, without end.
fn flood(stream: &mut TcpStream, piece: &[u8]) -> Option<()> {
    let many = piece.repeat(1 + 16_000 / piece.len());
    loop {
        stream.write_all(&many).ok()?;
    }
}

const STREAM: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

const JSON: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";

const CHUNKS: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

fn write(stream: &mut TcpStream, bytes: &[u8]) -> Option<()> {
    stream.write_all(bytes).ok()
}

/// Statuses that ask for patience, for other credentials, or for something that there is not; the body repeats the key.
fn status(stream: &mut TcpStream, bait: &mut Bait) -> Option<()> {
    let statuses =
        ["401 No", "403 No", "404 No", "429 Later", "500 No", "503 No", "204 Nothing", "418 Tea", "999 No", "0 No"];
    let headers = [
        "",
        "retry-after: 99999999999999999999\r\n",
        "retry-after: -1\r\n",
        "retry-after: Fri, 31 Dec 9999 23:59:59 GMT\r\n",
        "retry-after: NaN\r\n",
        "www-authenticate: Basic realm=\"x\"\r\n",
        "set-cookie: a=b\r\n",
    ];
    let (status, headers) = (*bait.rng.choice(statuses.iter())?, *bait.rng.choice(headers.iter())?);
    let message = format!("the key {0} is wrong: Bearer {0} \u{1b}[31m\u{202e}", bait.key);
    let body = serde_json::json!({ "error": { "message": message, "code": bait.key, "type": ["x"] } }).to_string();
    let body = if bait.rng.bool() { body } else { format!("<html>{message}</html>") };
    write(stream, response(status, headers, &body).as_bytes())
}

fn redirect(stream: &mut TcpStream, bait: &mut Bait) -> Option<()> {
    let status = *bait.rng.choice(["301 Go", "302 Go", "303 Go", "307 Go", "308 Go", "300 Go"].iter())?;
    let targets = [
        format!("http://{}/v1/chat/completions", bait.elsewhere),
        format!("//{}/", bait.elsewhere),
        format!("http://{}@{}/?key={0}", bait.key, bait.elsewhere),
        "file:///etc/passwd".to_owned(),
        "/v1/chat/completions".to_owned(),
        "\u{7f}".to_owned(),
    ];
    let target = bait.rng.choice(targets.iter())?.clone();
    write(stream, response(status, &format!("location: {target}\r\n"), "gone").as_bytes())
}

/// Answers below HTTP or at its edges. Each of them is one attack on the client, for models and for behaviors.
pub const ANSWERS: [(&str, Answer); 26] = [
    ("nothing", |_, _| None),
    ("silence", |stream, _| {
        // Until the client closes the connection.
        let _ = stream.read(&mut [0; 1]);
        None
    }),
    ("noise", |stream, bait| {
        let noise: Vec<u8> = (0..bait.rng.usize(1..5_000)).map(|_| bait.rng.u8(..)).collect();
        write(stream, &noise)
    }),
    ("noise without end", |stream, _| flood(stream, b"\x00\xff\r\nx")),
    ("half a status line", |stream, _| write(stream, b"HTTP/1.1 20")),
    ("HTTP/0.9", |stream, _| write(stream, b"<html>welcome</html>")),
    ("another protocol", |stream, _| write(stream, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nSSH-2.0-x\r\n")),
    ("a status", status),
    ("a redirect", redirect),
    // Not as fast as it can: a debug build takes minutes to read what hyper accepts in one go.
    ("informational responses without end", |stream, _| flood(stream, b"HTTP/1.1 100 Continue\r\n\r\n")),
    ("headers without end", |stream, _| {
        write(stream, b"HTTP/1.1 200 OK\r\n")?;
        flood(stream, b"x-header: y\r\n")
    }),
    ("1,000 headers", |stream, _| {
        let headers: String = (0..1000).map(|number| format!("x-{number}: {number}\r\n")).collect();
        write(stream, response("200 OK", &headers, "{}").as_bytes())
    }),
    ("a header without end", |stream, _| {
        write(stream, b"HTTP/1.1 200 OK\r\nx: ")?;
        flood(stream, b"y")
    }),
    ("slow headers", |stream, _| {
        write(stream, b"HTTP/1.1 200 OK\r\n")?;
        drip(stream, || b"x: y\r\n".to_vec())
    }),
    ("a slow body", |stream, _| {
        write(stream, JSON)?;
        drip(stream, || b" ".to_vec())
    }),
    ("a slow stream", |stream, _| {
        write(stream, STREAM)?;
        drip(stream, || b": still there\n\n".to_vec())
    }),
    ("a body without end", |stream, _| {
        write(stream, JSON)?;
        flood(stream, b"[")
    }),
    ("a line without end", |stream, _| {
        write(stream, STREAM)?;
        write(stream, b"data: ")?;
        flood(stream, b"x")
    }),
    ("events without end", |stream, _| {
        write(stream, STREAM)?;
        flood(stream, b"event: x\nid: 1\ndata:\n\n")
    }),
    ("a length that is too long", |stream, _| write(stream, b"HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n{}")),
    ("a length that is too short", |stream, _| {
        write(stream, b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{\"a\": 1}")
    }),
    ("lengths that are none", |stream, bait| {
        let lengths = ["-1", "99999999999999999999999", "2, 3", "0x10", "+2", ""];
        let length = *bait.rng.choice(lengths.iter())?;
        write(stream, format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{{}}").as_bytes())
    }),
    ("broken chunks", |stream, bait| {
        write(stream, CHUNKS)?;
        let chunks: [&[u8]; 5] =
            [b"zz\r\n{}\r\n", b"-5\r\nabc", b"ffffffffffffffff\r\nabc", b"5;x=y\r\nab", b"2\r\n{}x\r\n0\r\n"];
        write(stream, bait.rng.choice(chunks.iter())?)
    }),
    ("a chunk extension without end", |stream, _| {
        write(stream, CHUNKS)?;
        write(stream, b"5;")?;
        flood(stream, b"x")
    }),
    ("an encoding that it has not", |stream, bait| {
        let encoding = *bait.rng.choice(["gzip", "br", "zstd", "deflate, gzip", "x"].iter())?;
        let body = if bait.rng.bool() { "{}" } else { "\u{1f}\u{8b}" };
        write(stream, response("200 OK", &format!("content-encoding: {encoding}\r\n"), body).as_bytes())
    }),
    ("a web page", |stream, bait| {
        let page = format!("<!doctype html><title>Sign in</title>{}", "<p>".repeat(bait.rng.usize(1..50_000)));
        write(stream, response("200 OK", "content-type: text/html\r\n", &page).as_bytes())
    }),
];
