//! The example of docs/protocol.md, from the first request to the cells that it leaves.

use std::path::Path;

use bcc_runtime::run::session::SessionPause;
use serde_json::{Value, json};

use crate::behaviors::{done, host, no_models, run, script, test_session};
use crate::crashing_store::CrashMode;

/// The changes that the example of docs/protocol.md makes.
#[tokio::test]
async fn the_worked_example_of_001_runs_as_documented() {
    let folder = Path::new(crate::ROOT).join("tests/behaviors/worked_example.json");
    let case: Value = serde_json::from_str(&std::fs::read_to_string(folder).unwrap()).unwrap();
    let mut behaviors = case["responses"].clone();
    behaviors["b#1"] = done();
    let host = host(behaviors, case["judgements"].clone());
    let script = script("server: s, total_expected: 5, todo_list: [x]")
        .replace("todo_list: [x]", &format!("todo_list: {}", case["todo_list"]));
    let program = test_session::checked(&script, Path::new(crate::ROOT));
    let result = run(&program, &host, &no_models(), CrashMode::Never).await;
    assert_eq!(result.pause, SessionPause::Completed);
    let log = host.log.lock().unwrap();
    for (at, expected) in case["requests"].as_array().unwrap().iter().enumerate() {
        let request = &log.behavior_requests[at];
        for (pointer, value) in expected.as_object().unwrap() {
            assert_eq!(request.pointer(pointer), Some(value), "request {}: {pointer}", at + 1);
        }
    }
    assert_eq!(json!(log.executed), case["ran"]);
    assert_eq!(json!(result.contents), case["contents"]);
}
