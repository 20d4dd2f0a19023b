//! Tests of which step is judged: the one that the behavior worked on, wherever its actions moved the session.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bcc_runtime::program::models::ModelProviders;
use bcc_runtime::run::session::SessionPause;
use serde_json::{Value, json};

use crate::behaving::KeyedReplies;
use crate::behaviors::{host, no_models, run, script, test_session, text};
use crate::crashing_store::CrashMode;

/// A plan of three steps whose goals differ from their names, in the loop of the topic `a1`.
fn planned(source: &str) -> String {
    let steps = "steps: [{ id: a1, name: A, goal: the first goal }, { id: a2, name: B, goal: the second goal }, { id: a3, name: C, goal: the third goal }]";
    script(&format!("{source} workflow: {{ name: w, stages: [{{ id: s, name: S, {steps} }}] }}"))
        .replace("topic_id: a\n", "topic_id: elsewhere\n")
        .replace("action_id: loop_b,", "action_id: loop_b, condition: 'false',")
}

fn ends_step() -> Value {
    json!({ "actions": [text("work"), { "action": "end_phase" }] })
}

#[tokio::test]
async fn a_server_judges_the_step_that_was_worked_on() {
    let program = test_session::checked(&planned("server: s, include_progress: true,"), Path::new(crate::ROOT));
    let host = host(json!({ "*": ends_step() }), json!({ "*": { "target_achieved": true } }));
    let result = run(&program, &host, &no_models(), CrashMode::After).await;
    assert_eq!(result.pause, SessionPause::Completed);
    let log = host.log.lock().unwrap();
    let shown = |request: &Value| {
        let location = &request["observation"]["location"];
        let progress = &location["progress"]["steps"];
        format!(
            "{} {} {} {}: {} done",
            location["current_step_id"].as_str().unwrap_or("-"),
            location["behavior_id"].as_str().unwrap_or("-"),
            location["behavior_iteration"],
            location["goals"]["step"].as_str().unwrap_or("-"),
            progress["completed"].as_array().unwrap().len(),
        )
    };
    // Each judgement is asked for twice, because the process dies after each commit, or once.
    let mut judged: Vec<String> = log.judgement_requests.iter().map(shown).collect();
    judged.dedup();
    let expected = [
        "a1 behavior_001 1 the first goal: 0 done",
        "a2 behavior_002 1 the second goal: 1 done",
        "a3 behavior_003 1 the third goal: 2 done",
    ];
    assert_eq!(judged, expected);
    assert_eq!(result.state.location.completed_steps, ["a1", "a2", "a3"]);
}

#[tokio::test]
async fn a_model_is_asked_about_the_goal_of_the_step_that_was_worked_on() {
    let without_the_step = json!([{ "action": "update_stage_steps", "stage_id": "s", "updated_steps": [{ "id": "a3", "goal": "the third goal" }] }]);
    for (what, first) in [("ends it", ends_step()["actions"].clone()), ("removes it", without_the_step)] {
        let replies = [
            ("behavior 1".to_owned(), json!({ "actions": first }).to_string()),
            ("*".to_owned(), json!({ "actions": [], "target_achieved": true }).to_string()),
        ];
        let provider = Arc::new(KeyedReplies(BTreeMap::from(replies), Mutex::default()));
        let models: Arc<dyn ModelProviders> =
            test_session::FixedModels::without_monitors(Some(Arc::clone(&provider) as _));
        let program = test_session::checked(&planned(""), Path::new(crate::ROOT));
        let result = run(&program, &host(json!({}), json!({})), &models, CrashMode::Never).await;
        assert_eq!(result.pause, SessionPause::Completed, "{what}");
        let requests = provider.1.lock().unwrap();
        let first_judgement = requests.iter().find(|request| request.task.kind == "reflection").unwrap();
        assert_eq!(first_judgement.task.content, "the first goal", "{what}");
        let prompt = format!("{:?}", first_judgement.messages);
        assert!(prompt.contains("the first goal"), "{what}: {prompt}");
    }
}

#[tokio::test]
async fn a_step_that_was_completed_too_early_is_entered_again() {
    let program = test_session::checked(&planned("server: s,"), Path::new(crate::ROOT));
    let judgements =
        json!({ "a1#1": { "target_achieved": false, "reason": "too early" }, "*": { "target_achieved": true } });
    let host = host(json!({ "*": ends_step() }), judgements);
    let result = run(&program, &host, &no_models(), CrashMode::Never).await;
    assert_eq!(result.pause, SessionPause::Completed);
    let expected = [
        "behavior_001 1 false reflection",
        "behavior_002 2 true reflection",
        "behavior_003 1 true reflection",
        "behavior_004 1 true reflection",
    ];
    assert_eq!(result.behaviors(), expected);
    let asked: Vec<String> = host
        .log
        .lock()
        .unwrap()
        .behavior_requests
        .iter()
        .map(|request| request["observation"]["location"]["current_step_id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(asked, ["a1", "a1", "a2", "a3"]);
}

#[tokio::test]
async fn a_server_is_told_the_target_of_the_step_in_each_form() {
    let goal_of = |requests: &[Value]| requests[0]["observation"]["location"]["goals"].clone();
    for (config, expected) in [
        ("server: s, target: Find the mean", json!({ "step": "Find the mean" })),
        // The goal of the topic is its default.
        ("server: s", json!({ "step": "the first part" })),
        (
            "server: s, target: 'Read {{ file }}', include_progress: true",
            json!({ "stage": "p", "step": "Read housing.csv", "behavior": null }),
        ),
        ("server: s, target: 'Call {{ phone }}'", json!({ "step": "Call ***" })),
    ] {
        let program = test_session::checked(&script(config), Path::new(crate::ROOT));
        let host = host(json!({ "*": { "actions": [text("work")] } }), json!({ "*": { "target_achieved": true } }));
        let result = run(&program, &host, &no_models(), CrashMode::Never).await;
        assert_eq!(result.pause, SessionPause::Completed, "{config}");
        let log = host.log.lock().unwrap();
        assert_eq!(goal_of(&log.behavior_requests), expected, "{config}");
        assert_eq!(goal_of(&log.judgement_requests), expected, "{config}");
    }
}
