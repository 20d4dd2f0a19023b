//! Replies to messages when branches wait for several things, and when the same message is sent again (docs/server.md, docs/requests.md).

use serde_json::{Value, json};

use crate::process::Home;
use crate::served::{Reply, Serving};

/// A question, and then two approvals next to another branch.
const SCRIPT: &str = "
session:
  session_id: talk
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: start, config: { content: 'Start?', delivery: verbatim, max_rounds: 1 } }
            - action_type: parallel
              action_id: both
              config:
                branches:
                  - { id: b, actions: [{ action_type: approval, action_id: ask_b, config: { prompt: 'B?' } }] }
                  - { id: a, actions: [{ action_type: approval, action_id: ask_a, config: { prompt: 'A?' } }] }
                  - { id: c, actions: [OTHER] }
            - { action_type: ai_ask, action_id: end, config: { content: 'End?', delivery: verbatim, max_rounds: 9, exit: never } }
";

/// A program that ends when the file `go` exists.
const PROGRAM: &str = "{ action_type: command, action_id: slow, config: { shell: true, command: 'n=0; while [ ! -e go ]; do n=$((n+1)); [ $n -lt 6000 ] || exit 9; sleep 0.01; done' } }";

const WAIT: &str = "{ action_type: wait, action_id: pause, config: { for: 1h } }";

fn serving(home: &Home, other: &str) -> Serving {
    home.put("bcc-script.toml", "[project]\nallow = [\"command\"]\n");
    home.put("scripts/talk.yaml", SCRIPT.replace("OTHER", other));
    Serving::with(home, &["--trust"])
}

async fn say(serving: &Serving, id: &str) -> Reply {
    let headers = [("content-type", "application/json"), ("idempotency-key", "k1")];
    let body = json!({ "text": "go" }).to_string().into_bytes();
    serving.send(reqwest::Method::POST, &format!("/v1/sessions/{id}/messages"), &headers, Some(body)).await
}

/// The path of the open request with this prompt.
async fn request(serving: &Serving, id: &str, prompt: &str) -> String {
    let listed = serving.get(&format!("/v1/requests?session={id}")).await.json();
    let mut requests = listed["requests"].as_array().unwrap().iter();
    let request = requests.find(|request| request["prompt"] == prompt).unwrap();
    format!("/v1/requests/{}", request["id"].as_str().unwrap())
}

async fn approve(serving: &Serving, path: &str) -> Value {
    let decided = serving.post(path, json!({ "decision": "approve", "by": "ann" })).await;
    assert_eq!(decided.status, 200, "{decided:?}");
    decided.json()
}

#[tokio::test]
async fn a_reply_names_what_the_status_says_although_a_branch_waits_for_a_time() {
    let home = Home::new();
    let serving = serving(&home, WAIT);
    let id = serving.session("talk").await;
    let first = say(&serving, &id).await.json();
    let shown = serving.get(&format!("/v1/sessions/{id}")).await.json();
    assert_eq!(
        (&first["status"], &first["waiting"]["for"]),
        (&json!("waiting_approval"), &json!("approval")),
        "{first}"
    );
    assert_eq!(first["waiting"], shown["waiting"]);
    let a = request(&serving, &id, "A?").await;
    let second = approve(&serving, &a).await;
    assert_eq!(second["waiting"]["prompt"], "B?", "{second}");
    let b = request(&serving, &id, "B?").await;
    let third = approve(&serving, &b).await;
    assert_eq!((&third["status"], &third["waiting"]["for"]), (&json!("waiting_time"), &json!("time")), "{third}");
    assert_eq!(say(&serving, &id).await.json(), first);
}

#[tokio::test]
async fn a_message_that_is_sent_again_gets_its_reply_although_somebody_decided_in_its_turn_and_after_it() {
    let home = Home::new();
    let mut serving = serving(&home, PROGRAM);
    let id = serving.session("talk").await;
    let mut events = serving.events(&id, None).await;
    let decides = async {
        events.until("request_opened").await;
        events.until("request_opened").await;
        let path = request(&serving, &id, "A?").await;
        let ends = async {
            events.until("request_answered").await;
            home.put("go", "");
        };
        tokio::join!(approve(&serving, &path), ends).0
    };
    let (first, decided) = tokio::join!(say(&serving, &id), decides);
    let first = first.json();
    assert_eq!((&first["status"], &first["waiting"]["prompt"]), (&json!("waiting_approval"), &json!("B?")), "{first}");
    assert_eq!(decided["waiting"], first["waiting"]);
    assert_eq!(say(&serving, &id).await.json(), first);
    let path = request(&serving, &id, "B?").await;
    let later = approve(&serving, &path).await;
    assert_eq!(later["status"], "waiting_input", "{later}");
    assert_eq!(say(&serving, &id).await.json(), first);
    serving.kill();
    let serving = Serving::with(&home, &["--trust"]);
    assert_eq!(say(&serving, &id).await.json(), first);
    let cancelled = serving.post(&format!("/v1/sessions/{id}/cancel"), json!({})).await.json();
    assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
    assert_eq!(say(&serving, &id).await.json(), first);
}
