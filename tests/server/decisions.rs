//! Decisions about requests of branches while a program runs in another branch.

use serde_json::json;

use crate::process::Home;
use crate::served::Serving;

/// A conversation with an approval next to a program that ends when the file `go` exists.
const SCRIPT: &str = "
session:
  session_id: talk
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_say, action_id: what, config: { content: 'What?', delivery: verbatim, require_acknowledgment: true } }
            - action_type: parallel
              action_id: both
              config:
                branches:
                  - id: program
                    actions:
                      - { action_type: command, action_id: slow, config: { shell: true, command: 'n=0; while [ ! -e go ]; do n=$((n+1)); [ $n -lt 6000 ] || exit 9; sleep 0.01; done' } }
                  - id: decision
                    actions:
                      - { action_type: approval, action_id: check, config: { prompt: 'Right?', timeout: 1h, on_timeout: approve }, on_exit: { rejected: next } }
                      - { action_type: set, action_id: after, config: { values: { seen: true } } }
            - { action_type: ai_say, action_id: bye, config: { content: 'Bye.', delivery: verbatim } }
";

#[tokio::test]
async fn a_decision_about_a_branch_does_not_wait_for_the_program_of_another() {
    let home = Home::new();
    home.put("bcc-script.toml", "[project]\nallow = [\"command\"]\n");
    home.put("scripts/talk.yaml", SCRIPT);
    let serving = Serving::with(&home, &["--trust"]);
    let id = serving.session("talk").await;
    let mut events = serving.events(&id, None).await;
    let messages = format!("/v1/sessions/{id}/messages");
    let turn = serving.post(&messages, json!({ "text": "this" }));
    let decisions = async {
        let seen = events.until("request_opened").await;
        let request = seen.last().unwrap().json()["request_id"].as_str().unwrap().to_owned();
        let path = format!("/v1/requests/{id}/{request}");
        // The program runs. What cannot be decided is answered at once.
        let refused = serving.post(&path, json!({ "decision": "edit", "by": "ann" })).await;
        assert_eq!(refused.status, 400, "{refused:?}");
        let decided = serving.post(&path, json!({ "decision": "reject", "by": "ann", "comment": "not yet" }));
        let ends = async {
            let seen = events.until("request_answered").await;
            assert_eq!(seen.last().unwrap().json()["decision"], "reject");
            let is_after = |event: &crate::served::SentEvent| event.json()["location"]["action_id"] == "after";
            while !events.until("outcome").await.iter().any(is_after) {}
            let again = serving.post(&path, json!({ "decision": "approve", "by": "ben" })).await;
            assert!(again.status == 409 && again.text.contains("by ann"), "{again:?}");
            home.put("go", "");
        };
        tokio::join!(decided, ends).0
    };
    let (turn, decided) = tokio::join!(turn, decisions);
    assert_eq!((turn.status, &turn.json()["status"]), (200, &json!("completed")), "{turn:?}");
    assert_eq!((decided.status, &decided.json()["status"]), (200, &json!("completed")), "{decided:?}");
    let export = serving.get(&format!("/v1/sessions/{id}/export")).await.json();
    assert_eq!(export["variables"]["session"]["seen"]["value"], true);
}

#[tokio::test]
async fn a_decision_does_not_overtake_a_cancel_and_is_not_interrupted() {
    let home = Home::new();
    home.put("bcc-script.toml", "[project]\nallow = [\"command\"]\n");
    home.put("scripts/talk.yaml", SCRIPT);
    let serving = Serving::with(&home, &["--trust"]);
    for is_cancelled in [true, false] {
        let _ = std::fs::remove_file(home.path().join("go"));
        let id = serving.session("talk").await;
        let mut events = serving.events(&id, None).await;
        let turn = serving.post_owned(format!("/v1/sessions/{id}/messages"), json!({ "text": "this" }));
        let others = async {
            let seen = events.until("request_opened").await;
            let request = seen.last().unwrap().json()["request_id"].as_str().unwrap().to_owned();
            let decide = || {
                let decision = json!({ "decision": "approve", "by": "ann" });
                serving.post_owned(format!("/v1/requests/{id}/{request}"), decision)
            };
            let read = async || {
                for _ in 0..50 {
                    assert_eq!(serving.get(&format!("/v1/sessions/{id}")).await.status, 200);
                }
            };
            if is_cancelled {
                let cancel = serving.post_owned(format!("/v1/sessions/{id}/cancel"), json!({}));
                let later = async {
                    read().await;
                    let ends = async {
                        read().await;
                        home.put("go", "");
                    };
                    tokio::join!(decide(), ends).0
                };
                let (cancelled, decided) = tokio::join!(cancel, later);
                assert_eq!(cancelled.json()["status"], "cancelled", "{cancelled:?}");
                assert_eq!(decided.status, 409, "{decided:?}");
                return;
            }
            let interrupts = async {
                events.until("request_answered").await;
                let message = json!({ "text": "that", "on_busy": "interrupt" });
                let message = serving.post_owned(format!("/v1/sessions/{id}/messages"), message);
                let ends = async {
                    read().await;
                    home.put("go", "");
                };
                tokio::join!(message, ends).0
            };
            let (decided, message) = tokio::join!(decide(), interrupts);
            assert_eq!((decided.status, &decided.json()["status"]), (200, &json!("completed")), "{decided:?}");
            // Nothing waits for it.
            assert_eq!(message.status, 409, "{message:?}");
        };
        let (turn, ()) = tokio::join!(turn, others);
        assert_eq!(turn.status, 200, "{turn:?}");
        let export = serving.get(&format!("/v1/sessions/{id}/export")).await.json();
        assert_eq!(export["variables"]["session"]["seen"].is_null(), is_cancelled, "{export}");
    }
}
