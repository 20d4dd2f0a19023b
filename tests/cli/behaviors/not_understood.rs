//! Tests of what a source is told, once, about parts of its answers that were not understood.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bcc_runtime::program::models::ModelProviders;
use bcc_runtime::run::session::SessionPause;
use serde_json::{Value, json};

use crate::behaving::KeyedReplies;
use crate::behaviors::{done, host, no_models, program, run, test_session};
use crate::crashing_store::CrashMode;

fn notes(request: &Value) -> Vec<&str> {
    let notes = request["behavior_feedback"]["not_understood"].as_array();
    notes.into_iter().flatten().map(|note| note.as_str().unwrap()).collect()
}

#[tokio::test]
async fn what_was_not_understood_is_named_once() {
    let behaviors = json!({
        "a#1": {
            "actions": [
                7, { "action": "dance" },
                { "action": "add", "content": "x", "shot_type": "opera" },
            ],
            "context_update": {
                "variabels": { "x": 1 }, "variables": { "rows": "13800001111" },
                "todo_list_update": { "operation": "burn", "items": ["x"] },
                "section_progress": { "current": 2 },
            },
            "transition": { "next_step_id": "never", "continue_behaviors": true },
        },
        "a#3": done(), "b#1": done(), "*": { "actions": [], "transition": { "continue_behaviors": true } },
    });
    let judgements = json!({
        "a#1": { "transition": { "next_stage_id": "nowhere" }, "context_update": { "todo": [] } },
        "a#2": { "target_achieved": false }, "*": { "target_achieved": true },
    });
    let host = host(behaviors, judgements);
    let result = run(&program("server: s"), &host, &no_models(), CrashMode::Never).await;
    assert_eq!(result.pause, SessionPause::Completed);
    let log = host.log.lock().unwrap();
    insta::assert_snapshot!("not_understood", notes(&log.behavior_requests[1]).join("\n"));
    assert_eq!(notes(&log.behavior_requests[2]), Vec::<&str>::new());
    // The judge is not the one who wrote it.
    assert!(log.judgement_requests.iter().all(|request| notes(request).is_empty()));
}

#[tokio::test]
async fn a_model_is_told_why_its_answer_could_not_be_used() {
    let replies = BTreeMap::from([("*".to_owned(), "I am sorry, I cannot do that.".to_owned())]);
    let provider = Arc::new(KeyedReplies(replies, Mutex::default()));
    let models: Arc<dyn ModelProviders> = test_session::FixedModels::without_monitors(Some(Arc::clone(&provider) as _));
    let result = run(&program("target: x, reask: 0"), &host(json!({}), json!({})), &models, CrashMode::After).await;
    assert_eq!(result.pause, SessionPause::Stopped);
    let requests = provider.1.lock().unwrap();
    let note = "the last answer could not be used: it contains no readable JSON object";
    let is_told: Vec<bool> = requests.iter().map(|request| format!("{:?}", request.messages).contains(note)).collect();
    assert!(!is_told[0] && is_told[1..].iter().all(|told| *told) && is_told.len() > 3, "{is_told:?}");
}
