//! The table of operations: what each of them does with each of its parameters (`operations.yaml`), written by an author and by a model.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::process::Home;

const BASE: &str = "One(A B C) Two(Data) Notes";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OperationCase {
    operation: String,
    parameters: Map<String, Value>,
    result: Option<Value>,
    error: Option<String>,
    tree: Option<String>,
    /// A part of what plan 42 stores of the task with this name.
    task: Option<Value>,
    #[serde(default)]
    replies: BTreeMap<String, Vec<Value>>,
}

fn cases() -> Vec<OperationCase> {
    serde_yaml::from_str(include_str!("operations.yaml")).unwrap()
}

/// A store with the plans.
fn seeded() -> Home {
    let home = Home::new();
    let task = |id: u64, parent: Option<u64>, name: &str, more: Value| {
        let mut task = json!({ "id": id, "name": name });
        if let Some(parent) = parent {
            task["parent"] = parent.into();
        }
        for (key, value) in more.as_object().unwrap() {
            task[key] = value.clone();
        }
        task
    };
    let report = json!([
        task(1, None, "One", json!({})),
        task(11, Some(1), "A", json!({ "status": "completed", "result": "a" })),
        task(12, Some(1), "B", json!({ "dependencies": [11], "status": "completed", "result": "b" })),
        task(13, Some(1), "C", json!({ "dependencies": [12] })),
        task(2, None, "Two", json!({})),
        task(21, Some(2), "Data", json!({})),
        task(3, None, "Notes", json!({ "instruction": "Write.", "dependencies": [21] })),
    ]);
    let other =
        json!(
            [task(104, None, "方法", json!({ "instruction": "写。" })), task(215, Some(104), "数据准备", json!({})),]
        );
    let private = json!([task(71, None, "Secret", json!({}))]);
    for (id, title, tasks, user) in
        [(42, "Report", report, "default"), (28, "Other", other, "default"), (7, "Private", private, "ben")]
    {
        home.file(
            "plan.json",
            &json!({ "bcc_plan": 1, "plan_id": id, "title": title, "goal": "g", "tasks": tasks }).to_string(),
        );
        let imported = home.finish(["plans", "import", "plan.json", "--user", user], "");
        assert_eq!(imported.code, Some(0), "{imported:?}");
    }
    home
}

fn copy(from: &Home, to: &Home) {
    fs::create_dir_all(to.path().join(".bcc")).unwrap();
    for entry in fs::read_dir(from.path().join(".bcc")).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), to.path().join(".bcc").join(entry.file_name())).unwrap();
        }
    }
}

/// The tasks of plan 42; none if it is gone.
fn tasks(home: &Home) -> Vec<Value> {
    let exported = home.finish(["plans", "export", "42"], "");
    if exported.code != Some(0) {
        return vec![];
    }
    let plan: Value = serde_json::from_str(&exported.out).unwrap();
    plan["tasks"].as_array().unwrap().clone()
}

/// `One(A B) Two`: the tasks by name.
fn tree(tasks: &[Value]) -> String {
    fn level(tasks: &[Value], parent: &Value) -> String {
        let own = tasks.iter().filter(|task| task["parent"] == *parent);
        let named = own.map(|task| match level(tasks, &task["id"]) {
            children if children.is_empty() => task["name"].as_str().unwrap().to_owned(),
            children => format!("{}({children})", task["name"].as_str().unwrap()),
        });
        named.collect::<Vec<_>>().join(" ")
    }
    level(tasks, &Value::Null)
}

/// Whether `found` has everything that `expected` has.
fn contains(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            expected.iter().all(|(key, value)| found.get(key).is_some_and(|found| contains(found, value)))
        }
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len()
                && found.iter().zip(expected).all(|(found, expected)| contains(found, expected))
        }
        (found, expected) => found == expected,
    }
}

/// What is wrong with the case.
fn run(seed: &Home, case: &OperationCase, by_model: bool) -> Result<(), String> {
    let home = Home::new();
    copy(seed, &home);
    home.file("bcc-script.toml", "[models.default]\nprovider = \"replay\"\nfile = \"replies.json\"\n");
    let mut replies = case.replies.clone();
    let (kind, name) = ("action_type", case.operation.as_str());
    let action = match by_model {
        false => json!({ kind: name, "action_id": "act", "config": case.parameters }),
        true => {
            let group = match name {
                "create_plan" | "list_plans" | "execute_plan" | "delete_plan" => "plan_operation",
                "request_subgraph" => "context_request",
                _ => "task_operation",
            };
            let operation =
                json!({ "kind": group, "name": name, "parameters": case.parameters, "blocking": true, "order": 1 });
            let message = json!({ "message": "Done." });
            let own = replies.entry("act".to_owned()).or_default();
            own.insert(0, json!({ "llm_reply": message, "actions": [operation] }));
            own.push(json!({ "llm_reply": message, "actions": [] }));
            json!({ kind: "ai_act", "action_id": "act", "config": { "content": "x", "operations": [name] } })
        }
    };
    home.file("replies.json", &json!({ "replies": replies }).to_string());
    let topic = json!({ "topic_id": "t", "actions": [action] });
    home.file(
        "s.yaml",
        &json!({ "session": { "session_id": "s", "phases": [{ "phase_id": "p", "topics": [topic] }] } }).to_string(),
    );
    let ran = home.finish(["run", "s.yaml", "--json", "--session", "one"], "");
    let last = |kind: &str| ran.events().into_iter().rfind(|event| event["type"] == kind).unwrap_or_default();
    let outcome = last("outcome");
    let (result, error) = match by_model {
        true => {
            let entry = &outcome["metadata"]["actions"][0];
            (entry["result"].clone(), entry["error"].as_str().unwrap_or_default().to_owned())
        }
        // What a check of the script finds is said before it runs.
        false if ran.code == Some(2) => (Value::Null, ran.err.clone()),
        false => {
            (outcome["metadata"]["result"].clone(), last("error")["message"].as_str().unwrap_or_default().to_owned())
        }
    };
    match &case.error {
        Some(expected) if error.contains(expected) => {}
        None if error.is_empty() && ran.code == Some(0) => {}
        _ => return Err(format!("code {:?}, error {error:?}, {}", ran.code, ran.err)),
    }
    if let Some(expected) = case.result.as_ref().filter(|expected| !contains(&result, expected)) {
        return Err(format!("result {result}, expected {expected}"));
    }
    let tasks = tasks(&home);
    let (found, expected) = (tree(&tasks), case.tree.as_deref().unwrap_or(BASE));
    if found != expected {
        return Err(format!("tree {found}, expected {expected}"));
    }
    let stored = |expected: &Value| tasks.iter().find(|task| task["name"] == expected["name"]).cloned();
    match &case.task {
        Some(expected) if !stored(expected).is_some_and(|found| contains(&found, expected)) => {
            Err(format!("stored {:?}, expected {expected}", stored(expected)))
        }
        _ => Ok(()),
    }
}

#[test]
fn every_operation_does_with_each_parameter_what_the_table_says() {
    let seed = seeded();
    assert_eq!(tree(&tasks(&seed)), BASE);
    let cases = cases();
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    for by_model in [false, true] {
                        if let Err(why) = run(&seed, case, by_model) {
                            let parameters = Value::Object(case.parameters.clone());
                            let form = if by_model { "by a model" } else { "as an action" };
                            wrong.lock().unwrap().push(format!("{} {parameters} {form}: {why}", case.operation));
                        }
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_parameter_of_every_operation_is_in_the_table() {
    let mut tested: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for case in cases().into_iter().filter(|case| case.error.is_none()) {
        tested.entry(case.operation).or_default().extend(case.parameters.into_iter().map(|(name, _)| name));
    }
    let mut pages = 0;
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/actions")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let Some((_, fields)) = text.split_once("An operation on [plans]") else { continue };
        let operation = path.file_stem().unwrap().to_str().unwrap();
        let config = fields.split("## Example").next().unwrap();
        let names = config.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        let documented: BTreeSet<String> = names.filter(|name| *name != "output").map(str::to_owned).collect();
        assert_eq!(tested.remove(operation).unwrap_or_default(), documented, "{operation}");
        pages += 1;
    }
    assert!(pages >= 14, "{pages} pages");
    assert_eq!(tested.keys().collect::<Vec<_>>(), [""; 0], "operations without a page");
}
