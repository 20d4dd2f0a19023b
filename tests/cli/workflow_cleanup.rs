//! State files whose steps are undone, cancelled, continued by `tick`, or call tools and skills.

use std::fs;

use serde_json::{Value, json};

use crate::process::{Finished, Home};
use crate::tool_server::{calls, project as project_with_server};

const RUN: [&str; 3] = ["run", "w.json", "--trust"];

/// A step that appends its id to the file `log`, and is undone by `undo_ID`.
fn undone(id: &str) -> Value {
    let echo = |word: &str| json!(["sh", "-c", format!("echo {word} >> log")]);
    let undo = format!("undo_{id}");
    json!({ "id": id, "status": "pending", "command": echo(id),
        "compensate": [{ "action_type": "command", "action_id": undo, "config": { "command": echo(&undo) } }] })
}

fn approval(more: &Value) -> Value {
    let mut step = json!({ "id": "ok", "type": "approval", "name": "Go on?", "status": "pending" });
    for (name, value) in more.as_object().unwrap() {
        step[name] = value.clone();
    }
    step
}

fn project(steps: &Value) -> Home {
    let home = Home::new();
    home.put("bcc-script.toml", "[project]\nallow = [\"command\"]\n");
    put(&home, steps, &json!([]));
    home
}

fn put(home: &Home, steps: &Value, tools: &Value) {
    let file = json!({ "workflow_id": "w", "status": "pending", "variables": { "path": "a b.txt" }, "tools": tools, "steps": steps });
    home.put("w.json", serde_json::to_string_pretty(&file).unwrap());
}

fn file(home: &Home) -> Value {
    serde_json::from_str(&fs::read_to_string(home.path().join("w.json")).unwrap()).unwrap()
}

fn statuses(home: &Home) -> Vec<String> {
    let file = file(home);
    let of = |value: &Value| value["status"].as_str().unwrap().to_owned();
    std::iter::once(of(&file)).chain(file["steps"].as_array().unwrap().iter().map(of)).collect()
}

fn log(home: &Home) -> Vec<String> {
    fs::read_to_string(home.path().join("log")).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn code(finished: &Finished, expected: i32) {
    assert_eq!(finished.code, Some(expected), "{finished:?}");
}

#[test]
fn a_cancelled_workflow_undoes_its_steps_and_says_so_in_the_file() {
    for (more, expected) in [(None, &["a", "b", "undo_b", "undo_a"][..]), (Some("--no-compensate"), &["a", "b"])] {
        let home = project(&json!([undone("a"), undone("b"), approval(&json!({})), undone("c")]));
        code(&home.finish(RUN, ""), 3);
        let cancel = ["cancel", "w.json", "--trust", "--comment", "not today"];
        code(&home.finish(cancel.into_iter().chain(more), ""), 0);
        assert_eq!(log(&home), expected, "{more:?}");
        let found = statuses(&home);
        let first = if more.is_none() { "pending" } else { "completed" };
        assert_eq!((found[0].as_str(), found[1].as_str(), found[4].as_str()), ("cancelled", first, "pending"));
        let again = home.finish(cancel, "");
        assert!(again.code == Some(2) && again.err.contains("no session of w.json is unfinished"), "{again:?}");
        let report = home.finish(["report", "w.json"], "");
        assert!(report.code == Some(0) && report.out.contains("not today"), "{report:?}");
        assert_eq!(report.out.contains("undo_b"), more.is_none(), "{report:?}");
        assert_eq!(report.out.contains("| undone |"), more.is_none(), "{report:?}");
    }
}

#[test]
fn a_session_that_goes_on_from_an_edited_file_undoes_what_the_earlier_ones_did() {
    let tasks = json!({ "id": "p", "type": "parallel", "sub_tasks": [undone("p1"), undone("p2")] });
    let home = project(&json!([undone("a"), undone("b"), undone("gone"), tasks, approval(&json!({}))]));
    code(&home.finish(RUN, ""), 3);
    let edit = |change: &dyn Fn(&mut Value)| {
        let mut file = file(&home);
        change(&mut file);
        home.put("w.json", file.to_string());
        code(&home.finish(RUN, ""), 3);
    };
    edit(&|file| file["variables"]["path"] = "c.txt".into());
    edit(&|file| {
        let steps = file["steps"].as_array_mut().unwrap();
        steps[2].as_object_mut().unwrap().remove("compensate");
        steps.insert(0, undone("new"));
        steps[0]["status"] = "skipped".into();
    });
    code(&home.finish(["cancel", "w.json", "--trust"], ""), 0);
    let log = log(&home);
    let (tasks, others): (Vec<_>, Vec<_>) = log.iter().map(String::as_str).skip(3).partition(|line| line.contains('p'));
    assert_eq!(others, ["undo_b", "undo_a"], "{log:?}");
    let undone_tasks: Vec<_> = tasks.iter().filter(|line| line.starts_with("undo")).collect();
    assert_eq!(undone_tasks.len(), 2, "{log:?}");

    // What is undone is not undone again, and neither is a step that must run again.
    let home = project(&json!([undone("a"), undone("b"), approval(&json!({}))]));
    code(&home.finish(RUN, ""), 3);
    let mut edited = file(&home);
    edited["steps"][1]["status"] = "pending".into();
    edited["current_step"] = "b".into();
    home.put("w.json", edited.to_string());
    code(&home.finish(RUN, ""), 3);
    code(&home.finish(["cancel", "w.json", "--trust"], ""), 0);
    assert_eq!(self::log(&home), ["a", "b", "b", "undo_b", "undo_a"]);
}

#[test]
fn a_workflow_that_fails_undoes_the_newest_step_first() {
    let between = json!({ "id": "m", "status": "pending", "command": ["sh", "-c", "echo m >> log"] });
    let tasks = json!({ "id": "p", "type": "parallel", "max_parallel": 1, "sub_tasks": [undone("b"), between] });
    let fails = json!({ "id": "c", "status": "pending", "command": ["sh", "-c", "test -e ready"] });
    let home = project(&json!([undone("a"), tasks, fails]));
    code(&home.finish(RUN, ""), 1);
    assert_eq!(log(&home), ["a", "b", "m", "undo_b", "undo_a"]);
    assert_eq!(statuses(&home), ["failed", "pending", "pending", "failed"]);
    let tasks = &file(&home)["steps"][1]["sub_tasks"];
    assert_eq!((&tasks[0]["status"], &tasks[1]["status"]), (&json!("pending"), &json!("completed")));
    // What was undone is done again, and nothing else.
    home.put("ready", "");
    code(&home.finish(RUN, ""), 0);
    assert_eq!(log(&home)[5..], ["a", "b"]);
    assert_eq!(statuses(&home), ["completed"; 4]);
}

#[test]
fn an_edited_file_that_cannot_begin_loses_nothing_that_can_be_undone() {
    let home = project(&json!([undone("a"), approval(&json!({}))]));
    code(&home.finish(RUN, ""), 3);
    let mut edited = file(&home);
    edited["variables"]["path"] = "c.txt".into();
    home.put("w.json", edited.to_string());
    let refused = home.finish(["run", "w.json"], "");
    assert!(refused.code == Some(2) && refused.err.contains("trust"), "{refused:?}");
    code(&home.finish(RUN, ""), 3);
    code(&home.finish(["cancel", "w.json", "--trust"], ""), 0);
    assert_eq!(log(&home), ["a", "undo_a"]);
}

#[test]
fn a_sigkill_while_a_session_goes_on_from_an_edited_file_loses_nothing_that_can_be_undone() {
    let home = project(&json!([undone("a"), approval(&json!({}))]));
    code(&home.finish(RUN, ""), 3);
    // From before the new session begins until after the old one has ended.
    for moment in 0..16_u32 {
        let mut edited = file(&home);
        edited["variables"]["path"] = moment.into();
        home.put("w.json", edited.to_string());
        let mut running = home.start(["run", "w.json", "--trust", "--json", "--wait"]);
        let start = std::time::Instant::now();
        while start.elapsed() < std::time::Duration::from_millis(20) * moment {
            std::thread::yield_now();
        }
        running.kill();
    }
    code(&home.finish(RUN, ""), 3);
    code(&home.finish(["cancel", "w.json", "--trust"], ""), 0);
    assert_eq!(log(&home), ["a", "undo_a"]);
    let listed = home.finish(["sessions", "list"], "");
    let unfinished: Vec<&str> = listed.out.lines().filter(|line| !line.contains("\tcancelled\t")).collect();
    assert_eq!(unfinished, [""; 0]);
}

#[test]
fn a_decision_in_the_file_has_the_values_of_the_form() {
    let form = json!({ "form": [{ "get": "port", "type": "integer", "define": "Which port?", "required": true }] });
    let echo = json!({ "id": "b", "status": "pending", "command": ["sh", "-c", "echo {{ port }} >> log"] });
    for (values, expected, logged) in
        [(json!({ "port": 8080 }), 0, vec!["8080"]), (json!({}), 1, vec![]), (json!(["port"]), 1, vec![])]
    {
        let home = project(&json!([approval(&form), echo]));
        code(&home.finish(RUN, ""), 3);
        let mut edited = file(&home);
        edited["steps"][0]["status"] = "completed".into();
        edited["steps"][0]["result"] = json!({ "by": "Li", "values": values });
        home.put("w.json", edited.to_string());
        let finished = home.finish(RUN, "");
        assert!(finished.code == Some(expected), "{values}: {finished:?}");
        assert_eq!(log(&home), logged, "{values}: {finished:?}");
    }
}

#[test]
fn a_sigkill_while_a_workflow_is_undone_is_asked_about_and_undoes_nothing_twice() {
    let slow = json!([{ "action_type": "command", "action_id": "undo_b", "config": {
        "command": ["sh", "-c", "echo undo_b >> log; test -e ready || sleep 100"] } }]);
    let mut second = undone("b");
    second["compensate"] = slow;
    let home = project(&json!([undone("a"), second, approval(&json!({}))]));
    code(&home.finish(RUN, ""), 3);
    let mut cancelling = home.start(["cancel", "w.json", "--trust"]);
    while !log(&home).contains(&"undo_b".to_owned()) {
        std::thread::yield_now();
    }
    cancelling.kill();
    home.put("ready", "");
    let resumed = home.finish(["cancel", "w.json", "--trust"], "");
    code(&resumed, 1);
    assert!(resumed.out.contains("is being cancelled"), "{resumed:?}");
    assert_eq!(log(&home), ["a", "b", "undo_b"], "it is not undone a second time silently");
    let id = resumed.out.split_whitespace().nth(1).unwrap();
    let done = home.finish(["sessions", "resume", id, "--trust"], "skip\n");
    code(&done, 4);
    assert_eq!(log(&home), ["a", "b", "undo_b", "undo_a"]);
    assert_eq!(statuses(&home)[0], "cancelled");
}

#[test]
fn tick_continues_a_workflow_whose_approval_is_due() {
    for (on_timeout, expected, status) in
        [("approve", vec!["a", "b"], "completed"), ("reject", vec!["a", "undo_a"], "failed")]
    {
        let due = approval(&json!({ "timeout": "1ms", "on_timeout": on_timeout }));
        let home = project(&json!([undone("a"), due, undone("b")]));
        // The session waits: the process ends at once if it is due already.
        let ran = home.finish(RUN, "");
        assert!(ran.code != Some(2), "{ran:?}");
        code(&home.finish(["tick", "--trust"], ""), 0);
        assert_eq!(log(&home), expected, "{on_timeout}");
        assert_eq!(statuses(&home)[0], status, "{on_timeout}");
    }
    // One that is not due is left alone.
    let home = project(&json!([approval(&json!({ "timeout": "1h" })), undone("b")]));
    code(&home.finish(RUN, ""), 3);
    code(&home.finish(["tick", "--trust"], ""), 0);
    assert_eq!(statuses(&home), ["waiting_approval", "waiting_approval", "pending"]);
}

#[test]
fn a_step_calls_a_tool_with_the_variables_of_the_file() {
    let home = project_with_server(&json!([]), &json!([]));
    let arguments = json!({ "text": "{{ path }}; echo x" });
    let step = |id: &str, tool: &str| json!({ "id": id, "status": "pending", "tool": tool, "arguments": arguments, "output": { "said": "content" } });
    put(&home, &json!([step("read", "mcp.s.read")]), &json!(["mcp.s.read"]));
    code(&home.finish(RUN, ""), 0);
    assert_eq!(calls(&home), ["read {\"text\":\"a b.txt; echo x\"}"]);
    assert_eq!(statuses(&home), ["completed", "completed"]);

    put(&home, &json!([step("write", "mcp.s.write")]), &json!(["mcp.s.read"]));
    let refused = home.finish(RUN, "");
    code(&refused, 2);
    assert!(refused.err.contains("mcp.s.write"), "{refused:?}");
    assert_eq!(calls(&home).len(), 1);
}

#[test]
fn a_tool_that_a_kill_interrupted_is_asked_about() {
    let home = project_with_server(&json!([]), &json!([]));
    let step = json!({ "id": "write", "status": "pending", "tool": "mcp.s.slow_write", "arguments": { "n": 1 } });
    put(&home, &json!([step]), &json!(["mcp.s.*"]));
    let mut running = home.start(["run", "w.json", "--trust", "--json"]);
    running.event_of("tool_progress");
    running.kill();
    home.file("go", "");
    code(&home.finish(RUN, ""), 3);
    assert_eq!(statuses(&home), ["waiting", "waiting"]);
    code(&home.finish(RUN, "skip\n"), 0);
    assert_eq!(calls(&home).len(), 1);
    assert_eq!(statuses(&home), ["completed", "completed"]);
}
