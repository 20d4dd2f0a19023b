//! Requests that are wrong get an error that says what is wrong, and change nothing.

use std::io::{Read, Write};
use std::net::TcpStream;

use reqwest::Method;
use serde_json::{Value, json};

use crate::process::Home;
use crate::served::{Serving, TALK};

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

/// What it shows, its method, path, headers and body.
type WrongRequest<'r> = (&'r str, Method, &'r str, &'r [(&'r str, &'r str)], Vec<u8>);

#[tokio::test]
async fn wrong_requests_are_answered_with_a_problem() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    home.put("scripts/broken.yaml", "session:\n  session_id: broken\n  phases: 7\n");
    home.put("scripts/a.yaml", TALK.replace("session_id: talk", "session_id: twice"));
    home.put("scripts/b.yaml", TALK.replace("session_id: talk", "session_id: twice"));
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    let messages = format!("/v1/sessions/{id}/messages");
    let long = json!({ "text": "x".repeat(2_000_000) }).to_string().into_bytes();
    let cases: Vec<WrongRequest<'_>> = vec![
        ("no JSON", Method::POST, "/v1/sessions", &JSON, b"{".to_vec()),
        ("no type", Method::POST, "/v1/sessions", &[], b"{}".to_vec()),
        ("no script", Method::POST, "/v1/sessions", &JSON, b"{}".to_vec()),
        ("unknown field", Method::POST, "/v1/sessions", &JSON, br#"{"script":"talk","model":"m"}"#.to_vec()),
        ("unknown script", Method::POST, "/v1/sessions", &JSON, br#"{"script":"nothing"}"#.to_vec()),
        ("path outside", Method::POST, "/v1/sessions", &JSON, br#"{"script":"../secret.yaml"}"#.to_vec()),
        ("ambiguous script", Method::POST, "/v1/sessions", &JSON, br#"{"script":"twice"}"#.to_vec()),
        ("script with errors", Method::POST, "/v1/sessions", &JSON, br#"{"script":"broken"}"#.to_vec()),
        ("unknown variable", Method::POST, "/v1/sessions", &JSON, br#"{"script":"talk","variables":{"x":1}}"#.to_vec()),
        ("wrong id", Method::POST, "/v1/sessions", &JSON, br#"{"script":"talk","session_id":"a/b"}"#.to_vec()),
        ("invalid UTF-8", Method::POST, &messages, &JSON, b"{\"text\":\"\xff\"}".to_vec()),
        ("text is a number", Method::POST, &messages, &JSON, br#"{"text":7}"#.to_vec()),
        ("too large", Method::POST, &messages, &JSON, long),
        (
            "empty key",
            Method::POST,
            &messages,
            &[("content-type", "application/json"), ("idempotency-key", " ")],
            br#"{"text":"a"}"#.to_vec(),
        ),
        ("unknown session", Method::POST, "/v1/sessions/none/messages", &JSON, br#"{"text":"a"}"#.to_vec()),
        ("unknown request", Method::POST, "/v1/requests/none/r1", &JSON, br#"{"decision":"approve"}"#.to_vec()),
        ("wrong number", Method::GET, "/v1/sessions/none/events", &[("last-event-id", "x")], vec![]),
        ("wrong query", Method::GET, "/v1/sessions?limit=many", &[], vec![]),
        ("unknown format", Method::GET, "/v1/sessions/none/export?format=pdf", &[], vec![]),
        ("unknown path", Method::GET, "/v1/nothing", &[], vec![]),
        ("wrong method", Method::PUT, "/v1/sessions", &JSON, b"{}".to_vec()),
    ];
    let mut shown = String::new();
    for (name, method, path, headers, body) in cases {
        let reply = serving.send(method, path, headers, Some(body)).await;
        assert_eq!(reply.header("content-type"), "application/problem+json", "{name}: {reply:?}");
        let problem = reply.json();
        assert_eq!(problem["status"], reply.status, "{name}");
        assert!(!reply.text.contains(&home.path().display().to_string()), "{name}: {reply:?}");
        shown.push_str(&format!("{name}: {} {}\n", reply.status, problem["type"].as_str().unwrap()));
        shown.push_str(&format!("  {}\n", problem["detail"].as_str().unwrap()));
        if let Some(help) = problem["help"].as_str() {
            shown.push_str(&format!("  help: {help}\n"));
        }
        for diagnostic in problem["diagnostics"].as_array().unwrap_or(&vec![]) {
            let text = |name: &str| diagnostic[name].as_str().unwrap().to_owned();
            shown.push_str(&format!("  {}:{}: {}\n", text("file"), diagnostic["line"], text("message")));
        }
    }
    insta::assert_snapshot!("problems", shown.replace(&id, "ID"));
    assert_eq!(serving.get(&format!("/v1/sessions/{id}")).await.json()["waiting"]["answer_id"], "a1");
}

#[tokio::test]
async fn problems_are_in_the_language_of_the_client() {
    let home = Home::new();
    let serving = Serving::start(&home);
    let reply = serving.send(Method::GET, "/v1/sessions/none", &[("accept-language", "zh-CN,zh;q=0.9")], None).await;
    let problem: Value = reply.json();
    assert_eq!(problem["detail"], "没有会话 `none`");
    assert_eq!(problem["type"], "/problems/not-found");
}

#[tokio::test]
async fn half_a_request_and_a_client_that_leaves_do_no_harm() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    let address = serving.url.trim_start_matches("http://").to_owned();
    // Connections that send nothing, or only a part, and stay open.
    let mut open = Vec::new();
    for part in ["", "POST /v1/sess", "POST /v1/sessions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{"] {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(part.as_bytes()).unwrap();
        open.push(stream);
    }
    // Somebody sends a message and leaves without its reply: the turn is finished and kept.
    let body = json!({ "text": "Ann" }).to_string();
    let mut stream = TcpStream::connect(&address).unwrap();
    let head = format!(
        "POST /v1/sessions/{id}/messages HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).unwrap();
    let mut events = serving.events(&id, None).await;
    while events.next().await.unwrap().json()["text"] != "Ann" {}
    drop(stream);
    events.until("waiting").await;
    assert_eq!(serving.say(&id, "tea").await["messages"][0]["text"], "Ann likes tea.");
    // What is not HTTP is answered as such.
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.write_all(b"\x16\x03\x01 hello\r\n\r\n").unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    drop(open);
}
