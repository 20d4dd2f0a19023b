//! How tasks of plans are run: what may run them, what waits, what is skipped, and what other sessions leave (docs/plans.md).

use serde_json::{Value, json};

use crate::process::{Finished, Home};
use crate::session_output::journal;
use crate::tool_server::{calls, project};

const RUN: [&str; 6] = ["run", "s.yaml", "--json", "--session", "s", "--trust"];

/// A project whose only topic has these fields, with these replies and tasks of the plan 5.
fn plan_project(rules: &Value, topic: &Value, replies: &Value, tasks: &Value) -> Home {
    let home = project(rules, &json!([]));
    write_script(&home, "s.yaml", rules, topic);
    home.file("replies.json", &json!({ "replies": replies }).to_string());
    let plan = json!({ "bcc_plan": 1, "plan_id": 5, "title": "Work", "goal": "g", "tasks": tasks });
    home.file("plan.json", &plan.to_string());
    let imported = home.finish(["plans", "import", "plan.json"], "");
    assert_eq!(imported.code, Some(0), "{imported:?}");
    home
}

fn write_script(home: &Home, file: &str, rules: &Value, topic: &Value) {
    let mut topic = topic.clone();
    topic["topic_id"] = json!("t");
    let script = json!({ "session": { "session_id": "s", "template_scheme": "english", "tools": rules,
        "phases": [{ "phase_id": "p", "topics": [topic] }] } });
    home.file(file, &script.to_string());
}

fn execute() -> Value {
    json!({ "action_type": "execute_plan", "action_id": "ex", "config": { "plan_id": 5, "output": { "ran": "ran" } },
        "on_exit": { "failed": "next" } })
}

fn say(content: &str) -> Value {
    json!({ "action_type": "ai_say", "action_id": "say", "config": { "content": content, "delivery": "verbatim" } })
}

fn act(config: &Value) -> Value {
    let mut config = config.clone();
    config["content"] = json!("x");
    json!({ "action_type": "ai_act", "action_id": "act", "config": config })
}

fn done(result: &str) -> Value {
    json!([{ "done": true, "problem": null, "result": result }])
}

fn tool(name: &str, n: u32) -> Value {
    json!({ "name": name, "arguments": { "n": n } })
}

/// The name, the status and the error of each task.
fn tasks(home: &Home) -> Vec<(String, String, String)> {
    let exported = home.finish(["plans", "export", "5"], "");
    let plan: Value = serde_json::from_str(&exported.out).unwrap_or_else(|_| panic!("{exported:?}"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let tasks = plan["tasks"].as_array().unwrap().iter();
    tasks.map(|task| (text(&task["name"]), text(&task["status"]), text(&task["error"]))).collect()
}

fn statuses(home: &Home) -> Vec<String> {
    tasks(home).into_iter().map(|(name, status, _)| format!("{name} {status}")).collect()
}

fn messages(finished: &Finished) -> Vec<String> {
    let events = finished.events();
    let messages = events.iter().filter(|event| event["type"] == "message");
    messages.map(|event| event["text"].as_str().unwrap().to_owned()).collect()
}

fn operation(kind: &str, name: &str, parameters: &Value) -> Value {
    json!({ "kind": kind, "name": name, "parameters": parameters })
}

/// The entries of the operations of the `ai_act`, as `name status error`.
fn entries(home: &Home) -> Vec<String> {
    let events = journal(home, "s");
    let mut outcomes = events.iter().filter(|event| event["type"] == "outcome" && event["action_type"] == "ai_act");
    let last = outcomes.next_back().unwrap()["metadata"]["actions"].clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entry =
        |entry: &Value| format!("{} {} {}", text(&entry["name"]), text(&entry["status"]), text(&entry["error"]));
    last.as_array().unwrap_or_else(|| panic!("{events:?}")).iter().map(entry).collect()
}

#[test]
fn operations_of_two_branches_that_begin_at_the_same_event_are_both_carried_out() {
    let add = |name: &str| {
        json!([{ "llm_reply": { "message": "" }, "actions": [operation("task_operation", "create_task", &json!({ "task_name": name }))] },
        { "llm_reply": { "message": "ok" } }])
    };
    let skill = |id: &str, act: &str| {
        json!({ "skill_id": id, "actions": [
        { "action_type": "ai_act", "action_id": act, "config": { "content": "x", "plan": 5 } }] })
    };
    let branch = |id: &str, skill: &str| {
        json!({ "id": id, "actions": [
        { "action_type": "use_skill", "action_id": format!("use_{id}"), "config": { "skill": skill } }] })
    };
    let parallel = json!({ "action_type": "parallel", "action_id": "both",
        "config": { "branches": [branch("a", "first"), branch("b", "second")] } });
    let home = plan_project(&json!([]), &json!({ "actions": [] }), &json!({}), &json!([]));
    let script = json!({ "session": { "session_id": "s", "template_scheme": "english",
        "skills": [skill("first", "act1"), skill("second", "act2")],
        "phases": [{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": [parallel] }] }] } });
    home.file("s.yaml", &script.to_string());
    // Without replies, both stop, and go on at the same event.
    let stopped = home.finish(RUN, "");
    assert_eq!(stopped.code, Some(3), "{stopped:?}");
    assert!(stopped.events().iter().any(|event| event["type"] == "session_stopped"), "{stopped:?}");
    home.file("replies.json", &json!({ "replies": { "act1": add("x1"), "act2": add("x2") } }).to_string());
    let resumed = home.finish(["sessions", "resume", "s", "--trust"], "");
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let mut made = statuses(&home);
    made.sort();
    assert_eq!(made, ["x1 pending", "x2 pending"], "{resumed:?}");
}

/// A plan with a task that nobody has approved, one that needs it, and one whose tool nobody has approved.
fn unapproved() -> Value {
    json!([
        { "id": 10, "name": "A" },
        { "id": 11, "name": "B", "metadata": { "approve": "always" } },
        { "id": 12, "name": "C", "dependencies": [11] },
        { "id": 13, "name": "W", "metadata": { "tool": tool("mcp.s.write", 1) } },
    ])
}

#[test]
fn in_a_cleanup_a_task_that_would_wait_for_a_person_fails_and_what_needs_it_does_not_run() {
    let rules = json!([{ "name": "mcp.s.write", "approve": "always" }, "mcp.s.fail"]);
    let replies = json!({ "ex/A": done("a"), "ex/B": done("b"), "ex/C": done("c") });
    let fail = json!({ "action_type": "tool", "action_id": "fail", "config": { "name": "mcp.s.fail" } });
    let mut set = json!({ "action_type": "set", "action_id": "set", "config": { "values": { "q": "1" } } });
    let finally = json!({ "actions": [set], "finally": [execute()] });
    set["compensate"] = json!([execute()]);
    for (topic, code) in [(finally, 0), (json!({ "actions": [set, fail] }), 1)] {
        let home = plan_project(&rules, &topic, &replies, &unapproved());
        let finished = home.finish(RUN, "");
        assert_eq!(finished.code, Some(code), "{finished:?}");
        assert_eq!(statuses(&home), ["A completed", "B failed", "C skipped", "W failed"], "{finished:?}");
        let errors: Vec<String> = tasks(&home).into_iter().map(|(_, _, error)| error).collect();
        assert!(errors[1].contains("would wait for a person") && errors[3] == errors[1], "{errors:?}");
        let events = journal(&home, "s");
        assert_eq!(events.iter().filter(|event| event["code"] == "cleanup-cannot-wait").count(), 2, "{events:?}");
        let ended = events.iter().filter(|event| event["type"] == "plan_changed" && event["status"] == "failed");
        assert_eq!(ended.filter(|event| event["task_id"] != json!(null)).count(), 2, "{events:?}");
        assert!(!calls(&home).iter().any(|call| call.starts_with("write")), "{:?}", calls(&home));
    }
}

#[test]
fn the_tools_of_an_ai_act_are_also_those_of_the_tasks_that_it_makes_and_runs() {
    let create = |tool: &str| {
        let metadata = json!({ "tool": { "name": tool, "arguments": { "n": 2 } } });
        operation("task_operation", "create_task", &json!({ "task_name": tool, "metadata": metadata }))
    };
    let update = operation(
        "task_operation",
        "update_task",
        &json!({ "task_id": 10, "metadata": { "tool": "mcp.s.change", "x": 1 } }),
    );
    let reply = json!({ "llm_reply": { "message": "m" }, "actions": [
        create("mcp.s.write"), create("mcp.s.read"), update,
        operation("task_operation", "rerun_task", &json!({ "task_id": 10 })),
        operation("task_operation", "rerun_task", &json!({ "task_name": "mcp.s.read" })),
    ] });
    let replies = json!({ "act": [reply, { "llm_reply": { "message": "end" } }] });
    let imported = json!([{ "id": 10, "name": "W", "metadata": { "tool": tool("mcp.s.write", 1) } }]);
    let rules = json!(["mcp.s.read", "mcp.s.write", "mcp.s.change"]);
    for (tools, expected) in
        [(json!(["mcp.s.r*"]), vec!["read {\"n\":2}"]), (Value::Null, vec!["change {}", "read {\"n\":2}"])]
    {
        let mut config = json!({ "plan": 5 });
        if !tools.is_null() {
            config["tools"] = tools.clone();
        }
        let home = plan_project(&rules, &json!({ "actions": [act(&config)] }), &replies, &imported);
        let finished = home.finish(RUN, "");
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert_eq!(calls(&home), expected, "{tools}: {finished:?}");
        let entries = entries(&home);
        let refused: Vec<&String> = entries.iter().filter(|entry| entry.contains(" refused ")).collect();
        if tools.is_null() {
            assert_eq!(refused.len(), 0, "{entries:?}");
            continue;
        }
        assert_eq!(refused.len(), 2, "{entries:?}");
        assert!(refused[0].contains("the tool `mcp.s.write` is not permitted here"), "{entries:?}");
        assert!(refused[1].contains("the tool `mcp.s.change` is not permitted here"), "{entries:?}");
        let (_, status, error) = tasks(&home).swap_remove(0);
        assert!(status == "failed" && error.contains("does not permit the tool `mcp.s.write`"), "{error}");
    }
}

#[test]
fn the_question_about_an_interrupted_task_names_it_and_skip_says_so_in_the_plan() {
    let waits = json!([{ "id": 10, "name": "Publish", "metadata": { "tool": tool("mcp.s.slow_write", 7) } }]);
    let home = plan_project(&json!(["mcp.s.*"]), &json!({ "actions": [execute()] }), &json!({}), &waits);
    let mut running = home.start(RUN);
    running.event_of("tool_progress");
    running.kill();
    let resume = ["sessions", "resume", "s", "--json", "--trust"];
    let asked = home.finish(resume, "");
    let waiting = asked.events().into_iter().find(|event| event["type"] == "waiting").unwrap();
    let prompt = waiting["prompt"].as_str().unwrap();
    assert!(prompt.contains("task 10 (Publish): calls the tool mcp.s.slow_write with {\"n\":7}"), "{prompt}");
    let skipped = home.finish(resume, "skip\n");
    assert_eq!(skipped.code, Some(0), "{skipped:?}");
    let (_, status, error) = tasks(&home).swap_remove(0);
    assert_eq!(
        (status.as_str(), error.as_str()),
        ("failed", "the call of its tool was interrupted, and somebody decided to skip it")
    );
}

#[test]
fn an_execution_goes_on_after_the_task_for_which_others_waited_was_deleted() {
    let waits = json!([
        { "id": 10, "name": "A", "metadata": { "approve": "always" } },
        { "id": 11, "name": "B", "dependencies": [10] },
    ]);
    let topic = json!({ "actions": [execute(), say("ran {{ ran }}")] });
    let home = plan_project(&json!([]), &topic, &json!({ "ex/B": done("b") }), &waits);
    assert_eq!(home.finish(RUN, "").code, Some(3));
    let delete = json!({ "action_type": "delete_task", "action_id": "d", "config": { "task_id": 10 } });
    write_script(&home, "delete.yaml", &json!([]), &json!({ "actions": [delete] }));
    assert_eq!(home.finish(["run", "delete.yaml", "--session", "d"], "").code, Some(0));
    let decided = home.finish(["approve", "s", "--by", "ann"], "");
    assert_eq!(decided.code, Some(0), "{decided:?}");
    let resumed = home.finish(["sessions", "resume", "s", "--json"], "");
    assert_eq!((statuses(&home), messages(&resumed)), (vec!["B completed".to_owned()], vec!["ran 1".to_owned()]));
}

#[test]
fn an_execution_runs_what_another_session_left_while_it_ran() {
    let both = json!([{ "id": 10, "name": "A" }, { "id": 11, "name": "B", "metadata": { "approve": "always" } }]);
    let slow = json!({ "ex/A": [{ "$after_ms": 600_000, "reply": { "done": true, "result": "a" } }] });
    let topic = json!({ "actions": [execute(), say("ran {{ ran }}")] });
    let home = plan_project(&json!([]), &topic, &slow, &both);
    let mut other = home.start(["run", "s.yaml", "--json", "--session", "other", "--trust"]);
    // A runs in the other session. B waits for a decision in both.
    while other.event_of("plan_changed")["task_id"] != 10 {}
    other.kill();
    let replies = json!({ "replies": { "ex/A": done("a"), "ex/B": done("b") } });
    home.file("replies.json", &replies.to_string());
    let waiting = home.finish(RUN, "");
    assert_eq!((waiting.code, statuses(&home)), (Some(3), vec!["A running".to_owned(), "B pending".to_owned()]));
    assert_eq!(home.finish(["sessions", "delete", "other"], "").code, Some(0));
    assert_eq!(home.finish(["approve", "s", "--by", "ann"], "").code, Some(0));
    let resumed = home.finish(["sessions", "resume", "s", "--json"], "");
    assert_eq!(statuses(&home), ["A completed", "B completed"], "{resumed:?}");
    assert_eq!(messages(&resumed), ["ran 2"]);
}

#[test]
fn tasks_that_never_started_are_not_counted_as_run() {
    let some = json!([
        { "id": 10, "name": "A" }, { "id": 11, "name": "B", "dependencies": [10] },
        { "id": 12, "name": "C", "metadata": { "approve": "always" } }, { "id": 13, "name": "D" },
    ]);
    let replies = json!({ "ex/A": [{ "done": false, "problem": "no paper", "result": "" }], "ex/D": done("d") });
    let topic = json!({ "actions": [execute(), say("ran {{ ran }}")] });
    let home = plan_project(&json!([]), &topic, &replies, &some);
    assert_eq!(home.finish(RUN, "").code, Some(3));
    assert_eq!(home.finish(["reject", "s", "--by", "ann"], "").code, Some(0));
    let resumed = home.finish(["sessions", "resume", "s", "--json"], "");
    assert_eq!(statuses(&home), ["A failed", "B skipped", "C failed", "D completed"], "{resumed:?}");
    assert_eq!(messages(&resumed), ["ran 2"]);
}

#[test]
fn a_task_that_another_session_has_completed_keeps_its_result() {
    let one = json!([{ "id": 10, "name": "B", "metadata": { "approve": "always" } }]);
    let topic = json!({ "actions": [execute(), say("ran {{ ran }}")] });
    let home = plan_project(&json!([]), &topic, &json!({ "ex/B": done("b") }), &one);
    for session in ["s", "other"] {
        let waiting = home.finish(["run", "s.yaml", "--json", "--session", session, "--trust"], "");
        assert_eq!(waiting.code, Some(3), "{waiting:?}");
    }
    assert_eq!(home.finish(["approve", "other", "--by", "ann"], "").code, Some(0));
    let resumed = home.finish(["sessions", "resume", "other", "--json"], "");
    assert_eq!((statuses(&home), messages(&resumed)), (vec!["B completed".to_owned()], vec!["ran 1".to_owned()]));
    assert_eq!(home.finish(["reject", "s", "--by", "ann"], "").code, Some(0));
    let resumed = home.finish(["sessions", "resume", "s", "--json"], "");
    assert_eq!((statuses(&home), messages(&resumed)), (vec!["B completed".to_owned()], vec!["ran 0".to_owned()]));
}

#[test]
fn a_task_that_was_tried_while_another_session_ran_it_is_run_when_that_session_is_gone() {
    let both = json!([
        { "id": 10, "name": "A", "metadata": { "approve": "always" } },
        { "id": 11, "name": "B", "metadata": { "approve": "always" } },
    ]);
    let mut execution = execute();
    execution["config"]["max_parallel"] = json!(1);
    let topic = json!({ "actions": [execution, say("ran {{ ran }}")] });
    let slow = json!({ "ex/A": [{ "$after_ms": 600_000, "reply": { "done": true, "result": "a" } }] });
    let home = plan_project(&json!([]), &topic, &slow, &both);
    assert_eq!(home.finish(["run", "s.yaml", "--json", "--session", "other", "--trust"], "").code, Some(3));
    let replies = json!({ "replies": { "ex/A": done("a"), "ex/B": done("b") } });
    home.file("replies.json", &replies.to_string());
    assert_eq!(home.finish(RUN, "").code, Some(3));
    home.file("replies.json", &json!({ "replies": slow }).to_string());
    assert_eq!(home.finish(["approve", "other", "--by", "ann"], "").code, Some(0));
    let mut other = home.start(["sessions", "resume", "other", "--json"]);
    while other.event_of("plan_changed")["task_id"] != 10 {}
    other.kill();
    home.file("replies.json", &replies.to_string());

    // A runs elsewhere, so that it cannot be started here, and B waits for its decision.
    assert_eq!(home.finish(["approve", "s", "--by", "ann"], "").code, Some(0));
    assert_eq!(home.finish(["sessions", "resume", "s", "--json"], "").code, Some(3));
    assert_eq!(statuses(&home), ["A running", "B pending"]);
    assert_eq!(home.finish(["sessions", "delete", "other"], "").code, Some(0));
    assert_eq!(home.finish(["approve", "s", "--by", "ann"], "").code, Some(0));
    let waiting = home.finish(["sessions", "resume", "s", "--json"], "");
    assert_eq!((waiting.code, statuses(&home)), (Some(3), vec!["A pending".to_owned(), "B completed".to_owned()]));
    assert_eq!(home.finish(["approve", "s", "--by", "ann"], "").code, Some(0));
    let resumed = home.finish(["sessions", "resume", "s", "--json"], "");
    assert_eq!(statuses(&home), ["A completed", "B completed"], "{resumed:?}");
    assert_eq!(messages(&resumed), ["ran 2"]);
}
