//! Several servers on one store: a session goes to the one that gets a message, and `on_busy` concerns the turns of all of them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::complete_reply::complete_reply;
use crate::kills::ECHO;
use crate::process::Home;
use crate::served::{Serving, TALK, asked};
use crate::server::{Server, ServerBehavior};

/// Much less than the time after which a session at rest leaves the memory of its server by itself, a minute.
const AT_ONCE: Duration = Duration::from_secs(20);

fn serve(home: &Home, store: &[&str]) -> Serving {
    Serving::with(home, &[&["--trust"], store].concat())
}

/// A talk whose model does not answer about the first message, and then always the same.
fn talk(home: &Home) -> Server {
    let reply = complete_reply(&json!({ "$ask": { "content": "Good.", "name": "Ann" } })).to_string();
    let model = Server::start(vec![ServerBehavior::Hangs, ServerBehavior::Answers(reply)]);
    home.put(
        "bcc-script.toml",
        format!("[models.default]\nprovider = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n", model.base_url),
    );
    home.put("scripts/talk.yaml", TALK.replace("config: {", "config: { delivery: verbatim,"));
    model
}

/// A session of the talk at this server, which waits for the model, and what its message gets.
async fn in_turn(serving: &Serving, model: &Server) -> (String, tokio::task::JoinHandle<(u16, Value)>) {
    let id = serving.session("talk").await;
    let (target, path) = (serving.target(), format!("/v1/sessions/{id}/messages"));
    let first = tokio::spawn(async move {
        let reply = target.attempt(&path, &[("idempotency-key", "k1")], &json!({ "text": "I am An" })).await.unwrap();
        (reply.status, reply.json())
    });
    asked(model).await;
    (id, first)
}

/// A message to a server while another one runs a turn of the session is rejected, or ends that turn.
pub(crate) async fn messages_reject_and_interrupt(home: &Home, store: &[&str]) {
    let model = talk(home);
    let (owner, other) = (serve(home, store), serve(home, store));
    let (id, first) = in_turn(&owner, &model).await;
    let path = format!("/v1/sessions/{id}/messages");
    for text in ["I am Bob", "I am Bob again"] {
        let rejected = other.post(&path, json!({ "text": text, "on_busy": "reject" })).await;
        assert_eq!((rejected.status, &rejected.json()["type"]), (409, &json!("/problems/busy")), "{rejected:?}");
        assert_ne!(rejected.header("retry-after"), "");
    }
    // Neither has disturbed the turn.
    assert!(!first.is_finished() && model.requests().len() == 1);
    let body = json!({ "text": "I am Ann", "on_busy": "interrupt" });
    let second = other.target().attempt(&path, &[("idempotency-key", "k2")], &body).await.unwrap();
    assert_eq!(second.status, 200, "{second:?}");
    let (status, problem) = first.await.unwrap();
    assert_eq!((status, &problem["type"]), (409, &json!("/problems/interrupted")), "{problem}");
    let export = owner.get(&format!("/v1/sessions/{id}/export")).await.json();
    let all = export["transcript"].as_array().unwrap().iter();
    let said: Vec<&Value> = all.filter(|message| message["role"] == "user").map(|message| &message["text"]).collect();
    assert_eq!(said, ["I am Ann"]);
    // Sent again to the first server, it interrupts nothing, and has the same reply.
    let again = owner.target().attempt(&path, &[("idempotency-key", "k2")], &body).await.unwrap();
    assert_eq!((again.status, &again.json()["messages"]), (200, &second.json()["messages"]), "{again:?}");
    // Without a turn there is nothing to reject or to interrupt, wherever the session rests.
    let tea = owner.post(&path, json!({ "text": "tea", "on_busy": "reject" })).await;
    assert_eq!(tea.status, 200, "{tea:?}");
}

/// A message that waits at a server for the turn of another one keeps nobody from rejecting or interrupting there.
pub(crate) async fn messages_interrupt_past_a_waiting_one(home: &Home, store: &[&str]) {
    let model = talk(home);
    let (owner, other) = (serve(home, store), serve(home, store));
    let (id, first) = in_turn(&owner, &model).await;
    let path = format!("/v1/sessions/{id}/messages");
    let (target, waiting_path) = (other.target(), path.clone());
    let waiting = tokio::spawn(async move {
        target.attempt(&waiting_path, &[("idempotency-key", "k2")], &json!({ "text": "tea" })).await.unwrap()
    });
    for _ in 0..3 {
        let rejected = other.post(&path, json!({ "text": "I am Bob", "on_busy": "reject" })).await;
        assert_eq!((rejected.status, &rejected.json()["type"]), (409, &json!("/problems/busy")), "{rejected:?}");
    }
    let interrupts = other.post(&path, json!({ "text": "I am Ann", "on_busy": "interrupt" })).await;
    assert_eq!(interrupts.status, 200, "{interrupts:?}");
    let (status, problem) = first.await.unwrap();
    assert_eq!((status, &problem["type"]), (409, &json!("/problems/interrupted")), "{problem}");
    let waited = waiting.await.unwrap();
    assert_eq!(waited.status, 200, "{waited:?}");
    let export = owner.get(&format!("/v1/sessions/{id}/export")).await.json();
    let all = export["transcript"].as_array().unwrap().iter();
    let mut said: Vec<&str> =
        all.filter(|message| message["role"] == "user").map(|message| message["text"].as_str().unwrap()).collect();
    said.sort_unstable();
    assert_eq!(said, ["I am Ann", "tea"]);
}

/// A message that waits at the server whose turn another one ends does not run that turn again.
pub(crate) async fn an_interrupted_turn_is_not_run_again_for_waiting_messages(home: &Home, store: &[&str]) {
    let model = talk(home);
    let (owner, other) = (serve(home, store), serve(home, store));
    let (id, first) = in_turn(&owner, &model).await;
    let path = format!("/v1/sessions/{id}/messages");
    let say = |serving: &Serving, text: &'static str, on_busy: &'static str| {
        let (target, path, key) = (serving.target(), path.clone(), text.replace(' ', "-"));
        tokio::spawn(async move {
            let body = json!({ "text": text, "on_busy": on_busy });
            target.attempt(&path, &[("idempotency-key", &key)], &body).await.unwrap()
        })
    };
    let waiting = [say(&owner, "tea", "wait"), say(&owner, "milk", "wait"), say(&other, "water", "wait")];
    let interrupts = say(&other, "I am Ann", "interrupt").await.unwrap();
    assert_eq!(interrupts.status, 200, "{interrupts:?}");
    let (status, problem) = first.await.unwrap();
    assert_eq!((status, &problem["type"]), (409, &json!("/problems/interrupted")), "{problem}");
    for reply in waiting {
        let reply = reply.await.unwrap();
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    let export = owner.get(&format!("/v1/sessions/{id}/export")).await.json();
    let all = export["transcript"].as_array().unwrap().iter();
    let mut said: Vec<&str> =
        all.filter(|message| message["role"] == "user").map(|message| message["text"].as_str().unwrap()).collect();
    said.sort_unstable();
    assert_eq!(said, ["I am Ann", "milk", "tea", "water"]);
    let is_about_it = |body: &str| body.replace("I am Ann", "").contains("I am An");
    let asked_about_it = model.requests().iter().filter(|request| is_about_it(&request.body)).count();
    assert_eq!(asked_about_it, 1, "the turn was run again");
}

/// A session whose turn has ended keeps that turn when a message interrupts.
pub(crate) async fn an_ended_turn_stays(home: &Home, store: &[&str]) {
    home.put("scripts/echo.yaml", ECHO);
    let servers = [serve(home, store), serve(home, store)];
    let id = servers[0].session("echo").await;
    for (number, text) in ["one", "two", "three", "four"].into_iter().enumerate() {
        let body = json!({ "text": text, "on_busy": if number % 2 == 0 { "interrupt" } else { "reject" } });
        let reply = servers[(number + 1) % 2].post(&format!("/v1/sessions/{id}/messages"), body).await;
        assert_eq!((reply.status, &reply.json()["messages"][0]["text"]), (200, &json!(format!("heard {text}"))));
    }
    let export = servers[0].get(&format!("/v1/sessions/{id}/export")).await.json();
    let all = export["transcript"].as_array().unwrap().iter();
    let said: Vec<&Value> = all.filter(|message| message["role"] == "user").map(|message| &message["text"]).collect();
    assert_eq!(said, ["one", "two", "three", "four"]);
}

#[tokio::test]
async fn messages_reject_and_interrupt_the_turn_of_another_server_on_one_file() {
    messages_reject_and_interrupt(&Home::new(), &[]).await;
}

#[tokio::test]
async fn a_message_that_waits_for_another_server_on_one_file_keeps_nobody_from_interrupting() {
    messages_interrupt_past_a_waiting_one(&Home::new(), &[]).await;
}

#[tokio::test]
async fn a_turn_that_another_server_on_one_file_interrupts_is_not_run_again_for_waiting_messages() {
    an_interrupted_turn_is_not_run_again_for_waiting_messages(&Home::new(), &[]).await;
}

#[tokio::test]
async fn the_ended_turn_of_another_server_on_one_file_stays() {
    an_ended_turn_stays(&Home::new(), &[]).await;
}

#[tokio::test]
async fn what_was_said_to_be_taken_back_is_although_the_interrupting_server_is_killed() {
    let home = Home::new();
    let model = talk(&home);
    let (owner, mut other) = (serve(&home, &[]), serve(&home, &[]));
    let (id, first) = in_turn(&owner, &model).await;
    let (target, path) = (other.target(), format!("/v1/sessions/{id}/messages"));
    let body = json!({ "text": "I am Ann", "on_busy": "interrupt" });
    let interrupts = tokio::spawn(async move { target.attempt(&path, &[], &body).await });
    let (status, problem) = first.await.unwrap();
    other.kill();
    assert_eq!((status, &problem["type"]), (409, &json!("/problems/interrupted")), "{problem}");
    interrupts.await.unwrap();
    owner.say(&id, "tea").await;
    let export = owner.get(&format!("/v1/sessions/{id}/export")).await.json();
    let said = export["transcript"].as_array().unwrap().iter().map(|message| &message["text"]);
    assert!(!said.clone().any(|text| text == "I am An"), "{:?}", said.collect::<Vec<_>>());
}

#[tokio::test]
async fn a_session_goes_from_server_to_server_on_one_file_with_each_message() {
    let home = Home::new();
    home.put("scripts/echo.yaml", ECHO);
    let servers = [serve(&home, &[]), serve(&home, &[]), serve(&home, &[])];
    let id = servers[0].session("echo").await;
    let talk = async {
        for number in 0..9 {
            let reply = servers[number % 3].say(&id, &format!("word{number}")).await;
            assert_eq!(reply["messages"][0]["text"], format!("heard word{number}"));
        }
    };
    tokio::time::timeout(AT_ONCE, talk)
        .await
        .expect("a server waits until the session leaves the memory of another one");
    let deleted = servers[0].send(reqwest::Method::DELETE, &format!("/v1/sessions/{id}"), &[], None).await;
    assert_eq!(deleted.status, 204, "{deleted:?}");
    // What a server has beside the store for this is gone with it.
    for serving in servers {
        serving.terminate();
        assert_eq!(serving.finish().code, Some(0));
    }
    assert_eq!(inboxes(&home), 0);
}

#[tokio::test]
async fn a_killed_server_gives_its_sessions_up_and_leaves_nothing_behind() {
    let home = Home::new();
    home.put("scripts/echo.yaml", ECHO);
    let mut killed = serve(&home, &[]);
    let id = killed.session("echo").await;
    killed.kill();
    let serving = serve(&home, &[]);
    serving.say(&id, "word").await;
    // Only that of the server that runs.
    assert_eq!(inboxes(&home), 1);
}

/// How many servers can be asked for sessions.
fn inboxes(home: &Home) -> usize {
    let files = std::fs::read_dir(home.path().join(".bcc/sessions.db.locks")).into_iter().flatten();
    files.filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "inbox")).count()
}
