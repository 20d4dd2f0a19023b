//! Tests of sessions that work on plans, through the program (docs/plans.md).

use serde_json::{Value, json};

use crate::process::{Finished, Home};
use crate::pseudo_terminal::Terminal;
use crate::session_output::journal;

/// A script with these actions, each in one line.
fn script(actions: &[&str]) -> String {
    let actions: String = actions.iter().map(|action| format!("            - {{ {action} }}\n")).collect();
    format!(
        "session:\n  session_id: s\n  template_scheme: english\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions:\n{actions}"
    )
}

fn call(home: &Home, line: &str) -> Finished {
    home.finish(line.split(' '), "")
}

fn done(home: &Home, line: &str) -> String {
    let finished = call(home, line);
    assert_eq!(finished.code, Some(0), "{line}: {finished:?}");
    finished.out
}

/// Runs a script with these replies in a session.
fn run(home: &Home, (session, actions): (&str, &[&str]), replies: &Value, input: &str, more: &str) -> Finished {
    home.file("script.yaml", &script(actions));
    home.file("replies.json", &json!({ "replies": replies }).to_string());
    let line = format!("run script.yaml --session {session} --model replay:replies.json {more}");
    home.finish(line.trim().split(' '), input)
}

fn import(home: &Home, tasks: &Value) {
    let plan = json!({ "bcc_plan": 1, "plan_id": 5, "title": "发布", "goal": "g", "tasks": tasks });
    home.file("plan.json", &plan.to_string());
    done(home, "plans import plan.json");
}

/// The tasks of plan 5, or the reason why they cannot be imported.
fn rejected_import(home: &Home, tasks: &Value) -> String {
    let plan = json!({ "bcc_plan": 1, "plan_id": 5, "title": "发布", "tasks": tasks });
    home.file("plan.json", &plan.to_string());
    let finished = call(home, "plans import plan.json");
    assert_eq!(finished.code, Some(2), "{finished:?}");
    finished.err
}

fn plan(home: &Home, id: u64, more: &str) -> Value {
    serde_json::from_str(&done(home, format!("plans export {id} {more}").trim())).unwrap()
}

/// The field of each task.
fn field(plan: &Value, name: &str) -> Vec<Value> {
    plan["tasks"].as_array().unwrap().iter().map(|task| task[name].clone()).collect()
}

fn events(home: &Home, session: &str, kind: &str) -> Vec<Value> {
    journal(home, session).into_iter().filter(|event| event["type"] == kind).collect()
}

const EXECUTE: &str = "action_type: execute_plan, action_id: ex, config: { plan_id: 5 }, on_exit: { failed: next }";

#[test]
fn a_session_with_the_id_of_a_deleted_one_makes_its_own_edits() {
    let home = Home::new();
    let actions = [
        "action_type: create_plan, action_id: mk, config: { goal: g, output: { all: result } }",
        "action_type: create_task, action_id: add, config: { task_name: extra }",
        "action_type: ai_say, action_id: say, config: { content: '{{ all }}', delivery: verbatim }",
    ];
    let replies = |task: &str| json!({ "mk": [{ "title": task, "tasks": [{ "name": task }] }] });
    let first = run(&home, ("s1", &actions), &replies("call the lawyer"), "", "--user alice");
    assert_eq!(first.code, Some(0), "{first:?}");
    done(&home, "sessions delete s1");
    for (user, id) in [("bob", 2), ("alice", 3)] {
        let second = run(&home, ("s1", &actions), &replies("plant roses"), "", &format!("--user {user}"));
        assert!(second.out.contains("plant roses") && !second.out.contains("lawyer"), "{second:?}");
        let made = plan(&home, id, &format!("--user {user}"));
        assert_eq!(field(&made, "name"), ["plant roses", "extra"]);
        done(&home, "sessions delete s1");
    }
    assert_eq!(field(&plan(&home, 1, "--user alice"), "name"), ["call the lawyer", "extra"]);
}

#[test]
fn a_task_whose_result_is_too_large_fails_and_holds_up_what_needs_it() {
    let home = Home::new();
    import(&home, &json!([{ "id": 10, "name": "A" }, { "id": 11, "name": "B", "dependencies": [10] }]));
    let replies = json!({ "ex/A": [{ "done": true, "result": "长".repeat(100_000) }], "ex/B": [{ "done": true, "result": "b" }] });
    let finished = run(&home, ("s1", &[EXECUTE]), &replies, "", "");
    let plan = plan(&home, 5, "");
    assert_eq!(field(&plan, "status"), ["failed", "skipped"], "{finished:?}");
    assert_eq!(plan["tasks"][0]["error"], "`result` can have at most 262144 bytes as JSON");
    assert_eq!(plan["status"], "failed");
}

#[test]
fn a_task_that_has_changed_since_it_was_approved_is_decided_about_again() {
    let home = Home::new();
    import(
        &home,
        &json!([{ "id": 10, "name": "deploy", "instruction": "to the test system", "metadata": { "approve": "always" } }]),
    );
    let replies = json!({ "ex/deploy": [{ "done": true, "result": "ok" }] });
    assert_eq!(run(&home, ("s1", &[EXECUTE]), &replies, "", "").code, Some(3));
    let change = "action_type: update_task, action_id: u, config: { task_id: 10, instruction: to production }";
    assert_eq!(run(&home, ("s2", &[change]), &replies, "", "").code, Some(0));
    let finished = call(&home, "approve s1 --by wang --run");
    let expected = "The task has changed since the last question:\ndeploy\nto production";
    assert!(finished.code == Some(3) && finished.out.contains(expected), "{finished:?}");
    assert_eq!(field(&plan(&home, 5, ""), "status"), ["pending"]);
    let finished = call(&home, "approve s1 --by wang --run");
    assert_eq!((finished.code, field(&plan(&home, 5, ""), "status")), (Some(0), vec![json!("completed")]));
}

#[test]
fn who_approves_a_task_sees_its_tool_and_the_arguments() {
    let home = Home::new();
    let tool = json!({ "name": "web_search", "arguments": { "query": "secret query" } });
    import(&home, &json!([{ "id": 10, "name": "整理", "metadata": { "approve": true, "tool": tool } }]));
    let finished = run(&home, ("s1", &[EXECUTE]), &json!({}), "", "");
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let listed: Value = serde_json::from_str(&done(&home, "requests list --json")).unwrap();
    let prompt = listed["requests"][0]["prompt"].as_str().unwrap();
    assert!(
        prompt.starts_with("整理\n") && prompt.contains("web_search") && prompt.contains("secret query"),
        "{prompt}"
    );
}

#[test]
fn metadata_that_decides_how_a_task_runs_is_checked() {
    let home = Home::new();
    let approve = "the parameter `metadata.approve` of `plans import` must be `always`, `never`, true or false";
    let tool =
        "the parameter `metadata.tool` of `plans import` must be a name, or an object with `name` and `arguments`";
    for (metadata, expected) in [
        (json!({ "approve": "required" }), approve),
        (json!({ "approve": "Always" }), approve),
        (json!({ "approve": 1 }), approve),
        (json!({ "tool": { "nam": "graph_rag" } }), tool),
        (json!({ "tool": { "name": "x", "args": {} } }), tool),
        (json!({ "tool": { "name": "x", "arguments": [] } }), tool),
        (json!({ "tool": " " }), tool),
        (json!({ "tool": 7 }), tool),
    ] {
        let err = rejected_import(&home, &json!([{ "id": 10, "name": "A", "metadata": metadata }]));
        assert!(err.contains(&format!("plan.json is not a plan: task 10: {expected}")), "{metadata}: {err}");
    }
    for metadata in [
        json!({ "approve": "never", "tool": "x" }),
        json!({ "approve": null, "tool": { "name": "x", "arguments": null } }),
    ] {
        import(&home, &json!([{ "id": 10, "name": "A", "metadata": metadata }]));
        done(&home, "plans delete 5");
    }
    import(&home, &json!([{ "id": 10, "name": "A" }]));
    for (action, operation) in [
        ("create_task, action_id: c, config: { plan_id: 5, task_name: B,", "create_task"),
        ("update_task, action_id: c, config: { task_id: 10,", "update_task"),
    ] {
        let finished = run(
            &home,
            (operation, &[&format!("action_type: {action} metadata: {{ approve: sometimes }} }}")]),
            &json!({}),
            "",
            "",
        );
        assert!(finished.err.contains(&format!("the parameter `metadata.approve` of `{operation}`")), "{finished:?}");
    }
}

#[test]
fn running_a_task_again_with_its_dependents_runs_no_other_task() {
    let home = Home::new();
    let mut tasks = vec![json!({ "id": 1, "name": "root", "status": "completed", "result": "r" })];
    tasks.extend((2..=130).map(
        |id| json!({ "id": id, "name": format!("dep{id}"), "dependencies": [1], "status": "completed", "result": "x" }),
    ));
    tasks.push(json!({ "id": 500, "name": "other" }));
    import(&home, &json!(tasks));
    let mut replies: serde_json::Map<String, Value> =
        (2..=130).map(|id| (format!("re/dep{id}"), json!([{ "done": true, "result": "y" }]))).collect();
    replies.insert("re/root".into(), json!([{ "done": true, "result": "y" }]));
    replies.insert("re/other".into(), json!([{ "done": true, "result": "y" }]));
    let rerun = "action_type: rerun_task, action_id: re, config: { task_id: 1, with_dependents: true }";
    let finished = run(&home, ("s1", &[rerun]), &json!(replies), "", "");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let plan = plan(&home, 5, "");
    let results = field(&plan, "result");
    assert!(results[..130].iter().all(|result| result == "y"), "{results:?}");
    assert_eq!((&plan["tasks"][130]["status"], &results[130]), (&json!("pending"), &Value::Null));
}

#[test]
fn siblings_that_are_independent_run_in_their_order() {
    let home = Home::new();
    let task = |id: u64, parent: Option<u64>| json!({ "id": id, "name": format!("t{id}"), "instruction": "do", "parent": parent });
    import(
        &home,
        &json!([task(1, None), task(2, Some(1)), task(3, Some(1)), task(4, None), task(5, Some(4)), task(6, None)]),
    );
    let replies: serde_json::Map<String, Value> =
        (1..=6).map(|id| (format!("ex/t{id}"), json!([{ "done": true, "result": "y" }]))).collect();
    let execute = "action_type: execute_plan, action_id: ex, config: { plan_id: 5, max_parallel: 1 }";
    assert_eq!(run(&home, ("s1", &[execute]), &json!(replies), "", "").code, Some(0));
    let started: Vec<u64> = events(&home, "s1", "plan_changed")
        .iter()
        .filter(|event| event["status"] == "running")
        .filter_map(|event| event["task_id"].as_u64())
        .collect();
    assert_eq!(started, [2, 3, 1, 5, 4, 6]);
}

#[test]
fn a_plan_stays_running_as_long_as_another_session_executes_it() {
    let home = Home::new();
    import(&home, &json!([{ "id": 10, "name": "A", "metadata": { "approve": "always" } }, { "id": 11, "name": "B" }]));
    let replies = json!({ "ex/A": [{ "done": true, "result": "a" }], "ex/B": [{ "done": true, "result": "b" }] });
    let execute = "action_type: execute_plan, action_id: ex, config: { plan_id: 5, output: { s: status } }";
    assert_eq!(run(&home, ("s1", &[execute]), &replies, "", "").code, Some(3));
    // B is over, and A waits for a decision in the first session.
    let change = "action_type: create_task, action_id: c, config: { plan_id: 5, task_name: C }";
    let again = "action_type: rerun_task, action_id: ex, config: { task_id: 11, output: { s: status } }";
    let say = "action_type: ai_say, action_id: say, config: { content: '{{ s }}', delivery: verbatim }";
    let second = run(&home, ("s2", &[change, again, say]), &replies, "", "");
    assert_eq!((second.code, second.out.as_str()), (Some(0), "running\n"), "{second:?}");
    assert_eq!(plan(&home, 5, "")["status"], "running");
    let third = run(&home, ("s3", &[execute, say]), &json!({ "ex/C": [{ "done": true, "result": "c" }] }), "", "");
    assert_eq!(third.code, Some(3), "{third:?}");
    done(&home, "sessions delete s3");
    assert_eq!(plan(&home, 5, "")["status"], "running");
    done(&home, "sessions delete s1");
    assert_eq!(plan(&home, 5, "")["status"], "pending");
}

#[test]
fn an_imported_id_leaves_room_for_new_ones() {
    let home = Home::new();
    for (plan_id, task) in [(9_007_199_254_740_991_u64, 1), (1, 1_000_000_000_001)] {
        let document =
            json!({ "bcc_plan": 1, "plan_id": plan_id, "title": "x", "tasks": [{ "id": task, "name": "A" }] });
        home.file("plan.json", &document.to_string());
        let finished = call(&home, "plans import plan.json");
        assert_eq!(finished.code, Some(2), "{finished:?}");
        let expected = format!(
            "the id {} is higher than 1000000000000 and cannot be kept; `--new-ids` gives new ids",
            plan_id.max(task)
        );
        assert!(finished.err.contains(&expected), "{finished:?}");
        done(&home, "plans import plan.json --new-ids");
    }
    assert_eq!(field(&plan(&home, 2, ""), "id"), [2]);
}

const ACT: &str = "action_type: ai_act, action_id: act, config: { content: plan, max_rounds: 4, operations: [create_plan, create_task] }";

/// Two rounds: the model makes a plan, and adds a task.
fn act_replies() -> Value {
    let operation =
        |kind: &str, name: &str, parameters: Value| json!({ "kind": kind, "name": name, "parameters": parameters });
    json!({ "act": [
        { "llm_reply": { "message": "Which report?" }, "actions": [operation("plan_operation", "create_plan", json!({ "goal": "g" }))] },
        { "title": "t", "tasks": [{ "name": "A" }] },
        { "llm_reply": { "message": "Another chapter?" }, "actions": [operation("task_operation", "create_task", json!({ "task_name": "C" }))] },
        { "llm_reply": { "message": "And now?" }, "actions": [operation("task_operation", "create_task", json!({ "task_name": "D" }))] },
    ] })
}

#[test]
fn the_open_question_after_operations_has_its_text_also_when_an_answer_is_taken_back() {
    let home = Home::new();
    let finished = run(&home, ("s1", &[ACT]), &act_replies(), "", "");
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert_eq!(events(&home, "s1", "waiting")[0]["prompt"], "Which report?");
    let mut terminal = Terminal::start(&home, &["sessions", "resume", "s1"], false);
    terminal.until("Which report?");
    terminal.answers("long");
    terminal.until("Another chapter?");
    terminal.answers("/back");
    terminal.until("(your last answer was taken back)");
    // Its edits of the plan are not undone.
    terminal.until("(not undone: changes in plans: 1)");
    terminal.until("Which report?");
    terminal.answers("/quit");
    assert_eq!(terminal.end(), Some(3));
    let waiting: Vec<Value> = events(&home, "s1", "waiting").iter().map(|event| event["prompt"].clone()).collect();
    assert!(waiting.iter().all(|prompt| prompt != ""), "{waiting:?}");
    assert_eq!(events(&home, "s1", "taken_back")[0]["plans"], json!([1]));
    assert_eq!(home.export("s1")["taken_back"][0]["plans"], json!([1]));
}

#[test]
fn what_is_wrong_in_a_plan_of_a_model_is_left_out_and_the_rest_stays() {
    let home = Home::new();
    let actions = [
        "action_type: create_plan, action_id: mk, config: { goal: g, output: { made: result } }",
        "action_type: decompose_task, action_id: de, config: { task_id: 1, output: { divided: result } }",
        "action_type: ai_say, action_id: say, config: { content: '{{ made }} {{ divided }}', delivery: verbatim }",
    ];
    let replies = json!({
        "mk": [{ "title": "t", "tasks": [{ "name": "A", "depends_on": null }, 7, { "name": "B", "depends_on": "A" }, { "name": "C", "instruction": 5, "depends_on": ["B", 9] }] }],
        "de": [{ "tasks": [{ "name": "A1", "instruction": "x", "depends_on": null }, { "name": 3 }, { "name": "A2", "depends_on": ["A1"] }] }],
    });
    let finished = run(&home, ("s1", &actions), &replies, "", "");
    let made = plan(&home, 1, "");
    assert_eq!(field(&made, "name"), ["A", "A1", "A2", "B", "C"], "{finished:?}");
    let depends: Vec<Value> = field(&made, "dependencies").into_iter().filter(|ids| ids.is_array()).collect();
    assert_eq!(depends, [json!([4]), json!([1]), json!([2])]);
    for problem in [
        "a task without a name was left out",
        "the `instruction` of the task \\\"C\\\" was left out: it is no text",
        "a dependency of the task \\\"C\\\" was left out: it is no name",
    ] {
        assert!(finished.out.contains(problem), "{problem}: {finished:?}");
    }
}

#[test]
fn sensitive_values_of_every_session_that_changed_a_plan_are_masked_also_after_it_is_deleted() {
    let home = Home::new();
    import(
        &home,
        &json!([{ "id": 10, "name": "A", "instruction": "visit", "result": "r", "status": "completed", "metadata": { "approve": true, "k": "v" } }]),
    );
    let update = "action_type: update_task, action_id: u, config: { task_id: 10, instruction: 'call {{ name }}' }";
    home.file("replies.json", &json!({ "replies": {} }).to_string());
    let declared =
        script(&[update]).replace("  phases:", "  declare: [{ var: name, type: string, sensitive: true }]\n  phases:");
    home.file("script.yaml", &declared);
    done(&home, "run script.yaml --session s1 --model replay:replies.json --var name=Katharina");
    let masked = plan(&home, 5, "");
    assert_eq!((&masked["tasks"][0]["instruction"], &masked["title"]), (&json!("call ***"), &json!("发布")));
    // Another session, which knows no sensitive values.
    run(
        &home,
        ("s2", &["action_type: create_task, action_id: c, config: { plan_id: 5, task_name: B }"]),
        &json!({}),
        "",
        "",
    );
    done(&home, "sessions delete s2");
    assert_eq!(plan(&home, 5, "")["tasks"][1]["name"], "B");
    done(&home, "sessions delete s1");
    // A session with the same id knows other values.
    home.file(
        "script.yaml",
        &declared.replace(
            "update_task, action_id: u, config: { task_id: 10, instruction: 'call {{ name }}' }",
            "list_plans, action_id: u",
        ),
    );
    done(&home, "run script.yaml --session s1 --model replay:replies.json --var name=Otto");
    let finished = call(&home, "plans export 5");
    assert!(
        !finished.out.contains("Katharina") && finished.err.contains("all texts of plan 5 are masked"),
        "{finished:?}"
    );
    let masked: Value = serde_json::from_str(&finished.out).unwrap();
    let task = &masked["tasks"][0];
    assert_eq!(
        (&task["name"], &task["result"], &task["metadata"]),
        (&json!("***"), &json!("***"), &json!({ "approve": true }))
    );
    assert_eq!((&masked["title"], &task["status"]), (&json!("***"), &json!("completed")));
    let listed = call(&home, "plans list");
    assert!(listed.out.ends_with("\t***\n"), "{listed:?}");
    assert!(!call(&home, "plans show 5").out.contains("Katharina"));
    assert_eq!(plan(&home, 5, "--include-sensitive")["tasks"][0]["instruction"], "call Katharina");
}

#[test]
fn an_integer_that_a_plan_cannot_keep_is_refused() {
    let home = Home::new();
    for fields in [
        r#""metadata":{"id":123456789012345678901234567890}"#,
        r#""result":[{"a":-99999999999999999999}],"status":"completed""#,
    ] {
        home.file(
            "plan.json",
            &format!(r#"{{"bcc_plan":1,"plan_id":5,"title":"x","tasks":[{{"id":10,"name":"A",{fields}}}]}}"#),
        );
        let finished = call(&home, "plans import plan.json");
        assert_eq!(finished.code, Some(2), "{finished:?}");
        assert!(
            finished.err.contains("9 cannot be kept exactly") || finished.err.contains("0 cannot be kept exactly"),
            "{finished:?}"
        );
    }
    // 64 bits are kept, and so is a fraction, although not how it was written.
    home.file("plan.json", r#"{"bcc_plan":1,"plan_id":5,"title":"x","tasks":[{"id":10,"name":"A","metadata":{"id":18446744073709551615,"p":1.50}}]}"#);
    done(&home, "plans import plan.json");
    assert_eq!(plan(&home, 5, "")["tasks"][0]["metadata"], json!({ "id": u64::MAX, "p": 1.5 }));
    let create = "action_type: create_task, action_id: c, config: { plan_id: 5, task_name: B, metadata: '{{ m }}' }";
    let declared = script(&[create]).replace("  phases:", "  declare: [{ var: m, type: object }]\n  phases:");
    home.file("script.yaml", &declared);
    let finished = call(&home, r#"run script.yaml --var m={"order":123456789012345678901234567890}"#);
    assert!(finished.err.contains("the number 123456789012345678901234567890 cannot be kept exactly"), "{finished:?}");
}

/// A topic whose monitor requests a plan of the rest, and the replies: both come after the question that they do not hold up.
const PLANNED: &str = r#"
session:
  session_id: m
  template_scheme: english
  phases:
    - phase_id: talk
      topics:
        - topic_id: family
          topic_goal: g
          strategy: { text: gentle, orchestration: on }
          actions:
            - { action_type: ai_ask, action_id: a1, config: { content: Q1, max_rounds: 4 } }
            - { action_type: ai_ask, action_id: a2, config: { content: Q2, max_rounds: 2 } }
"#;

#[test]
fn what_was_planned_after_an_answer_that_was_taken_back_is_no_plan_and_calls_have_ids_of_their_own() {
    let home = Home::new();
    home.file("script.yaml", PLANNED);
    let round = |content: &str, exit: &str| json!({ "content": content, "EXIT": exit, "metrics": { "user_engagement": "low" } });
    let advice = json!({ "intervention_needed": true, "intervention_reason": "blocked", "feedback_for_action": "x", "orchestration_needed": true });
    let insert = json!({ "action": "insert", "new_action": { "type": "ai_ask", "id": "n1", "content_template": "b" }, "target_position": "after_current", "reason": "r" });
    let replies = json!({
        "a1": [round("first?", "NO"), round("second?", "NO"), round("third?", "NO"), round("fourth?", "NO")],
        "monitor:a1": [{ "$after_ms": 1_000, "reply": advice }, { "intervention_needed": false }, { "intervention_needed": false }],
        "orchestrator:a1": [insert],
    });
    home.file("replies.json", &json!({ "replies": replies }).to_string());
    let mut terminal =
        Terminal::start(&home, &["run", "script.yaml", "--session", "s1", "--model", "replay:replies.json"], false);
    terminal.until("first?");
    terminal.answers("x");
    terminal.until("second?");
    // The analysis of the first answer is not ready before the second answer is given.
    terminal.answers("y");
    terminal.until("third?");
    terminal.until("a plan changed the rest of this topic");
    terminal.types("/plan\r");
    terminal.until("insert accepted");
    terminal.answers("/back");
    terminal.until("second?");
    // The analysis starts again, and requests a plan again.
    terminal.until("a plan changed the rest of this topic");
    terminal.types("/plan\r");
    terminal.until("insert accepted");
    terminal.answers("/quit");
    assert_eq!(terminal.end(), Some(3));
    let ids: Vec<String> =
        journal(&home, "s1").iter().filter_map(|event| event["call_id"].as_str().map(str::to_owned)).collect();
    assert_eq!(terminal.all_output().matches("insert accepted").count(), 2, "the second list has only the second plan");
    let monitors = ids.iter().filter(|id| id.contains(".m")).count();
    let different: std::collections::BTreeSet<&String> = ids.iter().collect();
    assert!(monitors >= 2 && different.len() == ids.len(), "{ids:?}");
}
