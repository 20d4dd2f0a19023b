//! Measures turns over HTTP of two server processes on one PostgreSQL database, beside bare transactions of the same bytes by a pool of the
//! same size (target: at least 0.7 times as many turns a second).
//!
//! `BCC_TEST_POSTGRES` is the URL of the server. `BCC_BENCH_SESSIONS` sets the number of sessions (200), `BCC_BENCH_TURNS` the number of
//! turns of each (20), `BCC_BENCH_CLIENTS` how many requests are under way at a time at each server (32).

#![allow(clippy::expect_used, clippy::print_stdout, reason = "a bench may fail where it stands, and prints its table")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod};
use serde_json::{Value, json};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Config, NoTls};

use crate::load::{HttpClient, Measured, SCRIPT, load, setting};

#[path = "support/load.rs"]
mod load;

/// The connections of both servers.
const CONNECTIONS: usize = 32;

/// A server in a process of its own, and its address.
struct ServerProcess {
    child: Child,
    address: String,
}

impl ServerProcess {
    fn start(directory: &Path, url: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_bcc-script"))
            .args(["serve", "--addr", "127.0.0.1:0", "--trust", "--store", url, "--project"])
            .arg(directory)
            .env("BCC_MODEL", "offline")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program is built");
        let output = child.stdout.take().expect("it is piped");
        let line = BufReader::new(output).lines().next().expect("it listens").expect("it is text");
        let address = line.rsplit("http://").next().unwrap_or_default().trim_end_matches('/').to_owned();
        Self { child, address }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn connect(url: &str) -> Client {
    let (client, connection) = url.parse::<Config>().expect("a URL").connect(NoTls).await.expect("the server listens");
    tokio::spawn(connection);
    client
}

/// The bytes of the database.
async fn size(client: &Client) -> i64 {
    // What is written is in the files only after a checkpoint.
    client.batch_execute("CHECKPOINT").await.expect("the role may do it");
    client.query_one("SELECT pg_database_size(current_database())", &[]).await.expect("it has a size").get(0)
}

/// Turns at both servers, and the bytes of each in the database.
async fn turns(url: &str, sessions: usize, each: usize, clients: usize) -> (Measured, usize) {
    let directory = tempfile::tempdir().expect("a temporary folder");
    std::fs::create_dir_all(directory.path().join("scripts")).expect("the folder is new");
    std::fs::write(directory.path().join("scripts/echo.yaml"), SCRIPT).expect("the folder exists");
    std::fs::write(directory.path().join("bcc-script.toml"), "[serve]\nrequests_per_minute = 100000000\n")
        .expect("it exists");
    let servers = [ServerProcess::start(directory.path(), url), ServerProcess::start(directory.path(), url)];
    let mut ids: [Vec<String>; 2] = [vec![], vec![]];
    for (server, ids) in servers.iter().zip(&mut ids) {
        let mut client = HttpClient::connect(&server.address).await;
        for _ in 0..sessions / 2 {
            let created = client.post("/v1/sessions", &json!({ "script": "echo" }).to_string()).await;
            let created: Value = serde_json::from_slice(&created).expect("it is JSON");
            ids.push(created.get("id").and_then(Value::as_str).expect("it has an id").to_owned());
        }
    }
    let client = connect(url).await;
    let before = size(&client).await;
    let count = sessions / 2 * each;
    let began = Instant::now();
    let [first, second] = ids.map(|ids| {
        move |number: usize| {
            let id = ids.get(number % ids.len()).map_or("", String::as_str);
            let body = json!({ "text": format!("something that was said in turn {number}") }).to_string();
            (format!("/v1/sessions/{id}/messages"), body)
        }
    });
    let (mut first, second) = tokio::join!(
        load(&servers[0].address, clients, count, first),
        load(&servers[1].address, clients, count, second)
    );
    first.per_second = (2 * count) as f64 / began.elapsed().as_secs_f64();
    first.times.extend(second.times);
    first.times.sort_by(f64::total_cmp);
    let bytes = usize::try_from(size(&client).await - before).unwrap_or_default() / (2 * count);
    (first, bytes)
}

/// Bare transactions, each of which writes so many bytes.
async fn bare(url: &str, count: usize, clients: usize, bytes: usize) -> Measured {
    connect(url).await.batch_execute("CREATE TABLE bare (body text)").await.expect("the database is new");
    let manager = Manager::from_config(
        url.parse().expect("a URL"),
        NoTls,
        ManagerConfig { recycling_method: RecyclingMethod::Fast },
    );
    let pool = Pool::builder(manager).max_size(CONNECTIONS).build().expect("a pool");
    // Random hexadecimal digits, so that the server compresses as little of them as of a conversation.
    let text: Arc<str> =
        (0..bytes).map(|_| char::from_digit(fastrand::u32(0..16), 16).unwrap_or('0')).collect::<String>().into();
    let (next, began) = (Arc::new(AtomicUsize::new(0)), Instant::now());
    let tasks = (0..clients).map(|_| {
        let (next, pool, text) = (Arc::clone(&next), pool.clone(), Arc::clone(&text));
        tokio::spawn(async move {
            let mut times = vec![];
            while next.fetch_add(1, Ordering::Relaxed) < count {
                let began = Instant::now();
                let client = pool.get().await.expect("a connection");
                let sql = "INSERT INTO bare VALUES ($1)";
                client.query_typed(sql, &[(&&*text, Type::TEXT)]).await.expect("it is written");
                times.push(began.elapsed().as_secs_f64() * 1e3);
            }
            times
        })
    });
    let mut times = vec![];
    for task in tasks.collect::<Vec<_>>() {
        times.extend(task.await.expect("it does not panic"));
    }
    let per_second = count as f64 / began.elapsed().as_secs_f64();
    times.sort_by(f64::total_cmp);
    Measured { per_second, times }
}

fn main() {
    let Ok(server) = std::env::var("BCC_TEST_POSTGRES") else {
        println!("set BCC_TEST_POSTGRES to the URL of a PostgreSQL server");
        return;
    };
    let (sessions, each) = (setting("BCC_BENCH_SESSIONS", 200), setting("BCC_BENCH_TURNS", 20));
    let clients = setting("BCC_BENCH_CLIENTS", 32);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let name = format!("bcc_bench_{}", uuid::Uuid::new_v4().simple());
        let client = connect(&server).await;
        client.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("the role may do it");
        let url = format!("{}/{name}", server.rsplit_once('/').map_or(server.as_str(), |(start, _)| start));
        let (ours, bytes) = turns(&url, sessions, each, clients).await;
        let bare = bare(&url, sessions * each, 2 * clients, bytes).await;
        println!(
            "two servers, {sessions} sessions, {each} turns of each, {} requests at a time; {bytes} bytes a turn",
            2 * clients
        );
        for (name, measured) in [("turns", &ours), ("bare transactions", &bare)] {
            let (p50, p99) = (measured.at(0.5), measured.at(0.99));
            println!("  {name:18} {:8.0} a second   p50 {p50:7.2} ms   p99 {p99:7.2} ms", measured.per_second);
        }
        println!("  turns / bare transactions: {:.2}", ours.per_second / bare.per_second);
        let _ = client.batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)")).await;
    });
}
