//! Turns that another message interrupts, and those that it must not.

use serde_json::{Value, json};

use crate::complete_reply::complete_reply;
use crate::process::{Home, TIMEOUT};
use crate::served::{Reply, Serving, TALK, asked};
use crate::server::{Server, ServerBehavior};

/// An order that somebody approves, and a program that ends when the file `go` exists.
const ORDER: &str = "
session:
  session_id: order
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_say, action_id: what, config: { content: 'What?', delivery: verbatim, require_acknowledgment: true } }
            - { action_type: approval, action_id: check, config: { prompt: 'Right?' } }
            - { action_type: command, action_id: deploy, config: { shell: true, command: 'echo once >> log; n=0; while [ ! -e go ]; do n=$((n+1)); [ $n -lt 6000 ] || exit 9; sleep 0.01; done' } }
            - { action_type: ai_say, action_id: more, config: { content: 'More?', delivery: verbatim, require_acknowledgment: true } }
            - { action_type: ai_say, action_id: bye, config: { content: 'Bye.', delivery: verbatim } }
";

/// The same program before anything is asked.
fn first() -> String {
    let kept = |line: &&str| !line.contains("action_id: what") && !line.contains("action_id: check");
    ORDER
        .replace("session_id: order", "session_id: first")
        .lines()
        .filter(kept)
        .map(|line| format!("{line}\n"))
        .collect()
}

fn said_by_person(export: &Value) -> Vec<&str> {
    let said = export["transcript"].as_array().unwrap().iter().filter(|message| message["role"] == "user");
    said.map(|message| message["text"].as_str().unwrap()).collect()
}

/// Waits until the program runs.
async fn program_runs(home: &Home) {
    let runs = async {
        while !home.path().join("log").exists() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, runs).await.unwrap();
}

/// Gives the server time to read a message that was sent before.
async fn be_read(serving: &Serving, id: &str) {
    for _ in 0..50 {
        assert_eq!(serving.get(&format!("/v1/sessions/{id}")).await.status, 200);
    }
}

fn log(home: &Home) -> String {
    std::fs::read_to_string(home.path().join("log")).unwrap()
}

/// The program that follows a decision is not interrupted, whoever sends what: the message waits for the next question.
#[tokio::test]
async fn a_turn_that_follows_a_decision_is_not_interrupted() {
    let home = Home::new();
    home.put("bcc-script.toml", "[project]\nallow = [\"command\"]\n");
    home.put("scripts/order.yaml", ORDER);
    let serving = Serving::with(&home, &["--trust"]);
    let id = serving.session("order").await;
    serving.say(&id, "tea").await;
    let request = serving.get("/v1/requests").await.json()["requests"][0]["request_id"].clone();
    let decide = format!("/v1/requests/{id}/{}", request.as_str().unwrap());
    let decided = serving.post(&decide, json!({ "decision": "approve", "by": "ann" }));
    let others = async {
        program_runs(&home).await;
        let message = json!({ "text": "cake", "on_busy": "interrupt" });
        let message = serving.post_owned(format!("/v1/sessions/{id}/messages"), message);
        let ends = async {
            be_read(&serving, &id).await;
            home.put("go", "");
        };
        tokio::join!(message, ends).0
    };
    let (decided, message): (Reply, Reply) = tokio::join!(decided, others);
    assert_eq!((decided.status, &decided.json()["status"]), (200, &json!("waiting_input")), "{decided:?}");
    assert_eq!((message.status, &message.json()["status"]), (200, &json!("completed")), "{message:?}");
    assert_eq!(log(&home), "once\n");
    let export = serving.get(&format!("/v1/sessions/{id}/export")).await.json();
    assert_eq!(said_by_person(&export), ["tea", "cake"]);
}

#[tokio::test]
async fn the_first_turn_of_a_session_is_not_interrupted() {
    let home = Home::new();
    home.put("bcc-script.toml", "[project]\nallow = [\"command\"]\n");
    home.put("scripts/first.yaml", first());
    let serving = Serving::with(&home, &["--trust"]);
    let created = serving.post("/v1/sessions", json!({ "script": "first" }));
    let message = async {
        program_runs(&home).await;
        let listed = serving.get("/v1/sessions").await.json();
        let id = listed["sessions"][0]["id"].as_str().unwrap().to_owned();
        let message = json!({ "text": "cake", "on_busy": "interrupt" });
        let message = serving.post_owned(format!("/v1/sessions/{id}/messages"), message);
        let ends = async {
            be_read(&serving, &id).await;
            home.put("go", "");
        };
        tokio::join!(message, ends).0
    };
    let (created, message): (Reply, Reply) = tokio::join!(created, message);
    assert_eq!((created.status, &created.json()["status"]), (201, &json!("waiting_input")), "{created:?}");
    assert_eq!((message.status, &message.json()["status"]), (200, &json!("completed")), "{message:?}");
    assert_eq!(log(&home), "once\n");
}

/// Whoever replaces an answer names the question by the id that it had.
#[tokio::test]
async fn an_interrupting_message_names_the_question_whose_answer_it_replaces() {
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
    let question = serving.get(&format!("/v1/sessions/{id}")).await.json()["waiting"]["answer_id"].clone();
    let path = format!("/v1/sessions/{id}/messages");
    let (target, first_path, answer) =
        (serving.target(), path.clone(), json!({ "text": "I am An", "answer_id": question }));
    let first = tokio::spawn(async move { target.attempt(&first_path, &[], &answer).await.unwrap() });
    asked(&model).await;
    // Another question: nothing is interrupted.
    let other = json!({ "text": "I am Ben", "answer_id": "a77", "on_busy": "interrupt" });
    let refused = serving.post(&path, other).await;
    assert!(refused.status == 409 && refused.text.contains("`a77`"), "{refused:?}");
    assert!(!first.is_finished());
    let replaced = json!({ "text": "I am Ann", "answer_id": question, "on_busy": "interrupt" });
    let replaced = serving.post(&path, replaced).await;
    assert_eq!(replaced.status, 200, "{replaced:?}");
    let first = first.await.unwrap();
    assert_eq!((first.status, first.json()["type"].as_str().unwrap()), (409, "/problems/interrupted"), "{first:?}");
    let export = serving.get(&format!("/v1/sessions/{id}/export")).await.json();
    assert_eq!(said_by_person(&export), ["I am Ann"]);
}
