//! The rounds of an `ai_act` and the tools that are called in them (docs/actions/ai_act.md).

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::process::Home;
use crate::session_output::journal;
use crate::tool_server::{calls, project};

const RUN: [&str; 6] = ["run", "s.yaml", "--json", "--session", "s", "--trust"];
const RESUME: [&str; 5] = ["sessions", "resume", "s", "--json", "--trust"];

/// A project with one `ai_act`, whose model gives these replies.
fn act_project(rules: &Value, config: &Value, replies: &Value) -> Home {
    let mut config = config.clone();
    config["content"] = json!("x");
    let act = json!({ "action_type": "ai_act", "action_id": "act", "config": config });
    with_action(rules, &act, replies)
}

fn with_action(rules: &Value, action: &Value, replies: &Value) -> Home {
    let home = project(rules, &json!([]));
    let script = json!({ "session": { "session_id": "s", "template_scheme": "english", "tools": rules,
        "declare": [{ "var": "card", "type": "string", "sensitive": true }],
        "phases": [{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": [action] }] }] } });
    home.file("s.yaml", &script.to_string());
    home.file("replies.json", &json!({ "replies": { "act": replies } }).to_string());
    home
}

fn call(tool: &str, parameters: &Value) -> Value {
    json!({ "kind": "tool_operation", "name": format!("mcp.s.{tool}"), "parameters": parameters })
}

fn reply(message: &str, actions: &[Value]) -> Value {
    json!({ "llm_reply": { "message": message }, "actions": actions })
}

fn outcomes(home: &Home) -> Vec<Value> {
    journal(home, "s").into_iter().filter(|event| event["type"] == "outcome").collect()
}

/// The entries of the operations in the last outcome, as `status error`.
fn entries(home: &Home) -> Vec<String> {
    let entries = outcomes(home).pop().unwrap()["metadata"]["actions"].clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entries = entries.as_array().unwrap().iter();
    entries.map(|entry| format!("{} {}", text(&entry["status"]), text(&entry["error"]))).collect()
}

fn said(home: &Home) -> Vec<String> {
    let events = journal(home, "s");
    let said = events.iter().filter(|event| event["type"] == "message" && event["role"] == "ai");
    said.map(|event| event["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn after_an_unusable_reply_the_person_hears_that_something_may_be_done_and_the_next_round_begins_anew() {
    let replies = json!([reply("r1", &[call("write", &json!({ "n": 1 }))]), "no JSON", reply("r2", &[]), "no JSON"]);
    let home = act_project(&json!(["mcp.s.*"]), &json!({ "max_rounds": 4, "opening": "listen", "reask": 0 }), &replies);
    let finished = home.finish(RUN, "one\ntwo\nthree\n");
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let said = said(&home);
    assert_eq!((said[0].as_str(), said[2].as_str()), ("r1", "r2"), "{said:?}");
    assert_eq!(
        said[1],
        "Sorry, I could not finish that. Some of it may already be done; please check, and tell me how to go on."
    );
    assert!(said[3].contains("nothing was changed") || said[3].contains("was not done"), "{said:?}");
    // The call belongs to the first round only.
    let counts: Vec<usize> = outcomes(&home)
        .iter()
        .map(|outcome| outcome["metadata"]["tool_results"].as_array().map_or(0, Vec::len))
        .collect();
    assert_eq!(counts, [0, 1, 0, 0], "{:?}", outcomes(&home));
}

#[test]
fn after_operations_no_fallback_of_the_author_says_that_nothing_was_done() {
    let write = |n: u32| reply(if n == 1 { "r1" } else { "" }, &[call("write", &json!({ "n": n }))]);
    let replies = json!([write(1), "no JSON", write(2), "no JSON"]);
    let config =
        json!({ "max_rounds": 4, "opening": "listen", "reask": 0, "fallback": ["Nothing was changed.", "No change."] });
    let home = act_project(&json!(["mcp.s.*"]), &config, &replies);
    // The only text of its kind is said again rather than another one.
    let template = include_str!("../../_system/config/custom/english/structured_actions_v1.md");
    let start = template.find("  - I am sorry, something went wrong partway").unwrap();
    let end = start + template[start..].find('\n').unwrap() + 1;
    let one_text = [&template[..start], &template[end..]].concat();
    home.put("_system/config/custom/english/structured_actions_v1.md", &one_text);
    let finished = home.finish(RUN, "one\ntwo\n");
    assert_eq!((finished.code, calls(&home).len()), (Some(3), 2), "{finished:?}");
    let said = said(&home);
    let partial =
        "Sorry, I could not finish that. Some of it may already be done; please check, and tell me how to go on.";
    assert_eq!(said, ["r1", partial, partial], "{said:?}");
}

#[test]
fn a_call_that_was_made_in_the_round_is_not_made_again_however_it_ended() {
    let twice = |tool: &str, parameters: Value| {
        json!([reply("a", &[call(tool, &parameters)]), reply("b", &[call(tool, &parameters)]), reply("c", &[])])
    };
    let secret = json!({ "card": "4111222233334444" });
    for (tool, parameters, first, why) in [
        ("write", json!({ "n": 1 }), "success ", "use its result"),
        ("write", secret.clone(), "success ", "use its result"),
        ("fail", json!({ "n": 1 }), "failed ", "the call ended with `failed`; it is not made again"),
    ] {
        let home = act_project(&json!(["mcp.s.*"]), &json!({}), &twice(tool, parameters.clone()));
        let finished = home.finish([&RUN[..], &["--var", "card=4111222233334444"]].concat(), "");
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let entries = entries(&home);
        assert!(entries[0].starts_with(first) && entries[1].starts_with("refused "), "{entries:?}");
        assert!(entries[1].contains(why), "{entries:?}");
        assert_eq!(calls(&home).len(), 1, "{tool} {parameters}");
    }
    // One that a rule refused was not made.
    let rules = json!([{ "name": "mcp.s.write", "requires": "arguments.n == 2" }]);
    let home = act_project(&rules, &json!({}), &twice("write", json!({ "n": 1 })));
    home.finish(RUN, "");
    let entries = entries(&home);
    assert!(entries.iter().all(|entry| entry.contains("arguments.n == 2")), "{entries:?}");
}

#[test]
fn nobody_is_asked_again_about_a_call_that_was_rejected_or_edited() {
    let rules = json!([{ "name": "mcp.s.write", "approve": "always" }]);
    let write = |n: u32| call("write", &json!({ "n": n }));
    let replies = json!([reply("a", &[write(1)]), reply("b", &[write(1), write(2)]), reply("c", &[])]);
    let home = act_project(&rules, &json!({}), &replies);
    assert_eq!(home.finish(RUN, "").code, Some(3));
    let edit = ["requests", "answer", "s", "edit", "--set", "arguments={\"n\": 2}", "--by", "ann"];
    assert_eq!(home.finish(edit, "").code, Some(0));
    let resumed = home.finish(RESUME, "");
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let statuses: Vec<String> =
        entries(&home).iter().map(|entry| entry.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(
        (statuses, calls(&home)),
        (vec!["success".into(), "refused".into(), "refused".into()], vec!["write {\"n\":2}".to_owned()])
    );

    let replies = json!([reply("a", &[write(1)]), reply("b", &[write(1)]), reply("c", &[])]);
    let home = act_project(&rules, &json!({}), &replies);
    assert_eq!(home.finish(RUN, "").code, Some(3));
    assert_eq!(home.finish(["reject", "s", "--by", "ann"], "").code, Some(0));
    let resumed = home.finish(RESUME, "");
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(entries(&home)[1].contains("the call ended with `rejected`"), "{:?}", entries(&home));
}

#[test]
fn a_call_that_was_interrupted_and_skipped_is_not_made_again_in_the_round() {
    let write = call("slow_write", &json!({ "n": 1 }));
    let write = [write];
    let replies = json!([reply("a", &write), reply("b", &write), reply("c", &[])]);
    let home = act_project(&json!(["mcp.s.*"]), &json!({}), &replies);
    let mut running = home.start(RUN);
    running.event_of("tool_progress");
    running.kill();
    home.file("go", "");
    let resumed = home.finish(RESUME, "skip\n");
    assert_eq!((resumed.code, calls(&home).len()), (Some(0), 1), "{resumed:?}");
    assert!(entries(&home)[1].contains("the call ended with `interrupted`"), "{:?}", entries(&home));
}

#[test]
fn a_call_whose_server_ended_is_not_repeated_by_any_retry() {
    let mut crash = call("crash", &json!({ "by": "model" }));
    crash["retry_policy"] = json!({ "max_retries": 2 });
    let replies = json!([reply("a", &[crash]), reply("b", &[])]);
    let by_model = act_project(&json!(["mcp.s.*"]), &json!({}), &replies);
    let config = json!({ "name": "mcp.s.crash", "arguments": { "by": "author" } });
    let action = json!({ "action_type": "tool", "action_id": "w", "retry": { "times": 2 },
        "on_exit": { "failed": "next" }, "config": config });
    let by_author = with_action(&json!(["mcp.s.*"]), &action, &json!([]));
    for home in [by_model, by_author] {
        let finished = home.finish(RUN, "");
        assert_eq!((finished.code, calls(&home).len()), (Some(0), 1), "{finished:?}");
        let called: Vec<Value> =
            journal(&home, "s").into_iter().filter(|event| event["type"] == "tool_called").collect();
        assert_eq!((called.len(), &called[0]["status"]), (1, &json!("failed")), "{called:?}");
        assert!(called[0]["error"].as_str().unwrap().contains("what it did is not known"), "{called:?}");
    }
}

#[test]
fn what_an_attempt_gave_is_stored_before_the_pause_of_its_retry_policy() {
    let mut fail = call("fail", &json!({ "n": 1 }));
    fail["retry_policy"] = json!({ "max_retries": 1, "backoff_sec": 60 });
    let home = act_project(&json!(["mcp.s.*"]), &json!({}), &json!([reply("a", &[fail])]));
    let mut running = home.start(RUN);
    let start = Instant::now();
    let called = running.event_of("tool_called");
    running.kill();
    assert!(called["status"] == "failed" && start.elapsed() < Duration::from_secs(50), "{called}");
    assert_eq!(journal(&home, "s").iter().filter(|event| event["type"] == "effect_finished").count(), 1);
}

#[test]
fn calls_that_hold_up_nothing_are_listed_in_their_order() {
    let read = |n: u32| {
        let mut read = call("read", &json!({ "n": n }));
        read["blocking"] = json!(false);
        read
    };
    let reads: Vec<Value> = (0..6).map(read).collect();
    let home = act_project(&json!(["mcp.s.*"]), &json!({}), &json!([reply("a", &reads), reply("b", &[])]));
    let finished = home.finish(RUN, "");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let metadata = outcomes(&home).pop().unwrap()["metadata"].clone();
    let numbers = |list: &Value, path: &str| -> Vec<u64> {
        list.as_array().unwrap().iter().filter_map(|entry| entry.pointer(path)?.as_u64()).collect()
    };
    assert_eq!(numbers(&metadata["tool_results"], "/arguments/n"), [0, 1, 2, 3, 4, 5]);
    assert_eq!(numbers(&metadata["actions"], "/order"), [1, 2, 3, 4, 5, 6]);
}
