//! Chat completions: in which session a message lands, and what of it counts.

use serde_json::{Value, json};

use crate::chat::{ChatClient, PATH, project, project_that_waits};
use crate::process::Home;
use crate::served::{Serving, TALK};

fn retry() -> Vec<(&'static str, String)> {
    vec![("x-stainless-retry-count", "1".to_owned())]
}

/// A talk that remembers the name of its user.
fn remembering() -> Home {
    let home = Home::new();
    let script = TALK
        .replace("{ var: name, type: string }", "{ var: name, type: string, scope: global, value: nobody }")
        .replace("content: '{{ greeting }}'", "content: 'Hello {{ name }}.'");
    home.put("scripts/talk.yaml", script);
    home
}

#[tokio::test]
async fn a_first_message_that_is_sent_again_never_gets_the_session_of_somebody_else() {
    let home = project();
    let serving = Serving::start(&home);
    let (mut ann, mut bob) = (ChatClient::new(&serving), ChatClient::new(&serving));
    let (_, of_ann) = ann.say("hi").await;
    ann.say("Ann").await;
    bob.headers = retry();
    let (opening, of_bob) = bob.say("hi").await;
    assert_eq!(opening, "Hello.\n\nWho are you?");
    assert_ne!(of_bob, of_ann);
    bob.headers.clear();
    bob.say("Bob").await;
    assert_eq!(bob.say("figs").await, ("Bob likes figs.".to_owned(), of_bob));
    assert_eq!(ann.say("tea").await, ("Ann likes tea.".to_owned(), of_ann));
    // With an id it is the same conversation, and what is sent again is its opening.
    let mut eve = ChatClient { more: json!({ "metadata": { "chat_id": "c" } }), ..ChatClient::new(&serving) };
    let (_, of_eve) = eve.say("hi").await;
    eve.say("Eve").await;
    let mut again = ChatClient { more: eve.more.clone(), headers: retry(), ..ChatClient::new(&serving) };
    assert_eq!(again.say("hi").await, (opening, of_eve.clone()));
    assert_eq!(eve.say("nuts").await, ("Eve likes nuts.".to_owned(), of_eve));
}

#[tokio::test]
async fn a_session_of_an_earlier_server_is_not_lost_to_a_fork_of_another_one() {
    let home = remembering();
    let first = Serving::start(&home);
    let mut bob = ChatClient::new(&first);
    let (_, of_bob) = bob.say("hi").await;
    let history = bob.history.clone();
    first.terminate();
    first.finish();
    let serving = Serving::start(&home);
    let mut cat = ChatClient::new(&serving);
    cat.say("hi").await;
    let (_, of_cat) = cat.say("Cat").await;
    let mut bob = ChatClient { history: history.clone(), ..ChatClient::new(&serving) };
    assert_eq!(bob.say("Bob").await, ("What do you like?".to_owned(), of_bob.clone()));
    // Whoever has the same history without a session of their own gets a fork, and the variables of nobody.
    let mut dan = ChatClient { history, ..ChatClient::new(&serving) };
    let (_, fork) = dan.say("Dan").await;
    assert!(fork != of_bob && fork != of_cat);
    let of_fork = serving.get(&format!("/v1/sessions?user={fork}")).await.json();
    assert_eq!(of_fork["sessions"][0]["id"], fork);
    assert_eq!(dan.say("dates").await.0, "Dan likes dates.");
}

#[tokio::test]
async fn a_fork_of_the_only_session_that_is_known_has_a_user_of_its_own() {
    let home = remembering();
    let serving = Serving::start(&home);
    let mut ann = ChatClient::new(&serving);
    ann.say("hi").await;
    ann.say("Ann").await;
    ann.forget(2);
    let (_, fork) = ann.say("Eve").await;
    assert_eq!(serving.get(&format!("/v1/sessions?user={fork}")).await.json()["sessions"][0]["id"], fork);
}

#[tokio::test]
async fn the_same_message_after_the_same_part_of_a_history_is_an_answer_each_time() {
    let home = Home::new();
    let ask = |id: u32, text: &str| {
        format!(
            "            - {{ action_type: ai_ask, action_id: a{id}, config: {{ content: '{text}', exit: any, max_rounds: 1 }} }}\n"
        )
    };
    let (head, _) = TALK.split_once("            - {").unwrap();
    let asks: String = (1..5).map(|id| ask(id, "Again?")).collect();
    home.put("scripts/talk.yaml", format!("{head}{}{asks}{}", ask(0, "Ready?"), ask(5, "Enough?")));
    let serving = Serving::start(&home);
    let mut client = ChatClient { more: json!({ "metadata": { "chat_id": "c" } }), ..ChatClient::new(&serving) };
    client.say("hi").await;
    let (_, session) = client.say("ok").await;
    let part = ["yes", "Again?"].iter().zip(["user", "assistant"]);
    let part: Vec<Value> = part.map(|(text, role)| json!({ "role": role, "content": text })).collect();
    for expected in ["Again?", "Again?", "Again?", "Enough?"] {
        let mut window = ChatClient { history: part.clone(), more: client.more.clone(), ..ChatClient::new(&serving) };
        assert_eq!(window.say("yes").await, (expected.to_owned(), session.clone()));
        // A request that is sent again is still no other answer.
        window.forget(2);
        window.headers = retry();
        assert_eq!(window.say("yes").await, (expected.to_owned(), session.clone()));
    }
    let export = serving.get(&format!("/v1/sessions/{session}/export")).await.json();
    let answers = export["transcript"].as_array().unwrap().iter().filter(|said| said["role"] == "user").count();
    assert_eq!(answers, 5, "{export}");
}

#[tokio::test]
async fn a_session_that_could_not_begin_begins_when_the_request_is_sent_again() {
    for more in [json!({}), json!({ "metadata": { "chat_id": "c" } }), json!({ "stream": true })] {
        let home = Home::new();
        home.put("scripts/talk.yaml", TALK.replace("content: 'Who are you?'", "content: 7, colour: red"));
        let serving = Serving::start(&home);
        let mut client = ChatClient { more, ..ChatClient::new(&serving) };
        client.history.push(json!({ "role": "user", "content": "hi" }));
        assert_eq!(client.send().await.status, 422);
        home.put("scripts/talk.yaml", TALK);
        client.headers = retry();
        let reply = client.send().await;
        assert!(reply.status == 200 && reply.text.contains("Who are you?"), "{reply:?}");
    }
}

/// A session that waits for a decision in the middle, and asks on after it.
const LOAN: &str = "
session:
  session_id: talk
  declare:
    - { var: address, type: string }
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: what, config: { content: 'What do you want?', exit: any, max_rounds: 1 } }
            - { action_type: approval, action_id: decide, config: { prompt: 'A loan?', approvers: [boss] } }
            - { action_type: ai_ask, action_id: where, config: { content: 'Your address?', output: [{ get: address }] } }
            - { action_type: ai_say, action_id: bye, config: { content: 'Sent to {{ address }}.' } }
";

async fn approve(serving: &Serving, session: &str) {
    let request = serving.get("/v1/requests").await.json()["requests"][0].clone();
    let path = format!("/v1/requests/{session}/{}", request["request_id"].as_str().unwrap());
    let approved = serving.post(&path, json!({ "decision": "approve", "by": "boss" })).await;
    assert_eq!(approved.status, 200, "{approved:?}");
}

#[tokio::test]
async fn a_message_is_no_answer_to_a_question_that_was_not_shown() {
    let other = |home: &Home, serving: Serving| {
        serving.terminate();
        serving.finish();
        Serving::start(home)
    };
    for (more, restarts) in [
        (json!({}), false),
        (json!({}), true),
        (json!({ "metadata": { "chat_id": "c" } }), true),
        (json!({ "stream": true }), false),
    ] {
        let home = Home::new();
        home.put("scripts/talk.yaml", LOAN);
        let mut serving = Serving::start(&home);
        let mut client = ChatClient::new(&serving);
        client.more = more.clone();
        client.more.as_object_mut().unwrap().remove("stream");
        client.say("hello").await;
        let (waits, session) = client.say("a loan").await;
        assert_eq!(waits, "The conversation goes on after a decision of somebody else.");
        assert_eq!(client.say("anybody?").await, (waits, session.clone()));
        let (mut history, plain) = (client.history.clone(), client.more.clone());
        approve(&serving, &session).await;
        if restarts {
            serving = other(&home, serving);
        }
        if more.get("stream").is_some() {
            history.push(json!({ "role": "user", "content": "any news?" }));
            let body = json!({ "model": "talk", "messages": history, "stream": true });
            let chunks = serving.stream(PATH, &[], &body).await.rest().await;
            let said: String = chunks
                .iter()
                .filter(|chunk| chunk.data != "[DONE]")
                .filter_map(|chunk| chunk.json()["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
                .collect();
            assert_eq!(said, "Your address?");
            history.push(json!({ "role": "assistant", "content": said }));
        } else {
            let mut client = ChatClient { history, more: plain.clone(), ..ChatClient::new(&serving) };
            assert_eq!(client.say("any news?").await, ("Your address?".to_owned(), session.clone()));
            history = client.history.clone();
        }
        if restarts {
            serving = other(&home, serving);
        }
        let mut client = ChatClient { history, more: plain, ..ChatClient::new(&serving) };
        assert_eq!(client.say("Main street 1").await, ("Sent to Main street 1.".to_owned(), session));
    }
}

#[tokio::test]
async fn a_message_waits_for_what_the_session_says_after_a_decision() {
    let home = project_that_waits(LOAN, "where");
    let serving = Serving::with(&home, &["--trust"]);
    let mut client = ChatClient::new(&serving);
    client.say("hello").await;
    let (_, session) = client.say("a loan").await;
    let news = async {
        // The turn after the decision runs.
        let path = format!("/v1/sessions/{session}");
        while serving.get(&path).await.json()["status"] != "running" {}
        let go = async {
            // So that the message has most likely arrived; if not, the outcome is the same.
            for _ in 0..10 {
                serving.get("/healthz").await;
            }
            home.put("go", "");
        };
        tokio::join!(client.say("any news?"), go).0
    };
    let ((), said) = tokio::join!(approve(&serving, &session), news);
    assert_eq!(said, ("Your address?".to_owned(), session.clone()));
    assert_eq!(client.say("Main street 1").await, ("Sent to Main street 1.".to_owned(), session));
}

#[tokio::test]
async fn a_reply_says_that_somebody_else_has_to_decide() {
    const WAITS: &str = "The conversation goes on after a decision of somebody else.";
    let home = Home::new();
    let say = "            - { action_type: ai_say, action_id: see, config: { content: 'Let me see.' } }\n";
    let decide = "            - { action_type: approval";
    home.put("scripts/talk.yaml", LOAN.replace(decide, &format!("{say}{decide}")));
    for more in [json!({}), json!({ "metadata": { "chat_id": "c" } })] {
        let mut serving = Serving::start(&home);
        let mut client = ChatClient { more: more.clone(), ..ChatClient::new(&serving) };
        client.say("hello").await;
        let (said, session) = client.say("a loan").await;
        assert_eq!(said, format!("Let me see.\n\n{WAITS}"));
        let mut streamed = ChatClient { more: json!({ "user": "eve" }), ..ChatClient::new(&serving) };
        streamed.say("hello").await;
        streamed.history.push(json!({ "role": "user", "content": "a loan" }));
        streamed.more = json!({ "user": "eve", "stream": true });
        let chunks = serving.stream(PATH, &[], &streamed.body()).await.rest().await;
        let pieces = chunks.iter().filter(|chunk| chunk.data != "[DONE]");
        let pieces =
            pieces.filter_map(|chunk| chunk.json()["choices"][0]["delta"]["content"].as_str().map(str::to_owned));
        assert_eq!(pieces.collect::<String>(), said);
        for text in ["any news?", "and now?"] {
            assert_eq!(client.say(text).await, (WAITS.to_owned(), session.clone()));
        }
        let history = client.history.clone();
        serving.terminate();
        serving.finish();
        serving = Serving::start(&home);
        let requests = serving.get("/v1/requests").await.json();
        let of_session = requests["requests"].as_array().unwrap().iter();
        let request = of_session.clone().find(|request| request["session_id"] == json!(session)).unwrap();
        let path = format!("/v1/requests/{session}/{}", request["request_id"].as_str().unwrap());
        let mut client = ChatClient { history, more: more.clone(), ..ChatClient::new(&serving) };
        assert_eq!(client.say("still nothing?").await, (WAITS.to_owned(), session.clone()));
        assert_eq!(serving.post(&path, json!({ "decision": "approve", "by": "boss" })).await.status, 200);
        // What was said before the decision is not said again.
        assert_eq!(client.say("so?").await, ("Your address?".to_owned(), session.clone()));
        assert_eq!(client.say("Main street 1").await, ("Sent to Main street 1.".to_owned(), session.clone()));
        let export = serving.get(&format!("/v1/sessions/{session}/export")).await.json();
        let heard = export["transcript"].as_array().unwrap().iter().filter(|said| said["role"] == "user");
        assert_eq!(heard.map(|said| said["text"].clone()).collect::<Vec<_>>(), ["a loan", "Main street 1"]);
    }
}

#[tokio::test]
async fn a_message_does_not_decide_about_an_interrupted_action() {
    const WAITS: &str = "The conversation goes on after a decision of somebody else.";
    let home = Home::new();
    home.put("bcc-script.toml", "[project]\nallow = [\"command\"]\n");
    // It ends by itself, also without its server.
    let command = "            - { action_type: command, action_id: work, config: { command: [sleep, '5'] } }\n";
    let next = "            - { action_type: ai_ask, action_id: ask_likes";
    home.put("scripts/talk.yaml", TALK.replace(next, &format!("{command}{next}")));
    let mut serving = Serving::with(&home, &["--trust"]);
    let mut client = ChatClient::new(&serving);
    let (_, session) = client.say("hi").await;
    let mut events = serving.events(&session, None).await;
    let history = client.history.clone();
    client.history.push(json!({ "role": "user", "content": "Ann" }));
    let (target, body) = (serving.target(), client.body());
    let answering = tokio::spawn(async move { target.attempt(PATH, &[], &body).await });
    events.until("effect_started").await;
    serving.kill();
    assert!(answering.await.unwrap().is_none());
    let serving = Serving::with(&home, &["--trust"]);
    let mut client = ChatClient { history, headers: retry(), ..ChatClient::new(&serving) };
    assert_eq!(client.say("Ann").await, (WAITS.to_owned(), session.clone()));
    client.headers.clear();
    for text in ["skip", "retry"] {
        assert_eq!(client.say(text).await, (WAITS.to_owned(), session.clone()));
    }
    assert_eq!(serving.say(&session, "skip").await["waiting"]["prompt"], "What do you like?");
    assert_eq!(client.say("and now?").await, ("What do you like?".to_owned(), session.clone()));
    assert_eq!(client.say("tea").await, ("Ann likes tea.".to_owned(), session));
}

#[tokio::test]
async fn a_reply_that_the_client_has_in_part_is_said_again() {
    for (part, rest) in
        [("Hello.\n\nWho a", "Who are you?"), ("Hello.", "Who are you?"), ("Hel", "Hello.\n\nWho are you?")]
    {
        let home = project();
        let serving = Serving::start(&home);
        let more = json!({ "metadata": { "chat_id": "c" } });
        let mut client = ChatClient { more, ..ChatClient::new(&serving) };
        let (_, session) = client.say("hi").await;
        client.forget(1);
        client.history.push(json!({ "role": "assistant", "content": part }));
        assert_eq!(client.say("Ann").await, (rest.to_owned(), session.clone()), "{part}");
        assert_eq!(client.say("Ann").await, ("What do you like?".to_owned(), session), "{part}");
    }
}

#[tokio::test]
async fn a_history_that_begins_with_the_last_reply_goes_on_with_its_conversation() {
    for more in [json!({ "metadata": { "chat_id": "c" } }), json!({})] {
        let home = project();
        let serving = Serving::start(&home);
        let mut client = ChatClient { more: more.clone(), ..ChatClient::new(&serving) };
        client.say("hi").await;
        let (_, session) = client.say("Ann").await;
        client.history.drain(..client.history.len() - 1);
        let (said, other) = client.say("tea").await;
        let is_known = more.get("metadata").is_some();
        assert_eq!((said == "Ann likes tea.", other == session), (is_known, is_known), "{said}");
    }
    // A greeting of the client is no reply.
    let home = project();
    let serving = Serving::start(&home);
    let mut client = ChatClient { more: json!({ "metadata": { "chat_id": "c" } }), ..ChatClient::new(&serving) };
    client.history.push(json!({ "role": "assistant", "content": "How can I help?" }));
    let (opening, session) = client.say("hi").await;
    assert_eq!(opening, "Hello.\n\nWho are you?");
    client.forget(2);
    let (again, other) = client.say("hi").await;
    assert_eq!((again, other != session), (opening, true));
}

#[tokio::test]
async fn a_history_that_begins_with_a_part_of_the_last_reply_goes_on_with_its_conversation() {
    const WAITS: &str = "The conversation goes on after a decision of somebody else.";
    let more = json!({ "metadata": { "chat_id": "c" } });
    for (script, said, part, told) in [
        (TALK, vec!["hi", "Ann"], "What do", "What do you like?"),
        (TALK, vec!["hi"], "Hello.", "Who are you?"),
        (TALK, vec!["hi"], "Hello.\n\nWho", "Who are you?"),
        (LOAN, vec!["hi", "a loan"], WAITS, WAITS),
    ] {
        let home = Home::new();
        home.put("scripts/talk.yaml", script);
        let servers = [Serving::start(&home), Serving::start(&home)];
        let mut client = ChatClient { more: more.clone(), ..ChatClient::new(&servers[0]) };
        let mut session = String::new();
        for text in said {
            (_, session) = client.say(text).await;
        }
        for serving in &servers {
            let history = vec![json!({ "role": "assistant", "content": part })];
            let mut client = ChatClient { history, more: more.clone(), ..ChatClient::new(serving) };
            assert_eq!(client.say("and?").await, (told.to_owned(), session.clone()), "{part}");
        }
    }
}

#[tokio::test]
async fn a_task_without_a_name_is_none() {
    let home = project();
    let serving = Serving::start(&home);
    let mut client = ChatClient { more: json!({ "metadata": { "task": "" } }), ..ChatClient::new(&serving) };
    assert_eq!(client.say("hi").await.0, "Hello.\n\nWho are you?");
}
