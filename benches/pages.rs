//! Measures the pages in a headless Chromium on the same machine (targets: the first words of a talk at most 100 ms after the request, 60
//! frames a second in the studio while 2,000 turns arrive, a session of 10,000 events open within a second).
//!
//! `BCC_BENCH_TURNS` sets the number of turns (2,000). Without a browser (`.ci/browser/run` installs it), nothing is measured.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    dead_code,
    unreachable_pub,
    reason = "a bench may fail where it stands, prints its table, and uses a part of what it shares"
)]

use serde_json::{Value, json};

use crate::browser::{Browser, DESKTOP, Look};
use crate::load::{HttpClient, SCRIPT, setting};
use crate::server::BenchServer;

#[path = "../tests/support/browser.rs"]
mod browser;
#[path = "support/load.rs"]
mod load;
#[path = "support/server.rs"]
mod server;

/// What the shared browser needs.
mod process {
    pub const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);
}
const ROOT: &str = env!("CARGO_MANIFEST_DIR");

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const WIDE: Look = Look { width: 1440, height: 900, is_phone: false, is_dark: false };

/// Notes when a message is drawn for the first time, in milliseconds from the request of the page or from the last click.
const FIRST_WORDS: &str = "
    let clicked = 0;
    addEventListener('click', () => { clicked = performance.now(); globalThis.firstWords = undefined; look(); }, true);
    function look() {
        if ([...document.querySelectorAll('.message .text')].some((text) => text.textContent)) {
            // It is drawn with this frame, before the next task.
            setTimeout(() => (globalThis.firstWords ??= performance.now() - clicked));
        } else requestAnimationFrame(look);
    }
    look();";

/// Notes the time of each frame.
const FRAMES: &str = "
    globalThis.frames_seen = [];
    const next = (time) => { globalThis.frames_seen.push(time); requestAnimationFrame(next); };
    requestAnimationFrame(next);";

/// Waits until an expression of the page gives something, and returns it.
async fn until(browser: &Browser, expression: &str) -> Value {
    let script = format!(
        "const done = arguments[0]; const look = () => {{ const found = {expression}; found ? done(found) : setTimeout(look, 20); }}; look();"
    );
    browser.run_async(&script).await
}

async fn first_words(browser: &Browser) -> f64 {
    until(browser, "globalThis.firstWords").await.as_f64().expect("it is a time")
}

/// The numbers in a list, sorted.
fn sorted(times: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut times: Vec<f64> = times.into_iter().collect();
    times.sort_by(f64::total_cmp);
    times
}

fn at(times: &[f64], part: f64) -> f64 {
    let index = (times.len() as f64 * part) as usize;
    times.get(index.min(times.len().saturating_sub(1))).copied().unwrap_or_default()
}

async fn json(client: &mut HttpClient, path: &str, body: &Value) -> Value {
    serde_json::from_slice(&client.post(path, &body.to_string()).await).expect("it is JSON")
}

fn text<'value>(value: &'value Value, name: &str) -> &'value str {
    value.get(name).and_then(Value::as_str).expect("it is there")
}

/// A talk: from the click that begins it, and from the request of its page.
async fn talk(browser: &Browser, server: &BenchServer, client: &mut HttpClient) {
    let (mut begun, mut opened, mut again) = (Vec::new(), Vec::new(), Vec::new());
    browser.run_before_pages(FIRST_WORDS).await;
    for _ in 0..20 {
        let link = json(client, "/v1/links", &json!({ "script": "echo", "kind": "open" })).await;
        browser.open(&format!("http://{}{}", server.address, text(&link, "path"))).await;
        browser.click("Begin").await;
        begun.push(first_words(browser).await);
        let address = browser.address().await;
        // Without what the browser has kept, as for a person who comes for the first time, and with it.
        for times in [&mut opened, &mut again] {
            browser.open("about:blank").await;
            browser.open(&address).await;
            times.push(first_words(browser).await);
        }
    }
    for (name, times) in [("after the click", begun), ("opened", opened), ("opened again", again)] {
        let times = sorted(times);
        println!("  first words, {name:15}  p50 {:6.1} ms   maximum {:6.1} ms", at(&times, 0.5), at(&times, 1.0));
    }
}

/// The studio while turns arrive, and a long session that is opened.
async fn studio(browser: &Browser, server: &BenchServer, client: &mut HttpClient, turns: usize) {
    let session = json(client, "/v1/sessions", &json!({ "script": "echo" })).await;
    let id = text(&session, "id").to_owned();
    let address = format!("http://{}/studio#/sessions/{id}", server.address);
    browser.open(&address).await;
    browser.element("talk-pane .message").await;
    browser.run(FRAMES).await;
    let began = std::time::Instant::now();
    let mut last = Value::Null;
    for number in 0..turns {
        let body = json!({ "text": format!("something that was said in turn {number}") });
        last = json(client, &format!("/v1/sessions/{id}/messages"), &body).await;
    }
    let seconds = began.elapsed().as_secs_f64();
    until(browser, &format!("document.querySelector('talk-pane').textContent.includes('in turn {}')", turns - 1)).await;
    let seen = browser.run("return globalThis.frames_seen").await;
    let seen: Vec<f64> = seen.as_array().expect("a list").iter().filter_map(Value::as_f64).collect();
    let frames = sorted(seen.iter().zip(seen.iter().skip(1)).map(|(before, after)| after - before));
    // A frame that was missed makes the next one come a frame later.
    let late = frames.iter().filter(|time| **time > 1.5 * 1000.0 / 60.0).count();
    println!(
        "  studio, {turns} turns in {seconds:.1} s    {} frames, {:.1} a second; p50 {:.1} ms, p99 {:.1} ms, maximum {:.1} ms; {late} late",
        frames.len(),
        frames.len() as f64 / (frames.iter().sum::<f64>() / 1000.0),
        at(&frames, 0.5),
        at(&frames, 0.99),
        at(&frames, 1.0)
    );
    let mut times = Vec::new();
    for _ in 0..10 {
        browser.open("about:blank").await;
        browser.open(&address).await;
        times.push(first_words(browser).await);
    }
    let times = sorted(times);
    let events = last.get("last_seq").and_then(Value::as_u64).unwrap_or_default();
    println!("  studio, {events} events opened    p50 {:6.1} ms   maximum {:6.1} ms", at(&times, 0.5), at(&times, 1.0));
}

fn main() {
    let turns = setting("BCC_BENCH_TURNS", 2_000);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory for the bench");
        let server = BenchServer::start(directory.path(), SCRIPT).await;
        let mut client = HttpClient::connect(&server.address).await;
        println!("pages in a headless browser on the same machine");
        if let Some(browser) = Browser::start(DESKTOP).await {
            talk(&browser, &server, &mut client).await;
        }
        if let Some(browser) = Browser::start(WIDE).await {
            browser.run_before_pages(FIRST_WORDS).await;
            studio(&browser, &server, &mut client, turns).await;
        }
        drop(client);
        server.stop().await;
    });
}
