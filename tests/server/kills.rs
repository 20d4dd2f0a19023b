//! The server is killed under load, and started again. No accepted message is lost, and none is answered twice.
//!
//! `BCC_TEST_KILLS=N` kills it N times.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::sync::RwLock;

use crate::process::{Home, TIMEOUT};
use crate::served::Serving;

/// How often the server is killed.
const KILLS: usize = 6;

const SESSIONS: usize = 8;
const MESSAGES: usize = 25;

/// A conversation that repeats what it hears, one message for each answer.
pub const ECHO: &str = "
session:
  session_id: echo
  declare: [{ var: heard, type: string }]
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - action_type: ai_ask
              action_id: listen
              config: { content: \"heard {{ heard or 'nothing' }}\", output: [{ get: heard }] }
              on_exit: { exit_criteria_met: { goto: listen } }
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_under_load_loses_and_repeats_nothing() {
    let kills = std::env::var("BCC_TEST_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(KILLS);
    let home = Home::new();
    home.put("scripts/echo.yaml", ECHO);
    home.put("bcc-script.toml", "[serve]\nrequests_per_minute = 1000000\n");
    let first = Serving::with(&home, &["--trust"]);
    let mut ids = Vec::new();
    for _ in 0..SESSIONS {
        ids.push(first.session("echo").await);
    }
    let mut serving = first;
    let target = Arc::new(RwLock::new(serving.target()));
    let (done, acknowledged) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut clients = Vec::new();
    for id in ids.clone() {
        let (target, done, acknowledged) = (Arc::clone(&target), Arc::clone(&done), Arc::clone(&acknowledged));
        clients.push(tokio::spawn(async move {
            let mut replies = Vec::new();
            for number in 0..MESSAGES {
                let body = json!({ "text": format!("word{number}") });
                let (key, path) = (format!("k{number}"), format!("/v1/sessions/{id}/messages"));
                let reply = loop {
                    let target = target.read().await.clone();
                    let reply = target.attempt(&path, &[("idempotency-key", &key)], &body).await;
                    match reply {
                        Some(reply) if reply.status == 200 => break reply.json(),
                        // The server was killed, or the one before has not released the session yet.
                        Some(reply) if !matches!(reply.status, 409 | 503) => panic!("{reply:?}"),
                        _ => tokio::task::yield_now().await,
                    }
                };
                acknowledged.fetch_add(1, Ordering::Relaxed);
                let texts: Vec<String> =
                    reply["messages"].as_array().unwrap().iter().map(|m| m["text"].to_string()).collect();
                replies.push(texts.join(" "));
            }
            done.fetch_add(1, Ordering::Relaxed);
            (id, replies)
        }));
    }
    // Killed after each of these numbers of acknowledged messages, so that every kill happens under load.
    let all = SESSIONS * MESSAGES;
    for kill in 1..=kills {
        let wanted = all * kill / (kills + 1);
        let wait = async {
            while acknowledged.load(Ordering::Relaxed) < wanted {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, wait).await.expect("no message is acknowledged any more");
        serving.kill();
        serving = Serving::with(&home, &["--trust"]);
        *target.write().await = serving.target();
    }
    for client in clients {
        let (id, replies) = client.await.unwrap();
        let expected: Vec<String> = (0..MESSAGES).map(|number| format!("\"heard word{number}\"")).collect();
        assert_eq!(replies, expected, "{id}");
    }
    assert_eq!(done.load(Ordering::Relaxed), SESSIONS);
    for id in ids {
        let export = serving.get(&format!("/v1/sessions/{id}/export")).await.json();
        let said: Vec<String> =
            export["transcript"].as_array().unwrap().iter().map(|m| m["text"].as_str().unwrap().to_owned()).collect();
        let mut expected = vec!["heard nothing".to_owned()];
        for number in 0..MESSAGES {
            expected.extend([format!("word{number}"), format!("heard word{number}")]);
        }
        assert_eq!(said, expected, "{id}");
    }
}
