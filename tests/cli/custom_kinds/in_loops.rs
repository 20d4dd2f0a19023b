//! Kinds of the project inside a loop of behaviors: a model names them, and what it sends is checked as anybody's.

use serde_json::{Value, json};

use crate::custom_kinds::{ALLOWED, RUN, shop, text};
use crate::process::{Finished, Home};

const KINDS: &str = "[kinds.greet]\nskill = \"greeting\"\nafter = { command = [\"/bin/sh\", \"-c\", \"echo after >> log\"] }\n\
                     [kinds.break]\nskill = \"failing\"\n\
                     [kinds.note]\ncommand = [\"/bin/sh\", \"-c\", \"cat >> log; echo >> log\"]\n\
                     [kinds.refuse]\ncommand = [\"/bin/sh\", \"-c\", \"exit 3\"]\n";

const LOOP: &str = "- action_type: behavior_loop\n  action_id: work\n  config: { target: Greet, reflection: 'off', max_behaviors: 1 }\n  \
                    on_exit: { max_rounds_reached: next }\n";

/// A loop in which a model sends these actions.
fn sent(configuration: &str, actions: &Value) -> Home {
    let home = shop(&format!("{configuration}{KINDS}"), LOOP);
    home.file("replies.yaml", &json!({ "replies": { "work": [{ "actions": actions }] } }).to_string());
    home
}

fn run(home: &Home) -> Finished {
    home.finish([&RUN[..], &["--model", "replay:replies.yaml"]].concat(), "")
}

fn of(finished: &Finished, kind: &str) -> Vec<Value> {
    finished.events().into_iter().filter(|event| event["type"] == kind).collect()
}

/// The actions on the notebook and of the project, with what is wrong with each.
fn told(finished: &Finished) -> Vec<String> {
    let actions = of(finished, "notebook_action").into_iter();
    let told =
        |event: Value| format!("{}: {}", event["action"].as_str().unwrap(), event["error"].as_str().unwrap_or("ok"));
    actions.map(told).collect()
}

#[test]
fn a_model_may_ask_for_kinds_of_the_project_and_what_is_wrong_with_one_is_counted() {
    let home = sent(
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
    let told = told(&finished);
    for (at, expected) in expected.iter().enumerate() {
        assert!(told[at].starts_with(expected), "{told:#?}");
    }
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    let codes: Vec<Value> = of(&finished, "warning").into_iter().map(|event| event["code"].clone()).collect();
    assert_eq!(codes.iter().filter(|code| *code == "unknown-input").count(), 1, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| *code == "unknown-action").count(), 1, "{codes:?}");
    let counts = &of(&finished, "behavior")[0]["feedback"];
    let counts = ["actions_executed", "actions_succeeded", "actions_failed"].map(|name| counts[name].clone());
    assert_eq!(counts, [json!(8), json!(4), json!(4)]);
    // What comes after is done whatever became of it, and what was sent is data.
    let log = text(&home, "log");
    assert_eq!(log.matches("after").count(), 4, "{log}");
    assert!(
        log.contains("{\"text\":\"$(touch evil)\",\"deep\":[1,{\"a\":null}]}") && !home.path().join("evil").exists(),
        "{log}"
    );
    let effects = ["effect_started", "effect_finished"].map(|kind| of(&finished, kind).len());
    assert_eq!(effects, [6, 6]);
}

#[test]
fn a_command_that_a_model_asks_for_needs_the_permission_of_the_project() {
    let home = sent("", &json!([{ "action": "note", "text": "x" }, { "action": "add", "content": "the end" }]));
    let finished = run(&home);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(told(&finished), ["note: the project does not allow `command`", "add: ok"]);
    assert_eq!(text(&home, "log"), "");
    assert!(of(&finished, "effect_started").is_empty());
}
