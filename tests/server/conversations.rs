//! Conversations over HTTP: what is said, kept, decided, taken back, forked and repeated.

use std::sync::{Arc, Barrier};

use reqwest::Method;
use serde_json::{Value, json};

use crate::complete_reply::complete_reply;
use crate::process::Home;
use crate::served::{Serving, TALK, asked, said};
use crate::server::{Server, ServerBehavior};

fn texts(reply: &Value) -> Vec<&str> {
    reply["messages"].as_array().unwrap().iter().map(|message| message["text"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_conversation_is_led_to_its_end_and_kept() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let scripts = serving.get("/v1/scripts").await.json();
    assert_eq!(scripts["scripts"][0]["session_id"], "talk");
    assert_eq!(scripts["scripts"][0]["path"], "scripts/talk.yaml");
    let body = json!({ "script": "talk", "variables": { "greeting": "Good day." }, "user": "ann" });
    let created = serving.post("/v1/sessions", body).await;
    assert_eq!(created.status, 201, "{created:?}");
    let created = created.json();
    assert_eq!(texts(&created), ["Good day.", "Who are you?"]);
    assert_eq!((&created["status"], &created["waiting"]["for"]), (&json!("waiting_input"), &json!("input")));
    let id = created["id"].as_str().unwrap();
    assert!(id.starts_with("talk-") && id.len() > "talk-".len() + 30, "{id}");
    let answered = serving.say(id, "Ann").await;
    assert_eq!(texts(&answered), ["What do you like?"]);
    let shown = serving.get(&format!("/v1/sessions/{id}")).await.json();
    assert_eq!(shown, answered);
    let ended = serving.say(id, "tea").await;
    assert_eq!((texts(&ended), &ended["status"]), (vec!["Ann likes tea."], &json!("completed")));
    let variables = serving.get(&format!("/v1/sessions/{id}/variables")).await.json();
    assert_eq!(variables["variables"]["session"]["likes"]["value"], "tea");
    assert!(!variables.to_string().contains("classified"), "{variables}");
    let listed = serving.get("/v1/sessions?script=talk&status=completed&user=ann").await.json();
    assert_eq!(listed["sessions"][0]["id"], id);
    assert_eq!(serving.get("/v1/sessions?user=bob").await.json()["sessions"], json!([]));
    let more = serving.post(&format!("/v1/sessions/{id}/messages"), json!({ "text": "more" })).await;
    assert_eq!(more.status, 409, "{more:?}");
    assert!(more.text.contains("`completed`"), "{more:?}");
    let exported = serving.get(&format!("/v1/sessions/{id}/export?calls=true")).await.json();
    for (format, kind) in [
        ("md", "text/markdown"),
        ("html", "text/html"),
        ("ipynb", "application/x-ipynb+json"),
        ("json", "application/json"),
    ] {
        let reply = serving.get(&format!("/v1/sessions/{id}/export?format={format}")).await;
        assert!(reply.status == 200 && reply.header("content-type").starts_with(kind), "{format}: {reply:?}");
        // A notebook has cells only, and this one has none.
        assert_eq!(reply.text.contains("Ann likes tea."), format != "ipynb", "{format}: {reply:?}");
        // The same text as the file of the command line, to its end.
        let file = format!("exported.{format}");
        let written = home.finish(["sessions", "export", id, "-o", &file], "");
        assert_eq!(written.code, Some(0), "{}", written.err);
        let written = std::fs::read_to_string(home.path().join(&file)).unwrap();
        assert!(format == "json" || reply.text == written, "{format}: {:?} is not {written:?}", reply.text);
    }
    let id = id.to_owned();
    serving.terminate();
    assert_eq!(serving.finish().code, Some(0));
    assert_eq!(home.export(&id), exported);
}

#[tokio::test]
async fn a_user_without_a_name_is_nobody_in_particular() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::with(&home, &["--model", "offline"]);
    let state = crate::given_states::state();
    for user in ["", " "] {
        let link = serving.post("/v1/links", json!({ "script": "talk", "kind": "open", "user": user })).await.json();
        assert_eq!(link.get("user"), None, "{link}");
        for body in [json!({ "script": "talk", "user": user }), json!({ "state": state, "user": user })] {
            let created = serving.post("/v1/sessions", body).await;
            assert_eq!(created.status, 201, "{created:?}");
            let id = created.json()["id"].as_str().unwrap().to_owned();
            let listed = serving.get(&format!("/v1/sessions?user={id}")).await.json();
            assert_eq!(listed["sessions"][0]["id"], id, "{listed}");
        }
    }
}

#[tokio::test]
async fn sessions_are_listed_in_pages() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let mut all = Vec::new();
    for _ in 0..5 {
        all.push(serving.session("talk").await);
    }
    all.reverse();
    let (mut listed, mut path) = (Vec::new(), "/v1/sessions?limit=2".to_owned());
    loop {
        let page = serving.get(&path).await.json();
        let sessions = page["sessions"].as_array().unwrap();
        assert!(sessions.len() <= 2);
        listed.extend(sessions.iter().map(|session| session["id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/sessions?limit=2&after={next}");
    }
    assert_eq!(listed, all);
}

#[tokio::test]
async fn a_message_that_is_sent_again_has_no_effect_and_gets_the_same_reply() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    let path = format!("/v1/sessions/{id}/messages");
    let headers = [("content-type", "application/json"), ("idempotency-key", "k-1")];
    let send = |text: &'static str| {
        serving.send(Method::POST, &path, &headers, Some(json!({ "text": text }).to_string().into()))
    };
    let (a, b, c, d, e) = tokio::join!(send("Ann"), send("Ann"), send("Ann"), send("Ann"), send("Ann"));
    let mut replies = Vec::new();
    for reply in [a, b, c, d, e] {
        assert_eq!(reply.status, 200, "{reply:?}");
        replies.push(reply.text);
    }
    replies.dedup();
    assert_eq!(replies.len(), 1, "{replies:?}");
    let other = send("Bob").await;
    assert_eq!((other.status, &other.json()["type"]), (409, &json!("/problems/idempotency-key-reused")));
    // The same key still gets its reply when the session has gone on.
    assert_eq!(serving.say(&id, "tea").await["status"], "completed");
    assert_eq!(send("Ann").await.text, replies[0]);
    assert_eq!(send("Bob").await.status, 409);
    let export = serving.get(&format!("/v1/sessions/{id}/export")).await.json();
    let said: Vec<&str> =
        export["transcript"].as_array().unwrap().iter().map(|m| m["text"].as_str().unwrap()).collect();
    assert_eq!(said, ["Hello.", "Who are you?", "Ann", "What do you like?", "tea", "Ann likes tea."]);
}

#[tokio::test]
async fn a_message_names_the_question_that_it_answers() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    let path = format!("/v1/sessions/{id}/messages");
    let wrong = serving.post(&path, json!({ "text": "Ann", "answer_id": "a9" })).await;
    assert_eq!(wrong.status, 409, "{wrong:?}");
    assert!(wrong.json()["help"].as_str().unwrap().contains("`a1`"), "{wrong:?}");
    assert_eq!(serving.post(&path, json!({ "text": "Ann", "answer_id": "a1" })).await.status, 200);
}

/// A project whose model answers with these behaviors.
fn with_model(home: &Home, behaviors: Vec<ServerBehavior>) -> Server {
    let model = Server::start(behaviors);
    let config = format!("[models.default]\nprovider = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n", model.base_url);
    home.put("bcc-script.toml", config);
    home.put("scripts/chat.yaml", CHAT);
    model
}

/// A conversation in which every message is the model's.
const CHAT: &str = "
session:
  session_id: chat
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: ask, config: { content: 'Say anything.', max_rounds: 9, exit: never } }
";

#[tokio::test]
async fn while_a_turn_runs_a_message_waits_or_is_rejected() {
    let home = Home::new();
    let barrier = Arc::new(Barrier::new(2));
    let held = ServerBehavior::Held(Arc::clone(&barrier), said("First."));
    let _model = with_model(
        &home,
        vec![ServerBehavior::Answers(said("Opening.")), held, ServerBehavior::Answers(said("Second."))],
    );
    let serving = Serving::with(&home, &["--trust"]);
    let id = serving.session("chat").await;
    let path = format!("/v1/sessions/{id}/messages");
    let target = serving.target();
    let body = json!({ "text": "one" });
    let first = target.attempt(&path, &[("idempotency-key", "k")], &body);
    let second = async {
        // The model is held, so the turn runs from the moment that its message is stored.
        let mut events = serving.events(&id, None).await;
        while events.next().await.unwrap().json()["text"] != "one" {}
        let rejected = serving.post(&path, json!({ "text": "two", "on_busy": "reject" })).await;
        assert_eq!((rejected.status, &rejected.json()["type"]), (409, &json!("/problems/busy")));
        assert!(!rejected.header("retry-after").is_empty());
        // The message whose turn runs, sent again by a client that did not get the reply.
        let again = json!({ "text": "one", "on_busy": "reject" });
        let again = async { serving.target().attempt(&path, &[("idempotency-key", "k")], &again).await.unwrap() };
        let waiting = async { tokio::join!(serving.post(&path, json!({ "text": "two" })), again) };
        let release = tokio::task::spawn_blocking(move || barrier.wait());
        let ((waiting, again), _) = tokio::join!(waiting, release);
        (waiting.json(), again)
    };
    let (first, (second, again)) = tokio::join!(first, second);
    let first = first.unwrap();
    assert_eq!(texts(&first.json()), ["First."]);
    assert_eq!((again.status, texts(&again.json())), (200, vec!["First."]), "{again:?}");
    assert_eq!(texts(&second), ["Second."]);
}

#[tokio::test]
async fn a_turn_under_way_ends_before_the_server_does() {
    let home = Home::new();
    let barrier = Arc::new(Barrier::new(2));
    let held = ServerBehavior::Held(Arc::clone(&barrier), said("Still here."));
    let _model = with_model(&home, vec![ServerBehavior::Answers(said("Opening.")), held]);
    let serving = Serving::with(&home, &["--trust"]);
    let id = serving.session("chat").await;
    let path = format!("/v1/sessions/{id}/messages");
    let said = serving.post(&path, json!({ "text": "one" }));
    let end = async {
        let mut events = serving.events(&id, None).await;
        while events.next().await.unwrap().json()["text"] != "one" {}
        serving.terminate();
        tokio::task::spawn_blocking(move || barrier.wait()).await.unwrap();
        events.rest().await
    };
    let (said, events) = tokio::join!(said, end);
    assert_eq!((said.status, texts(&said.json())), (200, vec!["Still here."]));
    drop(events);
    let finished = serving.finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let export = home.export(&id);
    assert_eq!(export["transcript"].as_array().unwrap().last().unwrap()["text"], "Still here.");
    // The next server goes on from there.
    let serving = Serving::with(&home, &["--trust"]);
    assert_eq!(serving.get(&format!("/v1/sessions/{id}")).await.json()["status"], "waiting_input");
}

#[tokio::test]
async fn a_request_that_names_its_question_takes_back_one_answer() {
    let home = Home::new();
    home.put(
        "scripts/talk.yaml",
        TALK.replace("config: { content: '{{ name }}", "config: { require_acknowledgment: true, content: '{{ name }}"),
    );
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    serving.say(&id, "Ann").await;
    let waiting = serving.say(&id, "tea").await["waiting"]["answer_id"].clone();
    let path = format!("/v1/sessions/{id}/take_back");
    for status in [200, 409, 409] {
        let taken = serving.post(&path, json!({ "answer_id": waiting })).await;
        assert_eq!(taken.status, status, "{taken:?}");
    }
    let shown = serving.get(&format!("/v1/sessions/{id}")).await.json();
    assert_eq!(shown["waiting"]["prompt"], "What do you like?", "{shown}");
    let unknown = serving.post(&path, json!({ "answer": waiting })).await;
    assert!(unknown.status == 400 && unknown.text.contains("unknown field"), "{unknown:?}");
    // Without a body, it is the last answer, whichever that is.
    let taken = serving.send(Method::POST, &path, &[], None).await;
    assert_eq!((taken.status, &taken.json()["waiting"]["prompt"]), (200, &json!("Who are you?")), "{taken:?}");
}

#[tokio::test]
async fn an_answer_is_taken_back_and_a_session_is_forked() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    let opening = serving.get(&format!("/v1/sessions/{id}")).await.json();
    let answered = serving.say(&id, "Ann").await;
    let taken = serving.post(&format!("/v1/sessions/{id}/take_back"), json!({})).await;
    assert_eq!((taken.status, &taken.json()["waiting"]["prompt"]), (200, &json!("Who are you?")), "{taken:?}");
    let again = serving.say(&id, "Bob").await;
    assert_eq!(again["waiting"]["prompt"], "What do you like?");
    let none = serving.session("talk").await;
    assert_eq!(serving.post(&format!("/v1/sessions/{none}/take_back"), json!({})).await.status, 409);
    // A fork has what the session was at a question; the session does not change.
    let fork = |body: Value| serving.post_owned(format!("/v1/sessions/{id}/fork"), body);
    let now = fork(json!({})).await;
    assert_eq!(now.status, 201, "{now:?}");
    let now = now.json()["id"].as_str().unwrap().to_owned();
    let earlier = fork(json!({ "after_seq": opening["last_seq"] })).await.json();
    assert_eq!(earlier["waiting"]["prompt"], "Who are you?");
    let earlier = earlier["id"].as_str().unwrap().to_owned();
    assert_eq!(texts(&serving.say(&now, "tea").await), ["Bob likes tea."]);
    serving.say(&earlier, "Eve").await;
    assert_eq!(texts(&serving.say(&earlier, "figs").await), ["Eve likes figs."]);
    assert_eq!(texts(&serving.say(&id, "rain").await), ["Bob likes rain."]);
    let middle = fork(json!({ "after_seq": answered["last_seq"].as_u64().unwrap() - 1 })).await;
    assert!(matches!(middle.status, 201 | 400), "{middle:?}");
    assert_eq!(fork(json!({ "after_seq": 100_000 })).await.status, 400);
    assert_eq!(fork(json!({ "session_id": now })).await.status, 409);
}

#[tokio::test]
async fn a_fork_of_a_fork_may_begin_before_the_fork_did() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    let opening = serving.get(&format!("/v1/sessions/{id}")).await.json()["last_seq"].clone();
    let begun = serving.say(&id, "Ann").await["last_seq"].clone();
    let fork = async |of: &str, after: &Value| {
        let body = if after.is_null() { json!({}) } else { json!({ "after_seq": after }) };
        serving.post(&format!("/v1/sessions/{of}/fork"), body).await
    };
    let first = fork(&id, &Value::Null).await.json()["id"].as_str().unwrap().to_owned();
    let second = fork(&first, &Value::Null).await.json()["id"].as_str().unwrap().to_owned();
    // The event has the same number in all of them; what the session was after it is in the first one.
    let early = fork(&second, &opening).await;
    assert_eq!((early.status, &early.json()["waiting"]["prompt"]), (201, &json!("Who are you?")), "{early:?}");
    let early = early.json()["id"].as_str().unwrap().to_owned();
    serving.say(&early, "Eve").await;
    assert_eq!(texts(&serving.say(&early, "figs").await), ["Eve likes figs."]);
    // Nothing waits before its first question.
    assert_eq!(fork(&second, &json!(0)).await.status, 400);
    let own = fork(&second, &begun).await.json();
    assert_eq!(own["waiting"]["prompt"], "What do you like?", "{own}");
    // Without that session, its states are gone.
    assert_eq!(serving.send(Method::DELETE, &format!("/v1/sessions/{id}"), &[], None).await.status, 204);
    let refused = fork(&second, &opening).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    let (detail, help) = (refused.json()["detail"].clone(), refused.json()["help"].clone());
    let told = format!("session `{first}` began as a copy with event {begun}, and has no state from before it");
    assert_eq!(detail, told);
    assert_eq!(help, format!("name event {begun} or a later one; the session of which it is a copy is `{id}`"));
    assert_eq!(fork(&second, &begun).await.status, 201);
    // Another session that has its id is not that session.
    let other = serving.post("/v1/sessions", json!({ "script": "talk", "session_id": id })).await;
    assert_eq!(other.status, 201, "{other:?}");
    let refused = fork(&second, &opening).await;
    assert_eq!((refused.status, &refused.json()["detail"]), (400, &json!(told)), "{refused:?}");
}

#[tokio::test]
async fn a_person_decides_about_a_request() {
    let home = Home::new();
    home.put(
        "scripts/release.yaml",
        "session:\n  session_id: release\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions:\n            \
         - { action_type: approval, action_id: ask, config: { prompt: 'Deploy?', form: [{ get: window, required: true }] } }\n            \
         - { action_type: ai_say, action_id: end, config: { content: '{{ approval.decision }} by {{ approval.by }} at {{ window }}' } }\n",
    );
    let serving = Serving::start(&home);
    let id = serving.session("release").await;
    let listed = serving.get("/v1/requests?session=&kind=").await.json();
    let request = &listed["requests"][0];
    assert_eq!((&request["session_id"], &request["prompt"]), (&json!(id), &json!("Deploy?")));
    let path = format!("/v1/requests/{id}/{}", request["request_id"].as_str().unwrap());
    let message = serving.post(&format!("/v1/sessions/{id}/messages"), json!({ "text": "yes" })).await;
    assert_eq!(message.status, 409, "{message:?}");
    for (body, part) in [
        (json!({ "decision": "maybe" }), "`maybe` is not a decision"),
        (json!({ "decision": "approve", "by": "ann" }), "window"),
        (json!({ "decision": "approve", "values": { "other": 1 }, "by": "ann" }), "other"),
    ] {
        let refused = serving.post(&path, body).await;
        assert!(matches!(refused.status, 400 | 409) && refused.text.contains(part), "{refused:?}");
    }
    let decided =
        serving.post(&path, json!({ "decision": "approve", "by": "ann", "values": { "window": "noon" } })).await;
    assert_eq!((decided.status, texts(&decided.json())), (200, vec!["approve by ann at noon"]), "{decided:?}");
    let late = serving.post(&path, json!({ "decision": "reject", "by": "bob" })).await;
    assert!(late.status == 409 && late.text.contains("ann"), "{late:?}");
}

#[tokio::test]
async fn a_session_is_cancelled_and_deleted() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    let cancelled = serving.post(&format!("/v1/sessions/{id}/cancel"), json!({ "reason": "moved" })).await;
    assert_eq!((cancelled.status, &cancelled.json()["status"]), (200, &json!("cancelled")), "{cancelled:?}");
    let deleted = serving.send(Method::DELETE, &format!("/v1/sessions/{id}"), &[], None).await;
    assert_eq!(deleted.status, 204, "{deleted:?}");
    assert_eq!(serving.get(&format!("/v1/sessions/{id}")).await.status, 404);
    let live = serving.session("talk").await;
    assert_eq!(serving.send(Method::DELETE, &format!("/v1/sessions/{live}"), &[], None).await.status, 204);
    assert_eq!(serving.send(Method::DELETE, &format!("/v1/sessions/{live}"), &[], None).await.status, 404);
}

#[tokio::test]
async fn a_session_that_another_process_runs_is_left_to_it() {
    a_terminal_keeps_its_session(&Home::new(), &[]).await;
}

/// With these arguments for the store.
pub(crate) async fn a_terminal_keeps_its_session(home: &Home, store: &[&str]) {
    let file = home.put("scripts/talk.yaml", TALK);
    let file = file.display().to_string();
    let running = home.start([&["run", &file, "--session", "held", "--json"], store].concat());
    running.event_of("waiting");
    let serving = Serving::with(home, store);
    let held = serving.post("/v1/sessions/held/messages", json!({ "text": "Ann" })).await;
    assert_eq!((held.status, &held.json()["type"]), (409, &json!("/problems/held")), "{held:?}");
    assert!(!held.text.contains(&home.path().display().to_string()), "{held:?}");
    assert_eq!(running.finish().code, Some(3));
    let mut reply = serving.post("/v1/sessions/held/messages", json!({ "text": "Ann" })).await;
    while reply.status == 409 {
        reply = serving.post("/v1/sessions/held/messages", json!({ "text": "Ann" })).await;
    }
    assert_eq!((reply.status, texts(&reply.json())), (200, vec!["What do you like?"]));
}

#[tokio::test]
async fn sessions_of_one_user_see_what_the_others_have_set() {
    let script = |id: &str, actions: &str| {
        format!(
            "session:\n  session_id: {id}\n  declare:\n    - {{ var: nick, type: string, scope: global, value: nobody }}\n    \
             - {{ var: pin, type: string, scope: global, sensitive: true, value: none }}\n    - {{ var: ready, type: string }}\n  \
             phases: [{{ phase_id: p, topics: [{{ topic_id: t, actions: [{actions}] }}] }}]\n"
        )
    };
    let ask = |id: &str, content: &str, name: &str| {
        format!(
            "{{ action_type: ai_ask, action_id: {id}, config: {{ content: '{content}', output: [{{ get: {name} }}] }} }}"
        )
    };
    let say =
        "{ action_type: ai_say, action_id: tell, config: { delivery: verbatim, content: '{{ nick }} {{ pin }}' } }";
    let home = Home::new();
    home.put("scripts/write.yaml", script("write", &[ask("a", "Name?", "nick"), ask("b", "PIN?", "pin")].join(", ")));
    home.put("scripts/read.yaml", script("read", &[&ask("c", "Ready?", "ready"), say].join(", ")));
    let serving = Serving::start(&home);
    let start = |script: &str, user: &str| {
        serving.post_owned("/v1/sessions".to_owned(), json!({ "script": script, "user": user }))
    };
    let id = |reply: crate::served::Reply| reply.json()["id"].as_str().unwrap().to_owned();
    // All of them are in memory, and have read the variables.
    let (writes, reads, other) =
        (id(start("write", "ann").await), id(start("read", "ann").await), id(start("read", "ben").await));
    serving.say(&writes, "Ann Lee").await;
    serving.say(&writes, "4711-0815").await;
    let told = serving.say(&reads, "yes").await;
    assert_eq!(texts(&told), ["Ann Lee 4711-0815"]);
    assert_eq!(texts(&serving.say(&other, "yes").await), ["nobody none"]);
    // What another session set is masked here as well.
    let exported = serving.get(&format!("/v1/sessions/{reads}/export?calls=true")).await;
    assert!(!exported.text.contains("4711-0815"), "{exported:?}");
}

#[tokio::test]
async fn a_message_can_interrupt_the_turn_and_take_its_place() {
    let home = Home::new();
    let reply = complete_reply(&json!({ "$ask": { "content": "Good.", "name": "Ann" } })).to_string();
    let model = Server::start(vec![ServerBehavior::Hangs, ServerBehavior::Answers(reply)]);
    home.put(
        "bcc-script.toml",
        format!("[models.default]\nprovider = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n", model.base_url),
    );
    home.put("scripts/talk.yaml", TALK.replace("config: {", "config: { delivery: verbatim,"));
    let serving = Serving::with(&home, &["--trust"]);
    let id = serving.session("talk").await;
    assert!(model.requests().is_empty());
    let path = format!("/v1/sessions/{id}/messages");
    let (target, first_path) = (serving.target(), path.clone());
    let first = tokio::spawn(async move {
        target.attempt(&first_path, &[("idempotency-key", "k1")], &json!({ "text": "I am An" })).await.unwrap()
    });
    // The model is asked about the first message, and does not answer.
    asked(&model).await;
    let body = json!({ "text": "I am Ann", "on_busy": "interrupt" });
    let second = serving.target().attempt(&path, &[("idempotency-key", "k2")], &body).await.unwrap();
    assert_eq!(second.status, 200, "{second:?}");
    let first = first.await.unwrap();
    assert_eq!((first.status, first.json()["type"].as_str().unwrap()), (409, "/problems/interrupted"), "{first:?}");
    let export = serving.get(&format!("/v1/sessions/{id}/export")).await.json();
    let said = |role: &str| {
        let all = export["transcript"].as_array().unwrap().iter();
        all.filter(|m| m["role"] == role).map(|m| m["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(said("user"), ["I am Ann"]);
    // The one that was taken back is not accepted by being sent again.
    let repeated = json!({ "text": "I am An" });
    let taken_back = serving.target().attempt(&path, &[("idempotency-key", "k1")], &repeated).await.unwrap();
    assert_eq!(
        (taken_back.status, &taken_back.json()["type"]),
        (409, &json!("/problems/interrupted")),
        "{taken_back:?}"
    );
    // Sent again, it interrupts nothing, and has the same reply.
    let again = serving.target().attempt(&path, &[("idempotency-key", "k2")], &body).await.unwrap();
    assert_eq!((again.status, again.json()["messages"].clone()), (200, second.json()["messages"].clone()));
    // Without a turn there is nothing to interrupt.
    let third = serving.post(&path, json!({ "text": "tea", "on_busy": "interrupt" })).await;
    assert_eq!(third.status, 200, "{third:?}");
}
