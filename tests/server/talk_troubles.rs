//! What goes wrong in conversations on the page (docs/talk-page.md), as the page sees it: over HTTP.

use std::sync::{Arc, Barrier};

use reqwest::Method;
use serde_json::{Value, json};

use crate::process::Home;
use crate::served::{Reply, Serving, TALK, said};
use crate::server::{Server, ServerBehavior};
use crate::visitor::{ASKING_MODEL, Visitor, make_link, model_config};

#[tokio::test]
async fn a_talk_of_a_revoked_link_can_be_read_and_does_not_go_on() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let link = serving.post("/v1/links", json!({ "script": "talk", "kind": "open" })).await.json();
    let path = link["path"].as_str().unwrap();
    let visitor = Visitor::of(&serving, path, "a");
    visitor.begin(None).await;
    visitor.until("waiting").await;
    visitor.say("Ann", "1").await;
    let state = visitor.until("waiting").await;
    let mut events = visitor.events(state["last_seq"].as_u64().unwrap()).await;
    let revoke = format!("/v1/links/{}", link["id"].as_str().unwrap());
    assert_eq!(serving.send(Method::DELETE, &revoke, &[], None).await.status, 204);
    assert_eq!(events.next().await.unwrap().event, "revoked");
    let answer = json!({ "text": "tea", "answer_id": state["waiting"]["answer_id"] });
    let refused = visitor.post_with("messages", Some("2"), answer).await;
    assert_eq!((refused.status, refused.text.as_str()), (410, r#"{"error":"revoked"}"#));
    // What was accepted before is still acknowledged.
    let repeated = json!({ "text": "Ann", "answer_id": "a1" });
    assert_eq!(visitor.post_with("messages", Some("1"), repeated).await.status, 202);
    let state = visitor.get("state").await.json();
    assert_eq!((state["messages"].as_array().unwrap().len(), &state["is_revoked"]), (4, &json!(true)));
    assert!(visitor.get("copy").await.text.contains("Ann"));
    assert_eq!(Visitor::of(&serving, path, "b").begin(None).await.text, r#"{"error":"revoked"}"#);
}

#[tokio::test]
async fn an_answer_that_was_acknowledged_is_answered_by_the_next_server() {
    let home = Home::new();
    let gate = Arc::new(Barrier::new(2));
    let reply = said("And your name?");
    let model = Server::start(vec![ServerBehavior::Paused(gate, reply.clone()), ServerBehavior::Answers(reply)]);
    home.put("bcc-script.toml", model_config(&model));
    home.put("scripts/talk.yaml", ASKING_MODEL);
    let mut serving = Serving::with(&home, &["--trust"]);
    let path = make_link(&serving, json!({ "script": "talk", "kind": "open" })).await;
    let visitor = Visitor::of(&serving, &path, "a");
    visitor.begin(None).await;
    let mut events = visitor.events(0).await;
    visitor.say("a person", "1").await;
    // In the middle of the reply.
    events.until("piece").await;
    serving.kill();
    let serving = Serving::with(&home, &["--trust"]);
    let visitor = Visitor::of(&serving, &path, "a");
    // Whoever comes back makes it go on.
    let state = visitor.until("waiting").await;
    let texts: Vec<&Value> = state["messages"].as_array().unwrap().iter().map(|message| &message["text"]).collect();
    assert_eq!(texts.last(), Some(&&json!("And your name?")), "{state}");
    assert_eq!(texts.iter().filter(|text| ***text == json!("a person")).count(), 1);
}

#[tokio::test]
async fn a_piece_without_the_beginning_of_its_message_is_not_sent() {
    let home = Home::new();
    let gate = Arc::new(Barrier::new(2));
    let text = said("It is a long story that comes in pieces.");
    let model = Server::start(vec![ServerBehavior::Paused(Arc::clone(&gate), text)]);
    home.put("bcc-script.toml", model_config(&model));
    home.put("scripts/talk.yaml", ASKING_MODEL);
    let serving = Serving::with(&home, &["--trust"]);
    let path = make_link(&serving, json!({ "script": "talk", "kind": "open" })).await;
    let visitor = Visitor::of(&serving, &path, "a");
    visitor.begin(None).await;
    let state = visitor.until("waiting").await;
    let mut early = visitor.events(state["last_seq"].as_u64().unwrap()).await;
    visitor.say("a person", "1").await;
    let begun = early.until("piece").await;
    // It comes in the middle of the message.
    let mut late = visitor.events(state["last_seq"].as_u64().unwrap()).await;
    assert_eq!(late.next().await.unwrap().event, "message");
    tokio::task::spawn_blocking(move || gate.wait()).await.unwrap();
    let missed: Vec<String> = late.until("waiting").await.into_iter().map(|event| event.event).collect();
    assert_eq!(missed, ["message", "waiting"]);
    let rest = early.until("waiting").await;
    let pieces = begun.iter().chain(&rest).filter(|event| event.event == "piece");
    let shown: String = pieces.map(|event| event.json()["text"].as_str().unwrap().to_owned()).collect();
    assert_eq!(shown, "It is a long story that comes in pieces.");
}

#[tokio::test]
async fn a_full_store_refuses_an_answer_and_keeps_what_it_has_accepted() {
    let home = Home::new();
    home.put("scripts/echo.yaml", crate::kills::ECHO);
    let program = home.command(["serve", "--addr", "127.0.0.1:0"]);
    let mut limited = std::process::Command::new("sh");
    // In blocks of 512 bytes: 1.5 MB for each file.
    limited.args(["-c", "ulimit -f 3000; exec \"$0\" \"$@\""]).arg(program.get_program()).args(program.get_args());
    limited.env_clear().envs(home.variables()).current_dir(home.path());
    let mut serving = Serving::of(crate::process::Running::start(limited));
    let path = make_link(&serving, json!({ "script": "echo", "kind": "open" })).await;
    let visitor = Visitor::of(&serving, &path, "a");
    visitor.begin(None).await;
    let mut question = visitor.until("waiting").await["waiting"].clone();
    let text = |number: usize| format!("{number} {}", "x".repeat(30_000));
    let mut events = visitor.events(0).await;
    events.until("waiting").await;
    let mut accepted = Vec::new();
    let refused = loop {
        let number = accepted.len();
        assert!(number < 200, "the store is never full");
        let body = json!({ "text": text(number), "answer_id": question["answer_id"] });
        let reply = visitor.post_with("messages", Some(&number.to_string()), body.clone()).await;
        if reply.status != 202 {
            assert!(matches!(reply.status, 500 | 503), "{reply:?}");
            break Some((number, body));
        }
        accepted.push(text(number));
        // Whatever the turn gives, or that it cannot be stored: then the next answer is refused.
        let next = tokio::time::timeout(std::time::Duration::from_secs(2), events.until("waiting")).await;
        match next {
            Ok(told) => question = told.last().unwrap().json(),
            Err(_) => break None,
        }
    };
    serving.kill();
    let serving = Serving::start(&home);
    let visitor = Visitor::of(&serving, &path, "a");
    let state = visitor.until("waiting").await;
    let own = |state: &Value| -> Vec<String> {
        let messages = state["messages"].as_array().unwrap().iter();
        messages.filter(|message| message["own"] == true).map(|m| m["text"].as_str().unwrap().to_owned()).collect()
    };
    assert!(!accepted.is_empty());
    assert_eq!(own(&state), accepted);
    // The page sends what was not accepted again, and then it is.
    if let Some((number, body)) = refused {
        assert_eq!(visitor.post_with("messages", Some(&number.to_string()), body).await.status, 202);
        accepted.push(text(number));
        assert_eq!(own(&visitor.until("waiting").await), accepted);
    }
}

#[tokio::test]
async fn the_page_runs_nothing_of_others_and_keeps_its_address() {
    let home = Home::new();
    home.put(
        "scripts/talk.yaml",
        TALK.replace("session_id: talk", "session_id: talk\n  session_name: '<script>alert(1)</script>'"),
    );
    let serving = Serving::start(&home);
    let path = make_link(&serving, json!({ "script": "talk", "kind": "open" })).await;
    let page = serving.get(&path).await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(page.text.contains("<html lang=\"en\">") && !page.text.contains("<script>"), "{}", page.text);
    let talk = serving.get(&format!("{path}/{}", "a".repeat(64))).await;
    let unknown = serving.get("/t/none").await;
    assert_eq!(unknown.status, 404);
    let replies: [&Reply; 4] = [&page, &talk, &unknown, &serving.get(&format!("{path}/link")).await];
    for reply in replies {
        let policy = reply.header("content-security-policy");
        for part in ["default-src 'none'", "script-src 'self';", "style-src 'self';", "frame-ancestors 'none'"] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(reply.header("referrer-policy"), "no-referrer");
        assert_eq!((reply.header("cache-control"), reply.header("x-content-type-options")), ("no-store", "nosniff"));
    }
    // Its parts are kept by browsers as long as they are the same.
    let part = page.text.split('"').find(|text| text.ends_with("/talk.js")).unwrap();
    assert_eq!(serving.get(part).await.header("cache-control"), "public, max-age=31536000, immutable");
    assert_eq!(serving.get("/t/parts/0/talk.js").await.header("cache-control"), "no-store");
    assert_eq!(serving.get("/t/parts/0/other.js").await.status, 404);
    // No foreign page gets it or writes to it, not even on this machine.
    for headers in [[("host", "evil.example")], [("origin", "http://evil.example")]] {
        assert_eq!(serving.send(Method::GET, &path, &headers, None).await.status, 403);
    }
    let begin = format!("{path}/{}/begin", "a".repeat(64));
    let form = [("content-type", "text/plain")];
    assert_eq!(serving.send(Method::POST, &begin, &form, Some(b"{}".to_vec())).await.status, 400);
}
