//! Tests of what a source is told about the actions that failed.

use bcc_runtime::run::session::SessionPause;
use serde_json::{Value, json};

use crate::behaviors::{done, host, no_models, program, run, text};
use crate::crashing_store::CrashMode;

fn failures(request: &Value) -> &Vec<Value> {
    request["behavior_feedback"]["failures"].as_array().unwrap_or_else(|| panic!("no failures: {request}"))
}

#[tokio::test]
async fn every_failure_of_a_behavior_says_why() {
    let code = |content: &str| json!({ "action": "add", "content_type": "code", "content": content, "metadata": { "should_execute": true } });
    let behaviors = json!({
        "a#1": { "actions": [
            { "action": "exec", "codecell_id": "nobody" },
            { "action": "add", "content": "one", "store_id": "one" },
            { "action": "add", "content": "two", "store_id": "one" },
            { "action": "exec", "codecell_id": "one" },
            { "action": "end_phase", "step_id": "never" },
            { "action": "update_stage_steps", "stage_id": "nowhere", "updated_steps": ["x"] },
            { "type": "new_section" },
            code("x = 1\nraise KeyError('13800001111 rows')"),
            text("after"),
        ] },
        "a#2": done(), "b#1": done(),
    });
    let judgements = json!({ "a#1": { "target_achieved": false }, "*": { "target_achieved": true } });
    let host = host(behaviors, judgements);
    let result = run(&program("server: s"), &host, &no_models(), CrashMode::Never).await;
    assert_eq!(result.pause, SessionPause::Completed);
    let log = host.log.lock().unwrap();
    let next = log
        .behavior_requests
        .iter()
        .find(|request| request["observation"]["location"]["behavior_iteration"] == 2)
        .unwrap();
    assert_eq!(
        (&next["behavior_feedback"]["actions_failed"], &next["behavior_feedback"]["last_action_result"]),
        (&json!(7), &json!("success"))
    );
    let shown: String = failures(next).iter().map(|failure| format!("{failure}\n")).collect();
    insta::assert_snapshot!("failures", shown);
    // The judge sees the same.
    assert_eq!(failures(&log.judgement_requests[0]), failures(next));
}

#[tokio::test]
async fn the_first_failures_are_described_and_all_are_counted() {
    let many: Vec<Value> = (0..30)
        .map(|number| json!({ "action": "exec", "codecell_id": format!("{number}{}", "x".repeat(180)) }))
        .collect();
    let host = host(
        json!({ "a#1": { "actions": many }, "*": done() }),
        json!({ "a#1": { "target_achieved": false }, "*": { "target_achieved": true } }),
    );
    let result = run(&program("server: s"), &host, &no_models(), CrashMode::Never).await;
    assert_eq!(result.pause, SessionPause::Completed);
    let log = host.log.lock().unwrap();
    let feedback = &log.behavior_requests[1]["behavior_feedback"];
    assert_eq!((feedback["actions_failed"].as_u64(), failures(&log.behavior_requests[1]).len()), (Some(30), 8));
    assert_eq!(failures(&log.behavior_requests[1])[7]["number"], 8);
    assert!(feedback.to_string().len() < 6_000, "{feedback}");
}
