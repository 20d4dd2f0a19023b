//! Tests of custom kinds in behavior loops: a model requests them, and its input is checked like any other.

use serde_json::{Value, json};

use crate::custom_kinds::{ALLOWED, RUN, project_with, text};
use crate::process::{Finished, Home};

const KINDS: &str = "[kinds.greet]\nskill = \"greeting\"\nafter = { command = [\"/bin/sh\", \"-c\", \"echo after >> log\"] }\n\
                     [kinds.break]\nskill = \"failing\"\n\
                     [kinds.note]\ncommand = [\"/bin/sh\", \"-c\", \"cat >> log; echo >> log\"]\n\
                     [kinds.refuse]\ncommand = [\"/bin/sh\", \"-c\", \"exit 3\"]\n";

const LOOP: &str = "- action_type: behavior_loop\n  action_id: work\n  config: { target: Greet, reflection: 'off', max_behaviors: 1 }\n  \
                    on_exit: { max_rounds_reached: next }\n";

/// A project with a loop in which the model sends these actions.
fn project_with_reply(configuration: &str, actions: &Value) -> Home {
    let home = project_with(&format!("{configuration}{KINDS}"), LOOP);
    home.file("replies.yaml", &json!({ "replies": { "work": [{ "actions": actions }] } }).to_string());
    home
}

fn run(home: &Home) -> Finished {
    home.finish([&RUN[..], &["--model", "replay:replies.yaml"]].concat(), "")
}

fn events_of(finished: &Finished, kind: &str) -> Vec<Value> {
    finished.events().into_iter().filter(|event| event["type"] == kind).collect()
}

/// The notebook actions and custom kinds that ran, each with its error.
fn action_results(finished: &Finished) -> Vec<String> {
    let actions = events_of(finished, "notebook_action").into_iter();
    let describe =
        |event: Value| format!("{}: {}", event["action"].as_str().unwrap(), event["error"].as_str().unwrap_or("ok"));
    actions.map(describe).collect()
}

#[test]
fn a_model_may_use_custom_kinds_and_their_errors_are_counted() {
    let home = project_with_reply(
        ALLOWED,
        &json!([
            { "action": "greet", "name": "Ann" },
            { "action": { "type": "greet", "name": "Ben", "louder": true, "path": "/etc" } },
            { "action": "greet", "loud": true },
            { "action": "greet", "name": ["no", "text"] },
            { "action": "break" },
            { "action": "note", "text": "$(touch evil)", "deep": [1, { "a": null }] },
            { "action": "refuse" },
            { "action": "dance", "name": "Ann" },
            { "action": "add", "content": "the end" },
        ]),
    );
    let finished = run(&home);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let expected = [
        "greet: ok",
        "greet: ok",
        "greet: the skill `greeting` requires the input `name`, which is missing",
        "greet: the skill `greeting` cannot accept this value: `name` is declared as string and cannot hold the given value",
        "break: the skill `failing` ended with an error",
        "note: ok",
        "refuse: the command of `refuse` ended with exit code 3",
        "add: ok",
    ];
    let results = action_results(&finished);
    for (at, expected) in expected.iter().enumerate() {
        assert!(results[at].starts_with(expected), "{results:#?}");
    }
    assert_eq!(results.len(), expected.len(), "{results:#?}");
    let codes: Vec<Value> = events_of(&finished, "warning").into_iter().map(|event| event["code"].clone()).collect();
    assert_eq!(codes.iter().filter(|code| *code == "unknown-input").count(), 1, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| *code == "unknown-action").count(), 1, "{codes:?}");
    let counts = &events_of(&finished, "behavior")[0]["feedback"];
    let counts = ["actions_executed", "actions_succeeded", "actions_failed"].map(|name| counts[name].clone());
    assert_eq!(counts, [json!(8), json!(4), json!(4)]);
    // An `after` hook runs whatever the result is, and the input is data, not code.
    let log = text(&home, "log");
    assert_eq!(log.matches("after").count(), 4, "{log}");
    assert!(
        log.contains("{\"text\":\"$(touch evil)\",\"deep\":[1,{\"a\":null}]}") && !home.path().join("evil").exists(),
        "{log}"
    );
    let effects = ["effect_started", "effect_finished"].map(|kind| events_of(&finished, kind).len());
    assert_eq!(effects, [6, 6]);
}

#[test]
fn a_command_requested_by_a_model_needs_permission() {
    let home =
        project_with_reply("", &json!([{ "action": "note", "text": "x" }, { "action": "add", "content": "the end" }]));
    let finished = run(&home);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(action_results(&finished), ["note: the project does not allow `command`", "add: ok"]);
    assert_eq!(text(&home, "log"), "");
    assert!(events_of(&finished, "effect_started").is_empty());
}

#[test]
fn a_model_is_shown_the_kinds_with_their_inputs_and_what_they_gave_back() {
    let kinds = KINDS.replace("[kinds.greet]\n", "[kinds.greet]\ndescription = \"Greets a person.\"\n");
    let loop_of_two = LOOP.replace("max_behaviors: 1", "max_behaviors: 2");
    let home = project_with(&format!("{ALLOWED}{kinds}"), &loop_of_two);
    home.file(
        "skills/greeting.yaml",
        "skill:\n  skill_id: greeting\n  inputs:\n    - { var: name, type: string, define: how the person is called }\n    - { var: loud, type: boolean, value: false }\n  outputs: [line]\n  actions:\n    - { action_type: set, action_id: make, config: { values: { line: 'Hello {{ name }}' } } }\n",
    );
    let actions = json!([{ "action": "greet", "name": "Ann" }, { "action": "refuse" }]);
    home.file(
        "replies.yaml",
        &json!({ "replies": { "work": [{ "actions": actions }, { "actions": [] }] } }).to_string(),
    );
    let finished = home.finish([&RUN[..], &["--model", "replay:replies.yaml", "--record", "calls.jsonl"]].concat(), "");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let recorded = text(&home, "calls.jsonl");
    let prompts: Vec<&str> = recorded.lines().filter(|line| line.contains("messages")).collect();
    assert_eq!(prompts.len(), 2, "{recorded}");
    for shown in ["Greets a person.", "how the person is called", "loud", "greet_result"] {
        assert!(prompts[0].contains(shown), "{shown}: {}", prompts[0]);
    }
    for shown in ["Ran greet: ", "Hello Ann", "the command of `refuse` ended with exit code 3"] {
        assert!(!prompts[0].contains(shown) && prompts[1].contains(shown), "{shown}: {}", prompts[1]);
    }
    let effects: Vec<Value> =
        events_of(&finished, "notebook_action").into_iter().map(|event| event["effects"].clone()).collect();
    assert_eq!(effects[0], json!([r#"Ran greet: {"line":"Hello Ann"}"#]));
}

#[test]
fn each_call_of_a_skill_by_a_loop_is_undone() {
    let home = project_with_reply(
        ALLOWED,
        &json!([{ "action": "greet", "name": "Ann" }, { "action": "greet", "name": "Ben" }, { "action": "greet", "name": "Cleo" }]),
    );
    home.file("s.yaml", &text(&home, "s.yaml").replace("max_rounds_reached: next", "max_rounds_reached: fail"));
    home.file(
        "skills/greeting.yaml",
        "skill:\n  skill_id: greeting\n  inputs: [{ var: name, type: string }]\n  actions:\n    - action_type: set\n      action_id: make\n      compensate:\n        - { action_type: ai_say, action_id: undo, config: { content: 'undo {{ name }}', delivery: verbatim } }\n      config: { values: { line: Hello } }\n",
    );
    let finished = run(&home);
    let said: Vec<Value> = events_of(&finished, "message").into_iter().map(|event| event["text"].clone()).collect();
    assert_eq!(said, ["undo Cleo", "undo Ben", "undo Ann"], "{finished:?}");
}
