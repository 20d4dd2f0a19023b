//! Several servers on one PostgreSQL database: any of them continues any session, also when others are killed, or the database is.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::RwLock;

use crate::ROOT;
use crate::conversations::a_terminal_keeps_its_session;
use crate::database::{connect, new_database, pooled, server};
use crate::hand_over::{
    an_ended_turn_stays, an_interrupted_turn_is_not_run_again_for_waiting_messages,
    messages_interrupt_past_a_waiting_one, messages_reject_and_interrupt,
};
use crate::kills::ECHO;
use crate::process::{Home, TIMEOUT};
use crate::served::{Serving, Target};

/// How often a server is killed. `BCC_TEST_KILLS` sets another number.
const KILLS: usize = 3;

const SESSIONS: usize = 8;
const MESSAGES: usize = 12;

/// The home of the project, and the URL of its new database; ends the test without a database server.
macro_rules! new_home {
    () => {{
        let Some(server) = server() else { return };
        (echo_home(), new_database(&server).await)
    }};
}

fn echo_home() -> Home {
    let home = Home::new();
    home.put("scripts/echo.yaml", ECHO);
    home.put("bcc-script.toml", "[serve]\nrequests_per_minute = 1000000\n");
    home
}

fn serve(home: &Home, url: &str) -> Serving {
    Serving::with(home, &["--trust", "--store", url])
}

fn texts(reply: &Value) -> Vec<String> {
    reply["messages"].as_array().unwrap().iter().map(|m| m["text"].as_str().unwrap().to_owned()).collect()
}

/// What was said in a session of the echo, if it heard so many words.
fn conversation(words: usize) -> Vec<String> {
    let mut said = vec!["heard nothing".to_owned()];
    for number in 0..words {
        said.extend([format!("word{number}"), format!("heard word{number}")]);
    }
    said
}

async fn said(serving: &Serving, id: &str) -> Vec<String> {
    let export = serving.get(&format!("/v1/sessions/{id}/export")).await.json();
    export["transcript"].as_array().unwrap().iter().map(|m| m["text"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_session_goes_from_server_to_server_with_each_message() {
    let (home, url) = new_home!();
    // The second one behind a pooler, where no notification arrives.
    let servers = [serve(&home, &url), serve(&home, &pooled(&url)), serve(&home, &url)];
    let id = servers[0].session("echo").await;
    let mut events = servers[2].events(&id, None).await;
    for number in 0..9 {
        let reply = servers[number % 3].say(&id, &format!("word{number}")).await;
        assert_eq!(texts(&reply), [format!("heard word{number}")]);
    }
    assert_eq!(said(&servers[1], &id).await, conversation(9));
    // Whoever reads at one server sees all of it.
    let mut seen = vec![];
    while seen.len() < 10 {
        seen.extend(events.until("waiting").await.pop());
    }
    // The same message at another server is not answered again.
    let path = format!("/v1/sessions/{id}/messages");
    let mut replies = vec![];
    for serving in &servers {
        let reply = serving.target().attempt(&path, &[("idempotency-key", "k")], &json!({ "text": "word9" })).await;
        replies.push(texts(&reply.unwrap().json()));
    }
    assert_eq!(replies, vec![vec!["heard word9".to_owned()]; 3]);
    let deleted = servers[1].send(reqwest::Method::DELETE, &format!("/v1/sessions/{id}"), &[], None).await;
    assert_eq!(deleted.status, 204);
    assert_eq!(servers[0].get(&format!("/v1/sessions/{id}")).await.status, 404);
}

#[tokio::test]
async fn messages_reject_and_interrupt_the_turn_of_another_server() {
    let Some(server) = server() else { return };
    let url = new_database(&server).await;
    messages_reject_and_interrupt(&Home::new(), &["--store", &url]).await;
    // No notification arrives behind a pooler.
    let url = new_database(&server).await;
    messages_reject_and_interrupt(&Home::new(), &["--store", &pooled(&url)]).await;
}

#[tokio::test]
async fn a_turn_that_another_server_interrupts_is_not_run_again_for_waiting_messages() {
    let Some(server) = server() else { return };
    let url = new_database(&server).await;
    an_interrupted_turn_is_not_run_again_for_waiting_messages(&Home::new(), &["--store", &url]).await;
}

#[tokio::test]
async fn a_message_that_waits_for_another_server_keeps_nobody_from_interrupting() {
    let Some(server) = server() else { return };
    let url = new_database(&server).await;
    messages_interrupt_past_a_waiting_one(&Home::new(), &["--store", &url]).await;
}

#[tokio::test]
async fn the_ended_turn_of_another_server_stays() {
    let Some(server) = server() else { return };
    let url = new_database(&server).await;
    an_ended_turn_stays(&Home::new(), &["--store", &url]).await;
}

#[tokio::test]
async fn a_session_in_a_terminal_is_left_to_it() {
    let Some(server) = server() else { return };
    let url = new_database(&server).await;
    a_terminal_keeps_its_session(&Home::new(), &["--store", &url]).await;
}

#[tokio::test]
async fn at_the_end_of_a_server_its_sessions_are_free_at_once() {
    let (home, url) = new_home!();
    let (first, second) = (serve(&home, &url), serve(&home, &url));
    let id = first.session("echo").await;
    first.terminate();
    assert_eq!(first.finish().code, Some(0));
    let client = connect(&url).await;
    let leases: i64 = client.query_one("SELECT count(*) FROM bcc_script.lease", &[]).await.unwrap().get(0);
    assert_eq!(leases, 0);
    second.say(&id, "word0").await;
    assert_eq!(said(&second, &id).await, conversation(1));
}

/// A client that says its words one after the other, each time to the next server that answers.
async fn talk(targets: Arc<RwLock<Vec<Target>>>, id: String, acknowledged: Arc<AtomicUsize>, words: usize) {
    for number in 0..words {
        let body = json!({ "text": format!("word{number}") });
        let (key, path) = (format!("k{number}"), format!("/v1/sessions/{id}/messages"));
        let mut attempts = number;
        let reply = loop {
            let target = {
                let targets = targets.read().await;
                targets[attempts % targets.len()].clone()
            };
            attempts += 1;
            match target.attempt(&path, &[("idempotency-key", &key)], &body).await {
                Some(reply) if reply.status == 200 => break reply.json(),
                // The server was killed, another one has not released the session yet, or the database is away.
                Some(reply) if !matches!(reply.status, 409 | 503) => panic!("{reply:?}"),
                _ => tokio::task::yield_now().await,
            }
        };
        assert_eq!(texts(&reply), [format!("heard word{number}")], "{id}");
        acknowledged.fetch_add(1, Ordering::Relaxed);
    }
}

async fn reached(acknowledged: &AtomicUsize, wanted: usize) {
    let wait = async {
        while acknowledged.load(Ordering::Relaxed) < wanted {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, wait).await.expect("no message is acknowledged any more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_servers_is_killed_under_load_and_nothing_is_lost_or_repeated() {
    let (home, url) = new_home!();
    let kills = std::env::var("BCC_TEST_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(KILLS);
    let words = MESSAGES.max(kills);
    let mut servers = [serve(&home, &url), serve(&home, &url)];
    let mut ids = vec![];
    for number in 0..SESSIONS {
        ids.push(servers[number % 2].session("echo").await);
    }
    let targets = Arc::new(RwLock::new(servers.iter().map(Serving::target).collect::<Vec<_>>()));
    let acknowledged = Arc::new(AtomicUsize::new(0));
    let clients =
        ids.iter().map(|id| tokio::spawn(talk(Arc::clone(&targets), id.clone(), Arc::clone(&acknowledged), words)));
    let clients: Vec<_> = clients.collect();
    for kill in 1..=kills {
        reached(&acknowledged, SESSIONS * words * kill / (kills + 1)).await;
        servers[kill % 2].kill();
        servers[kill % 2] = serve(&home, &url);
        targets.write().await[kill % 2] = servers[kill % 2].target();
    }
    for client in clients {
        client.await.unwrap();
    }
    for id in ids {
        assert_eq!(said(&servers[0], &id).await, conversation(words), "{id}");
    }
}

/// A connection to the database that can be cut off without anybody noticing: what is sent goes nowhere.
pub(crate) struct Cable {
    port: u16,
    is_cut: Arc<AtomicBool>,
}

impl Cable {
    /// To the socket of the database of this URL.
    pub(crate) fn to(url: &str) -> Self {
        let place = url.split('@').nth(1).unwrap().split('/').next().unwrap().replace("%2F", "/");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let is_cut = Arc::new(AtomicBool::new(false));
        let cut = Arc::clone(&is_cut);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (client, database) =
                    (stream.unwrap(), UnixStream::connect(format!("{place}/.s.PGSQL.5432")).unwrap());
                let (from, to) = (client.try_clone().unwrap(), database.try_clone().unwrap());
                let (out, back) = (Arc::clone(&cut), Arc::clone(&cut));
                std::thread::spawn(move || pass(from, to, &out));
                std::thread::spawn(move || pass(database, client, &back));
            }
        });
        Self { port, is_cut }
    }

    pub(crate) fn url(&self, url: &str) -> String {
        let (start, name) = url.rsplit_once('/').unwrap();
        let user = start.split('@').next().unwrap();
        format!("{user}@127.0.0.1:{}/{name}", self.port)
    }
}

fn pass(mut from: impl Read, mut to: impl Write + Shut, is_cut: &AtomicBool) {
    let mut bytes = [0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        // What is on its way when the cable is mended arrives then.
        while is_cut.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(5));
        }
        if to.write_all(&bytes[..length]).is_err() {
            break;
        }
    }
    to.shut();
}

trait Shut {
    fn shut(&self);
}

impl Shut for TcpStream {
    fn shut(&self) {
        let _ = self.shutdown(std::net::Shutdown::Both);
    }
}

impl Shut for UnixStream {
    fn shut(&self) {
        let _ = self.shutdown(std::net::Shutdown::Both);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_cut_off_from_the_database_loses_its_sessions_and_doubles_nothing() {
    let (home, url) = new_home!();
    let cable = Cable::to(&url);
    let (cut, connected) = (serve(&home, &cable.url(&url)), serve(&home, &url));
    let id = cut.session("echo").await;
    cut.say(&id, "word0").await;
    cable.is_cut.store(true, Ordering::Release);
    // It has taken the message when the database is gone.
    let path = format!("/v1/sessions/{id}/messages");
    let (target, late_path) = (cut.target(), path.clone());
    let late = tokio::spawn(async move {
        target.attempt(&late_path, &[("idempotency-key", "k1")], &json!({ "text": "word1" })).await
    });
    // Its lease expires, and the other one answers; the client says the same there.
    let attempt =
        async || connected.target().attempt(&path, &[("idempotency-key", "k1")], &json!({ "text": "word1" })).await;
    let reply = attempt().await.unwrap();
    assert_eq!((reply.status, texts(&reply.json())), (200, vec!["heard word1".to_owned()]));
    connected.say(&id, "word2").await;
    cable.is_cut.store(false, Ordering::Release);
    // What the first one would have committed is rejected, or recognised as accepted.
    let late = late.await.unwrap().unwrap();
    match late.status {
        200 => assert_eq!(texts(&late.json()), ["heard word1"]),
        status => assert_eq!(status, 503, "{late:?}"),
    }
    assert_eq!(said(&cut, &id).await, conversation(3));
    assert_eq!(texts(&cut.say(&id, "word3").await), ["heard word3"]);
    assert_eq!(said(&connected, &id).await, conversation(4));
}

/// A PostgreSQL server of this test alone.
struct OwnDatabase {
    place: String,
}

impl OwnDatabase {
    fn start() -> Self {
        // Not in the private directory of the test: the server runs as another user.
        let place = std::env::temp_dir().join(format!("bcc-postgres-{}", uuid::Uuid::new_v4().simple()));
        let own = Self { place: place.to_str().unwrap().to_owned() };
        own.run("--start");
        own
    }

    fn run(&self, what: &str) {
        let done = Command::new(format!("{ROOT}/.ci/postgres/run")).args([what, &self.place]).status().unwrap();
        assert!(done.success(), "{what}");
    }

    fn url(&self) -> String {
        format!("postgres://postgres@{}/postgres", self.place.replace('/', "%2F"))
    }
}

impl Drop for OwnDatabase {
    fn drop(&mut self) {
        self.run("--stop");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_restarts_interrupts_nothing() {
    if server().is_none() {
        return;
    }
    let (home, database) = (echo_home(), OwnDatabase::start());
    let servers = [serve(&home, &database.url()), serve(&home, &database.url())];
    let mut ids = vec![];
    for serving in &servers {
        ids.push(serving.session("echo").await);
        ids.push(serving.session("echo").await);
    }
    let targets = Arc::new(RwLock::new(servers.iter().map(Serving::target).collect::<Vec<_>>()));
    let acknowledged = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = ids
        .iter()
        .map(|id| tokio::spawn(talk(Arc::clone(&targets), id.clone(), Arc::clone(&acknowledged), MESSAGES)))
        .collect();
    for restart in 1..=2 {
        reached(&acknowledged, ids.len() * MESSAGES * restart / 3).await;
        let place = database.place.clone();
        tokio::task::spawn_blocking(move || {
            let script = format!("{ROOT}/.ci/postgres/run");
            assert!(Command::new(script).args(["--restart", &place]).status().unwrap().success());
        })
        .await
        .unwrap();
    }
    for client in clients {
        client.await.unwrap();
    }
    for id in ids {
        assert_eq!(said(&servers[0], &id).await, conversation(MESSAGES), "{id}");
    }
}
