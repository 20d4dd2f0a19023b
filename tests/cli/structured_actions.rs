//! Tests of `ai_act` through the program: the examples of the format as models write them, and a SIGKILL after every change of a plan.

use serde_json::{Value, json};

use crate::process::{Finished, Home, finished};

const RUN: [&str; 5] = ["run", "s.yaml", "--json", "--session", "one"];

/// A project with one `ai_act` and these replies, one list for each name.
fn project(config: &Value, replies: &Value) -> Home {
    let home = Home::new();
    home.file("bcc-script.toml", "[models.default]\nprovider = \"replay\"\nfile = \"replies.json\"\n");
    home.file("replies.json", &json!({ "replies": replies }).to_string());
    let action = json!({ "action_type": "ai_act", "action_id": "act", "config": config });
    let topic = json!({ "topic_id": "t", "actions": [action] });
    let script = json!({ "session": { "session_id": "s", "tools": ["graph_rag"],
        "phases": [{ "phase_id": "p", "topics": [topic] }] } });
    home.file("s.yaml", &script.to_string());
    home
}

fn plan(home: &Home, id: &str) -> Value {
    let exported = home.finish(["plans", "export", id], "");
    assert_eq!(exported.code, Some(0), "{exported:?}");
    serde_json::from_str(&exported.out).unwrap()
}

fn import(home: &Home, plan: &Value) {
    home.file("plan.json", &plan.to_string());
    let imported = home.finish(["plans", "import", "plan.json"], "");
    assert_eq!(imported.code, Some(0), "{imported:?}");
}

/// The names of the tasks of a plan, in their order, each after the one that contains it.
fn names(plan: &Value) -> Vec<String> {
    plan["tasks"].as_array().unwrap().iter().map(|task| task["name"].as_str().unwrap().to_owned()).collect()
}

fn outcome(ended: &Finished) -> Value {
    let is_last = |event: &Value| event["type"] == "outcome" && event["completed"] == true;
    ended.events().into_iter().rfind(is_last).unwrap_or_else(|| panic!("{ended:?}"))
}

fn with_plans(home: &Home) {
    import(
        home,
        &json!({ "bcc_plan": 1, "plan_id": 42, "title": "白皮书", "goal": "g", "tasks": [
        { "id": 17, "name": "基因编辑", "instruction": "写清楚进展" }, { "id": 18, "parent": 17, "name": "里程碑" },
    ] }),
    );
    import(
        home,
        &json!({ "bcc_plan": 1, "plan_id": 28, "title": "研究", "goal": "g", "tasks": [
        { "id": 104, "name": "方法" }, { "id": 215, "parent": 104, "name": "数据准备" },
    ] }),
    );
}

#[test]
fn the_first_example_creates_a_root_task() {
    let reply = json!({
        "llm_reply": { "message": "已为计划 42 创建根任务，可继续细化章节。" },
        "actions": [{
            "kind": "task_operation", "name": "create_task",
            "parameters": {
                "plan_id": 42, "task_name": "Gene Editing Whitepaper - Overview", "task_type": "root",
                "instruction": "Compile the latest research milestones and key challenges."
            },
            "blocking": true, "order": 1
        }]
    });
    let home = project(&json!({ "content": "x" }), &json!({ "act": [reply] }));
    with_plans(&home);
    let ended = home.finish(RUN, "");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let plan = plan(&home, "42");
    assert_eq!(names(&plan), ["基因编辑", "里程碑", "Gene Editing Whitepaper - Overview"]);
    assert_eq!(plan["tasks"][2]["task_type"], "root");
    assert_eq!(plan["tasks"][2]["parent"], Value::Null);
    let messages: Vec<Value> = ended.events().into_iter().filter(|event| event["type"] == "message").collect();
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0]["text"], "已为计划 42 创建根任务，可继续细化章节。");
    assert_eq!(outcome(&ended)["metadata"]["plan_id"], 42);
}

#[test]
fn the_second_example_asks_for_details_and_is_answered_in_the_same_turn() {
    let request = json!({
        "llm_reply": { "message": "我需要进一步展开任务 17 的细节才能决定下一步。" },
        "actions": [{
            "kind": "context_request", "name": "request_subgraph", "parameters": { "logical_id": 17 },
            "blocking": true, "order": 1
        }]
    });
    let after = json!({ "llm_reply": { "message": "下面有一个里程碑。" }, "actions": [] });
    let home = project(&json!({ "content": "x" }), &json!({ "act": [request, after] }));
    with_plans(&home);
    let ended = home.finish(RUN, "");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let done = outcome(&ended);
    let entry = &done["metadata"]["actions"][0];
    assert_eq!((&entry["status"], &entry["result"]["plan_id"]), (&json!("success"), &json!(42)));
    assert!(entry["result"].to_string().contains("里程碑"), "{entry}");
    assert_eq!(done["ai_message"], "下面有一个里程碑。");
}

#[test]
fn the_third_example_searches_the_graph_and_its_result_is_kept() {
    let search = json!({
        "llm_reply": { "message": "已检索噬菌体与宿主互作知识图谱，以下是关键关系摘要。" },
        "actions": [{
            "kind": "tool_operation", "name": "graph_rag",
            "parameters": {
                "query": "How do T4 phages attach to E. coli?", "top_k": 12, "hops": 1, "return_subgraph": true,
                "focus_entities": ["T4 phage", "E. coli"]
            },
            "blocking": true, "order": 1
        }]
    });
    let after = json!({ "llm_reply": { "message": "T4 通过 OmpC 附着。" }, "actions": [] });
    let home = project(&json!({ "content": "x" }), &json!({ "act": [search, after] }));
    home.file(
        "bcc-script.toml",
        "[models.default]\nprovider = \"replay\"\nfile = \"replies.json\"\n[tools.graph_rag]\nsources = [\"phages.csv\"]\n",
    );
    home.file(
        "phages.csv",
        "subject,predicate,object\nT4 phage,attaches to,OmpC\nOmpC,is a porin of,E. coli\nLambda,attaches to,LamB\n",
    );
    let ended = home.finish(RUN, "");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let results = &outcome(&ended)["metadata"]["tool_results"];
    assert_eq!(results[0]["status"], "success", "{results}");
    let text = results[0]["result"].to_string();
    assert!(text.contains("OmpC") && text.contains("phages.csv:2"), "{text}");
    assert!(results[0]["result"]["subgraph"].is_object(), "{text}");
    // Later rounds and prompts find it in the variable.
    let kept = &home.export("one")["variables"]["session"]["recent_tool_results"]["value"];
    assert_eq!(kept[0]["tool"], "graph_rag");
}

#[test]
fn the_fourth_example_inserts_a_task_before_its_sibling() {
    let reply = json!({
        "llm_reply": { "message": "将在章节“数据准备”之前补充概述步骤。" },
        "actions": [{
            "kind": "task_operation", "name": "create_task",
            "parameters": {
                "plan_id": 28, "parent_id": 104, "task_name": "研究流程概览", "anchor_task_id": 215,
                "anchor_position": "before", "instruction": "总结后续实验的目标、输入数据和预期产出。"
            },
            "blocking": true, "order": 1
        }]
    });
    let home = project(&json!({ "content": "x" }), &json!({ "act": [reply] }));
    with_plans(&home);
    assert_eq!(home.finish(RUN, "").code, Some(0));
    assert_eq!(names(&plan(&home, "28")), ["方法", "研究流程概览", "数据准备"]);
}

#[test]
fn the_plan_of_another_user_does_not_exist() {
    let reply = json!({ "llm_reply": { "message": "…" }, "actions": [
        { "kind": "plan_operation", "name": "list_plans", "order": 1 },
        { "kind": "task_operation", "name": "show_tasks", "parameters": { "plan_id": 42 }, "order": 2 },
        { "kind": "task_operation", "name": "delete_task", "parameters": { "task_id": 17 }, "order": 3 },
    ] });
    let after = json!({ "llm_reply": { "message": "没有。" }, "actions": [] });
    let home = project(&json!({ "content": "x" }), &json!({ "act": [reply, after] }));
    with_plans(&home);
    let ended = home.finish([&RUN[..], &["--user", "somebody"]].concat(), "");
    let entries = outcome(&ended)["metadata"]["actions"].clone();
    assert_eq!(entries[0]["result"], json!({ "plans": [] }));
    assert!(entries[1]["error"].as_str().unwrap().contains("there is no plan 42"), "{entries}");
    assert!(entries[2]["error"].as_str().unwrap().contains("there is no task 17"), "{entries}");
    assert_eq!(plan(&home, "42")["tasks"].as_array().unwrap().len(), 2);
}

#[test]
fn a_session_that_somebody_else_started_has_no_tools() {
    let call = json!({ "kind": "tool_operation", "name": "graph_rag", "parameters": { "query": "T4" } });
    let search = json!({ "llm_reply": { "message": "…" }, "actions": [call] });
    let after = json!({ "llm_reply": { "message": "So it is." }, "actions": [] });
    for (started_by_other, status) in [(false, "success"), (true, "failed")] {
        let config = json!({ "content": "x", "opening": "listen" });
        let home = project(&config, &json!({ "act": [search.clone(), after.clone()] }));
        home.file(
            "bcc-script.toml",
            "[models.default]\nprovider = \"replay\"\nfile = \"replies.json\"\n[tools.graph_rag]\nsources = [\"phages.csv\"]\n",
        );
        home.file("phages.csv", "subject,predicate,object\nT4 phage,attaches to,OmpC\n");
        let mut command = home.command(RUN);
        if started_by_other {
            command.env("XDG_CONFIG_HOME", home.path().join("other"));
        }
        let started = finished(command, "");
        assert_eq!(started.code, Some(3), "{started:?}");
        let resumed = home.finish(RUN, "T4?\n");
        let entry = outcome(&resumed)["metadata"]["actions"][0].clone();
        assert_eq!(entry["status"], status, "{entry}");
        assert_eq!(entry.to_string().contains("may come from somebody else"), started_by_other, "{entry}");
    }
}

#[test]
fn a_round_has_at_most_twenty_calls_of_tools_and_long_results_are_cut() {
    let call = |number: u32| {
        json!({ "kind": "tool_operation", "name": "graph_rag", "order": number,
        "parameters": { "query": format!("phage {number}"), "top_k": 200 } })
    };
    let search = json!({ "llm_reply": { "message": "…" }, "actions": (1..=22).map(call).collect::<Vec<_>>() });
    let after = json!({ "llm_reply": { "message": "Enough." }, "actions": [] });
    let home = project(&json!({ "content": "x" }), &json!({ "act": [search, after] }));
    home.file(
        "bcc-script.toml",
        "[models.default]\nprovider = \"replay\"\nfile = \"replies.json\"\n[tools.graph_rag]\nsources = [\"phages.csv\"]\n",
    );
    let rows: String =
        (0..200).map(|row| format!("phage {row},{},receptor {row}\n", "binds strongly to ".repeat(5))).collect();
    home.file("phages.csv", &format!("subject,predicate,object\n{rows}"));
    let metadata = outcome(&home.finish(RUN, ""))["metadata"].clone();
    let entries = metadata["actions"].as_array().unwrap();
    let statuses: Vec<&str> = entries.iter().map(|entry| entry["status"].as_str().unwrap()).collect();
    assert_eq!(statuses.iter().filter(|status| **status == "success").count(), 20, "{statuses:?}");
    assert!(entries[20]["error"].as_str().unwrap().contains("at most 20 calls"), "{}", entries[20]);
    assert_eq!(metadata["tool_results"].as_array().unwrap().len(), 20);
    assert!(entries.iter().all(|entry| entry.to_string().len() < 20 * 1024));
}

/// The replies of a whole plan: made, changed, divided and run.
fn whole_plan() -> Value {
    let operation = |order: u32, kind: &str, name: &str, parameters: Value| json!({ "kind": kind, "name": name, "parameters": parameters, "order": order });
    let actions = json!([
        operation(1, "plan_operation", "create_plan", json!({ "goal": "A report" })),
        operation(2, "task_operation", "create_task", json!({ "task_name": "Cover", "position": 0 })),
        operation(3, "task_operation", "update_task", json!({ "task_name": "Cover", "instruction": "Paint it." })),
        operation(4, "task_operation", "decompose_task", json!({ "task_id": null, "node_budget": 2 })),
        operation(5, "task_operation", "delete_task", json!({ "task_name": "Noise" })),
        operation(6, "plan_operation", "execute_plan", json!({})),
    ]);
    let done = |text: &str| json!([{ "done": true, "problem": null, "result": text }]);
    json!({
        "act": [
            { "llm_reply": { "message": "I make it." }, "actions": actions },
            { "title": "Report", "tasks": [{ "name": "Data", "instruction": "collect" }, { "name": "Advice", "instruction": "advise", "depends_on": ["Data"] }] },
            { "tasks": [] },
            { "tasks": [{ "name": "Nights", "instruction": "count" }, { "name": "Noise" }] },
            { "llm_reply": { "message": "All is done." }, "actions": [] },
        ],
        "act/Cover": done("blue"), "act/Nights": done("7"), "act/Data": done("7 nights"), "act/Advice": done("sleep"),
    })
}

const OPERATIONS: [&str; 6] =
    ["create_plan", "create_task", "update_task", "decompose_task", "delete_task", "execute_plan"];

/// The id of the only plan. It is not 1 if a process was killed between the reservation of the id and the commit of the plan.
fn only_plan(home: &Home) -> String {
    let listed = home.finish(["plans", "list", "--json"], "");
    let listed: Value = serde_json::from_str(&listed.out).unwrap();
    let plans = listed["plans"].as_array().unwrap();
    assert_eq!(plans.len(), 1, "{listed}");
    plans[0]["plan_id"].to_string()
}

/// What a plan must be at the end, whatever happened in between. Ids have gaps after a kill.
fn summary(plan: &Value) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let tasks = plan["tasks"].as_array().unwrap().iter();
    tasks.map(|task| (text(&task["name"]), text(&task["status"]), text(&task["result"]))).collect()
}

#[test]
fn a_sigkill_after_every_change_of_a_plan_loses_and_repeats_nothing() {
    let config = json!({ "content": "x", "operations": OPERATIONS });
    let undisturbed = project(&config, &whole_plan());
    let ended = undisturbed.finish(RUN, "");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let expected = summary(&plan(&undisturbed, "1"));
    let names: Vec<&str> = expected.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["Cover", "Data", "Nights", "Advice"]);
    assert!(expected.iter().all(|(_, status, _)| status == "completed"), "{expected:?}");
    for count in 1.. {
        let home = project(&config, &whole_plan());
        let mut running = home.start(RUN);
        running.end_input();
        let mut seen = 0;
        let mut was_killed = false;
        while let Some(event) = running.event() {
            let kind = event["type"].as_str().unwrap_or_default();
            seen += usize::from(["plan_changed", "model_call", "outcome"].contains(&kind));
            if seen == count {
                running.kill();
                was_killed = true;
                break;
            }
        }
        if !was_killed {
            assert!(count > 20, "only {count} points");
            break;
        }
        let resumed = home.finish(["sessions", "resume", "one", "--json", "--after", "0"], "");
        assert!(matches!(resumed.code, Some(0 | 4)), "{count}: {resumed:?}");
        assert_eq!(summary(&plan(&home, &only_plan(&home))), expected, "after {count}");
        if resumed.code == Some(4) {
            continue;
        }
        let events = resumed.events();
        let made = events.iter().filter(|event| event["type"] == "plan_changed");
        let made: Vec<&str> = made.filter_map(|event| event["operation"].as_str()).collect();
        for operation in ["create_plan", "create_task", "update_task", "decompose_task", "delete_task"] {
            let times = made.iter().filter(|name| **name == operation).count();
            assert_eq!(times, 1, "{operation} after {count}: {made:?}");
        }
    }
}
