//! Links and the adapter of the page (docs/talk-page.md), as the page uses it: over HTTP.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::access::tokens;
use crate::process::Home;
use crate::served::{Serving, TALK, asked};
use crate::server::{Server, ServerBehavior};
use crate::visitor::{ASKING_MODEL, Visitor, make_link, model_config};

/// Much less than a server is waited for that has a session, a minute.
const AT_ONCE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_link_that_cannot_be_read_does_not_hide_the_others_and_can_be_revoked() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let make = async || serving.post("/v1/links", json!({ "script": "talk", "kind": "open" })).await.json();
    let (broken, good) = (make().await["id"].clone(), make().await["id"].clone());
    let store = rusqlite::Connection::open(home.store()).unwrap();
    store.execute("UPDATE link SET body = '{}' WHERE id = ?1", [broken.as_str().unwrap()]).unwrap();
    drop(store);
    let listed = serving.get("/v1/links").await.json();
    assert_eq!((&listed["links"][0]["id"], &listed["unreadable"]), (&good, &json!([broken])), "{listed}");
    let revoke = format!("/v1/links/{}", broken.as_str().unwrap());
    assert_eq!(serving.send(Method::DELETE, &revoke, &[], None).await.status, 204);
}

#[tokio::test]
async fn authors_make_list_and_revoke_links() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let tokens = tokens(&home);
    let serving = Serving::with(&home, &["--trust"]);
    let (talk, author) = (serving.as_caller(&tokens[0].1), serving.as_caller(&tokens[2].1));
    let body = json!({ "script": "talk", "kind": "one_time", "variables": { "greeting": "Hi." } });
    assert_eq!(talk.post("/v1/links", body.clone()).await.status, 403);
    let made = author.post("/v1/links", body).await;
    assert_eq!(made.status, 201, "{made:?}");
    let made = made.json();
    let (id, path) = (made["id"].as_str().unwrap(), made["path"].as_str().unwrap());
    // The token has 160 bits, and is in no other response.
    let token = path.strip_prefix("/t/").unwrap();
    assert!(token.len() == 40 && token.bytes().all(|digit| digit.is_ascii_hexdigit()), "{token}");
    for list in ["/v1/links".to_owned(), format!("/v1/links/{id}")] {
        assert_eq!(talk.get(&list).await.status, 403);
        let listed = author.get(&list).await;
        assert!(listed.status == 200 && listed.text.contains(id) && !listed.text.contains(token), "{listed:?}");
    }
    let store = std::fs::read(home.store()).unwrap();
    assert!(!store.windows(token.len()).any(|bytes| bytes == token.as_bytes()));
    assert_eq!(author.get("/v1/links").await.json()["links"][0]["created_by"], "author");
    // The page needs no token, and nothing else is there without one.
    let visitor = Visitor::of(&serving, path, "a");
    assert_eq!(visitor.begin(None).await.status, 200);
    assert_eq!(visitor.until("waiting").await["messages"][0]["text"], "Hi.");
    assert_eq!(serving.get("/v1/links").await.status, 401);
    let revoke = format!("/v1/links/{id}");
    assert_eq!(talk.send(Method::DELETE, &revoke, &[], None).await.status, 403);
    for _ in 0..2 {
        assert_eq!(author.send(Method::DELETE, &revoke, &[], None).await.status, 204);
    }
    assert_eq!(author.send(Method::DELETE, "/v1/links/none", &[], None).await.status, 404);
    assert!(author.get(&revoke).await.json()["revoked_at"].is_string());
}

#[tokio::test]
async fn what_would_keep_visitors_from_beginning_is_told_to_who_makes_the_link() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    home.put("scripts/broken.yaml", TALK.replace("session_id: talk", "session_id: broken").replace("ai_say", "ai_sya"));
    let serving = Serving::start(&home);
    for (body, status) in [
        (json!({ "script": "none", "kind": "open" }), 404),
        (json!({ "script": "broken", "kind": "open" }), 422),
        (json!({ "script": "talk", "kind": "often" }), 400),
        (json!({ "script": "talk", "kind": "open", "variables": { "unknown": 1 } }), 400),
        (json!({ "script": "talk", "kind": "open", "expires_at": "2020-01-01T00:00:00Z" }), 400),
        (json!({ "script": "talk", "kind": "open", "expires_at": "soon" }), 400),
        (json!({ "script": "talk", "kind": "open", "consent": { "text": " ", "language": "en" } }), 400),
        (json!({ "script": "talk", "kind": "open", "consent": { "text": "x", "language": "<b>" } }), 400),
    ] {
        let reply = serving.post("/v1/links", body.clone()).await;
        assert_eq!(reply.status, status, "{body}: {reply:?}");
    }
    assert_eq!(serving.get("/v1/links").await.json()["links"], json!([]));
}

#[tokio::test]
async fn of_visitors_at_the_same_time_one_begins_by_a_link_for_one_talk() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let path = make_link(&serving, json!({ "script": "talk", "kind": "one_time" })).await;
    let visitors: Vec<Visitor<'_>> =
        (0..8).map(|number: u8| Visitor::of(&serving, &path, &number.to_string())).collect();
    let begun = futures_util::future::join_all(visitors.iter().map(|visitor| visitor.begin(None))).await;
    let statuses: Vec<u16> = begun.iter().map(|reply| reply.status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 410).count(), 7, "{statuses:?}");
    // Whoever began can begin again without effect, and comes back.
    let first = visitors.iter().zip(&statuses).find(|(_, status)| **status == 200).unwrap().0;
    assert_eq!(first.begin(None).await.status, 200);
    assert_eq!(serving.get("/v1/sessions").await.json()["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(serving.get(&format!("{path}/link")).await.text, r#"{"error":"used_up"}"#);
}

#[tokio::test]
async fn an_open_link_begins_a_talk_for_each_visitor() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let path = make_link(&serving, json!({ "script": "talk", "kind": "open" })).await;
    let (ann, ben) = (Visitor::of(&serving, &path, "a"), Visitor::of(&serving, &path, "b"));
    for visitor in [&ann, &ben] {
        assert_eq!(visitor.get("state").await.status, 404);
        assert_eq!(visitor.begin(None).await.status, 200);
    }
    ann.say("Ann", "k").await;
    assert_eq!(ann.until("waiting").await["messages"].as_array().unwrap().len(), 4);
    assert_eq!(ben.until("waiting").await["messages"].as_array().unwrap().len(), 2);
    // A secret that no page makes is none.
    for secret in ["", "A", "0", &"g".repeat(64), &"a".repeat(65)] {
        assert_eq!(serving.get(&format!("{path}/{secret}/state")).await.status, 404, "{secret}");
    }
}

#[tokio::test]
async fn an_expired_link_begins_nothing_and_what_began_goes_on() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let path = make_link(&serving, json!({ "script": "talk", "kind": "open", "expires_at": "2999-01-01" })).await;
    let (early, late) = (Visitor::of(&serving, &path, "a"), Visitor::of(&serving, &path, "b"));
    assert_eq!(early.begin(None).await.status, 200);
    assert_eq!(serving.get(&format!("{path}/link")).await.status, 200);
    // The time comes.
    let store = rusqlite::Connection::open(home.store()).unwrap();
    store.execute("UPDATE link SET expires_at = '2026-01-01T00:00:00.000000Z'", []).unwrap();
    assert_eq!(serving.get(&format!("{path}/link")).await.status, 410);
    let refused = late.begin(None).await;
    assert_eq!((refused.status, refused.text.as_str()), (410, r#"{"error":"expired"}"#));
    early.say("Ann", "k").await;
    assert_eq!(early.until("waiting").await["messages"].as_array().unwrap().len(), 4);
}

/// A talk that keeps something for later sessions of its user.
fn remembering() -> String {
    TALK.replace("{ var: name, type: string }", "{ var: name, type: string, scope: global }")
}

#[tokio::test]
async fn a_talk_begins_after_the_consent_and_is_erased_when_it_is_withdrawn() {
    let home = Home::new();
    home.put("scripts/talk.yaml", remembering());
    let serving = Serving::start(&home);
    let consent = json!({ "text": "We keep what you say.", "language": "en" });
    let link = serving.post("/v1/links", json!({ "script": "talk", "kind": "open", "consent": consent })).await.json();
    let path = link["path"].as_str().unwrap();
    let visitor = Visitor::of(&serving, path, "a");
    for wrong in [None, Some("0".repeat(64))] {
        let refused = visitor.begin(wrong.as_deref()).await;
        assert_eq!((refused.status, refused.text.as_str()), (409, r#"{"error":"consent_needed"}"#));
    }
    let shown = serving.get(&format!("{path}/link")).await.json();
    assert_eq!(shown["consent"]["text"], "We keep what you say.");
    let sha256 = shown["consent"]["sha256"].as_str().unwrap();
    assert_eq!(visitor.begin(Some(sha256)).await.status, 200);
    visitor.say("Ann-Sophie", "k").await;
    assert_eq!(visitor.until("waiting").await["has_consent"], true);
    let of_link = format!("/v1/links/{}", link["id"].as_str().unwrap());
    let kept = serving.get(&of_link).await.json()["conversations"][0].clone();
    assert_eq!((&kept["consent"]["sha256"], &kept["consent"]["language"]), (&json!(sha256), &json!("en")));
    assert!(kept["consent"]["at"].as_str().unwrap().ends_with('Z'));
    let session = kept["session"].as_str().unwrap();
    assert_eq!(serving.get(&format!("/v1/sessions/{session}")).await.status, 200);
    // An author has begun it again, and that again; and has a fork of it.
    let mut copies = vec![session.to_owned()];
    for _ in 0..2 {
        let again = serving.post(&format!("/v1/sessions/{}/again", copies.last().unwrap()), json!({ "turn": 1 })).await;
        assert_eq!(again.status, 201, "{again:?}");
        copies.push(again.json()["id"].as_str().unwrap().to_owned());
    }
    let fork = serving.post(&format!("/v1/sessions/{session}/fork"), json!({})).await;
    assert_eq!(fork.status, 201, "{fork:?}");
    copies.push(fork.json()["id"].as_str().unwrap().to_owned());
    let other = serving.session("talk").await;
    // Another tab is open.
    let mut tab = visitor.events(0).await;
    for _ in 0..2 {
        assert_eq!(visitor.post("withdraw", json!({})).await.text, r#"{"erased":true}"#);
    }
    assert_eq!(tab.until("gone").await.last().unwrap().event, "gone");
    for erased in &copies {
        assert_eq!(serving.get(&format!("/v1/sessions/{erased}")).await.status, 404, "{erased}");
    }
    assert_eq!(serving.get(&format!("/v1/sessions/{other}")).await.status, 200);
    for refused in [visitor.get("state").await, visitor.get("copy").await, visitor.begin(Some(sha256)).await] {
        assert_eq!((refused.status, refused.text.as_str()), (410, r#"{"error":"withdrawn"}"#));
    }
    assert!(serving.get(&of_link).await.json()["conversations"][0]["withdrawn_at"].is_string());
    // Nor is there anything of it in the variables of its user.
    let store = rusqlite::Connection::open(home.store()).unwrap();
    let variables: i64 = store.query_row("SELECT count(*) FROM user_variable", [], |row| row.get(0)).unwrap();
    assert_eq!(variables, 0);
}

#[tokio::test]
async fn an_answer_is_acknowledged_when_it_is_stored_and_answered_once() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let path = make_link(&serving, json!({ "script": "talk", "kind": "open" })).await;
    let visitor = Visitor::of(&serving, &path, "a");
    visitor.begin(None).await;
    let first = visitor.until("waiting").await["waiting"]["answer_id"].as_str().unwrap().to_owned();
    let answer = |text: &str| json!({ "text": text, "answer_id": first });
    let long = answer(&"x".repeat(1_200_000));
    for (body, key, status) in [
        (answer(""), Some("k"), 400),
        (answer("Ann"), None, 400),
        (json!({ "text": "Ann" }), Some("k"), 400),
        (long, Some("k"), 413),
    ] {
        assert_eq!(visitor.post_with("messages", key, body).await.status, status);
    }
    let stored = visitor.post_with("messages", Some("k1"), answer("Ann")).await;
    assert_eq!((stored.status, &stored.json()["stored"]), (202, &json!(true)));
    // Sent again, at once and after the turn.
    assert_eq!(visitor.post_with("messages", Some("k1"), answer("Ann")).await.text, stored.text);
    let state = visitor.until("waiting").await;
    assert_eq!(visitor.post_with("messages", Some("k1"), answer("Ann")).await.text, stored.text);
    assert_eq!(state["messages"][2]["id"], stored.json()["id"]);
    // Another answer to a question that is answered.
    let second = visitor.post_with("messages", Some("k2"), answer("Ben")).await;
    assert_eq!((second.status, second.text.as_str()), (409, r#"{"error":"answered"}"#));
    let state = visitor.until("waiting").await;
    let texts: Vec<&str> =
        state["messages"].as_array().unwrap().iter().map(|message| message["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["Hello.", "Who are you?", "Ann", "What do you like?"]);
}

/// The talk with inputs of each kind.
const INPUTS: &str = "
session:
  session_id: inputs
  declare:
    - { var: mood, type: string, enum: [good, '<b>bad</b>'] }
    - { var: day, type: date }
    - { var: count, type: integer }
    - { var: sure, type: boolean }
    - { var: a, type: string }
    - { var: b, type: string, enum: [x, y] }
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: q1, config: { content: Mood?, output: [{ get: mood }] } }
            - { action_type: ai_ask, action_id: q2, config: { content: Day?, output: [{ get: day }] } }
            - { action_type: ai_ask, action_id: q3, config: { content: Count?, output: [{ get: count }] } }
            - { action_type: ai_ask, action_id: q4, config: { content: Sure?, output: [{ get: sure }] } }
            - { action_type: ai_ask, action_id: q5, config: { content: Both?, output: [{ get: a }, { get: b }] } }
";

#[tokio::test]
async fn the_page_learns_how_an_answer_is_given() {
    let home = Home::new();
    home.put("scripts/inputs.yaml", INPUTS);
    let serving = Serving::start(&home);
    let path = make_link(&serving, json!({ "script": "inputs", "kind": "open" })).await;
    let visitor = Visitor::of(&serving, &path, "a");
    visitor.begin(None).await;
    let mut events = visitor.events(0).await;
    for (number, (answer, input, options)) in [
        ("good", "choice", json!(["good", "<b>bad</b>"])),
        ("2026-12-24", "date", json!([])),
        ("7", "number", json!([])),
        ("yes", "yes_no", json!([])),
        ("x", "text", json!([])),
    ]
    .into_iter()
    .enumerate()
    {
        let told = events.until("waiting").await.last().unwrap().json();
        assert_eq!((&told["input"], &told["options"]), (&json!(input), &options));
        assert_eq!(visitor.get("state").await.json()["waiting"], told);
        visitor.say(answer, &number.to_string()).await;
    }
}

#[tokio::test]
async fn nothing_but_the_conversation_is_sent_to_the_page() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let path = make_link(&serving, json!({ "script": "talk", "kind": "open" })).await;
    let visitor = Visitor::of(&serving, &path, "a");
    let mut sent = vec![visitor.begin(None).await.text];
    let mut events = visitor.events(0).await;
    for (number, answer) in ["Ann", "tea"].into_iter().enumerate() {
        sent.extend(events.until("waiting").await.into_iter().map(|event| event.data));
        sent.push(visitor.get("state").await.text);
        sent.push(visitor.say(answer, &number.to_string()).await.text);
    }
    sent.extend(events.rest().await.into_iter().map(|event| event.data));
    sent.push(visitor.get("state").await.text);
    let known = [
        "answer_id",
        "begun",
        "can_take_back",
        "for",
        "has_consent",
        "has_earlier",
        "id",
        "input",
        "is_revoked",
        "key",
        "last_seq",
        "messages",
        "options",
        "own",
        "status",
        "stored",
        "text",
        "title",
        "waiting",
    ];
    for text in &sent {
        let mut keys = Vec::new();
        collect_keys(&serde_json::from_str(text).unwrap(), &mut keys);
        assert!(keys.iter().all(|key| known.contains(&key.as_str())), "{text}");
        for internal in ["classified", "ask_name", "session_id", "offline", "talk-"] {
            assert!(!text.contains(internal), "{text}");
        }
    }
    // The end, and a question of nobody, are told without their reasons.
    assert!(sent.iter().any(|text| text == r#"{"status":"completed"}"#), "{sent:?}");
    let copy = visitor.get("copy").await;
    assert!(copy.header("content-disposition").starts_with("attachment; filename=\"conversation-"), "{copy:?}");
    let lines: Vec<&str> = copy.text.lines().filter(|line| !line.is_empty()).skip(2).collect();
    let expected = ["**Assistant**", "Hello.", "**Assistant**", "Who are you?", "**You**", "Ann", "**Assistant**"];
    assert_eq!(lines.get(..7).unwrap(), expected);
    assert_eq!(lines.last(), Some(&"Ann likes tea."));
    // The day is that of the person: these two places never have the same.
    let (east, west) = (visitor.get("copy?zone=Pacific/Kiritimati").await, visitor.get("copy?zone=Pacific/Niue").await);
    for copy in [&east, &west] {
        let day = copy.text.lines().nth(2).unwrap();
        assert!(
            copy.header("content-disposition").ends_with(&format!("filename=\"conversation-{day}.md\"")),
            "{copy:?}"
        );
    }
    assert!(east.text.lines().nth(2) > west.text.lines().nth(2), "{east:?} {west:?}");
    for unknown in ["zone=../etc/passwd", "zone=a&zone=b", "zone=%ff"] {
        assert_eq!(visitor.get(&format!("copy?{unknown}")).await.text, copy.text, "{unknown}");
    }
}

fn collect_keys(value: &Value, keys: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            keys.extend(fields.keys().cloned());
            fields.values().for_each(|field| collect_keys(field, keys));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_keys(item, keys)),
        _ => {}
    }
}

#[tokio::test]
async fn ten_tabs_get_the_same_and_each_event_once() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let path = make_link(&serving, json!({ "script": "talk", "kind": "open" })).await;
    let visitor = Visitor::of(&serving, &path, "a");
    visitor.begin(None).await;
    visitor.until("waiting").await;
    let mut tabs = Vec::new();
    for _ in 0..10 {
        tabs.push(visitor.events(0).await);
    }
    visitor.say("Ann", "1").await;
    visitor.until("waiting").await;
    visitor.say("tea", "2").await;
    let mut all = Vec::new();
    for mut tab in tabs {
        let stored: Vec<_> = tab.rest().await.into_iter().filter(|event| !event.id.is_empty()).collect();
        all.push(stored);
    }
    let first = all.first().unwrap().clone();
    assert!(all.iter().all(|tab| *tab == first));
    assert_eq!(first.iter().filter(|event| event.event == "message").count(), 6);
    // A tab that comes back gets what it has missed, and nothing twice.
    let seen = first.get(3).unwrap().id.parse().unwrap();
    assert_eq!(visitor.events(seen).await.rest().await, first.get(4..).unwrap());
    let last = first.last().unwrap().id.parse().unwrap();
    assert_eq!(visitor.events(last).await.status, 204);
}

#[tokio::test]
async fn the_last_answer_is_taken_back_once() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let path = make_link(&serving, json!({ "script": "talk", "kind": "open" })).await;
    let visitor = Visitor::of(&serving, &path, "a");
    visitor.begin(None).await;
    let state = visitor.until("waiting").await;
    assert_eq!(state["can_take_back"], false);
    let take_back = async |state: &Value| {
        let body = json!({ "answer_id": state["waiting"]["answer_id"] });
        visitor.post("take_back", body).await.status
    };
    assert_eq!(take_back(&state).await, 409);
    visitor.say("Ann", "1").await;
    let state = visitor.until("waiting").await;
    assert_eq!(state["can_take_back"], true);
    let mut events = visitor.events(state["last_seq"].as_u64().unwrap()).await;
    // Two tabs, which show the same question.
    assert_eq!((take_back(&state).await, take_back(&state).await), (200, 409));
    let kinds: Vec<String> = events.until("waiting").await.into_iter().map(|event| event.event).collect();
    assert_eq!(kinds, ["taken_back", "waiting"]);
    let state = visitor.until("waiting").await;
    assert_eq!((state["messages"].as_array().unwrap().len(), &state["can_take_back"]), (2, &json!(false)));
    visitor.say("Ben", "2").await;
    visitor.until("waiting").await;
    visitor.say("tea", "3").await;
    let state = visitor.until("completed").await;
    assert_eq!(state["messages"].as_array().unwrap().last().unwrap()["text"], "Ben likes tea.");
    assert_eq!(visitor.post("take_back", json!({ "answer_id": "a2" })).await.status, 409);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_consent_that_is_withdrawn_while_the_talk_begins_leaves_no_session() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    home.put("bcc-script.toml", "[serve]\nrequests_per_minute = 100000\n");
    let serving = Serving::with(&home, &["--trust"]);
    let consent = json!({ "text": "We keep what you say.", "language": "en" });
    let link = serving.post("/v1/links", json!({ "script": "talk", "kind": "open", "consent": consent })).await.json();
    let path = link["path"].as_str().unwrap();
    let shown = serving.get(&format!("{path}/link")).await.json();
    let sha256 = shown["consent"]["sha256"].as_str().unwrap();
    for letter in "abcdef0123456789".chars() {
        let visitor = Visitor::of(&serving, path, &letter.to_string());
        let withdrawing = async {
            // Until there is something to withdraw.
            while visitor.post("withdraw", json!({})).await.status == 404 {}
        };
        let (_, ()) = tokio::join!(visitor.begin(Some(sha256)), withdrawing);
        assert_eq!(visitor.get("state").await.text, r#"{"error":"withdrawn"}"#);
    }
    let sessions = serving.get("/v1/sessions").await.json();
    assert_eq!(sessions["sessions"], json!([]), "{sessions}");
}

#[tokio::test]
async fn a_consent_that_is_withdrawn_interrupts_the_turn_at_another_server() {
    let home = Home::new();
    let model = Server::start(vec![ServerBehavior::Hangs]);
    home.put("scripts/talk.yaml", ASKING_MODEL);
    home.put("bcc-script.toml", model_config(&model));
    let (owner, other) = (Serving::with(&home, &["--trust"]), Serving::with(&home, &["--trust"]));
    let consent = json!({ "text": "We keep what you say.", "language": "en" });
    let path = make_link(&owner, json!({ "script": "talk", "kind": "open", "consent": consent })).await;
    let sha256 = owner.get(&format!("{path}/link")).await.json()["consent"]["sha256"].as_str().unwrap().to_owned();
    let (visitor, elsewhere) = (Visitor::of(&owner, &path, "a"), Visitor::of(&other, &path, "a"));
    visitor.begin(Some(&sha256)).await;
    visitor.say("Ann", "k1").await;
    asked(&model).await;
    let withdrawn = tokio::time::timeout(AT_ONCE, elsewhere.post("withdraw", json!({}))).await.unwrap();
    assert_eq!(withdrawn.status, 200, "{withdrawn:?}");
    assert_eq!(other.get("/v1/sessions").await.json()["sessions"], json!([]));
    // What the person has said was sent to nobody once more.
    assert_eq!(model.requests().len(), 1);
}
