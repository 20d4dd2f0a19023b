//! Tests of loops together with other features: duplicate ids, unknown fields in responses, sensitive values, interrupted code, and the
//! reasons for moves.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bcc_runtime::effects::behaviors::BehaviorPiece;
use bcc_runtime::run::session::SessionPause;
use serde_json::{Value, json};

use crate::behaving::{Answer, Shared, TestHost};
use crate::behaviors::{done, host, no_models, program, run, script, test_session, text};
use crate::crashing_store::CrashMode;

/// A cell with an id that the server chose.
fn stored(id: &str, content: &str) -> Value {
    json!({ "action": "add", "shot_type": "action", "store_id": id, "content": content })
}

#[tokio::test]
async fn a_duplicate_id_is_a_counted_failure_and_does_not_end_the_session() {
    let more = json!({ "continue_behaviors": true });
    let behaviors = json!({
        "a#1": { "actions": [stored("load", "one"), stored("load", "again"), stored("cell-2", "two")], "transition": more },
        "a#2": { "actions": [stored("load", "later"), stored("cell-2", "later"), stored("cell-1", "three"), text("four")] },
        "b#1": { "actions": [stored("load", "elsewhere")], "transition": { "target_achieved": true } },
    });
    let judgements = json!({ "a#1": { "target_achieved": false }, "*": { "target_achieved": true } });
    for crash_mode in [CrashMode::Never, CrashMode::Before, CrashMode::After] {
        let host = host(behaviors.clone(), judgements.clone());
        let result = run(&program("server: s"), &host, &no_models(), crash_mode).await;
        assert_eq!(result.pause, SessionPause::Completed, "{crash_mode:?}");
        assert_eq!(result.contents, ["one", "two", "three", "four"], "{crash_mode:?}");
        let counts = |behavior: usize| {
            let feedback = &result.events("behavior")[behavior]["feedback"];
            ["actions_succeeded", "actions_failed"].map(|name| feedback[name].as_u64().unwrap())
        };
        assert_eq!([counts(0), counts(1), counts(2)], [[2, 1], [2, 2], [0, 1]], "{crash_mode:?}");
        let rejected = result.events("notebook_action").into_iter().filter(|event| event["success"] == false);
        assert!(rejected.clone().all(|event| event["error"].as_str().unwrap().contains("`store_id`")));
        assert_eq!(rejected.count(), 4, "{crash_mode:?}");
        assert!(result.events("error").is_empty(), "{crash_mode:?}");
    }
}

#[tokio::test]
async fn ignored_parts_of_a_response_are_reported() {
    let running_text = json!({ "action": "add", "content": "words", "metadata": { "should_execute": true } });
    let behaviors = json!({ "a#1": { "actions": [running_text, text("more")] }, "*": done() });
    let result = run(
        &program("server: s, reflection: 'off', max_behaviors: 1"),
        &host(behaviors, json!({})),
        &no_models(),
        CrashMode::Never,
    )
    .await;
    assert_eq!(
        (result.pause, &result.contents[..]),
        (SessionPause::Completed, &["words".to_owned(), "more".to_owned()][..])
    );
    assert_eq!(result.codes(), ["action-passed-over"]);
    let message = result.events("warning")[0]["message"].as_str().unwrap();
    assert!(message.contains("the behavior server `s`") && message.contains("`should_execute`"), "{message}");
}

#[tokio::test]
async fn a_sensitive_value_stays_masked_after_its_variable_changes() {
    let behaviors = json!({
        "a#1": { "actions": [text("call 13800001111"), { "action": "exec", "codecell_id": "13800001111" }],
                 "context_update": { "variables": { "phone": "13900002222" },
                                     "todo_list_update": { "operation": "add", "items": ["ring 13800001111"] } } },
        "a#2": { "actions": [text("or 13900002222, not 13800001111")],
                 "context_update": { "variables": { "phone": "13700003333" } } },
        "a#3": done(), "b#1": done(),
    });
    let judgements = json!({ "a#3": { "target_achieved": true }, "b#1": { "target_achieved": true }, "*": { "target_achieved": false } });
    // A new process knows it, too.
    for crash_mode in [CrashMode::Never, CrashMode::After] {
        let host = host(behaviors.clone(), judgements.clone());
        let result = run(&program("server: s"), &host, &no_models(), crash_mode).await;
        assert_eq!(result.pause, SessionPause::Completed);
        let log = host.log.lock().unwrap();
        assert!(
            log.behavior_requests.len() >= 3 && log.behavior_requests[2].to_string().contains("call "),
            "{:?}",
            log.behavior_requests
        );
        let sent = log.behavior_requests.iter().chain(&log.judgement_requests).chain(&result.journal);
        for sent in sent.map(Value::to_string) {
            for value in ["13800001111", "13900002222", "13700003333"] {
                assert!(!sent.contains(value), "{sent}");
            }
        }
    }
}

#[tokio::test]
async fn interrupted_code_with_on_interrupted_fail_ends_the_loop_with_an_error() {
    let code =
        json!({ "action": "add", "content_type": "code", "content": "x = 1", "metadata": { "should_execute": true } });
    let behaviors = json!({ "a#1": { "actions": [text("before"), code, text("never")] }, "*": done() });
    let script = script("server: s").replace("action_id: loop_a,", "action_id: loop_a, on_interrupted: fail,");
    let program = test_session::checked(&script, Path::new(crate::ROOT));
    let host = host(behaviors, json!({}));
    let result = run(&program, &host, &no_models(), CrashMode::After).await;
    assert_eq!(result.pause, SessionPause::Failed);
    assert_eq!(result.contents, ["before", "x = 1"]);
    assert_eq!(result.outcome("loop_a")["exit_reason"], "error");
    assert_eq!(result.events("error")[0]["code"], "effect-interrupted");
    assert_eq!(result.events("effect_started").len(), result.events("effect_finished").len());
    assert!(host.log.lock().unwrap().executed.is_empty());
    // The cell says that its code had begun.
    let cells = result.events("cell");
    let last = cells.last().unwrap();
    assert_eq!((&last["content"], &last["ended"]), (&json!("x = 1"), &json!("interrupted")), "{last}");
}

#[tokio::test]
async fn what_follows_from_a_behavior_counts_also_after_more_actions_than_may_be() {
    let action = |content: &str| Ok(BehaviorPiece::Action(text(content)));
    let around = json!({ "transition": { "target_achieved": true, "reason": "all is there" }, "context_update": { "variables": { "rows": 7 } } });
    let whole = json!({ "actions": [text("one"), text("two"), text("three")], "transition": around["transition"], "context_update": around["context_update"] });
    let streamed = |last| Answer::Stream(vec![action("one"), action("two"), action("three"), last]);
    for (what, answer, expected) in [
        ("a stream", streamed(Ok(BehaviorPiece::Response(around.clone()))), "behavior_001 1 true transition"),
        ("a whole answer", Answer::Whole(whole), "behavior_001 1 true transition"),
        ("a stream that breaks off", streamed(Err("server-timeout")), "behavior_001 1 false nobody"),
    ] {
        let mut host = TestHost {
            log: Shared::default(),
            behaviors: BTreeMap::new(),
            judgements: BTreeMap::new(),
            code_allowed: true,
        };
        host.behaviors.insert("a#1".into(), answer);
        host.behaviors.insert("*".into(), Answer::Whole(done()));
        let program = program("server: s, max_actions: 1, reflection: 'off'");
        let result = run(&program, &Arc::new(host), &no_models(), CrashMode::Never).await;
        assert_eq!(result.pause, SessionPause::Completed, "{what}");
        assert_eq!(result.behaviors()[0], expected, "{what}");
        assert_eq!(result.contents, ["one"], "{what}");
        assert_eq!(result.codes(), ["too-many-actions"], "{what}");
        let rows = result.journal.iter().any(|event| event["name"] == "rows");
        assert_eq!(rows, expected.contains("transition"), "{what}: {:#?}", result.journal);
    }
}

#[tokio::test]
async fn a_move_of_a_loop_records_its_source() {
    let behaviors = json!({ "a#1": { "actions": [], "transition": { "next_step_id": "c" } } });
    let result =
        run(&program("server: s, reflection: 'off'"), &host(behaviors, json!({})), &no_models(), CrashMode::Never)
            .await;
    assert_eq!((result.pause, result.topics()), (SessionPause::Completed, vec!["a", "c"]));
    let route_events = result.events("routed");
    assert_eq!(route_events[0]["why"], "the behavior server `s` moves the session there");
}

#[tokio::test]
async fn elements_of_a_sensitive_list_are_sent_to_no_server() {
    let script = script("server: s, reflection: 'off', max_behaviors: 1")
        .replace("  declare:\n", "  declare:\n    - { var: ages, type: list, sensitive: true, value: [34, 7] }\n")
        .replace("- topic_id: a\n", "- topic_id: a\n          for_each: { in: ages, as: age }\n");
    let program = test_session::checked(&script, Path::new(crate::ROOT));
    // A new process knows it, too.
    for crash_mode in [CrashMode::Never, CrashMode::After] {
        let host = host(json!({ "*": done() }), json!({}));
        let result = run(&program, &host, &no_models(), crash_mode).await;
        assert_eq!(result.pause, SessionPause::Completed);
        let log = host.log.lock().unwrap();
        assert!(log.behavior_requests.len() >= 3, "{:?}", log.behavior_requests);
        for request in &log.behavior_requests {
            let variables = &request["observation"]["context"]["variables"];
            assert_eq!(variables["file"], "housing.csv");
            assert!(variables.get("age").is_none() && variables.get("ages").is_none(), "{variables}");
        }
    }
}
