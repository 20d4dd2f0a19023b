//! Tests of behavior loops (docs/protocol.md): requests, execution, feedback, decisions, errors of the server, and process crashes.

use crate::behaving;
use crate::crashing_store;
use crate::test_session;
mod bad_servers;
mod failures;
mod joints;
mod judged_steps;
mod not_understood;
mod planning;
mod prompt_sizes;
mod worked_example;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bcc_runtime::effects::behaviors::BehaviorPiece;
use bcc_runtime::notebook::state::NotebookState;
use bcc_runtime::program::host_services::HostServices;
use bcc_runtime::program::models::ModelProviders;
use bcc_runtime::program::program::Program;
use bcc_runtime::run::session::SessionPause;
use bcc_store::contract::Store;
use behaving::{Answer, KeyedReplies, Log, Shared, TestHost};
use crashing_store::{CrashMode, CrashingStore};
use serde_json::{Value, json};

/// The maximum number of processes for one session; far more than there are commits.
const MAX_PROCESSES: usize = 400;

/// A script of three topics, the first two with a loop each.
fn script(config: &str) -> String {
    format!(
        "session:\n  session_id: report\n  declare:\n    - {{ var: rows, type: integer }}\n    - {{ var: phone, type: string, sensitive: true, value: '13800001111' }}\n    \
         - {{ var: file, type: string, value: housing.csv }}\n  phases:\n    - phase_id: p\n      topics:\n        \
         - topic_id: a\n          topic_goal: the first part\n          actions:\n            \
         - {{ action_type: behavior_loop, action_id: loop_a, config: {{ {config} }} }}\n            \
         - {{ action_type: set, action_id: after_a, config: {{ values: {{ seen: true }} }} }}\n        \
         - topic_id: b\n          actions:\n            \
         - {{ action_type: behavior_loop, action_id: loop_b, config: {{ {config} }} }}\n        \
         - topic_id: c\n          actions:\n            \
         - {{ action_type: set, action_id: after_c, config: {{ values: {{ seen: true }} }} }}\n"
    )
}

fn program(config: &str) -> Arc<Program> {
    test_session::checked(&script(config), Path::new(crate::ROOT))
}

fn host(behaviors: Value, judgements: Value) -> Arc<TestHost> {
    let answers = |value: Value| -> BTreeMap<String, Answer> {
        value.as_object().unwrap().iter().map(|(key, value)| (key.clone(), Answer::Whole(value.clone()))).collect()
    };
    let (behaviors, judgements) = (answers(behaviors), answers(judgements));
    Arc::new(TestHost { log: Shared::default(), behaviors, judgements, code_allowed: true })
}

fn no_models() -> Arc<dyn ModelProviders> {
    model_with_replies(&[])
}

fn model_with_replies(replies: &[(&str, &str)]) -> Arc<dyn ModelProviders> {
    let replies = replies.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
    test_session::FixedModels::without_monitors(Some(Arc::new(KeyedReplies(replies, Mutex::default()))))
}

/// The result of a session.
struct SessionRun {
    pause: SessionPause,
    journal: Vec<Value>,
    state: NotebookState,
    contents: Vec<String>,
    processes: usize,
}

/// Runs a session until it waits or ends; the process crashes at each commit as `crash_mode` says.
async fn run(
    program: &Arc<Program>,
    host: &Arc<TestHost>,
    models: &Arc<dyn ModelProviders>,
    crash_mode: CrashMode,
) -> SessionRun {
    run_with(program, &|| host.host_services(), models, crash_mode).await
}

/// The same with the services of any host.
async fn run_with(
    program: &Arc<Program>,
    services: &(dyn Fn() -> HostServices + Sync),
    models: &Arc<dyn ModelProviders>,
    crash_mode: CrashMode,
) -> SessionRun {
    let store = CrashingStore::new(crash_mode);
    let shared_store = || Arc::clone(&store) as Arc<dyn Store>;
    let models = || Arc::clone(models);
    let mut session = test_session::start_conversation_in(program, shared_store(), models(), None, services()).await;
    let mut processes = 1;
    let pause = loop {
        match store.run_until_crash(session.advance()).await {
            Some(pause) => break pause.unwrap(),
            None => {
                processes += 1;
                assert!(processes < MAX_PROCESSES, "it does not come to its end");
                drop(session);
                // The process can also crash at the final commit.
                match store.session(test_session::SESSION).await.unwrap().unwrap().status.as_str() {
                    "completed" => break SessionPause::Completed,
                    "stopped" => break SessionPause::Stopped,
                    "failed" => break SessionPause::Failed,
                    _ => {}
                }
                session =
                    test_session::resume_conversation_in(program, shared_store(), models(), None, services()).await;
            }
        }
    };
    let rows = store.variables(test_session::SESSION).await.unwrap();
    let state = rows.iter().find(|row| row.scope == "notebook").map(|row| serde_json::from_str(&row.value).unwrap());
    let cells = store.cells(test_session::SESSION, 0, 10_000).await.unwrap();
    let content = |body: &str| serde_json::from_str::<Value>(body).unwrap()["content"].as_str().unwrap().to_owned();
    let contents = cells.iter().map(|cell| content(&cell.body)).collect();
    let journal = test_session::journal(store.as_ref()).await;
    SessionRun { pause, journal, state: state.unwrap_or_default(), contents, processes }
}

impl SessionRun {
    fn events(&self, kind: &str) -> Vec<&Value> {
        self.journal.iter().filter(|event| event["type"] == kind).collect()
    }

    fn codes(&self) -> Vec<&str> {
        self.events("warning").into_iter().map(|event| event["code"].as_str().unwrap()).collect()
    }

    /// The behaviors as `id iteration achieved by`.
    fn behaviors(&self) -> Vec<String> {
        let describe = |event: &Value| {
            format!(
                "{} {} {} {}",
                event["behavior_id"].as_str().unwrap(),
                event["iteration"],
                event["target_achieved"],
                event["decided_by"].as_str().unwrap()
            )
        };
        self.events("behavior").into_iter().map(describe).collect()
    }

    /// Topics in the order in which they were entered.
    fn topics(&self) -> Vec<&str> {
        self.events("topic_entered").into_iter().map(|event| event["location"]["topic_id"].as_str().unwrap()).collect()
    }

    fn outcome(&self, action: &str) -> &Value {
        let outcomes = self.events("outcome");
        let outcome = outcomes.into_iter().rfind(|event| event["location"]["action_id"] == action);
        outcome.unwrap_or_else(|| panic!("no outcome of {action}"))
    }
}

fn text(content: &str) -> Value {
    json!({ "action": "add", "content_type": "text", "content": content })
}

fn done() -> Value {
    json!({ "actions": [], "transition": { "target_achieved": true } })
}

#[tokio::test]
async fn a_loop_runs_until_the_target_is_judged_achieved_and_sends_feedback() {
    let behaviors = json!({
        "a#1": { "behavior": { "target": "begin" }, "actions": [
            { "type": "add_section", "content": "Data", "metadata": { "section_id": "data" } },
            text("what we have"),
            { "action": { "type": "add", "content_type": "code", "content": "x = 1", "metadata": { "should_execute": true } } },
            { "action": "exec", "codecell_id": "nobody" },
        ], "transition": { "target_achieved": true } },
        "a#2": { "actions": [text("the end")], "transition": { "target_achieved": false } },
        "b#1": done(),
    });
    let judgements = json!({
        "a#1": { "target_achieved": false, "reason": "one is missing", "metadata": { "target_achieved": true } },
        "a#2": { "targetAchieved": true, "reason": "all is there" },
        "b#1": { "metadata": { "target_achieved": false } },
    });
    let host = host(behaviors, judgements);
    let result = run(&program("server: s"), &host, &no_models(), CrashMode::Never).await;
    assert_eq!(result.pause, SessionPause::Completed);
    let expected =
        ["behavior_001 1 false reflection", "behavior_002 2 true reflection", "behavior_003 1 true transition"];
    assert_eq!(result.behaviors(), expected);
    let log = host.log.lock().unwrap();
    let feedback = &log.behavior_requests[1]["behavior_feedback"];
    let counts = json!({ "behavior_id": "behavior_001", "actions_executed": 4, "actions_succeeded": 3, "actions_failed": 1,
        "sections_added": 1, "cells_added": 3, "code_cells_executed": 1 });
    for (name, count) in counts.as_object().unwrap() {
        assert_eq!(feedback[name], *count, "{name}");
    }
    assert!(feedback["execution_time_ms"].as_u64().unwrap() >= 7);
    assert!(!feedback["last_action_result"].as_str().unwrap().is_empty());
    assert_ne!(feedback["last_action_result"], "success");
    // The judgement request contains the feedback of the behavior that it judges.
    assert_eq!(log.judgement_requests[1]["behavior_feedback"]["last_action_result"], "success");
    assert_eq!(log.executed, ["x = 1"]);
    let outcome = result.outcome("loop_a");
    assert_eq!(
        (&outcome["exit_reason"], &outcome["metadata"]["target_achieved"]),
        (&json!("exit_criteria_met"), &json!(true))
    );
    assert_eq!(outcome["metadata"]["actions_executed"], 5);
    assert_eq!(result.state.location.completed_steps, ["a", "b"]);
}

#[tokio::test]
async fn a_loop_killed_at_every_commit_has_the_same_result_and_repeats_nothing() {
    let code = |content: &str| json!({ "action": "add", "shot_type": "action", "content": content, "metadata": { "should_execute": true } });
    let behaviors = json!({
        "a#1": { "actions": [text("one"), text("two"), text("three")],
                 "context_update": { "todo_list_update": { "operation": "add", "items": ["more"] } } },
        "a#2": { "actions": [text("four")], "context_update": { "variables": { "rows": 5, "kept": [1] } } },
        "b#1": { "actions": [code("y = 2"), text("five")], "transition": { "target_achieved": true } },
    });
    let judgements = json!({ "a#1": { "target_achieved": false }, "a#2": { "target_achieved": true }, "b#1": {"target_achieved": true} });
    let script = script("server: s").replace("action_id: loop_b,", "action_id: loop_b, on_interrupted: retry,");
    let program = test_session::checked(&script, Path::new(crate::ROOT));
    let uninterrupted =
        run(&program, &host(behaviors.clone(), judgements.clone()), &no_models(), CrashMode::Never).await;
    assert_eq!(uninterrupted.contents, ["one", "two", "three", "four", "y = 2", "five"]);
    let mut processes = 0;
    for seed in 0..12 {
        let host = host(behaviors.clone(), judgements.clone());
        let result = run(&program, &host, &no_models(), CrashMode::Sometimes(seed)).await;
        processes += result.processes;
        assert_eq!(result.pause, SessionPause::Completed);
        assert_eq!(result.contents, uninterrupted.contents, "seed {seed}");
        assert_eq!(result.behaviors(), uninterrupted.behaviors(), "seed {seed}");
        assert_eq!(result.state.todo_list, ["more"]);
        assert_eq!(result.state.variables["kept"], json!([1]));
        // Code is announced first, and runs again only because the script says `retry`.
        let announced = result.events("effect_started").len();
        assert!(host.log.lock().unwrap().executed.len() <= announced);
    }
    assert!(processes > 12, "nobody died");
    // Without code, a process may crash before and after every commit.
    for crash_mode in [CrashMode::Before, CrashMode::After] {
        let without_code = json!({ "a#1": behaviors["a#1"], "a#2": behaviors["a#2"], "b#1": done() });
        let result = run(&program, &host(without_code, judgements.clone()), &no_models(), crash_mode).await;
        assert_eq!(result.contents, ["one", "two", "three", "four"], "{crash_mode:?}");
        assert!(result.processes > 8);
    }
}

#[tokio::test]
async fn a_stream_is_executed_as_it_arrives_and_lost_actions_never_run() {
    let action = |content: &str| Ok(BehaviorPiece::Action(text(content)));
    let around = json!({ "behavior": { "id": "theirs", "iteration": 4, "target": "t" }, "transition": { "continue_behaviors": true },
        "context_update": { "todo_list_update": { "operation": "replace", "items": ["left"] } } });
    let streams = |broken: bool| {
        let mut first = vec![action("one"), action("two"), Ok(BehaviorPiece::Response(around.clone()))];
        if broken {
            first[2] = Err("server-timeout");
        }
        let mut host = TestHost {
            log: Arc::new(Mutex::new(Log::default())),
            behaviors: BTreeMap::new(),
            judgements: BTreeMap::new(),
            code_allowed: true,
        };
        host.behaviors.insert("a#1".into(), Answer::Stream(first));
        for key in ["a#2", "a#5", "b#1"] {
            host.behaviors.insert(key.into(), Answer::Whole(done()));
        }
        for (key, achieved) in [("a#4", false), ("a#2", true), ("a#5", true), ("b#1", true)] {
            host.judgements.insert(key.into(), Answer::Whole(json!({ "target_achieved": achieved })));
        }
        Arc::new(host)
    };
    let program = program("server: s");
    // A complete stream: the server's id and iteration are used, and the count continues from them.
    let host = streams(false);
    let result = run(&program, &host, &no_models(), CrashMode::Never).await;
    assert_eq!(result.contents, ["one", "two"]);
    assert_eq!(result.behaviors()[..2], ["theirs 4 false reflection", "behavior_002 5 true reflection"]);
    assert_eq!(result.state.todo_list, ["left"]);
    // An interrupted stream: the received actions count, the next request reports the interruption, and there is no judgement.
    let host = streams(true);
    let result = run(&program, &host, &no_models(), CrashMode::Never).await;
    assert_eq!(result.contents, ["one", "two"]);
    assert_eq!(result.behaviors()[0], "behavior_001 1 false interrupted");
    assert_eq!(result.codes(), ["behavior-cut-short"]);
    let feedback = host.log.lock().unwrap().behavior_requests[1]["behavior_feedback"].clone();
    assert_eq!((&feedback["actions_executed"], &feedback["last_action_result"]), (&json!(2), &json!("interrupted")));
    // The process crashes after the first commit of the stream: the remaining actions are lost, and none is repeated.
    let host = streams(false);
    let result = run(&program, &host, &no_models(), CrashMode::After).await;
    assert_eq!(result.pause, SessionPause::Completed);
    assert_eq!(result.contents, ["one"], "what arrived first stands in the frame, the rest was in memory");
    assert_eq!(result.behaviors()[0], "behavior_001 1 false interrupted");
}

#[tokio::test]
async fn an_endless_source_is_limited() {
    let many_actions: Vec<Value> = (0..30).map(|number| text(&format!("{number}"))).collect();
    let host = host(
        json!({ "*": { "actions": many_actions, "transition": { "continue_behaviors": true } } }),
        json!({ "*": { "target_achieved": false } }),
    );
    let result =
        run(&program("server: s, max_behaviors: 3, max_actions: 4"), &host, &no_models(), CrashMode::Never).await;
    assert_eq!(result.pause, SessionPause::Completed);
    assert_eq!(result.contents.len(), 3 * 4 * 2);
    let outcome = result.outcome("loop_a");
    assert_eq!(outcome["exit_reason"], "max_rounds_reached");
    assert_eq!(outcome["metadata"]["behaviors"], 3);
    assert!(result.behaviors()[2].ends_with("false bound"), "{:?}", result.behaviors());
    assert_eq!(result.codes().iter().filter(|code| **code == "too-many-actions").count(), 6);
}

#[tokio::test]
async fn an_unusable_response_is_retried_three_times_and_then_the_session_stops() {
    for (answer, code, request_count) in [
        (Answer::Whole(json!("I would rather not")), "behavior-unreadable", 4),
        (Answer::Whole(json!({ "actions": 12 })), "behavior-unreadable", 4),
        (Answer::Nothing("server-rubbish"), "behavior-unreadable", 4),
        (Answer::Stream(vec![Err("server-flood")]), "behavior-unreadable", 4),
        (Answer::Nothing("server-unreachable"), "server-unreachable", 1),
        (Answer::Stream(vec![Err("server-timeout")]), "server-timeout", 1),
    ] {
        let mut host = TestHost {
            log: Shared::default(),
            behaviors: BTreeMap::new(),
            judgements: BTreeMap::new(),
            code_allowed: true,
        };
        host.behaviors.insert("*".into(), answer.clone());
        let host = Arc::new(host);
        let result = run(&program("server: s"), &host, &no_models(), CrashMode::Never).await;
        assert_eq!(result.pause, SessionPause::Stopped, "{answer:?}");
        assert_eq!(host.log.lock().unwrap().behavior_requests.len(), request_count, "{answer:?}");
        assert_eq!(result.events("error")[0]["code"], code, "{answer:?}");
        assert_eq!(result.codes().len(), request_count - 1);
        assert!(result.contents.is_empty());
    }
    // The same for judgements; executed actions are not repeated.
    let mut test_host = Arc::into_inner(host(json!({}), json!({}))).unwrap();
    test_host.behaviors.insert("*".into(), Answer::Whole(json!({ "actions": [text("one")] })));
    test_host.judgements.insert("*".into(), Answer::Whole(json!([1])));
    let result = run(&program("server: s"), &Arc::new(test_host), &no_models(), CrashMode::Never).await;
    assert_eq!((result.pause, result.contents.len()), (SessionPause::Stopped, 1));
    let result = run(&program("server: elsewhere"), &host(json!({}), json!({})), &no_models(), CrashMode::Never).await;
    assert_eq!((result.pause, &result.events("error")[0]["code"]), (SessionPause::Stopped, &json!("server-unknown")));
}

#[tokio::test]
async fn a_source_moves_the_session_only_to_existing_steps() {
    let move_to = |stage: Value, step: Value| json!({ "actions": [], "transition": { "next_stage_id": stage, "next_step_id": step } });
    // An unknown step: the session does not move.
    let behaviors = json!({ "a#1": move_to(json!("nowhere"), json!("never")), "a#2": done(), "b#1": done() });
    let result =
        run(&program("server: s, reflection: 'off'"), &host(behaviors, json!({})), &no_models(), CrashMode::Never)
            .await;
    assert_eq!((result.pause, result.topics()), (SessionPause::Completed, vec!["a", "b", "c"]));
    assert_eq!(result.codes(), ["unknown-step"]);
    // A topic of the script: the session moves there and skips the topics in between.
    let result = run(
        &program("server: s, reflection: 'off'"),
        &host(json!({ "a#1": move_to(Value::Null, json!("c")) }), json!({})),
        &no_models(),
        CrashMode::Never,
    )
    .await;
    assert_eq!((result.pause, result.topics()), (SessionPause::Completed, vec!["a", "c"]));
    // A step that was planned later: the loop continues with it, starting at iteration 1, and then with the script.
    let plan = json!({ "name": "p", "stages": [{ "id": "p", "steps": [{ "id": "a" }, { "id": "extra", "name": "Extra", "goal": "more" }, { "id": "b" }, { "id": "c" }] }] });
    let behaviors = json!({
        "a#1": { "actions": [], "transition": { "target_achieved": true, "workflow_update": plan } },
        "extra#1": { "actions": [text("extra")] }, "extra#2": done(), "b#1": done(),
    });
    let host = host(behaviors, json!({}));
    let result = run(&program("server: s, reflection: 'off'"), &host, &no_models(), CrashMode::After).await;
    assert_eq!((result.pause, result.topics()), (SessionPause::Completed, vec!["a", "b", "c"]));
    let expected = [
        "behavior_001 1 true transition",
        "behavior_002 1 false nobody",
        "behavior_003 2 true transition",
        "behavior_004 1 true transition",
    ];
    assert_eq!(result.behaviors(), expected);
    assert_eq!(result.contents, ["extra"]);
}

#[tokio::test]
async fn two_topics_that_route_to_each_other_are_limited() {
    let move_to = |step: &str| json!({ "actions": [], "transition": { "next_step_id": step } });
    let behaviors = json!({ "a#1": move_to("b"), "b#1": move_to("a"), "*": done() });
    let result =
        run(&program("server: s, reflection: 'off'"), &host(behaviors, json!({})), &no_models(), CrashMode::Never)
            .await;
    assert_eq!(result.pause, SessionPause::Completed);
    assert!(result.codes().contains(&"too-many-moves"));
    assert_eq!(result.topics().iter().filter(|topic| **topic == "b").count(), 26);
}

#[tokio::test]
async fn code_of_a_server_that_is_not_allowed_stops_the_session_and_nothing_is_started() {
    let code =
        json!({ "action": "add", "content_type": "code", "content": "x", "metadata": { "should_execute": true } });
    for action in [code, json!({ "action": "exec", "codecell_id": "cell-1" })] {
        let behaviors = json!({ "*": { "actions": [action], "transition": { "target_achieved": true } } });
        let mut denied = Arc::into_inner(host(behaviors, json!({}))).unwrap();
        denied.code_allowed = false;
        let host = Arc::new(denied);
        let result = run(&program("server: s"), &host, &no_models(), CrashMode::Never).await;
        assert_eq!(
            (result.pause, &result.events("error")[0]["code"]),
            (SessionPause::Stopped, &"exec-not-allowed".into())
        );
        assert!(host.log.lock().unwrap().executed.is_empty() && result.events("effect_started").is_empty());
    }
}

#[tokio::test]
async fn unknown_actions_are_skipped() {
    let behaviors = json!({ "*": { "actions": [
        { "action": "dance" }, 7, { "action": "exec" }, text("after"),
    ], "transition": { "target_achieved": true } } });
    let host = host(behaviors, json!({ "*": { "target_achieved": true } }));
    let result = run(&program("server: s"), &host, &no_models(), CrashMode::Never).await;
    assert_eq!(result.pause, SessionPause::Completed);
    assert_eq!(result.codes(), ["unknown-action", "unknown-action"]);
    let counts = &host.log.lock().unwrap().judgement_requests[0]["behavior_feedback"];
    let reported =
        ["actions_executed", "actions_succeeded", "actions_failed"].map(|name| counts[name].as_u64().unwrap());
    // The response parser drops items that are not objects.
    assert_eq!(reported, [2, 1, 1], "{counts}");
}

#[tokio::test]
async fn declared_variables_keep_their_type_and_sensitive_ones_are_never_sent() {
    let behaviors = json!({
        "a#1": { "actions": [text("call 13800001111")],
                 "context_update": { "variables": { "rows": "many", "note": { "deep": [1] }, "index": { "13800001111": 1 } } } },
        "a#2": { "actions": [], "context_update": { "variables": { "phone": "13900002222" } }, "transition": { "target_achieved": true } },
        "b#1": done(),
    });
    let judgements = json!({ "a#1": { "target_achieved": false, "context_update": { "variables": { "rows": 7 } } }, "*": { "target_achieved": true } });
    let host = host(behaviors, judgements);
    let result = run(&program("server: s"), &host, &no_models(), CrashMode::Never).await;
    assert_eq!(result.codes(), ["variable-misfit"]);
    let requests = &host.log.lock().unwrap().behavior_requests;
    let variables = &requests[1]["observation"]["context"]["variables"];
    assert_eq!(
        (&variables["rows"], &variables["file"], &variables["note"]),
        (&json!(7), &json!("housing.csv"), &json!({ "deep": [1] }))
    );
    assert_eq!(variables.get("phone"), None);
    assert_eq!(variables["index"], json!({ "***": 1 }));
    assert!(!requests[1].to_string().contains("13800001111"), "{}", requests[1]);
    assert!(requests[1].to_string().contains("call "));
    for line in requests.iter().chain(result.events("variable_set")).map(Value::to_string) {
        assert!(!line.contains("13900002222"), "{line}");
    }
}

#[tokio::test]
async fn a_model_is_a_source_and_is_asked_for_its_judgement() {
    let one = r##"{"behavior": {"target": "begin"}, "actions": [{"action": "new_section", "content": "Data"}], "context_update": {"todo_list_update": {"operation": "remove", "items": ["Data"]}}, "transition": {"target_achieved": true}}"##;
    let models = model_with_replies(&[
        ("behavior 1", one),
        ("reflection 1", r#"{"target_achieved": false, "reason": "not yet"}"#),
        // A list of actions without an object around it is a behavior, too.
        (
            "behavior 2",
            "```json\n[{\"action\": \"add\", \"content\": \"the rest\"},\n {\"type\": \"add\", \"content\": \"and more\"}]\n```",
        ),
        ("reflection 2", r#"{"target_achieved": true, "reason": "now"}"#),
    ]);
    let script = script("target: 'a report on {{ file }}', todo_list: [Data, 'of {{ file }}']")
        .replace("action_id: loop_b,", "action_id: loop_b, condition: 'false',");
    let program = test_session::checked(&script, Path::new(crate::ROOT));
    for crash_mode in [CrashMode::Never, CrashMode::Before, CrashMode::After] {
        let result = run(&program, &host(json!({}), json!({})), &models, crash_mode).await;
        assert_eq!(result.pause, SessionPause::Completed);
        assert_eq!(result.contents, ["### Data", "the rest", "and more"]);
        assert_eq!(result.behaviors(), ["behavior_001 1 false reflection", "behavior_002 2 true reflection"]);
        assert_eq!(result.state.todo_list, ["of housing.csv"]);
        assert_eq!(result.events("behavior")[0]["why"], "not yet");
    }
}

#[tokio::test]
async fn prose_from_a_model_is_asked_for_again_and_never_breaks_a_session() {
    let models = model_with_replies(&[("*", "I am sorry, I cannot do that.")]);
    let result = run(&program("target: x"), &host(json!({}), json!({})), &models, CrashMode::Never).await;
    assert_eq!(result.pause, SessionPause::Stopped);
    assert_eq!(result.codes().iter().filter(|code| **code == "behavior-unreadable").count(), 3);
    assert_eq!(result.events("model_call").len(), 4);
}
