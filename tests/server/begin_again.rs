//! Sessions that begin again over HTTP (docs/begin-again.md).

use serde_json::{Value, json};

use crate::process::{Home, finished};
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

/// A conversation that writes a file.
pub const ORDER: &str = "
session:
  session_id: order
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: ask, config: { content: What?, delivery: verbatim, max_rounds: 1 } }
            - { action_type: write_file, action_id: note, config: { path: out/note.txt, content: written } }
            - { action_type: ai_ask, action_id: more, config: { content: More?, delivery: verbatim, max_rounds: 1 } }
            - { action_type: ai_ask, action_id: last, config: { content: Last?, delivery: verbatim, max_rounds: 1 } }
";

/// A session of that script which is over.
async fn ordered() -> (Home, Serving, String) {
    let home = Home::new();
    home.put("scripts/order.yaml", ORDER);
    home.put("bcc-script.toml", "[project]\nallow = [\"write_file\"]\n");
    let serving = Serving::with(&home, &["--trust"]);
    let id = serving.session("order").await;
    for text in ["tea", "no", "yes"] {
        serving.say(&id, text).await;
    }
    (home, serving, id)
}

/// Begins that session again, up to the question about the file that it has written. Returns the id of the new one.
async fn begun_again(serving: &Serving, id: &str) -> String {
    let again = serving.post(&format!("/v1/sessions/{id}/again"), json!({ "turn": 1 })).await.json();
    assert_eq!(again["effects"], 1, "{again}");
    let new = again["id"].as_str().unwrap().to_owned();
    let mut events = serving.events(&new, None).await;
    while events.until("waiting").await.last().unwrap().json()["for"] != "interrupted_effect" {}
    new
}

#[tokio::test]
async fn answers_are_given_again_after_a_decision_about_an_effect() {
    let (_home, serving, id) = ordered().await;
    for over_requests in [false, true] {
        let new = begun_again(&serving, &id).await;
        if over_requests {
            let open: Value = serving.get("/v1/requests").await.json();
            let open = open["requests"].as_array().unwrap().iter().find(|open| open["session_id"] == new);
            let path = format!("/v1/requests/{new}/{}", open.unwrap()["request_id"].as_str().unwrap());
            let decided = serving.post(&path, json!({ "decision": "skip" })).await;
            assert!(decided.status < 300, "{decided:?}");
        } else {
            serving.say(&new, "skip").await;
        }
        serving.events(&new, None).await.until("session_completed").await;
    }
}

#[tokio::test]
async fn answers_are_given_on_by_another_server_until_somebody_answers() {
    let (home, mut serving, id) = ordered().await;
    let (decided, answered) = (begun_again(&serving, &id).await, begun_again(&serving, &id).await);
    serving.kill();
    let serving = Serving::with(&home, &["--trust"]);
    serving.say(&decided, "skip").await;
    serving.events(&decided, None).await.until("session_completed").await;
    drop(serving);
    // After another answer than that of the earlier session, the next question waits for a person.
    let mut resume = home.command(["sessions", "resume", &answered]);
    resume.env("BCC_TRUST", "1");
    let resumed = finished(resume, "skip\nmine\n");
    assert_eq!(resumed.code, Some(3), "{resumed:?}");
    let serving = Serving::with(&home, &["--trust"]);
    let state = serving.post(&format!("/v1/sessions/{answered}/continue"), json!({})).await.json();
    assert_eq!(state["status"], "waiting_input", "{state}");
}

#[tokio::test]
async fn who_answers_after_the_server_ended_comes_before_answers_that_would_be_given() {
    let (home, mut serving, id) = ordered().await;
    let new = begun_again(&serving, &id).await;
    serving.kill();
    // Somebody decides at the terminal and leaves the next question open.
    let mut resume = home.command(["sessions", "resume", &new]);
    resume.env("BCC_TRUST", "1");
    assert_eq!(finished(resume, "skip\n").code, Some(3));
    let serving = Serving::with(&home, &["--trust"]);
    // If the earlier answer were given first, this one would be for the last question.
    let state = serving.say(&new, "mine").await;
    assert_eq!(state["status"], "waiting_input", "{state}");
}

/// A script with this number of questions, each of which sets a variable of its own.
fn questions(count: usize) -> String {
    let declared: String = (0..count).map(|number| format!("    - {{ var: v{number}, type: string }}\n")).collect();
    let asked: String = (0..count)
        .map(|number| {
            format!(
                "            - {{ action_type: ai_ask, action_id: a{number}, config: {{ content: 'Question {number}', output: [{{ get: v{number} }}] }} }}\n"
            )
        })
        .collect();
    format!(
        "session:\n  session_id: many\n  declare:\n{declared}  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions:\n{asked}"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_copy_of_a_session_that_runs_is_of_one_moment() {
    const COUNT: usize = 40;
    let home = Home::new();
    home.put("scripts/many.yaml", questions(COUNT));
    home.put("bcc-script.toml", "[serve]\nrequests_per_minute = 100000\n");
    let serving = Serving::with(&home, &["--trust"]);
    let id = serving.session("many").await;
    let answering = async {
        for number in 0..COUNT {
            serving.say(&id, &format!("answer {number}")).await;
        }
    };
    let copying = async {
        let mut copies = Vec::new();
        for _ in 0..25 {
            let reply = serving.post(&format!("/v1/sessions/{id}/again"), json!({ "turn": 1 })).await;
            // One that changes faster than it is read is refused.
            if reply.status == 201 {
                copies.push(reply.json());
            }
        }
        copies
    };
    let ((), copies) = tokio::join!(answering, copying);
    assert!(!copies.is_empty());
    for copy in copies {
        let (new, given) = (copy["id"].as_str().unwrap(), copy["answers"].as_u64().unwrap());
        let mut events = serving.events(new, None).await;
        // All answers of that moment are given, and no variable knows of a later one.
        for _ in 0..given {
            events.until("variable_set").await;
        }
        let variables = serving.get(&format!("/v1/sessions/{new}/variables")).await.json();
        for number in given..COUNT as u64 {
            assert!(!variables.to_string().contains(&format!("answer {number}\"")), "{given} answers: {variables}");
        }
    }
}
