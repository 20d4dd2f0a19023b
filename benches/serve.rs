//! Measures turns over HTTP with many live sessions, beside the same HTTP server that makes one bare durable commit of the same bytes for
//! each request (target: at least 1.5 times as many turns a second; the slowest hundredth of the turns takes at most five times the
//! median). A third row is that server without the commit: what the processors carry if neither a turn nor the disk takes any time.
//!
//! `BCC_BENCH_SESSIONS` sets the number of sessions (1,000), `BCC_BENCH_TURNS` the number of turns of each (10), `BCC_BENCH_CLIENTS` how
//! many requests are under way at a time (128).

#![allow(clippy::expect_used, clippy::print_stdout, reason = "a bench may fail where it stands, and prints its table")]

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::load::{HttpClient, Measured, SCRIPT, load, setting};
use crate::server::BenchServer;

#[path = "support/load.rs"]
mod load;
#[path = "support/server.rs"]
mod server;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The size of a store with what is still in its log, in bytes.
fn size(file: &Path) -> u64 {
    let store = Connection::open(file).expect("the store opens");
    store.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("the log is folded in");
    std::fs::metadata(file).expect("the store is a file").len()
}

/// Turns of many sessions.
async fn turns(directory: &Path, sessions: usize, turns: usize, clients: usize) -> (Measured, usize) {
    let server = BenchServer::start(directory, SCRIPT).await;
    let address = server.address.clone();
    let mut client = HttpClient::connect(&address).await;
    let mut ids = Vec::with_capacity(sessions);
    for _ in 0..sessions {
        let created = client.post("/v1/sessions", &json!({ "script": "echo" }).to_string()).await;
        let created: Value = serde_json::from_slice(&created).expect("it is JSON");
        ids.push(created.get("id").and_then(Value::as_str).expect("it has an id").to_owned());
    }
    drop(client);
    let file = directory.join(".bcc/sessions.db");
    let before = size(&file);
    // One turn of each session after the other, so that all of them are live and none has two messages at a time.
    let measured = load(&address, clients, sessions * turns, move |number| {
        let id = ids.get(number % sessions).map_or("", String::as_str);
        let body = json!({ "text": format!("something that was said in turn {number}") }).to_string();
        (format!("/v1/sessions/{id}/messages"), body)
    })
    .await;
    server.stop().await;
    let bytes = size(&file).saturating_sub(before) as usize / (sessions * turns);
    (measured, bytes)
}

/// The path to which messages are posted.
const MESSAGES: &str = "/v1/sessions/{id}/messages";

/// The bare commit of each request.
type BareStore = Arc<(Mutex<Connection>, usize)>;

async fn commit(State(store): State<BareStore>, body: Bytes) -> String {
    let (connection, bytes) = &*store;
    let text = "x".repeat(*bytes);
    let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
    let mut insert = connection.prepare_cached("INSERT INTO turn (text) VALUES (?)").expect("the table is there");
    insert.execute([text]).expect("it is written");
    format!("{{\"bytes\": {}}}", body.len())
}

/// What a request without a commit is answered.
async fn answer(body: Bytes) -> String {
    format!("{{\"bytes\": {}}}", body.len())
}

/// The same server, with one durable commit for each request.
async fn bare(directory: &Path, count: usize, clients: usize, bytes: usize) -> Measured {
    let connection = Connection::open(directory.join("bare.db")).expect("the folder exists");
    connection
        .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE turn (text TEXT);")
        .expect("the file is new");
    let store: BareStore = Arc::new((Mutex::new(connection), bytes));
    requests(Router::new().route(MESSAGES, post(commit)).with_state(store), count, clients).await
}

/// The requests of the turns, to another server.
async fn requests(app: Router, count: usize, clients: usize) -> Measured {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it listens").to_string();
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    let measured = load(&address, clients, count, |number| {
        let body = json!({ "text": format!("something that was said in turn {number}") }).to_string();
        (format!("/v1/sessions/s{}/messages", number % 1000), body)
    })
    .await;
    server.abort();
    measured
}

fn main() {
    let (sessions, each) = (setting("BCC_BENCH_SESSIONS", 1_000), setting("BCC_BENCH_TURNS", 10));
    let clients = setting("BCC_BENCH_CLIENTS", 128);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let directory = tempfile::tempdir().expect("a temporary folder");
        let (ours, bytes) = turns(directory.path(), sessions, each, clients).await;
        let bare = bare(directory.path(), sessions * each, clients, bytes).await;
        let nothing = requests(Router::new().route(MESSAGES, post(answer)), sessions * each, clients).await;
        println!("{sessions} live sessions, {each} turns of each, {clients} requests at a time; {bytes} bytes a turn in the store");
        for (name, measured) in [("turns", &ours), ("bare commits", &bare), ("no commits", &nothing)] {
            let (p50, p99) = (measured.at(0.5), measured.at(0.99));
            let per_second = measured.per_second;
            println!("  {name:14} {per_second:8.0} a second   p50 {p50:7.2} ms   p99 {p99:7.2} ms   {:4.1} ×", p99 / p50);
        }
        println!("  turns / bare commits: {:.2}", ours.per_second / bare.per_second);
    });
}
