//! What copies of a session undo, and when there is none (docs/server.md, docs/failures.md).

use serde_json::{Value, json};

use crate::process::Home;
use crate::served::{Reply, Serving};

/// A conversation that books something, and cancels that if it fails or is cancelled.
const TRIP: &str = "
session:
  session_id: trip
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          FINALLY
          actions:
            - { action_type: ai_ask, action_id: room, config: { content: 'Room?', delivery: verbatim, max_rounds: 1 } }
            - action_type: command
              action_id: book
              compensate:
                - { action_type: command, action_id: refund, config: { command: [sh, -c, 'echo refund >> log'] } }
              config: { command: [sh, -c, 'echo book >> log'] }
            - { action_type: ai_ask, action_id: more, config: { content: 'More?', delivery: verbatim, max_rounds: 9, exit: never } }
";

fn serving(home: &Home, finally: &str) -> Serving {
    home.put("bcc-script.toml", "[project]\nallow = [\"command\"]\n");
    home.put("scripts/trip.yaml", TRIP.replace("FINALLY", finally));
    Serving::with(home, &["--trust"])
}

fn log(home: &Home) -> Vec<String> {
    std::fs::read_to_string(home.path().join("log")).unwrap_or_default().lines().map(str::to_owned).collect()
}

async fn call(serving: &Serving, id: &str, what: &str, body: Value) -> Reply {
    serving.post(&format!("/v1/sessions/{id}/{what}"), body).await
}

/// Makes a session from this one, and returns its id.
async fn copied(serving: &Serving, id: &str, what: &str, body: Value) -> String {
    let copy = call(serving, id, what, body).await;
    assert_eq!(copy.status, 201, "{copy:?}");
    copy.json()["id"].as_str().unwrap().to_owned()
}

async fn cancel(serving: &Serving, id: &str) {
    let cancelled = call(serving, id, "cancel", json!({})).await;
    assert_eq!((cancelled.status, &cancelled.json()["status"]), (200, &json!("cancelled")), "{cancelled:?}");
}

#[tokio::test]
async fn a_copy_undoes_what_it_did_itself_and_nothing_of_the_session_that_was_copied() {
    let home = Home::new();
    let serving = serving(&home, "");
    let id = serving.session("trip").await;
    let opening = serving.get(&format!("/v1/sessions/{id}")).await.json()["last_seq"].clone();
    serving.say(&id, "12").await;
    for (what, body) in [("fork", json!({})), ("again", json!({ "turn": 2 }))] {
        let copy = copied(&serving, &id, what, body).await;
        let again = copied(&serving, &copy, "fork", json!({})).await;
        cancel(&serving, &copy).await;
        cancel(&serving, &again).await;
        assert_eq!(log(&home), ["book"], "{what}");
    }
    let early = copied(&serving, &id, "fork", json!({ "after_seq": opening })).await;
    serving.say(&early, "7").await;
    cancel(&serving, &early).await;
    assert_eq!(log(&home), ["book", "book", "refund"]);
    // The session goes on, and undoes what it did.
    cancel(&serving, &id).await;
    assert_eq!(log(&home), ["book", "book", "refund", "refund"]);
}

#[tokio::test]
async fn a_session_that_is_about_to_end_is_not_copied() {
    let home = Home::new();
    let finally = "finally: [{ action_type: wait, action_id: pause, config: { for: 1h } }]";
    let serving = serving(&home, finally);
    let id = serving.session("trip").await;
    let opening = serving.get(&format!("/v1/sessions/{id}")).await.json()["last_seq"].clone();
    serving.say(&id, "12").await;
    let ending = call(&serving, &id, "cancel", json!({})).await.json();
    assert_eq!(ending["status"], "waiting_time", "{ending}");
    for body in [json!({}), json!({ "after_seq": ending["last_seq"] })] {
        let refused = call(&serving, &id, "fork", body.clone()).await;
        let is_expected = refused.status == 409 && refused.text.contains("was about to end there");
        assert!(is_expected, "{body}: {refused:?}");
    }
    // Before that, it was not.
    copied(&serving, &id, "fork", json!({ "after_seq": opening })).await;
    assert_eq!(log(&home), ["book"]);
}
