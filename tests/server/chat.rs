//! Chat completions: every script is a model, and a history is a session.

use serde_json::{Value, json};

use crate::process::Home;
use crate::served::{Reply, Serving, TALK, said};
use crate::server::{Server, ServerBehavior};

pub const PATH: &str = "/v1/chat/completions";

/// A client that keeps the history, as chat clients do.
pub struct ChatClient<'s> {
    pub serving: &'s Serving,
    pub model: &'static str,
    pub history: Vec<Value>,
    pub headers: Vec<(&'static str, String)>,
    /// Fields that are added to the requests.
    pub more: Value,
}

impl<'s> ChatClient<'s> {
    pub fn new(serving: &'s Serving) -> Self {
        let history = vec![json!({ "role": "system", "content": "You are helpful." })];
        Self { serving, model: "talk", history, headers: vec![], more: json!({}) }
    }

    pub fn body(&self) -> Value {
        let mut body = json!({ "model": self.model, "messages": self.history, "temperature": 0.7 });
        body.as_object_mut().unwrap().extend(self.more.as_object().unwrap().clone());
        body
    }

    pub async fn send(&self) -> Reply {
        let mut headers = vec![("content-type", "application/json")];
        headers.extend(self.headers.iter().map(|(name, value)| (*name, value.as_str())));
        self.serving.send(reqwest::Method::POST, PATH, &headers, Some(self.body().to_string().into_bytes())).await
    }

    /// Says something, and returns the reply and the session.
    pub async fn say(&mut self, text: &str) -> (String, String) {
        self.history.push(json!({ "role": "user", "content": text }));
        let reply = self.send().await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let completion = reply.json();
        assert_eq!(completion["object"], "chat.completion");
        let choice = &completion["choices"][0];
        assert_eq!((&choice["message"]["role"], &choice["finish_reason"]), (&json!("assistant"), &json!("stop")));
        let content = choice["message"]["content"].as_str().unwrap().to_owned();
        self.history.push(json!({ "role": "assistant", "content": content }));
        (content, reply.header("x-session-id").to_owned())
    }

    /// Forgets the last messages.
    pub fn forget(&mut self, count: usize) {
        self.history.truncate(self.history.len() - count);
    }
}

pub fn project() -> Home {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    home
}

/// A project whose conversation waits before this action, until there is a file `go`.
pub fn project_that_waits(script: &str, action: &str) -> Home {
    let home = Home::new();
    home.put("bcc-script.toml", "[project]\nallow = [\"command\"]\n");
    let wait = "{ action_type: command, action_id: wait, config: { command: [sh, -c, 'while [ ! -e go ]; do sleep 0.01; done'] } }";
    let at = format!("            - {{ action_type: ai_ask, action_id: {action}");
    assert!(script.contains(&at), "{script}");
    home.put("scripts/talk.yaml", script.replace(&at, &format!("            - {wait}\n{at}")));
    home
}

#[tokio::test]
async fn a_script_is_a_model_that_one_can_talk_to() {
    let home = project();
    let serving = Serving::start(&home);
    let models = serving.get("/v1/models").await.json();
    assert_eq!(
        (&models["object"], &models["data"][0]["id"], &models["data"][0]["object"]),
        (&json!("list"), &json!("talk"), &json!("model"))
    );
    assert_eq!(serving.get("/v1/models/talk").await.json()["owned_by"], "bcc-script");
    let mut client = ChatClient::new(&serving);
    let (opening, session) = client.say("hi").await;
    assert_eq!(opening, "Hello.\n\nWho are you?");
    assert_eq!(client.say("Ann").await, ("What do you like?".to_owned(), session.clone()));
    assert_eq!(client.say("tea").await, ("Ann likes tea.".to_owned(), session));
    // The session is over.
    client.history.push(json!({ "role": "user", "content": "more" }));
    let over = client.send().await;
    assert_eq!((over.status, &over.json()["error"]["code"]), (409, &json!("conflict")), "{over:?}");
}

#[tokio::test]
async fn a_changed_history_and_another_reply_are_forks() {
    let home = project();
    let serving = Serving::start(&home);
    let mut client = ChatClient::new(&serving);
    client.say("hi").await;
    let (_, session) = client.say("Ann").await;
    client.say("tea").await;
    // The second message is edited.
    client.forget(4);
    let (_, edited) = client.say("Bob").await;
    assert_ne!(edited, session);
    assert_eq!(client.say("figs").await, ("Bob likes figs.".to_owned(), edited.clone()));
    // The last reply is made again.
    client.forget(2);
    let (content, again) = client.say("figs").await;
    assert_eq!(content, "Bob likes figs.");
    assert!(again != edited && again != session);
    // The first conversation is what it was.
    let export = serving.get(&format!("/v1/sessions/{session}/export")).await.json();
    assert_eq!(export["transcript"].as_array().unwrap().last().unwrap()["text"], "Ann likes tea.");
}

#[tokio::test]
async fn a_conversation_goes_on_with_another_server() {
    for conversation in [None, Some("chat-1")] {
        let home = project();
        let headers: Vec<(&str, String)> =
            conversation.map(|id| ("x-openwebui-chat-id", id.to_owned())).into_iter().collect();
        let first = Serving::start(&home);
        let mut client = ChatClient::new(&first);
        client.headers.clone_from(&headers);
        client.say("hi").await;
        let (_, session) = client.say("Ann").await;
        let history = client.history.clone();
        first.terminate();
        first.finish();
        let second = Serving::start(&home);
        let mut client = ChatClient { history, headers, ..ChatClient::new(&second) };
        assert_eq!(client.say("tea").await, ("Ann likes tea.".to_owned(), session.clone()));
        client.forget(4);
        let (content, other) = client.say("Eve").await;
        assert_eq!(content, "What do you like?");
        assert_ne!(other, session);
    }
}

#[tokio::test]
async fn a_conversation_with_an_id_is_found_when_its_history_is_shortened() {
    let home = project();
    for more in [json!({ "metadata": { "chat_id": "c-7" } }), json!({})] {
        let serving = Serving::start(&home);
        let mut client = ChatClient { more: more.clone(), ..ChatClient::new(&serving) };
        client.say("hi").await;
        client.say("Ann").await;
        // Only the last reply is sent back.
        client.history.drain(..client.history.len() - 1);
        client.history.insert(0, json!({ "role": "user", "content": "…" }));
        client.history.push(json!({ "role": "user", "content": "tea" }));
        let reply = client.send().await;
        match more.get("metadata") {
            Some(_) => assert!(reply.status == 200 && reply.text.contains("Ann likes tea."), "{reply:?}"),
            None => assert!(reply.status == 404 && reply.text.contains("has said this"), "{reply:?}"),
        }
    }
}

#[tokio::test]
async fn conversations_that_begin_alike_are_not_mixed_up() {
    let home = Home::new();
    // What is known about a user outlives the session.
    let script = TALK
        .replace("{ var: name, type: string }", "{ var: name, type: string, scope: global, value: nobody }")
        .replace("content: '{{ greeting }}'", "content: 'Hello {{ name }}.'");
    home.put("scripts/talk.yaml", script);
    let serving = Serving::start(&home);
    let (mut ann, mut bob) = (ChatClient::new(&serving), ChatClient::new(&serving));
    for client in [&mut ann, &mut bob] {
        assert_eq!(client.say("hi").await.0, "Hello nobody.\n\nWho are you?");
    }
    ann.say("Ann").await;
    bob.say("Bob").await;
    // A fork of a point where both have been has the variables of neither.
    ann.forget(2);
    let (_, fork) = ann.say("Ann-Marie").await;
    assert_eq!(ann.say("tea").await.0, "Ann-Marie likes tea.");
    let user = serving.get(&format!("/v1/sessions?user={fork}")).await.json();
    assert_eq!(user["sessions"][0]["id"], fork);
    assert_eq!(bob.say("figs").await.0, "Bob likes figs.");
    // A named user is recognized in the next conversation.
    let mut eve = ChatClient { more: json!({ "user": "eve" }), ..ChatClient::new(&serving) };
    eve.say("hi").await;
    eve.say("Eve").await;
    let mut again = ChatClient { more: json!({ "user": "eve" }), ..ChatClient::new(&serving) };
    assert_eq!(again.say("hello").await.0, "Hello Eve.\n\nWho are you?");
}

#[tokio::test]
async fn a_request_that_is_sent_again_after_a_failure_is_answered_once() {
    let home = project();
    let serving = Serving::start(&home);
    let mut client = ChatClient::new(&serving);
    let (opening, session) = client.say("hi").await;
    client.headers = vec![("x-stainless-retry-count", "1".to_owned())];
    client.forget(2);
    assert_eq!(client.say("hi").await, (opening, session.clone()));
    client.headers.clear();
    let (asked, _) = client.say("Ann").await;
    client.headers = vec![("x-stainless-retry-count", "2".to_owned())];
    client.forget(2);
    assert_eq!(client.say("Ann").await, (asked, session.clone()));
    let export = serving.get(&format!("/v1/sessions/{session}/export")).await.json();
    assert_eq!(export["transcript"].as_array().unwrap().len(), 4, "{export}");
}

#[tokio::test]
async fn a_reply_is_streamed_while_it_is_made() {
    let home = Home::new();
    let text = "It is a long story that comes in pieces.";
    let model = Server::start(vec![ServerBehavior::Answers(said(text))]);
    home.put(
        "bcc-script.toml",
        format!("[models.default]\nprovider = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n", model.base_url),
    );
    home.put("scripts/talk.yaml", TALK.replace("'Who are you?'", "'Who are you?', max_rounds: 9, exit: never"));
    let serving = Serving::with(&home, &["--trust"]);
    let mut client = ChatClient {
        more: json!({ "stream": true, "stream_options": { "include_usage": true } }),
        ..ChatClient::new(&serving)
    };
    for (said, expected) in [("hi", format!("{text}\n\n{text}")), ("Ann", text.to_owned())] {
        client.history.push(json!({ "role": "user", "content": said }));
        let chunks = serving.stream(PATH, &[], &client.body()).await.rest().await;
        let (done, chunks) = chunks.split_last().unwrap();
        assert_eq!(done.data, "[DONE]");
        let chunks: Vec<Value> = chunks.iter().map(|chunk| chunk.json()).collect();
        assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
        let pieces: Vec<&str> =
            chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
        assert!(pieces.len() > 3, "{pieces:?}");
        assert_eq!(pieces.concat(), expected);
        let (usage, chunks) = chunks.split_last().unwrap();
        assert!(usage["usage"]["total_tokens"].is_u64() && usage["choices"] == json!([]));
        assert_eq!(chunks.last().unwrap()["choices"][0]["finish_reason"], "stop");
        assert!(chunks.iter().all(|chunk| chunk["id"] == usage["id"] && chunk["object"] == "chat.completion.chunk"));
        client.history.push(json!({ "role": "assistant", "content": pieces.concat() }));
    }
    client.history.push(json!({ "role": "user", "content": "more" }));
    let wrong = ChatClient {
        model: "nothing",
        history: client.history.clone(),
        more: client.more.clone(),
        ..ChatClient::new(&serving)
    };
    assert_eq!(wrong.serving.stream(PATH, &[], &wrong.body()).await.status, 404);
}

#[tokio::test]
async fn errors_have_the_form_that_clients_expect() {
    let home = project();
    home.put("scripts/broken.yaml", "session:\n  session_id: broken\n  phases: 7\n");
    let serving = Serving::start(&home);
    let message = |content: Value| json!([{ "role": "user", "content": content }]);
    let cases = [
        ("unknown model", json!({ "model": "gpt-9", "messages": message(json!("hi")) })),
        ("script with errors", json!({ "model": "broken", "messages": message(json!("hi")) })),
        ("no message", json!({ "model": "talk", "messages": [] })),
        ("no messages", json!({ "model": "talk" })),
        (
            "last message of the assistant",
            json!({ "model": "talk", "messages": [{ "role": "assistant", "content": "hi" }] }),
        ),
        (
            "image",
            json!({ "model": "talk", "messages": message(json!([{ "type": "image_url", "image_url": { "url": "x" } }])) }),
        ),
        (
            "history of nobody",
            json!({ "model": "talk", "messages": [{ "role": "user", "content": "a" }, { "role": "assistant", "content": "b" }, { "role": "user", "content": "c" }] }),
        ),
        ("task of the client", json!({ "model": "talk", "messages": message(json!("### Task:\nGenerate a title")) })),
        (
            "task in metadata",
            json!({ "model": "talk", "metadata": { "task": "tags" }, "messages": message(json!("hi")) }),
        ),
    ];
    let mut shown = String::new();
    for (name, body) in cases {
        let reply = serving.post(PATH, body.clone()).await;
        let error = reply.json()["error"].clone();
        let text = |field: &str| error[field].as_str().unwrap().to_owned();
        shown.push_str(&format!("{name}: {} {} {}\n  {}\n", reply.status, text("type"), text("code"), text("message")));
        let mut streamed = body;
        streamed["stream"] = json!(true);
        assert_eq!(serving.post(PATH, streamed).await.status, reply.status, "{name}");
    }
    insta::assert_snapshot!("chat_errors", shown);
    assert_eq!(serving.get("/v1/sessions").await.json()["sessions"], json!([]));
}
