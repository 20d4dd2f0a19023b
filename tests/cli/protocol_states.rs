//! Tests of `run` with a state of the behavior protocol: where the session goes on, what is refused and told, and that an exported state
//! begins a session with the same state.

use std::path::Path;

use serde_json::{Value, json};

use crate::behavior_process::Process;
use crate::process::{Finished, Home};

/// A state in the middle of a plan, in today's form.
fn state() -> Value {
    json!({"observation": {
        "location": {
            "current_stage_id": "read", "current_step_id": "clean", "behavior_id": "behavior_003", "behavior_iteration": 2,
            "progress": {
                "stages": {"completed": [], "current": "read", "remaining": ["tell"]},
                "steps": {"completed": ["load"], "current": "clean", "remaining": []},
                "behaviors": {"completed": [], "current": "behavior_003", "iteration": 2},
            },
            "goals": {"stage": "Read the gauges", "step": "No gaps", "behavior": null},
        },
        "context": {
            "variables": {"path": "rivers.csv", "rows": 3, "names": ["Elbe", "易北河 😀"]},
            "todo_list": ["gaps", "units"],
            "effects": {"current": ["Output: 3"], "history": ["Added content: Rivers"]},
            "section_progress": {"current_section_id": "s1", "current_section_number": 1, "completed_sections": [], "total_expected": 4},
            "notebook": {"title": "Rivers", "cells": [
                {"id": "cell-1", "type": "markdown", "content": "# Rivers"},
                {"id": "heading", "type": "markdown", "content": "### Load", "metadata": {"is_section": true, "section_id": "s1", "section_number": 1}},
                {"id": "count", "type": "code", "content": "print(3)", "execution_count": 7, "outputs": [
                    {"output_type": "stream", "name": "stdout", "text": "3\n"},
                    {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo=", "text/plain": "<Figure>"}, "metadata": {}},
                ]},
            ]},
            "FSM": {"state": "BEHAVIOR_RUNNING", "last_transition": "START_BEHAVIOR", "timestamp": "2026-11-28T10:00:00Z"},
            "workflow": {"name": "Rivers", "stages": [
                {"id": "read", "name": "Read", "goal": "Read the gauges", "steps": [
                    {"id": "load", "name": "Load", "unit": "m"}, {"id": "clean", "name": "Clean", "goal": "No gaps"}]},
                {"id": "tell", "name": "Tell", "steps": [{"id": "write", "name": "Write"}]},
            ]},
        },
    }})
}

/// The same state in the older form.
fn older_state() -> Value {
    let mut state = state();
    let context = state["observation"].as_object_mut().unwrap().shift_remove("context").unwrap();
    let stage = json!({"stage_id": "read", "title": "Read", "goal": "Read the gauges"});
    let location = json!({
        "current": {"stage_id": "read", "step_id": "clean", "behavior_id": "behavior_003", "behavior_iteration": 2},
        "progress": {
            "stages": {"completed": [], "current": stage, "remaining": [{"stage_id": "tell", "title": "Tell"}], "focus": "",
                "current_outputs": {"expected": [], "produced": [], "in_progress": []}},
            "steps": {"completed": [{"step_id": "load", "title": "Load", "unit": "m"}],
                "current": {"step_id": "clean", "title": "Clean", "goal": "No gaps"}, "remaining": [], "focus": ""},
            "behaviors": {"completed": [], "current": null, "iteration": 2, "focus": ""},
        },
        "goals": "",
    });
    let mut older = json!({"observation": {"location": location}, "state": context});
    let context = older["state"].as_object_mut().unwrap();
    let list = context.shift_remove("todo_list").unwrap();
    context.insert("toDoList".to_owned(), list);
    context.shift_remove("workflow");
    let cells = context["notebook"]["cells"].as_array_mut().unwrap();
    cells[2]["outputs"][0] = json!({"type": "text", "content": "3\n"});
    older
}

fn write(home: &Home, name: &str, state: &Value) -> String {
    home.file(name, &serde_json::to_string_pretty(state).unwrap()).display().to_string()
}

fn configure(home: &Home, names: &[&str], url: &str, more: &str) {
    let table = |name: &&str| format!("[behavior_servers.{name}]\nurl = \"{url}\"\n{more}\n");
    home.file("bcc-script.toml", &names.iter().map(table).collect::<String>());
}

/// A server that is there and answers no question: a session stops at its first one.
fn configure_unhelpful(home: &Home) -> Process {
    let server = Process::start(&["--fault", "status:400", "--on", "both"]);
    configure(home, &["planner"], &server.url, "timeout = \"2s\"");
    server
}

fn run(home: &Home, file: &str, session: &str) -> Finished {
    home.finish(["run", file, "--session", session, "--json", "--trust"], "")
}

fn exported(home: &Home, session: &str) -> String {
    let finished = home.finish(["sessions", "export", session, "--format", "protocol"], "");
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    finished.out
}

/// The requests that a server got.
fn requests(log: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(log).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_session_goes_on_at_the_position_of_its_state() {
    let home = Home::new();
    let log = home.path().join("requests.log");
    let plan = home.file(
        "plan.json",
        &json!({
            "actions": [{"actions": [{"action": "add", "content": "done"}]}],
            "reflections": [{"target_achieved": true}],
        })
        .to_string(),
    );
    let server = Process::start(&["--log", log.to_str().unwrap(), "--plan", plan.to_str().unwrap()]);
    configure(&home, &["planner"], &server.url, "");
    let file = write(&home, "state.json", &state());
    let finished = run(&home, &file, "goes-on");
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.err, finished.out);
    assert!(!finished.err.contains("no model"), "no model is asked: {}", finished.err);
    let requests = requests(&log);
    let observed = |index: usize, pointer: &str| requests[index]["body"].pointer(pointer).cloned().unwrap_or_default();
    assert_eq!(observed(0, "/observation/location/behavior_id"), "behavior_003");
    assert_eq!(observed(0, "/observation/location/behavior_iteration"), 2);
    assert_eq!(observed(0, "/observation/context/variables"), state()["observation"]["context"]["variables"]);
    assert_eq!(observed(0, "/observation/context/todo_list"), json!(["gaps", "units"]));
    assert_eq!(observed(0, "/observation/context/notebook/cells/2/outputs/0/text"), "3\n");
    // The step is achieved, and the next one is in another stage.
    assert_eq!(observed(1, "/observation/location/current_step_id"), "clean");
    assert_eq!(observed(2, "/observation/location/current_step_id"), "write");
    assert_eq!(observed(2, "/observation/location/behavior_iteration"), 1);
    let cells = home.export("goes-on")["notebook"]["cells"].clone();
    let ids: Vec<&str> = cells.as_array().unwrap().iter().map(|cell| cell["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["cell-1", "heading", "count", "cell-4", "cell-5"]);
    assert_eq!((&cells[2]["execution_count"], &cells[2]["ended"]), (&json!(7), &json!("ok")), "it did not run again");
}

#[test]
fn a_completed_behavior_is_judged_first() {
    let home = Home::new();
    let log = home.path().join("requests.log");
    let server = Process::start(&["--log", log.to_str().unwrap()]);
    configure(&home, &["planner"], &server.url, "");
    let mut state = state();
    state["observation"]["context"]["FSM"]["state"] = json!("BEHAVIOR_COMPLETED");
    state["behavior_feedback"] = json!({"behavior_id": "behavior_003", "actionsExecuted": 4, "actions_succeeded": 4});
    let file = write(&home, "state.json", &state);
    let finished = run(&home, &file, "judged");
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.err, finished.out);
    let first = &requests(&log)[0];
    assert_eq!(first["path"], "/v1/reflection");
    assert_eq!(first["body"]["behavior_feedback"]["actions_executed"], 4);
    assert_eq!(first["body"]["observation"]["location"]["behavior_id"], "behavior_003");
}

#[test]
fn both_forms_begin_the_same_session_and_its_export_begins_it_again() {
    let home = Home::new();
    let _server = configure_unhelpful(&home);
    let mut states = Vec::new();
    for (name, state) in [("today", state()), ("older", older_state())] {
        let file = write(&home, &format!("{name}.json"), &state);
        let finished = run(&home, &file, name);
        assert_eq!(finished.code, Some(3), "{}\n{}", finished.err, finished.out);
        let first = exported(&home, name);
        let file = home.file(&format!("{name}-again.json"), &first).display().to_string();
        let again = format!("{name}-again");
        assert_eq!(run(&home, &file, &again).code, Some(3));
        assert_eq!(exported(&home, &again), first, "{name}");
        states.push(serde_json::from_str::<Value>(&first).unwrap());
    }
    let today = states.remove(0);
    for pointer in
        ["context/notebook", "context/variables", "context/todo_list", "context/FSM", "context/effects", "location"]
    {
        let pointer = format!("/observation/{pointer}");
        assert_eq!(today.pointer(&pointer), states[0].pointer(&pointer), "{pointer}");
    }
    let stages = "/observation/context/workflow/stages/0";
    assert_eq!(today.pointer(stages), states[0].pointer(stages));
}

#[test]
fn the_state_of_a_session_that_was_interrupted_begins_another_one() {
    let home = Home::new();
    let server = Process::start(&["--fault", "status:500", "--after", "1", "--behaviors", "3"]);
    configure(&home, &["planner"], &server.url, "timeout = \"2s\"");
    let script = "session:\n  session_id: s\n  declare: [{ var: rivers, value: 3 }, { var: key, value: hidden, sensitive: true }]\n  phases:\n    \
        - phase_id: p\n      topics:\n        - topic_id: t\n          actions:\n            - { action_type: behavior_loop, action_id: l, config: { server: planner, todo_list: [one, two] } }\n";
    let script = home.file("s.yaml", script).display().to_string();
    let stopped = run(&home, &script, "first");
    assert_eq!(stopped.code, Some(3), "{}\n{}", stopped.err, stopped.out);
    let first = exported(&home, "first");
    assert!(first.contains("\"rivers\": 3") && !first.contains("hidden"), "{first}");
    let file = home.file("first.json", &first).display().to_string();
    let _server = configure_unhelpful(&home);
    assert_eq!(run(&home, &file, "second").code, Some(3));
    assert_eq!(exported(&home, "second"), first);
    let working = Process::start(&["--behaviors", "1"]);
    configure(&home, &["planner"], &working.url, "");
    let resumed = home.finish(["sessions", "resume", "second", "--json", "--trust"], "");
    assert_eq!(resumed.code, Some(0), "{}\n{}", resumed.err, resumed.out);
}

#[test]
fn a_broken_state_is_refused_with_its_place_before_a_session_exists() {
    type Change = fn(&mut Value);
    let context = "/observation/context";
    let table: [(&str, Change, &str); 16] = [
        ("/observation/location", |it| *it = json!([]), "`observation.location` must be an object"),
        (
            "/observation/location/current_step_id",
            |it| *it = json!("tidy"),
            "names a step that its stage does not have",
        ),
        (
            "/observation/location/current_stage_id",
            |it| *it = json!("other"),
            "names a stage that the plan does not have",
        ),
        (
            "/observation/location/behavior_iteration",
            |it| *it = json!("2"),
            "`observation.location.behavior_iteration` must be",
        ),
        ("variables", |it| *it = json!([]), "`observation.context.variables` must be an object"),
        ("todo_list/0", |it| *it = json!({}), "`observation.context.todo_list[0]` must be a string"),
        (
            "notebook/cells/1/id",
            |it| *it = json!("cell-1"),
            "the id of `observation.context.notebook.cells[1]` is that of an earlier cell",
        ),
        (
            "notebook/cells/1/id",
            |it| *it = json!("a b"),
            "the id of `observation.context.notebook.cells[1]` is not that of a cell",
        ),
        ("notebook/cells/1/type", |it| *it = json!("video"), "`observation.context.notebook.cells[1].type` must be"),
        (
            "notebook/cells/1",
            |it| drop(it.as_object_mut().unwrap().shift_remove("content")),
            "`observation.context.notebook.cells[1]` has no `content`",
        ),
        (
            "notebook/cells/2/outputs/0",
            |it| *it = json!({"output_type": "smell"}),
            "`observation.context.notebook.cells[2].outputs[0]` is no output",
        ),
        ("workflow/stages", |it| *it = json!([]), "`observation.context.workflow` is no plan: the plan has no stages"),
        ("FSM/state", |it| *it = json!("x".repeat(1_100_000)), "has more than 1048576 bytes"),
        (
            "notebook/cells/2/outputs/0",
            |it| *it = json!({"output_type": "display_data", "data": "x"}),
            "`observation.context.notebook.cells[2].outputs[0]` is no output",
        ),
        ("FSM/state", |it| *it = json!([1]), "`observation.context.FSM.state` must be a string"),
        ("FSM/state", |it| *it = json!(5), "`observation.context.FSM.state` must be a string"),
    ];
    let home = Home::new();
    let _server = configure_unhelpful(&home);
    for (place, change, expected) in table {
        let mut broken = state();
        let place = if place.starts_with('/') { place.to_owned() } else { format!("{context}/{place}") };
        change(broken.pointer_mut(&place).unwrap());
        let file = write(&home, "broken.json", &broken);
        let refused = home.finish(["run", &file, "--trust"], "");
        assert_eq!(refused.code, Some(2), "{place}: {}", refused.err);
        assert!(refused.err.contains(expected), "{place}: {}", refused.err);
        let shown = refused.err.split("broken.json:").nth(1).unwrap_or_else(|| panic!("{}", refused.err));
        let line: u32 = shown.split(':').next().unwrap().parse().unwrap();
        assert!(line > 1, "{place}: the line of the problem is shown: {}", refused.err);
        assert!(!home.store().exists(), "{place}");
        let checked = home.finish(["validate", &file], "");
        assert_eq!(checked.code, Some(1), "{}", checked.out);
        assert!(checked.out.contains(expected), "{place}: {}", checked.out);
    }
    // A file that ends too early.
    let text = serde_json::to_string_pretty(&state()).unwrap();
    let file = home.file("broken.json", &text[..text.len() / 2]).display().to_string();
    assert_eq!(home.finish(["run", &file, "--trust"], "").code, Some(2));
    assert!(!home.store().exists());
}

#[test]
fn what_is_not_taken_over_is_told() {
    let home = Home::new();
    let _server = configure_unhelpful(&home);
    let mut state = state();
    let context = &mut state["observation"]["context"];
    context["mood"] = json!("fine");
    context["checklist"] = json!({});
    context["notebook"]["cell_count"] = json!(9);
    let file = write(&home, "state.json", &state);
    let begun = home.finish(["run", &file, "--trust"], "");
    assert_eq!(begun.code, Some(3), "{}", begun.err);
    for expected in [
        "`observation.context.mood` is not part of a state, and is not taken over",
        "`observation.context.checklist` is no longer part of the protocol",
        "6 cells of the notebook are not in `observation.context.notebook.cells`",
    ] {
        assert!(begun.err.contains(expected), "{}", begun.err);
    }
    assert_eq!(home.finish(["validate", &file], "").code, Some(0));
}

#[test]
fn who_continues_a_state_comes_from_the_configuration_or_an_option() {
    let home = Home::new();
    let file = write(&home, "state.json", &state());
    let refused = |arguments: &[&str]| {
        let mut all = vec!["run", &file, "--trust"];
        all.extend(arguments);
        let finished = home.finish(all, "");
        assert_eq!(finished.code, Some(2), "{}", finished.err);
        finished.err
    };
    let error = refused(&[]);
    assert!(error.contains("no behavior server and no model is configured"), "{error}");
    assert!(error.contains("[behavior_servers.NAME]") && error.contains("--model"), "{error}");
    let server = Process::start(&["--fault", "status:400", "--on", "both"]);
    configure(&home, &["one", "other"], &server.url, "timeout = \"2s\"");
    let error = refused(&[]);
    assert!(error.contains("`one`, `other`") && error.contains("--behavior-server"), "{error}");
    assert!(refused(&["--behavior-server", "othr"]).contains("did you mean `other`?"));
    let named = home.finish(["run", &file, "--trust", "--behavior-server", "other", "--json"], "");
    assert_eq!(named.code, Some(3), "{}", named.err);
    assert!(named.out.contains("the behavior server `other`"), "{}", named.out);
    let by_model = home.finish(["run", &file, "--trust", "--model", "offline", "--json"], "");
    assert_eq!(by_model.code, Some(0), "{}\n{}", by_model.err, by_model.out);
    let script = home.file("s.yaml", "session: { session_id: s }").display().to_string();
    let error = home.finish(["run", &script, "--behavior-server", "one"], "").err;
    assert!(error.contains("`--behavior-server` is for states"), "{error}");
}

#[test]
fn nothing_begins_from_a_state_whose_work_is_over() {
    let home = Home::new();
    let _server = configure_unhelpful(&home);
    let mut state = state();
    let location = &mut state["observation"]["location"];
    location["progress"]["stages"] = json!({"completed": ["read", "tell"], "current": null, "remaining": []});
    for id in ["current_stage_id", "current_step_id"] {
        location[id] = json!(null);
    }
    let file = write(&home, "state.json", &state);
    let finished = home.finish(["run", &file, "--trust"], "");
    assert_eq!(finished.code, Some(4), "{}", finished.err);
}
