//! Sessions that begin again over HTTP (docs/begin-again.md).

use serde_json::{Value, json};

use crate::process::Home;
use crate::served::{Serving, TALK};

/// The numbers of the events of a kind in an ended session.
async fn events_of(serving: &Serving, id: &str, kind: &str) -> Vec<u64> {
    let told = serving.events(id, None).await.rest().await;
    let of_kind = told.iter().filter(|event| event.event == kind);
    of_kind.map(|event| event.id.parse().unwrap()).collect()
}

#[tokio::test]
async fn a_session_begins_again_at_an_answer() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    serving.say(&id, "Ann").await;
    serving.say(&id, "tea").await;
    let path = format!("/v1/sessions/{id}/again");
    let preview = serving.post(&path, json!({ "turn": 2, "preview": true })).await;
    assert_eq!(preview.status, 200, "{preview:?}");
    let preview = preview.json();
    assert_eq!(
        (&preview["id"], &preview["answers"], &preview["model_calls"]["asked"]),
        (&json!(null), &json!(1), &json!(0))
    );
    let question = events_of(&serving, &id, "waiting").await[1];
    let same = serving.post(&path, json!({ "after_seq": question, "preview": true })).await;
    assert_eq!(same.json(), preview, "the question of the second answer");
    let again = serving.post(&path, json!({ "turn": 1 })).await;
    assert_eq!(again.status, 201, "{again:?}");
    let new = again.json()["id"].as_str().unwrap().to_owned();
    // It is given the answers without a client.
    let mut events = serving.events(&new, None).await;
    let told = events.until("session_completed").await;
    let texts = |role: &str| -> Vec<String> {
        let messages = told
            .iter()
            .filter(|event| event.json()["type"] == "message" && (event.json()["role"] == "user") == (role == "user"));
        messages.map(|event| event.json()["text"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(texts("user"), ["Ann", "tea"]);
    assert_eq!(texts("assistant").last().map(String::as_str), Some("Ann likes tea."));
    let choices = serving.get(&path).await.json();
    assert_eq!(choices["scripts"], json!(["scripts/talk.yaml"]), "{choices}");
    assert_eq!((&choices["schemes"][0], &choices["models"]), (&json!("default"), &json!(["offline"])), "{choices}");
    assert_eq!(serving.get("/v1/sessions/none/again").await.status, 404);
    for (body, status, said) in [
        (json!({ "turn": 9 }), 400, "has 2 answers"),
        (json!({ "turn": 1, "model": "replay:/etc/passwd" }), 400, "no model"),
        (json!({ "turn": 1, "script": "none" }), 404, "no script"),
        (json!({ "turn": 1, "scheme": "english" }), 400, "script"),
        (json!({ "turn": -1 }), 400, ""),
        (json!({}), 400, "either"),
        (json!({ "turn": 1, "after_seq": 4 }), 400, "either"),
    ] {
        let reply = serving.post(&path, body.clone()).await;
        assert!(reply.status == status && reply.text.contains(said), "{body}: {reply:?}");
    }
    let listed: Value = serving.get("/v1/sessions").await.json();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 2);
}
