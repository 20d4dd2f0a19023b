//! Where a loop meets the parts around it: ids that are taken, what readers pass over, values that were hidden once, code that was
//! interrupted, and the reasons of moves.

use std::path::Path;

use bcc_runtime::run::session::SessionPause;
use serde_json::{Value, json};

use crate::behaviors::{done, nobody, program, run, script, stage, text, world};
use crate::mortal::Death;

/// A cell with an id of the source's own.
fn stored(id: &str, content: &str) -> Value {
    json!({ "action": "add", "shot_type": "action", "store_id": id, "content": content })
}

#[tokio::test]
async fn an_id_that_is_taken_is_a_failure_that_is_counted_and_never_the_end_of_a_session() {
    let more = json!({ "continue_behaviors": true });
    let behaviors = json!({
        "a#1": { "actions": [stored("load", "one"), stored("load", "again"), stored("cell-2", "two")], "transition": more },
        "a#2": { "actions": [stored("load", "later"), stored("cell-2", "later"), stored("cell-1", "three"), text("four")] },
        "b#1": { "actions": [stored("load", "elsewhere")], "transition": { "target_achieved": true } },
    });
    let judgements = json!({ "a#1": { "target_achieved": false }, "*": { "target_achieved": true } });
    for death in [Death::Never, Death::Before, Death::After] {
        let world = world(behaviors.clone(), judgements.clone());
        let ran = run(&program("server: s"), &world, &nobody(), death).await;
        assert_eq!(ran.pause, SessionPause::Completed, "{death:?}");
        assert_eq!(ran.contents, ["one", "two", "three", "four"], "{death:?}");
        let counts = |behavior: usize| {
            let feedback = &ran.events("behavior")[behavior]["feedback"];
            ["actions_succeeded", "actions_failed"].map(|name| feedback[name].as_u64().unwrap())
        };
        assert_eq!([counts(0), counts(1), counts(2)], [[2, 1], [2, 2], [0, 1]], "{death:?}");
        let refused = ran.events("notebook_action").into_iter().filter(|event| event["success"] == false);
        assert!(refused.clone().all(|event| event["error"].as_str().unwrap().contains("`store_id`")));
        assert_eq!(refused.count(), 4, "{death:?}");
        assert!(ran.events("error").is_empty(), "{death:?}");
    }
}

#[tokio::test]
async fn what_the_reader_of_actions_passes_over_is_told() {
    let running_text = json!({ "action": "add", "content": "words", "metadata": { "should_execute": true } });
    let behaviors = json!({ "a#1": { "actions": [running_text, text("more")] }, "*": done() });
    let ran = run(
        &program("server: s, reflection: 'off', max_behaviors: 1"),
        &world(behaviors, json!({})),
        &nobody(),
        Death::Never,
    )
    .await;
    assert_eq!((ran.pause, &ran.contents[..]), (SessionPause::Completed, &["words".to_owned(), "more".to_owned()][..]));
    assert_eq!(ran.codes(), ["action-passed-over"]);
    let told = ran.events("warning")[0]["message"].as_str().unwrap();
    assert!(told.contains("the behavior server `s`") && told.contains("`should_execute`"), "{told}");
}

#[tokio::test]
async fn a_sensitive_value_stays_hidden_after_its_variable_holds_another() {
    let behaviors = json!({
        "a#1": { "actions": [text("call 13800001111"), { "action": "exec", "codecell_id": "13800001111" }],
                 "context_update": { "variables": { "phone": "13900002222" },
                                     "todo_list_update": { "operation": "add", "items": ["ring 13800001111"] } } },
        "a#2": { "actions": [text("or 13900002222, not 13800001111")],
                 "context_update": { "variables": { "phone": "13700003333" } } },
        "a#3": done(), "b#1": done(),
    });
    let judgements = json!({ "a#3": { "target_achieved": true }, "b#1": { "target_achieved": true }, "*": { "target_achieved": false } });
    // A process that was begun anew knows of it, too.
    for death in [Death::Never, Death::After] {
        let world = world(behaviors.clone(), judgements.clone());
        let ran = run(&program("server: s"), &world, &nobody(), death).await;
        assert_eq!(ran.pause, SessionPause::Completed);
        let log = world.log.lock().unwrap();
        assert!(log.asked.len() >= 3 && log.asked[2].to_string().contains("call "), "{:?}", log.asked);
        let shown = log.asked.iter().chain(&log.judged).chain(&ran.journal);
        for shown in shown.map(Value::to_string) {
            for value in ["13800001111", "13900002222", "13700003333"] {
                assert!(!shown.contains(value), "{shown}");
            }
        }
    }
}

#[tokio::test]
async fn code_that_was_interrupted_and_is_to_fail_ends_the_loop_with_an_error() {
    let code =
        json!({ "action": "add", "content_type": "code", "content": "x = 1", "metadata": { "should_execute": true } });
    let behaviors = json!({ "a#1": { "actions": [text("before"), code, text("never")] }, "*": done() });
    let script = script("server: s").replace("action_id: loop_a,", "action_id: loop_a, on_interrupted: fail,");
    let program = stage::checked(&script, Path::new(crate::ROOT));
    let world = world(behaviors, json!({}));
    let ran = run(&program, &world, &nobody(), Death::After).await;
    assert_eq!(ran.pause, SessionPause::Failed);
    assert_eq!(ran.contents, ["before", "x = 1"]);
    assert_eq!(ran.outcome("loop_a")["exit_reason"], "error");
    assert_eq!(ran.events("error")[0]["code"], "effect-interrupted");
    assert_eq!(ran.events("effect_started").len(), ran.events("effect_finished").len());
    assert!(world.log.lock().unwrap().ran.is_empty());
}

#[tokio::test]
async fn a_move_of_a_loop_says_who_moved_the_session() {
    let behaviors = json!({ "a#1": { "actions": [], "transition": { "next_step_id": "c" } } });
    let ran =
        run(&program("server: s, reflection: 'off'"), &world(behaviors, json!({})), &nobody(), Death::Never).await;
    assert_eq!((ran.pause, ran.topics()), (SessionPause::Completed, vec!["a", "c"]));
    let routed = ran.events("routed");
    assert_eq!(routed[0]["why"], "the behavior server `s` moves the session there");
}
