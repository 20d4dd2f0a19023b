//! Streams of events: complete, in order, and each event once, also over reconnections and from other servers.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::process::{Home, TIMEOUT};
use crate::served::{SentEvent, Serving, TALK, said};
use crate::server::{Server, ServerBehavior};
use crate::visitor::{ASKING_MODEL, model_config};

/// The events of a session as its journal has them.
async fn journal(serving: &Serving, id: &str) -> Vec<SentEvent> {
    let all = serving.events(id, None).await.rest().await;
    let numbers: Vec<u64> = all.iter().map(|event| event.id.parse().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    all
}

#[tokio::test]
async fn a_reader_gets_every_event_once_whenever_it_connects() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    let mut early = serving.events(&id, None).await;
    let mut seen = early.until("waiting").await;
    serving.say(&id, "Ann").await;
    // It leaves in the middle of a turn, and comes back with the number of the last event that it has.
    seen.push(early.next().await.unwrap());
    drop(early);
    serving.say(&id, "tea").await;
    let last = seen.last().unwrap().id.clone();
    seen.extend(serving.events(&id, Some(&last)).await.rest().await);
    assert_eq!(seen, journal(&serving, &id).await);
    assert_eq!(seen.last().unwrap().event, "session_completed");
    // Nothing comes any more.
    let last = seen.last().unwrap().id.clone();
    assert_eq!(serving.events(&id, Some(&last)).await.status, 204);
    let kinds: Vec<&str> = seen.iter().map(|event| event.event.as_str()).collect();
    assert!(kinds.contains(&"model_call") && kinds.contains(&"variable_set"), "{kinds:?}");
    for event in &seen {
        assert_eq!((&event.json()["type"], &event.json()["seq"].to_string()), (&json!(event.event), &event.id));
    }
}

#[tokio::test]
async fn a_reader_of_one_server_sees_the_turns_of_another() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let (writing, reading) = (Serving::start(&home), Serving::start(&home));
    let id = writing.session("talk").await;
    let mut events = reading.events(&id, None).await;
    let mut seen = events.until("waiting").await;
    writing.say(&id, "Ann").await;
    writing.say(&id, "tea").await;
    seen.extend(events.rest().await);
    assert_eq!(seen, journal(&writing, &id).await);
}

#[tokio::test]
async fn a_message_can_be_answered_with_the_events_of_its_turn() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    let path = format!("/v1/sessions/{id}/messages");
    let headers = [("accept", "text/event-stream"), ("idempotency-key", "k")];
    let turn = serving.stream(&path, &headers, &json!({ "text": "Ann" })).await.rest().await;
    let first = turn.first().unwrap().json();
    assert_eq!((&first["type"], &first["role"], &first["text"]), (&json!("message"), &json!("user"), &json!("Ann")));
    assert_eq!(turn.last().unwrap().event, "waiting");
    // The same message again: the same events, without the pieces, which are not stored.
    let stored: Vec<&SentEvent> = turn.iter().filter(|event| !event.id.is_empty()).collect();
    let again = serving.stream(&path, &headers, &json!({ "text": "Ann" })).await.rest().await;
    assert_eq!(again.iter().collect::<Vec<_>>(), stored);
    let other = serving.stream(&path, &headers, &json!({ "text": "Bob" })).await;
    assert_eq!(other.status, 409);
    let nothing = serving.stream("/v1/sessions/none/messages", &headers, &json!({ "text": "Ann" })).await;
    assert_eq!(nothing.status, 404);
}

#[tokio::test]
async fn a_stream_whose_turn_is_interrupted_says_so() {
    let home = Home::new();
    let model = Server::start(vec![ServerBehavior::Hangs, ServerBehavior::Hangs]);
    let config = format!("[models.default]\nprovider = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n", model.base_url);
    home.put("bcc-script.toml", config);
    home.put("scripts/talk.yaml", TALK.replace("config: {", "config: { delivery: verbatim,"));
    let serving = Serving::with(&home, &["--trust"]);
    let id = serving.session("talk").await;
    let path = format!("/v1/sessions/{id}/messages");
    let headers = [("accept", "text/event-stream"), ("accept-language", "zh")];
    let mut first = serving.stream(&path, &headers, &json!({ "text": "I am An" })).await;
    assert_eq!(first.next().await.unwrap().event, "message");
    let second = serving.stream(&path, &headers, &json!({ "text": "I am Ann", "on_busy": "interrupt" })).await;
    let last = first.rest().await.pop().unwrap();
    assert_eq!((last.event.as_str(), last.id.as_str()), ("problem", ""));
    assert_eq!(last.json()["type"], "/problems/interrupted", "{last:?}");
    assert_eq!(last.json()["detail"], "另一条消息打断了这一轮，这条消息已被收回");
    drop(second);
}

#[tokio::test]
async fn the_events_of_a_turn_that_ends_after_the_server_was_told_to_end_are_sent() {
    let home = Home::new();
    let gate = Arc::new(Barrier::new(2));
    let model = Server::start(vec![ServerBehavior::Paused(Arc::clone(&gate), said("And your name?"))]);
    home.put("bcc-script.toml", model_config(&model));
    home.put("scripts/talk.yaml", ASKING_MODEL);
    let serving = Serving::with(&home, &["--trust"]);
    let id = serving.session("talk").await;
    let mut reader = serving.events(&id, None).await;
    reader.until("waiting").await;
    let path = format!("/v1/sessions/{id}/messages");
    let headers = [("accept", "text/event-stream")];
    let mut turn = serving.stream(&path, &headers, &json!({ "text": "a person" })).await;
    turn.until("message_delta").await;
    serving.terminate();
    // It does not accept connections any more.
    let address = serving.url.trim_start_matches("http://").to_owned();
    while std::net::TcpStream::connect(&address).is_ok() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::task::spawn_blocking(move || gate.wait()).await.unwrap();
    for events in [turn.rest().await, reader.rest().await] {
        let said = events.iter().rfind(|event| event.event == "message").unwrap();
        assert_eq!(said.json()["text"], "And your name?");
        assert_eq!(events.last().unwrap().event, "waiting", "{events:?}");
    }
    assert_eq!(serving.finish().code, Some(0));
}

#[tokio::test]
async fn the_stream_of_a_deleted_session_ends() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    let mut events = serving.events(&id, None).await;
    events.until("waiting").await;
    let deleted = serving.send(Method::DELETE, &format!("/v1/sessions/{id}"), &[], None).await;
    assert_eq!(deleted.status, 204);
    assert!(tokio::time::timeout(TIMEOUT, events.rest()).await.unwrap().is_empty());
}

#[tokio::test]
async fn the_stream_of_a_deleted_session_gets_no_events_of_another_one_with_its_id() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let (serving, other) = (Serving::start(&home), Serving::start(&home));
    for (id, reading) in [("here", &serving), ("elsewhere", &other)] {
        let start = json!({ "script": "talk", "session_id": id });
        assert_eq!(serving.post("/v1/sessions", start.clone()).await.status, 201);
        let mut events = reading.events(id, None).await;
        events.until("waiting").await;
        assert_eq!(serving.send(Method::DELETE, &format!("/v1/sessions/{id}"), &[], None).await.status, 204);
        assert_eq!(serving.post("/v1/sessions", start).await.status, 201);
        serving.say(id, "another person").await;
        assert_eq!(tokio::time::timeout(TIMEOUT, events.rest()).await.unwrap(), []);
    }
}

#[tokio::test]
async fn pieces_of_a_message_arrive_before_it_is_complete() {
    let home = Home::new();
    let text = "It is a long story that comes in pieces.";
    let model = Server::start(vec![ServerBehavior::Answers(said(text))]);
    let config = format!("[models.default]\nprovider = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n", model.base_url);
    home.put("bcc-script.toml", config);
    let script = TALK.replace("'Who are you?'", "'Who are you?', max_rounds: 9, exit: never");
    home.put("scripts/talk.yaml", script);
    let serving = Serving::with(&home, &["--trust"]);
    let id = serving.session("talk").await;
    let path = format!("/v1/sessions/{id}/messages");
    let turn = serving.stream(&path, &[("accept", "text/event-stream")], &json!({ "text": "Ann" })).await.rest().await;
    let of = |kind: &str| turn.iter().filter(|event| event.event == kind).map(SentEvent::json).collect::<Vec<Value>>();
    let pieces: Vec<Value> = of("message_delta");
    assert!(pieces.len() > 2, "{turn:?}");
    let joined: String = pieces.iter().map(|piece| piece["text"].as_str().unwrap()).collect();
    assert_eq!(joined, text);
    assert_eq!(of("message").last().unwrap()["text"], text);
    assert!(turn.iter().filter(|event| event.event == "message_delta").all(|event| event.id.is_empty()));
}
