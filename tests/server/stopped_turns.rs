//! Turns that stop because no model replies, and go on later: no message is lost, and none answers a question that nobody has seen.

use reqwest::Method;
use serde_json::{Value, json};

use crate::chat::{ChatClient, PATH};
use crate::complete_reply::complete_reply;
use crate::process::Home;
use crate::served::{Reply, SentEvent, Serving};

/// A conversation whose second message is that of the model.
const LOAN: &str = "
session:
  session_id: talk
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_say, action_id: what, config: { content: 'What do you want?', delivery: verbatim, require_acknowledgment: true } }
            - { action_type: ai_say, action_id: see, config: { content: 'Let me see.', delivery: verbatim } }
            - { action_type: ai_say, action_id: think, config: { content: Name the wish } }
            - { action_type: ai_say, action_id: where, config: { content: 'Your address?', delivery: verbatim, require_acknowledgment: true } }
            - { action_type: ai_say, action_id: bye, config: { content: 'Bye.', delivery: verbatim } }
";

/// The same, which says nothing before it needs the model.
fn silent() -> String {
    let (before, rest) = LOAN.split_once("            - { action_type: ai_say, action_id: see").unwrap();
    format!("{before}{}", rest.split_once('\n').unwrap().1)
}

/// A server whose model does not reply yet.
fn stopping(home: &Home, script: &str) -> Serving {
    home.put("scripts/talk.yaml", script);
    home.put("replies.yaml", "replies: {}\n");
    Serving::with(home, &["--model", "replay:replies.yaml"])
}

/// From now on, the model replies.
fn replying(home: &Home) {
    let reply = complete_reply(&json!({ "$say": { "content": "A loan it is.", "EXIT": "YES" } }));
    // Of a conversation that the person begins.
    let asked = complete_reply(&json!({ "$ask": { "content": "", "EXIT": "YES" } }));
    home.put("replies.yaml", json!({ "replies": { "think": [reply], "what": [asked] } }).to_string());
}

/// What the person has said in a session.
async fn heard(serving: &Serving, session: &str) -> Vec<String> {
    let export = serving.get(&format!("/v1/sessions/{session}/export")).await.json();
    let said = export["transcript"].as_array().unwrap().iter().filter(|said| said["role"] == "user");
    said.map(|said| said["text"].as_str().unwrap().to_owned()).collect()
}

async fn status(serving: &Serving, session: &str) -> Value {
    serving.get(&format!("/v1/sessions/{session}")).await.json()["status"].clone()
}

fn is_unavailable(reply: &Reply) -> bool {
    reply.status == 503 && !reply.header("retry-after").is_empty() && reply.text.contains("has stopped")
}

#[tokio::test]
async fn an_answer_is_taken_back_and_a_session_cancelled_although_its_model_does_not_reply() {
    let home = Home::new();
    let serving = stopping(&home, &silent());
    let id = serving.session("talk").await;
    let answered = serving.post(&format!("/v1/sessions/{id}/messages"), json!({ "text": "a loan" })).await;
    assert_eq!((answered.status, &answered.json()["status"]), (200, &json!("stopped")), "{answered:?}");
    let taken_back = serving.post(&format!("/v1/sessions/{id}/take_back"), json!({})).await;
    assert_eq!((taken_back.status, &taken_back.json()["status"]), (200, &json!("waiting_input")), "{taken_back:?}");
    assert!(heard(&serving, &id).await.is_empty());
    let answered = serving.post(&format!("/v1/sessions/{id}/messages"), json!({ "text": "a house" })).await;
    assert_eq!(answered.json()["status"], "stopped", "{answered:?}");
    let before = serving.get(&format!("/v1/sessions/{id}")).await.json()["last_seq"].clone();
    let cancelled = serving.post(&format!("/v1/sessions/{id}/cancel"), json!({ "reason": "too late" })).await;
    assert_eq!((cancelled.status, &cancelled.json()["status"]), (200, &json!("cancelled")), "{cancelled:?}");
    // The model was not asked once more.
    let events = serving.get(&format!("/v1/sessions/{id}/journal?limit=1000&brief=true&after={before}")).await.json();
    let kinds: Vec<&str> =
        events["events"].as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["session_resumed", "session_cancelled"]);
}

#[tokio::test]
async fn a_stopped_session_goes_on_after_nothing_could_be_taken_back() {
    let home = Home::new();
    // It needs the model before anything is asked.
    let needs_model = silent().lines().filter(|line| !line.contains("action_id: what")).collect::<Vec<_>>().join("\n");
    let serving = stopping(&home, &needs_model);
    let id = serving.post("/v1/sessions", json!({ "script": "talk" })).await.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(status(&serving, &id).await, "stopped");
    replying(&home);
    let refused = serving.post(&format!("/v1/sessions/{id}/take_back"), json!({})).await;
    assert_eq!(refused.status, 409, "{refused:?}");
    let continued = serving.post(&format!("/v1/sessions/{id}/continue"), json!({})).await;
    assert_eq!((continued.status, &continued.json()["status"]), (200, &json!("waiting_input")), "{continued:?}");
    assert_eq!(continued.json()["messages"][0]["text"], "A loan it is.", "{continued:?}");
}

#[tokio::test]
async fn a_message_to_a_stopped_session_is_no_answer_to_a_question_that_nobody_has_seen() {
    for more in [json!({}), json!({ "metadata": { "chat_id": "c" } })] {
        let home = Home::new();
        let serving = stopping(&home, LOAN);
        let mut client = ChatClient { more, ..ChatClient::new(&serving) };
        client.say("hello").await;
        let (said, session) = client.say("a loan").await;
        assert_eq!(said, "Let me see.");
        assert_eq!(status(&serving, &session).await, "stopped");
        // The model still does not reply.
        client.history.push(json!({ "role": "user", "content": "and?" }));
        let reply = client.send().await;
        assert!(is_unavailable(&reply), "{reply:?}");
        client.forget(1);
        replying(&home);
        let told = client.say("and?").await;
        assert_eq!(told, ("A loan it is.\n\nYour address?".to_owned(), session.clone()));
        assert_eq!(client.say("Main street 1").await, ("Bye.".to_owned(), session.clone()));
        assert_eq!(heard(&serving, &session).await, ["a loan", "Main street 1"]);
    }
}

#[tokio::test]
async fn a_turn_that_stops_before_it_says_anything_is_no_empty_reply() {
    let home = Home::new();
    let serving = stopping(&home, &silent());
    let mut client = ChatClient::new(&serving);
    let (_, session) = client.say("hello").await;
    client.history.push(json!({ "role": "user", "content": "a loan" }));
    let reply = client.send().await;
    assert!(is_unavailable(&reply), "{reply:?}");
    assert_eq!(reply.json()["error"]["code"], "unavailable");
    // Sent again as after a failure, the turn goes on.
    client.headers = vec![("x-stainless-retry-count", "1".to_owned())];
    let again = client.send().await;
    assert!(is_unavailable(&again), "{again:?}");
    replying(&home);
    client.forget(1);
    assert_eq!(client.say("a loan").await, ("A loan it is.\n\nYour address?".to_owned(), session.clone()));
    assert_eq!(heard(&serving, &session).await, ["a loan"]);
}

/// The ids with which chats are tested: none, and one.
fn with_and_without_id() -> [Value; 2] {
    [json!({}), json!({ "metadata": { "chat_id": "c" } })]
}

/// Another server of the same project, whose model has the same replies.
fn other(home: &Home) -> Serving {
    Serving::with(home, &["--model", "replay:replies.yaml"])
}

async fn sessions(serving: &Serving) -> usize {
    serving.get("/v1/sessions").await.json()["sessions"].as_array().unwrap().len()
}

#[tokio::test]
async fn the_next_message_makes_a_turn_go_on_that_stopped_before_it_said_anything() {
    let told = "A loan it is.\n\nYour address?";
    for (more, is_other) in with_and_without_id().into_iter().flat_map(|more| [(more.clone(), false), (more, true)]) {
        // The same again, something more after it, and what clients send that keep an empty reply.
        for next in [vec!["a loan"], vec!["a loan", "please"], vec!["a loan", "", "please"]] {
            let home = Home::new();
            let first = stopping(&home, &silent());
            let mut client = ChatClient { more: more.clone(), ..ChatClient::new(&first) };
            let (_, session) = client.say("hello").await;
            let mut history = client.history.clone();
            client.history.push(json!({ "role": "user", "content": "a loan" }));
            assert!(is_unavailable(&client.send().await));
            replying(&home);
            let serving = if is_other { &other(&home) } else { &first };
            let (last, kept) = next.split_last().unwrap();
            history
                .extend(kept.iter().map(
                    |text| json!({ "role": if text.is_empty() { "assistant" } else { "user" }, "content": text }),
                ));
            let mut client = ChatClient { history, more: more.clone(), ..ChatClient::new(serving) };
            assert_eq!(client.say(last).await, (told.to_owned(), session.clone()), "{next:?}, {more}, {is_other}");
            assert_eq!(heard(serving, &session).await, ["a loan"]);
            // Also where nobody remembers it.
            let last = other(&home);
            let mut client = ChatClient { history: client.history, more: more.clone(), ..ChatClient::new(&last) };
            assert_eq!(client.say("Main street 1").await, ("Bye.".to_owned(), session), "{next:?}, {more}");
            assert_eq!(sessions(&last).await, 1);
        }
    }
}

#[tokio::test]
async fn a_message_in_place_of_one_that_was_not_answered_is_a_fork() {
    for more in with_and_without_id() {
        let home = Home::new();
        let serving = stopping(&home, &silent());
        let mut client = ChatClient { more: more.clone(), ..ChatClient::new(&serving) };
        let (_, session) = client.say("hello").await;
        let mut eve = ChatClient { history: client.history.clone(), more, ..ChatClient::new(&serving) };
        client.history.push(json!({ "role": "user", "content": "a loan" }));
        assert!(is_unavailable(&client.send().await));
        replying(&home);
        // Perhaps of somebody else.
        let (said, other) = eve.say("a loan for Eve").await;
        assert_eq!(said, "A loan it is.\n\nYour address?");
        assert_ne!(other, session);
        client.forget(1);
        assert_eq!(client.say("a loan").await, (said, session.clone()));
        assert_eq!((heard(&serving, &session).await.len(), heard(&serving, &other).await.len()), (1, 1));
    }
}

#[tokio::test]
async fn a_conversation_with_an_id_goes_on_whose_first_turn_stopped_before_it_said_anything() {
    let needs_model =
        || silent().lines().filter(|line| !line.contains("action_id: what")).collect::<Vec<_>>().join("\n");
    let listens = || {
        silent().replace("ai_say, action_id: what, config: { content: 'What do you want?', delivery: verbatim, require_acknowledgment: true }", "ai_ask, action_id: what, config: { content: 'What do you want?', opening: listen, exit: any, max_rounds: 1 }")
    };
    for (script, heard_first) in [(needs_model(), vec![]), (listens(), vec!["a loan"])] {
        for (next, is_other) in [("a loan", false), ("a loan", true), ("a loan\n\nplease", false)] {
            let home = Home::new();
            let first = stopping(&home, &script);
            let more = json!({ "metadata": { "chat_id": "c" } });
            let mut client = ChatClient { more: more.clone(), ..ChatClient::new(&first) };
            client.history.push(json!({ "role": "user", "content": "a loan" }));
            for _ in 0..2 {
                assert!(is_unavailable(&client.send().await));
            }
            replying(&home);
            let serving = if is_other { &other(&home) } else { &first };
            let mut client = ChatClient { more, ..ChatClient::new(serving) };
            let (said, session) = client.say(next).await;
            assert_eq!(said, "A loan it is.\n\nYour address?");
            assert_eq!(
                (sessions(serving).await, heard(serving, &session).await),
                (1, heard_first.iter().map(|text| (*text).to_owned()).collect())
            );
            assert_eq!(client.say("Main street 1").await, ("Bye.".to_owned(), session));
        }
    }
    // Without an id, it may be that of somebody else.
    let home = Home::new();
    let serving = stopping(&home, &needs_model());
    let mut client = ChatClient::new(&serving);
    client.history.push(json!({ "role": "user", "content": "hello" }));
    assert!(is_unavailable(&client.send().await));
    replying(&home);
    client.forget(1);
    client.say("hello").await;
    assert_eq!(sessions(&serving).await, 2);
}

#[tokio::test]
async fn a_stream_whose_turn_stops_before_it_says_anything_ends_with_an_error() {
    let home = Home::new();
    let serving = stopping(&home, &silent());
    let mut client = ChatClient::new(&serving);
    client.say("hello").await;
    client.history.push(json!({ "role": "user", "content": "a loan" }));
    let body = json!({ "model": "talk", "messages": client.history, "stream": true });
    let chunks = serving.stream(PATH, &[], &body).await.rest().await;
    assert_eq!(chunks.last().unwrap().json()["error"]["code"], "unavailable", "{chunks:?}");
}

#[tokio::test]
async fn a_session_that_fails_without_a_word_says_that_it_has_ended() {
    let home = Home::new();
    let (head, _) = LOAN.split_once(" }\n            - { action_type: ai_say, action_id: see").unwrap();
    home.put(
        "scripts/talk.yaml",
        format!("{head}, on_exit: {{ exit_criteria_met: fail, max_rounds_reached: fail }} }}\n"),
    );
    let serving = Serving::start(&home);
    let mut client = ChatClient::new(&serving);
    client.say("hello").await;
    let (said, session) = client.say("a loan").await;
    assert_eq!(said, "The conversation has ended.");
    assert_eq!(status(&serving, &session).await, "failed");
}

#[tokio::test]
async fn a_message_that_rejects_turns_does_not_answer_the_question_of_a_stopped_one() {
    let home = Home::new();
    let serving = stopping(&home, LOAN);
    let id = serving.session("talk").await;
    assert_eq!(serving.say(&id, "a loan").await["status"], "stopped");
    replying(&home);
    let path = format!("/v1/sessions/{id}/messages");
    let refused = serving.post(&path, json!({ "text": "Main street 1", "on_busy": "reject" })).await;
    assert_eq!((refused.status, &refused.json()["type"]), (409, &json!("/problems/busy")), "{refused:?}");
    // The turn goes on.
    let rests = serving.post(&format!("/v1/sessions/{id}/continue"), json!({})).await.json();
    assert_eq!(rests["waiting"]["prompt"], "Your address?", "{rests}");
    assert_eq!(heard(&serving, &id).await, ["a loan"]);
    let answered = serving.post(&path, json!({ "text": "Main street 1", "on_busy": "reject" })).await;
    assert_eq!((answered.status, &answered.json()["status"]), (200, &json!("completed")), "{answered:?}");
}

async fn keyed(serving: &Serving, id: &str, key: &str, text: &str) -> Reply {
    let headers = [("content-type", "application/json"), ("idempotency-key", key)];
    let body = json!({ "text": text }).to_string().into_bytes();
    serving.send(Method::POST, &format!("/v1/sessions/{id}/messages"), &headers, Some(body)).await
}

#[tokio::test]
async fn a_message_that_is_sent_again_does_not_continue_a_turn_that_has_stopped() {
    let home = Home::new();
    let serving = stopping(&home, LOAN);
    let id = serving.session("talk").await;
    let first = keyed(&serving, &id, "k", "a loan").await;
    assert_eq!((first.status, &first.json()["status"]), (200, &json!("stopped")), "{first:?}");
    replying(&home);
    let again = keyed(&serving, &id, "k", "a loan").await;
    assert_eq!((again.status, &again.text), (200, &first.text));
    let journal = serving.get(&format!("/v1/sessions/{id}/journal")).await.text;
    assert!(!journal.contains("session_resumed"), "{journal}");
    let other = keyed(&serving, &id, "k", "a house").await;
    assert_eq!((other.status, &other.json()["type"]), (409, &json!("/problems/idempotency-key-reused")));
    // What the turn says later belongs to its reply.
    assert_eq!(serving.post(&format!("/v1/sessions/{id}/continue"), json!({})).await.status, 200);
    let whole = keyed(&serving, &id, "k", "a loan").await.json();
    let texts: Vec<&Value> = whole["messages"].as_array().unwrap().iter().map(|message| &message["text"]).collect();
    assert_eq!(texts, ["Let me see.", "A loan it is.", "Your address?"], "{whole}");
    assert_eq!((&whole["status"], &whole["waiting"]["for"]), (&json!("waiting_input"), &json!("input")));
}

/// A conversation that says something after a decision of somebody else.
const DECIDED: &str = "
session:
  session_id: talk
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: what, config: { content: 'What do you want?', exit: any, max_rounds: 1 } }
            - { action_type: approval, action_id: decide, config: { prompt: 'A loan?' } }
            - { action_type: ai_ask, action_id: where, config: { content: 'Your address?', exit: any, max_rounds: 1 } }
";

/// Two decisions that are open at the same time.
const BRANCHES: &str = "
session:
  session_id: talk
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - action_type: parallel
              action_id: both
              config:
                branches:
                  - { id: a, actions: [{ action_type: approval, action_id: one, config: { prompt: 'One?' } }] }
                  - { id: b, actions: [{ action_type: approval, action_id: two, config: { prompt: 'Two?' } }] }
";

#[tokio::test]
async fn a_session_waits_for_what_is_open_and_not_for_what_was_decided() {
    let home = Home::new();
    home.put("scripts/talk.yaml", BRANCHES);
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    let state = async || serving.get(&format!("/v1/sessions/{id}")).await.json();
    let newest = state().await["waiting"].clone();
    let listed = serving.get("/v1/requests").await.json()["requests"].clone();
    let ids: Vec<String> =
        listed.as_array().unwrap().iter().map(|request| request["request_id"].as_str().unwrap().to_owned()).collect();
    assert!(ids.iter().any(|id| newest["request_id"] == json!(id)), "{newest}");
    let other = ids.iter().find(|id| newest["request_id"] != json!(id)).unwrap();
    let decide = format!("/v1/requests/{id}/{}", newest["request_id"].as_str().unwrap());
    let decided = serving.post(&decide, json!({ "decision": "approve", "by": "ann" })).await.json();
    assert_eq!((&decided["status"], &decided["waiting"]["request_id"]), (&json!("waiting_approval"), &json!(other)));
    assert_eq!(state().await["waiting"]["request_id"], json!(other));
}

#[tokio::test]
async fn a_message_that_is_sent_again_after_a_decision_gets_the_same_reply() {
    let home = Home::new();
    home.put("scripts/talk.yaml", DECIDED);
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    let first = keyed(&serving, &id, "k", "a loan").await;
    assert_eq!(first.json()["status"], "waiting_approval", "{first:?}");
    let request = serving.get("/v1/requests").await.json()["requests"][0]["request_id"].clone();
    let decide = format!("/v1/requests/{id}/{}", request.as_str().unwrap());
    assert_eq!(serving.post(&decide, json!({ "decision": "approve", "by": "ann" })).await.status, 200);
    assert_eq!(status(&serving, &id).await, "waiting_input");
    assert_eq!(keyed(&serving, &id, "k", "a loan").await.text, first.text);
    let headers = [("accept", "text/event-stream"), ("idempotency-key", "k")];
    let path = format!("/v1/sessions/{id}/messages");
    let events: Vec<SentEvent> = serving.stream(&path, &headers, &json!({ "text": "a loan" })).await.rest().await;
    assert_eq!(events.last().unwrap().json()["for"], "approval", "{events:?}");
}
