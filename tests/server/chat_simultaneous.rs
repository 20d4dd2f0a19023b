//! Chat completions of many people at the same time: nobody gets into the conversation of somebody else.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::chat::{ChatClient, PATH, project, project_that_waits};
use crate::process::Home;
use crate::served::{Reply, Serving, TALK};

/// A request: the server, headers, and the body.
type Request<'s> = (&'s Serving, Vec<(&'static str, String)>, Value);

/// Sends all of these requests at once, each to its server.
async fn at_once(requests: Vec<Request<'_>>) -> Vec<Reply> {
    let tasks = requests.into_iter().map(|(serving, headers, body)| {
        let target = serving.target();
        tokio::spawn(async move {
            let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            target.attempt(PATH, &headers, &body).await.unwrap()
        })
    });
    let mut replies = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        replies.push(task.await.unwrap());
    }
    replies
}

fn content(reply: &Reply) -> String {
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
}

fn sessions(replies: &[Reply]) -> BTreeSet<&str> {
    replies.iter().map(|reply| reply.header("x-session-id")).collect()
}

/// What the person has said in a session.
async fn answers(serving: &Serving, session: &str) -> Vec<String> {
    let export = serving.get(&format!("/v1/sessions/{session}/export")).await.json();
    let said = export["transcript"].as_array().unwrap().iter().filter(|said| said["role"] == "user");
    said.map(|said| said["text"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn people_without_ids_never_share_a_session() {
    let home = project();
    // The second server finds in the store what was begun with the first one.
    let servers = [Serving::start(&home), Serving::start(&home)];
    for (servers, count) in [(&servers[..1], 12), (&servers[..], 8)] {
        let mut people: Vec<ChatClient<'_>> =
            (0..count).map(|number| ChatClient::new(&servers[number % servers.len()])).collect();
        for person in &mut people {
            person.say("hi").await;
        }
        // Two of them say the same.
        let names: Vec<String> = (0..count).map(|number| format!("P{}", number.max(1))).collect();
        for (person, name) in people.iter_mut().zip(&names) {
            person.history.push(json!({ "role": "user", "content": name }));
        }
        let requests = people.iter().enumerate();
        let requests = requests.map(|(number, person)| (&servers[number % servers.len()], vec![], person.body()));
        let replies = at_once(requests.collect()).await;
        assert!(replies.iter().all(|reply| content(reply) == "What do you like?"), "{replies:?}");
        assert_eq!(sessions(&replies).len(), count, "{replies:?}");
        for (name, reply) in names.iter().zip(&replies) {
            assert_eq!(answers(&servers[0], reply.header("x-session-id")).await, [name.as_str()]);
        }
        for ((person, name), reply) in people.iter_mut().zip(&names).zip(&replies) {
            person.history.push(json!({ "role": "assistant", "content": content(reply) }));
            assert_eq!(person.say("tea").await.0, format!("{name} likes tea."));
        }
    }
}

#[tokio::test]
async fn messages_that_are_edited_at_the_same_time_are_forks() {
    let home = project();
    let servers = [Serving::start(&home), Serving::start(&home)];
    for (servers, id) in [(&servers[..1], "one"), (&servers[..], "two")] {
        let mut client = ChatClient { more: json!({ "metadata": { "chat_id": id } }), ..ChatClient::new(&servers[0]) };
        client.say("hi").await;
        let bodies = (0..6).map(|number| {
            let mut body = client.body();
            body["stream"] = json!(number % 4 > 1);
            body["messages"].as_array_mut().unwrap().push(json!({ "role": "user", "content": format!("P{number}") }));
            (&servers[number % servers.len()], vec![], body)
        });
        let replies = at_once(bodies.collect()).await;
        assert!(replies.iter().all(|reply| reply.status == 200 && !reply.text.contains("error")), "{replies:?}");
        assert_eq!(sessions(&replies).len(), 6, "{replies:?}");
        for (number, reply) in replies.iter().enumerate() {
            assert_eq!(answers(&servers[0], reply.header("x-session-id")).await, [format!("P{number}")]);
        }
    }
}

#[tokio::test]
async fn conversations_with_one_id_that_begin_at_once_are_no_conflict() {
    let home = project();
    let servers = [Serving::start(&home), Serving::start(&home)];
    for round in 0..6 {
        let used = if round % 2 == 0 { &servers[..1] } else { &servers[..] };
        let bodies = (0..8).map(|number| {
            let first = if number < 4 { "hi".to_owned() } else { format!("hi {number}") };
            let body = json!({ "model": "talk", "messages": [{ "role": "user", "content": first }],
                "metadata": { "chat_id": format!("c{round}") } });
            (&used[number % used.len()], vec![], body)
        });
        let replies = at_once(bodies.collect()).await;
        assert!(replies.iter().all(|reply| content(reply) == "Hello.\n\nWho are you?"), "{replies:?}");
    }
}

/// A session that begins only when there is a file `go`, and lets the person speak first.
const LISTENS: &str = "
session:
  session_id: listens
  declare:
    - { var: wish, type: string }
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: command, action_id: wait, config: { command: [sh, -c, 'while [ ! -e go ]; do sleep 0.01; done'] } }
            - { action_type: ai_ask, action_id: ask, config: { opening: listen, content: 'What?', output: [{ get: wish }] } }
            - { action_type: ai_ask, action_id: more, config: { content: '{{ wish }}. More?' } }
            - { action_type: ai_say, action_id: bye, config: { content: 'Bye.' } }
";

#[tokio::test]
async fn a_first_message_that_is_sent_again_while_the_session_begins_gets_its_reply() {
    let home = Home::new();
    home.put("bcc-script.toml", "[project]\nallow = [\"command\"]\n");
    home.put("scripts/listens.yaml", LISTENS);
    let serving = Serving::with(&home, &["--trust"]);
    let body = json!({ "model": "listens", "messages": [{ "role": "user", "content": "Help" }] });
    let retry = vec![("x-stainless-retry-count", "1".to_owned())];
    let requests = at_once(vec![(&serving, vec![], body.clone())]);
    let retried = async {
        while serving.get("/v1/sessions").await.json()["sessions"] == json!([]) {}
        let replies = at_once(vec![(&serving, retry.clone(), body.clone()), (&serving, retry.clone(), body.clone())]);
        let go = async {
            // So that the requests have most likely arrived; if not, the outcome is the same.
            for _ in 0..10 {
                serving.get("/healthz").await;
            }
            home.put("go", "");
        };
        tokio::join!(replies, go).0
    };
    let (mut replies, retried) = tokio::join!(requests, retried);
    replies.extend(retried);
    assert!(replies.iter().all(|reply| content(reply) == "Help. More?"), "{replies:?}");
    assert_eq!(sessions(&replies).len(), 1, "{replies:?}");
    assert_eq!(answers(&serving, replies[0].header("x-session-id")).await, ["Help"]);
}

#[tokio::test]
async fn a_message_that_is_sent_twice_at_once_with_an_id_is_answered_once() {
    let home = project_that_waits(TALK, "ask_likes");
    let serving = Serving::with(&home, &["--trust"]);
    let mut client = ChatClient { more: json!({ "metadata": { "chat_id": "c" } }), ..ChatClient::new(&serving) };
    let (_, session) = client.say("hi").await;
    client.history.push(json!({ "role": "user", "content": "Ann" }));
    let retry = vec![("x-stainless-retry-count", "1".to_owned())];
    let requests = vec![(&serving, vec![], client.body()), (&serving, retry.clone(), client.body())];
    let (replies, ()) = tokio::join!(at_once(requests), async { drop(home.put("go", "")) });
    assert!(replies.iter().all(|reply| content(reply) == "What do you like?"), "{replies:?}");
    assert_eq!(sessions(&replies), BTreeSet::from([session.as_str()]));
    assert_eq!(answers(&serving, &session).await, ["Ann"]);
}
