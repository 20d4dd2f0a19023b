//! Chat completions that are sent again, to another server than before: each person gets the reply of their own session.

use std::sync::{Arc, Barrier};

use serde_json::json;

use crate::chat::{ChatClient, project};
use crate::process::Home;
use crate::served::{Serving, TALK, said};
use crate::server::{Server, ServerBehavior};

fn retry() -> Vec<(&'static str, String)> {
    vec![("x-stainless-retry-count", "1".to_owned())]
}

/// What the person has said in a session.
async fn heard(serving: &Serving, session: &str) -> Vec<String> {
    let export = serving.get(&format!("/v1/sessions/{session}/export")).await.json();
    let said = export["transcript"].as_array().unwrap().iter().filter(|said| said["role"] == "user");
    said.map(|said| said["text"].as_str().unwrap().to_owned()).collect()
}

async fn sessions(serving: &Serving) -> Vec<String> {
    let listed = serving.get("/v1/sessions").await.json();
    listed["sessions"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

/// The server that a request is sent to again: one that has not seen it before.
fn other(home: &Home, mut serving: Serving, restarts: bool) -> (Serving, Option<Serving>) {
    if !restarts {
        return (Serving::start(home), Some(serving));
    }
    serving.kill();
    (Serving::start(home), None)
}

#[tokio::test]
async fn a_message_that_is_sent_again_elsewhere_is_not_said_in_the_session_of_somebody_else() {
    for restarts in [true, false] {
        let home = project();
        let serving = Serving::start(&home);
        let mut ann = ChatClient::new(&serving);
        ann.say("hi").await;
        let history = ann.history.clone();
        let (asked, of_ann) = ann.say("Ann").await;
        let (_, of_bob) = ChatClient::new(&serving).say("hi").await;
        let (serving, _first) = other(&home, serving, restarts);
        // The other server knows a session that waits there, and not that of Ann.
        let mut eve = ChatClient::new(&serving);
        let (_, of_eve) = eve.say("hi").await;
        let mut ann = ChatClient { history, headers: retry(), ..ChatClient::new(&serving) };
        assert_eq!(ann.say("Ann").await, (asked, of_ann.clone()));
        for (session, expected) in [(&of_ann, 1), (&of_bob, 0), (&of_eve, 0)] {
            assert_eq!(heard(&serving, session).await.len(), expected);
        }
        ann.headers.clear();
        assert_eq!(ann.say("tea").await, ("Ann likes tea.".to_owned(), of_ann));
        eve.say("Eve").await;
        assert_eq!(eve.say("figs").await, ("Eve likes figs.".to_owned(), of_eve));
    }
}

#[tokio::test]
async fn a_message_that_is_sent_again_elsewhere_while_it_is_answered_waits_for_that_reply() {
    let home = Home::new();
    let barrier = Arc::new(Barrier::new(2));
    let model = Server::start(vec![ServerBehavior::Held(Arc::clone(&barrier), said("Nice."))]);
    let models = format!("[models.default]\nprovider = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n", model.base_url);
    home.put("bcc-script.toml", models);
    let script = TALK.replace("'{{ greeting }}'", "Hello, delivery: verbatim");
    home.put(
        "scripts/talk.yaml",
        script.replace("'Who are you?'", "'Who?', delivery: verbatim, max_rounds: 9, exit: never"),
    );
    let servers = [Serving::with(&home, &["--trust"]), Serving::with(&home, &["--trust"])];
    let mut ann = ChatClient::new(&servers[0]);
    let (_, of_ann) = ann.say("hi").await;
    let (_, of_bob) = ChatClient::new(&servers[1]).say("hi").await;
    let mut again = ChatClient { history: ann.history.clone(), headers: retry(), ..ChatClient::new(&servers[1]) };
    let sent_again = async {
        while model.requests().is_empty() {
            servers[1].get("/healthz").await;
        }
        let go = async {
            // So that the request has most likely arrived; if not, the outcome is the same.
            for _ in 0..10 {
                servers[1].get("/healthz").await;
            }
            tokio::task::spawn_blocking(move || barrier.wait()).await.unwrap();
        };
        tokio::join!(again.say("Ann"), go).0
    };
    let (first, second) = tokio::join!(ann.say("Ann"), sent_again);
    assert_eq!(first, ("Nice.".to_owned(), of_ann.clone()));
    assert_eq!(second, first);
    assert_eq!((heard(&servers[1], &of_ann).await.len(), heard(&servers[1], &of_bob).await.len()), (1, 0));
}

/// A conversation that the person begins, or the session.
fn greeting(listens: bool) -> Home {
    let home = Home::new();
    let say = "            - { action_type: ai_say, action_id: hello";
    let script: Vec<&str> = TALK.lines().filter(|line| !listens || !line.starts_with(say)).collect();
    let script = script.join("\n");
    home.put(
        "scripts/talk.yaml",
        match listens {
            true => script.replace("content: 'Who are you?'", "opening: listen, content: 'Who are you?'"),
            false => script,
        },
    );
    home
}

#[tokio::test]
async fn a_first_message_that_is_sent_again_elsewhere_begins_no_second_session() {
    for (id, listens, restarts) in [
        (Some("c"), false, false),
        (Some("c"), true, false),
        (Some("c"), false, true),
        (Some("c"), true, true),
        (None, false, false),
        (None, true, true),
    ] {
        let home = greeting(listens);
        let more = id.map_or(json!({}), |id| json!({ "metadata": { "chat_id": id } }));
        let serving = Serving::start(&home);
        let mut client = ChatClient { more: more.clone(), ..ChatClient::new(&serving) };
        let first = client.say("hi").await;
        let (serving, _first) = other(&home, serving, restarts);
        let mut again = ChatClient { more, headers: retry(), ..ChatClient::new(&serving) };
        assert_eq!(again.say("hi").await, first, "{id:?}, {listens}, {restarts}");
        assert_eq!(sessions(&serving).await, [first.1.as_str()]);
        again.headers.clear();
        let (_, session) = again.say("Ann").await;
        assert_eq!(session, first.1);
    }
}

#[tokio::test]
async fn a_first_message_that_is_sent_again_elsewhere_belongs_to_the_session_that_it_began() {
    let home = project();
    let serving = Serving::start(&home);
    let more = json!({ "metadata": { "chat_id": "c" } });
    let mut client = ChatClient { more: more.clone(), ..ChatClient::new(&serving) };
    let first = client.say("hi").await;
    client.say("Ann").await;
    client.forget(2);
    // A fork, which has the beginning of the first session, and another one that begins otherwise.
    client.say("Eve").await;
    let mut hello = ChatClient { more: more.clone(), ..ChatClient::new(&serving) };
    hello.say("hello").await;
    let (serving, _first) = other(&home, serving, false);
    let mut again = ChatClient { more, headers: retry(), ..ChatClient::new(&serving) };
    assert_eq!(again.say("hi").await, first);
    // Without an id, a session that somebody has gone on with is not that of this request.
    let mut ann = ChatClient::new(&serving);
    let (_, of_ann) = ann.say("hey").await;
    ann.say("Ann").await;
    let (serving, _second) = other(&home, serving, true);
    let mut bob = ChatClient { headers: retry(), ..ChatClient::new(&serving) };
    assert_ne!(bob.say("hey").await.1, of_ann);
}
