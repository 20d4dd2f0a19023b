//! Tests of `plans`: what a person lists, sees, exports, imports and deletes (docs/plans.md).

use std::sync::Arc;

use bcc_runtime::plan::access::PlanAccess;
use bcc_runtime::plan::operation::TaskOperation;
use bcc_store::sqlite::open::open;
use serde_json::{Value, json};

use crate::process::Home;

/// Runs a command and returns its exit code, its output, and what it reported.
fn call(home: &Home, line: &str) -> (i32, String, String) {
    let finished = home.finish(line.split(' '), "");
    (finished.code.unwrap(), finished.out, finished.err)
}

/// The output of a command that succeeds.
fn done(home: &Home, line: &str) -> String {
    let (code, out, err) = call(home, line);
    assert_eq!(code, 0, "{line}: {out}{err}");
    out
}

fn rejected(home: &Home, line: &str) -> String {
    let (code, out, err) = call(home, line);
    assert_eq!((code, out.as_str()), (2, ""), "{line}: {err}");
    err
}

fn document(plan: u64) -> Value {
    json!({
        "bcc_plan": 1, "plan_id": plan, "title": "Gene Editing Whitepaper", "goal": "Write it.", "status": "running",
        "tasks": [
            { "id": 104, "name": "Overview", "status": "completed", "result": "Done.\n# No heading", "instruction": "Compile *all*." },
            { "id": 216, "parent": 104, "name": "分析", "dependencies": [215], "status": "failed", "error": "no data" },
            { "id": 215, "parent": 104, "name": "数据准备", "status": "running" },
            { "id": 300, "name": "Report \u{1b}[31m<script>[x](y)", "dependencies": [104] },
        ],
    })
}

fn import(home: &Home, plan: u64) {
    home.file("plan.json", &document(plan).to_string());
    let (code, out, err) = call(home, "plans import plan.json");
    assert_eq!((code, out.as_str(), err), (0, "", format!("imported plan {plan} with 4 tasks\n")));
}

#[test]
fn a_plan_is_imported_with_its_ids_listed_and_shown_as_a_tree() {
    let home = Home::new();
    let (code, out, err) = call(&home, "plans list");
    assert_eq!((code, out.as_str(), err.as_str()), (0, "", "no plans yet\n"));
    import(&home, 42);
    let listed = done(&home, "plans list");
    assert!(listed.starts_with("42\tpending\t1 of 4 tasks completed\t20"), "{listed}");
    assert!(listed.ends_with("\tGene Editing Whitepaper\n"), "{listed}");
    let listed: Value = serde_json::from_str(&done(&home, "plans list --json")).unwrap();
    let plan = &listed["plans"][0];
    assert_eq!((&plan["plan_id"], &plan["tasks"]), (&json!(42), &json!(4)));
    // Nothing runs what was running.
    assert_eq!(
        plan["tasks_by_status"],
        json!({ "pending": 2, "running": 0, "completed": 1, "failed": 1, "skipped": 0 })
    );
    let shown = done(&home, "plans show 42");
    let expected = "42 Gene Editing Whitepaper (pending)\nWrite it.\n├─ ✓ 104 Overview\n│  ├─ ✗ 216 分析 ← 215\n\
                    │  └─ ○ 215 数据准备\n└─ ○ 300 Report [31m<script>[x](y) ← 104\n";
    assert_eq!(shown.replace('␛', ""), expected);
    assert!(!shown.contains('\u{1b}'));
}

#[test]
fn an_exported_plan_is_the_same_plan_when_it_is_imported() {
    let home = Home::new();
    import(&home, 42);
    let exported = done(&home, "plans export 42");
    done(&home, "plans export 42 -o out/copy.json");
    assert_eq!(std::fs::read_to_string(home.path().join("out/copy.json")).unwrap(), exported);
    done(&home, "plans delete 42");
    done(&home, "plans import out/copy.json");
    assert_eq!(done(&home, "plans export 42"), exported);
    // The same plan again, with other ids.
    let (code, _, err) = call(&home, "plans import out/copy.json --new-ids");
    assert_eq!((code, err.as_str()), (0, "imported plan 43 with 4 tasks\n"));
    let copy: Value = serde_json::from_str(&done(&home, "plans export 43")).unwrap();
    let ids: Vec<&Value> = copy["tasks"].as_array().unwrap().iter().map(|task| &task["id"]).collect();
    assert_eq!(ids, [301, 302, 303, 304]);
    assert_eq!((&copy["tasks"][1]["parent"], &copy["tasks"][1]["dependencies"]), (&json!(301), &json!([303])));
}

#[test]
fn an_id_that_is_in_use_is_named_and_nothing_is_stored() {
    let home = Home::new();
    import(&home, 42);
    let err = rejected(&home, "plans import plan.json");
    assert!(err.contains("already has a plan 42") && err.contains("--new-ids"), "{err}");
    home.file("plan.json", &document(28).to_string());
    let err = rejected(&home, "plans import plan.json");
    assert!(err.contains("already belongs to plan 42") && err.contains("task 104"), "{err}");
    assert_eq!(done(&home, "plans list").lines().count(), 1);
}

#[test]
fn markdown_and_mermaid_contain_the_texts_as_texts() {
    let home = Home::new();
    import(&home, 42);
    let markdown = done(&home, "plans export 42 --format md");
    assert!(
        markdown.starts_with(
            "# Gene Editing Whitepaper\n\nWrite it.\n\nPlan 42 (pending): 2 pending, 1 completed, 1 failed\n\n"
        ),
        "{markdown}"
    );
    for part in [
        "- [x] **Overview** (104, completed)\n\n  Compile \\*all\\*.\n\n\n  Done.  \n  \\# No heading\n",
        "\n  - [ ] **分析** (216, failed) ← 215\n\n    no data\n",
        "\\<script>\\[x\\](y)",
    ] {
        assert!(markdown.contains(part), "{part}\n{markdown}");
    }
    done(&home, "plans export 42 -o plan.mmd");
    let chart = std::fs::read_to_string(home.path().join("plan.mmd")).unwrap();
    for part in [
        "flowchart TD\n  plan[[\"Gene Editing Whitepaper\"]]\n  t104[\"104 Overview\"]:::completed\n  plan --> t104\n",
        "  t104 --> t215\n",
        "  t215 -.-> t216\n",
        "#60;script#62;",
        "  classDef completed ",
    ] {
        assert!(chart.contains(part), "{part}\n{chart}");
    }
    // An earlier export is replaced; something else is not.
    done(&home, "plans export 42 -o plan.mmd");
    done(&home, "plans export 42 -o plan.md");
    done(&home, "plans export 42 -o plan.md");
    home.file("notes.md", "# Notes\n\nmine\n");
    let err = rejected(&home, "plans export 42 -o notes.md");
    assert!(err.contains("notes.md already exists, is not a plan that was exported as Markdown"), "{err}");
    done(&home, "plans export 42 -o notes.md --force");
    home.file("drawing.mmd", "flowchart TD\n  plan[[\"My plan\"]]\n  plan --> lunch\n");
    let err = rejected(&home, "plans export 42 -o drawing.mmd");
    assert!(
        err.contains("drawing.mmd already exists, is not a plan that was exported as a Mermaid flowchart"),
        "{err}"
    );
    let err = rejected(&home, "plans export 42 -o plan.txt");
    assert!(err.contains("use `.json`, `.md` or `.mmd`"), "{err}");
}

#[test]
fn a_plan_is_deleted_with_its_tasks_and_belongs_to_its_user() {
    let home = Home::new();
    import(&home, 42);
    for line in [
        "plans show 43",
        "plans export 43",
        "plans delete 43",
        "plans show 42 --user bob",
        "plans delete 42 --user bob",
    ] {
        let err = rejected(&home, line);
        let id = &line.split(' ').nth(2).unwrap();
        assert!(err.contains(&format!("there is no plan {id}")), "{line}: {err}");
    }
    assert_eq!(call(&home, "plans list --user bob").2, "no plans yet\n");
    let (code, out, err) = call(&home, "plans delete 42");
    assert_eq!((code, out.as_str(), err.as_str()), (0, "", "deleted plan 42 with 4 tasks: Gene Editing Whitepaper\n"));
    rejected(&home, "plans show 42");
    // The ids of tasks are free again, but new ones are not given twice.
    done(&home, "plans import plan.json --user bob --new-ids");
    let listed = done(&home, "plans list --user bob");
    assert!(listed.starts_with("43\t"), "{listed}");
}

#[test]
fn a_file_that_is_not_a_plan_is_rejected_with_the_reason() {
    let with = |path: &str, value: Value| {
        let mut plan = document(42);
        *plan.pointer_mut(path).unwrap() = value;
        plan.to_string()
    };
    let mut misspelled = document(42);
    misspelled["tasks"][1]["dependancies"] = json!([]);
    let table = [
        ("{".to_owned(), "it is not JSON"),
        ("[]".to_owned(), "it has no field `bcc_plan`"),
        ("{}".to_owned(), "it has no field `bcc_plan`"),
        (with("/bcc_plan", json!(2)), "it has version 2, but this version of bcc-script reads only version 1"),
        (with("/plan_id", json!(0)), "an id is 0; ids begin with 1"),
        (with("/title", json!(" ")), "the parameter `title` of `plans import` must be text that is not empty"),
        (with("/tasks/1", json!({ "id": 216 })), "task number 2 cannot be read: missing field `name`"),
        (misspelled.to_string(), "task number 2 has an unknown field `dependancies`; did you mean `dependencies`?"),
        (with("/tasks/1/id", json!(104)), "two tasks have the id 104"),
        (with("/tasks/1/parent", json!(7)), "task 216 is in task 7, which is not in the file"),
        (
            with("/tasks/1/dependencies", json!([7])),
            "task 216: task 7, on which task 216 is to depend, is not in plan 42",
        ),
        (with("/tasks/1/dependencies", json!([104])), "the tasks would wait for each other: "),
        (with("/tasks/0", json!({ "id": 104, "parent": 215, "name": "x" })), "some of its tasks contain each other"),
        (with("/tasks/1/status", json!("done")), "task number 2 cannot be read: unknown variant `done`"),
        (with("/tasks/1/name", json!("x".repeat(201))), "task 216: `name` can have at most 200 characters"),
    ];
    let home = Home::new();
    for (text, expected) in table {
        home.file("plan.json", &text);
        let err = rejected(&home, "plans import plan.json");
        assert!(err.contains("plan.json is not a plan: ") && err.contains(expected), "{expected}: {err}");
    }
    assert!(rejected(&home, "plans import missing.json").contains("missing.json cannot be read"));
    let (code, out, err) = call(&home, "plans show 1 --store missing.db");
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
}

#[test]
fn a_hundred_thousand_tasks_are_imported_and_one_more_is_refused() {
    let home = Home::new();
    let tasks = |count: u64| -> Vec<Value> {
        (1..=count).map(|id| json!({ "id": id, "name": format!("task {id}"), "parent": if id > 10 { Some(id % 10 + 1) } else { None } })).collect()
    };
    home.file(
        "plan.json",
        &json!({ "bcc_plan": 1, "plan_id": 1, "title": "large", "tasks": tasks(100_001) }).to_string(),
    );
    let err = rejected(&home, "plans import plan.json");
    assert!(err.contains("a plan can have at most 100000 tasks"), "{err}");
    home.file(
        "plan.json",
        &json!({ "bcc_plan": 1, "plan_id": 1, "title": "large", "tasks": tasks(100_000) }).to_string(),
    );
    done(&home, "plans import plan.json");
    assert_eq!(done(&home, "plans show 1").lines().count(), 100_001);
    let chart = done(&home, "plans export 1 --format mermaid");
    assert!(chart.contains("… 99500") && chart.len() < 100_000, "{}", chart.len());
}

#[test]
fn the_store_of_a_project_is_found_and_checked_with_its_plans() {
    let home = Home::new();
    import(&home, 42);
    let store = home.store();
    let shown = format!("plans show 42 --store {}", store.display());
    assert_eq!(done(&home, &shown), done(&home, "plans show 42"));
    let elsewhere = format!("plans show 42 --project {}", home.path().display());
    let other = tempfile::tempdir().unwrap();
    let mut command = home.command(elsewhere.split(' '));
    command.current_dir(other.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), done(&home, "plans show 42"));
    assert!(done(&home, "store check").contains("is sound"));
}

#[tokio::test]
async fn a_command_sees_and_keeps_the_edits_of_a_process_that_has_the_store_open() {
    let home = Home::new();
    import(&home, 42);
    let access = PlanAccess::new(Arc::new(open(&home.store()).unwrap()), "default");
    let create =
        TaskOperation::parse("create_task", json!({ "task_name": "new", "insert_before": 215 }).as_object().unwrap());
    let created = access.run(&create.unwrap(), None, "key", "2026-11-26T00:00:00Z").await.unwrap();
    assert_eq!((&created["plan_id"], &created["task"]["position"]), (&json!(42), &json!(1)));
    assert!(done(&home, "plans show 42").contains("│  ├─ ○ 301 new\n│  └─ ○ 215"), "{}", done(&home, "plans show 42"));
    done(&home, "plans delete 42");
    let show = TaskOperation::parse("show_tasks", &serde_json::Map::new()).unwrap();
    let error = access.run(&show, Some(42), "show", "2026-11-26T00:00:00Z").await.unwrap_err();
    assert_eq!(error.to_string(), "there is no plan 42");
}
