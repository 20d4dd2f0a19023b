//! Forks with another script, the plans of a session, and requests that are named by one part of a path.

use serde_json::{Value, json};

use crate::complete_reply::complete_reply;
use crate::process::Home;
use crate::served::{Serving, TALK};

#[tokio::test]
async fn a_fork_goes_on_with_another_script() {
    let home = Home::new();
    home.put("scripts/talk.yaml", TALK);
    home.put("scripts/other.yaml", TALK.replace("session_id: talk", "session_id: other"));
    let serving = Serving::start(&home);
    let id = serving.session("talk").await;
    let question = serving.say(&id, "Ann").await["last_seq"].clone();
    let path = format!("/v1/sessions/{id}/fork");
    home.put("scripts/talk.yaml", TALK.replace("{{ name }} likes", "By now, {{ name }} likes"));
    // Now, and later as it was then.
    for (body, text) in [
        (json!({ "script": "talk" }), "By now, Ann likes figs."),
        (
            json!({ "script": "scripts/talk.yaml", "after_seq": question, "session_id": "mine" }),
            "By now, Ann likes figs.",
        ),
        (json!({ "after_seq": question }), "Ann likes figs."),
    ] {
        let forked = serving.post(&path, body.clone()).await;
        assert_eq!(forked.status, 201, "{forked:?}");
        let forked = forked.json();
        assert_eq!(
            (&forked["status"], &forked["waiting"]["prompt"]),
            (&json!("waiting_input"), &json!("What do you like?")),
            "{body}"
        );
        let new = forked["id"].as_str().unwrap();
        assert!(body.get("session_id").is_none_or(|id| id == new));
        assert_eq!(serving.say(new, "figs").await["messages"][0]["text"], text, "{body}");
        if body.get("after_seq").is_none() {
            assert_eq!(serving.say(&id, "tea").await["messages"][0]["text"], "Ann likes tea.");
        }
    }
    let count = serving.get("/v1/sessions").await.json()["sessions"].as_array().unwrap().len();
    for (body, status, said) in [
        (json!({ "script": "none", "after_seq": question }), 404, "no script"),
        (json!({ "script": "other", "after_seq": question }), 400, "belongs to the script `talk`"),
        (json!({ "script": "talk", "after_seq": question, "session_id": "mine" }), 409, "already a session"),
        (json!({ "script": "talk", "after_seq": question, "session_id": "../x" }), 400, ""),
        // The session is over.
        (json!({ "script": "talk" }), 400, "was not waiting"),
    ] {
        let reply = serving.post(&path, body.clone()).await;
        assert!(reply.status == status && reply.text.contains(said), "{body}: {reply:?}");
    }
    assert_eq!(serving.get("/v1/sessions").await.json()["sessions"].as_array().unwrap().len(), count);
}

/// A topic that a plan may change.
const PLANNED: &str = "
session:
  session_id: talk
  declare: [{ var: secret, type: string, value: classified, sensitive: true }]
  phases:
    - phase_id: p
      topics:
        - topic_id: family
          topic_goal: Know the family
          strategy: { text: Ask little, orchestration: \"on\" }
          actions:
            - { action_type: ai_ask, action_id: father, config: { content: What does your father do?, delivery: verbatim } }
            - { action_type: ai_say, action_id: on, config: { content: Let us go on., delivery: verbatim } }
";

#[tokio::test]
async fn the_plans_of_a_session_are_a_part_of_it() {
    let home = Home::new();
    home.put("scripts/talk.yaml", PLANNED);
    let new_action = json!({ "action_type": "ai_say", "action_id": "family_plan_1", "config": { "content": "No hurry.", "delivery": "verbatim" } });
    let replies = json!({ "replies": {
        "father": [
            complete_reply(&json!({ "$ask": { "content": "How was it at home?" } })),
            complete_reply(&json!({ "$ask": { "content": "Thank you.", "EXIT": "YES" } })),
        ],
        "monitor:father": [complete_reply(&json!({ "$monitor": {
            "intervention_needed": true, "intervention_reason": "blocked", "intervention_level": "topic_orchestration",
            "orchestration_needed": true, "orchestration_reason": "silence",
        } }))],
        "orchestrator:father": [complete_reply(&json!({ "$plan": {
            "action": "insert", "target_position": "after_current", "new_action": new_action, "reason": "classified: be kind",
        } }))],
    } });
    home.put("replies.yaml", replies.to_string());
    let serving = Serving::with(&home, &["--model", "replay:replies.yaml"]);
    let id = serving.session("talk").await;
    let path = format!("/v1/sessions/{id}/plan");
    assert_eq!(serving.get(&path).await.json(), json!({ "plans": [] }));
    let mut events = serving.events(&id, None).await;
    serving.say(&id, "I would rather not").await;
    // The plan is made while the session waits.
    while events.until("model_call").await.last().unwrap().json()["purpose"] != "orchestrator" {}
    serving.say(&id, "Well").await;
    let plans = serving.get(&path).await.json();
    let plan = &plans["plans"][0];
    assert_eq!(
        (&plan["action_id"], &plan["change"], &plan["accepted"]),
        (&json!("father"), &json!("insert"), &json!(true)),
        "{plans}"
    );
    assert_eq!(plan["now"], json!(["father", "family_plan_1", "on"]), "{plans}");
    assert!(!plans.to_string().contains("classified"), "{plans}");
    assert_eq!(serving.get("/v1/sessions/none/plan").await.status, 404);
}

/// A session that waits for a decision.
const RELEASE: &str = "
session:
  session_id: release
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: approval, action_id: ask, config: { prompt: 'Deploy?' } }
";

#[tokio::test]
async fn a_request_is_answered_by_the_id_in_the_list() {
    let home = Home::new();
    home.put("scripts/release.yaml", RELEASE);
    let serving = Serving::start(&home);
    let id = serving.session("release").await;
    let listed: Value = serving.get("/v1/requests").await.json()["requests"][0].clone();
    let decision = json!({ "decision": "approve", "by": "ann" });
    // Another session has or will have a request of this name.
    let bare =
        serving.post(&format!("/v1/requests/{}", listed["request_id"].as_str().unwrap()), decision.clone()).await;
    assert!(bare.status == 404 && bare.json()["help"].as_str().unwrap().contains("SESSION/REQUEST"), "{bare:?}");
    let path = format!("/v1/requests/{}", listed["id"].as_str().unwrap().replace('/', "%2F"));
    let decided = serving.post(&path, decision.clone()).await;
    assert_eq!((decided.status, &decided.json()["status"]), (200, &json!("completed")), "{decided:?}");
    let again = serving.post(&path, decision.clone()).await;
    assert!(again.status == 409 && again.text.contains("by ann"), "{again:?}");
    assert_eq!(serving.post(&format!("/v1/requests/{id}%2Fr999"), decision).await.status, 404);
}
