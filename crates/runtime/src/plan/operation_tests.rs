//! Tests of the operations: each with its parameters, defaults, notes and errors.

use serde_json::{Map, Value, json};

use crate::plan::apply::apply;
use crate::plan::error::OperationError;
use crate::plan::execution::TaskProgress;
use crate::plan::operation::{TASK_OPERATIONS, TaskOperation, parameters_of};
use crate::plan::task::{PlanHead, TaskId, TaskStatus};
use crate::plan::tree::{IdsFrom, PlanTree, TaskIds};

/// A plan in a test: `1 One (11 A, 12 B, 13 C), 2 Two (21 Data), 3 Data`.
struct Plan {
    tree: PlanTree,
    ids: IdsFrom,
}

/// Ids in a list.
struct Listed(Vec<TaskId>);

impl TaskIds for Listed {
    fn next_id(&mut self) -> Option<TaskId> {
        if self.0.is_empty() { None } else { Some(self.0.remove(0)) }
    }
}

fn parse(name: &str, parameters: &Value) -> Result<TaskOperation, OperationError> {
    TaskOperation::parse(name, parameters.as_object().unwrap())
}

impl Plan {
    fn new() -> Self {
        let head = PlanHead { title: "Paper".into(), updated_at: "first".into(), ..PlanHead::default() };
        let mut plan = Self { tree: PlanTree::new(42, "anna", head), ids: IdsFrom(100) };
        let tasks = [
            (1, None, "One"),
            (2, None, "Two"),
            (3, None, "Data"),
            (11, Some(1), "A"),
            (12, Some(1), "B"),
            (13, Some(1), "C"),
            (21, Some(2), "Data"),
        ];
        for (id, parent, name) in tasks {
            let operation = parse("create_task", &json!({ "task_name": name, "parent_id": parent })).unwrap();
            apply(&mut plan.tree, &operation, &mut Listed(vec![id])).unwrap();
        }
        plan.tree.accept(1);
        plan
    }

    fn run(&mut self, name: &str, parameters: Value) -> Result<Value, OperationError> {
        let result = apply(&mut self.tree, &parse(name, &parameters)?, &mut self.ids);
        assert!(self.tree.is_consistent(), "{name} {parameters}");
        result
    }

    fn done(&mut self, name: &str, parameters: Value) -> Value {
        self.run(name, parameters.clone()).unwrap_or_else(|error| panic!("{name} {parameters}: {error}"))
    }

    /// The code and the message of the error; the tree is unchanged.
    fn rejected(&mut self, name: &str, parameters: Value) -> (&'static str, String) {
        let error = self.run(name, parameters.clone()).expect_err(&format!("{name} {parameters}"));
        assert!(!self.tree.is_changed(), "{name} {parameters}: {error}");
        (error.code(), error.to_string())
    }

    fn children(&self, parent: impl Into<Option<TaskId>>) -> Vec<TaskId> {
        self.tree.children(parent.into()).collect()
    }

    fn set(&mut self, id: TaskId, status: TaskStatus) {
        self.tree.set_progress(id, &TaskProgress { result: json!("text"), ..TaskProgress::of(status) }).unwrap();
    }
}

#[test]
fn create_task_has_all_parameters_and_gives_the_task_with_its_position() {
    let mut plan = Plan::new();
    let given = plan.done(
        "create_task",
        json!({ "plan_id": 42, "task_name": " Gene\nEditing ", "task_type": "root", "instruction": "Compile.",
                "metadata": { "words": 500 }, "dependencies": [12, 3, 12] }),
    );
    let expected = json!({ "plan_id": 42, "task": { "task_id": 100, "name": "Gene Editing", "parent_id": null, "position": 3,
        "status": "pending", "task_type": "root", "dependencies": [12, 3] } });
    assert_eq!(given, expected);
    let task = plan.tree.task(100).unwrap();
    assert_eq!((task.instruction.as_str(), &task.metadata["words"]), ("Compile.", &json!(500)));
    assert_eq!(plan.children(None), [1, 2, 3, 100]);
}

#[test]
fn a_place_is_an_anchor_or_a_position_and_otherwise_the_end() {
    let table: [(Value, Option<TaskId>, usize, bool); 22] = [
        (json!({}), None, 3, false),
        (json!({ "parent_id": null }), None, 3, false),
        (json!({ "parent_id": 1 }), Some(1), 3, false),
        (json!({ "parent_id": "1" }), Some(1), 3, false),
        (json!({ "parent_id": 1, "anchor_position": "first_child" }), Some(1), 0, false),
        (json!({ "parent_id": 1, "anchor_position": "last_child" }), Some(1), 3, false),
        (json!({ "anchor_task_id": 1, "anchor_position": "first_child" }), Some(1), 0, false),
        (json!({ "anchor_task_id": 1, "anchor_position": "last_child" }), Some(1), 3, false),
        (json!({ "parent_id": 1, "anchor_task_id": 12, "anchor_position": "before" }), Some(1), 1, false),
        (json!({ "parent_id": 1, "anchor_task_id": 12, "anchor_position": "after" }), Some(1), 2, false),
        (json!({ "anchor_task_id": 12, "anchor_position": "before" }), Some(1), 1, false),
        (json!({ "anchor_task_id": 2, "anchor_position": "after" }), None, 2, false),
        (json!({ "parent_id": 1, "insert_before": 11 }), Some(1), 0, false),
        (json!({ "parent_id": 1, "insert_after": 13 }), Some(1), 3, false),
        (json!({ "insert_after": true, "anchor_task_id": 11 }), Some(1), 1, false),
        (json!({ "insert_before": false, "insert_after": 11 }), Some(1), 1, false),
        (json!({ "parent_id": 1, "position": 1 }), Some(1), 1, false),
        (json!({ "parent_id": 1, "position": 0, "anchor_task_id": 13, "anchor_position": "after" }), Some(1), 0, false),
        (json!({ "position": 99 }), None, 3, false),
        // The fallback: the anchor is missing, or is not a child of the parent.
        (json!({ "parent_id": 1, "anchor_position": "before" }), Some(1), 3, true),
        (json!({ "parent_id": 1, "anchor_task_id": 21, "anchor_position": "before" }), Some(1), 3, true),
        (json!({ "parent_id": 1, "anchor_task_id": 12 }), Some(1), 3, true),
    ];
    for (mut parameters, parent, position, has_note) in table {
        let mut plan = Plan::new();
        parameters["task_name"] = json!("New");
        let given = plan.done("create_task", parameters.clone());
        assert_eq!(
            (&given["task"]["parent_id"], &given["task"]["position"]),
            (&json!(parent), &json!(position)),
            "{parameters}"
        );
        assert_eq!(given.get("note").is_some(), has_note, "{parameters}: {given}");
    }
}

#[test]
fn move_task_takes_everything_in_it_along() {
    let table: [(Value, Option<TaskId>, &[TaskId]); 11] = [
        (json!({ "task_id": 1, "new_parent_id": 2 }), Some(2), &[21, 1]),
        (json!({ "task_name": "one", "new_parent_name": "TWO" }), Some(2), &[21, 1]),
        (json!({ "task_id": 12, "new_parent_id": null }), None, &[1, 2, 3, 12]),
        // A model may fill in all parameters.
        (json!({ "task_id": 12, "new_parent_id": null, "new_parent_name": "Two" }), Some(2), &[21, 12]),
        (json!({ "task_id": 12, "new_parent_id": 1 }), Some(1), &[11, 13, 12]),
        (json!({ "task_id": 11, "anchor_task_id": 13, "anchor_position": "before" }), Some(1), &[12, 11, 13]),
        (json!({ "task_id": 13, "anchor_task_id": 11, "anchor_position": "after" }), Some(1), &[11, 13, 12]),
        (json!({ "task_id": 13, "position": 0 }), Some(1), &[13, 11, 12]),
        (json!({ "task_id": 11, "position": 1 }), Some(1), &[12, 11, 13]),
        (json!({ "task_id": 11, "position": 99 }), Some(1), &[12, 13, 11]),
        (json!({ "task_id": 3, "insert_before": 1 }), None, &[3, 1, 2]),
    ];
    for (parameters, parent, siblings) in table {
        let mut plan = Plan::new();
        plan.done("move_task", parameters.clone());
        assert_eq!(plan.children(parent), siblings, "{parameters}");
        assert_eq!(
            plan.children(1).len() + plan.children(None).len(),
            if parent == Some(2) { 5 } else { 6 },
            "{parameters}"
        );
    }
    let mut plan = Plan::new();
    for parent in [1, 12] {
        let (code, _) = plan.rejected("move_task", json!({ "task_id": 1, "new_parent_id": parent }));
        assert_eq!(code, "own-subtree");
    }
}

#[test]
fn update_task_changes_what_is_given() {
    let mut plan = Plan::new();
    plan.done("update_task", json!({ "task_id": 11, "metadata": { "a": 1, "b": 2 }, "instruction": "First." }));
    plan.tree.now = "second".into();
    plan.done(
        "update_task",
        json!({ "task_name": "A", "name": "A2", "metadata": { "a": null, "c": 3 }, "dependencies": [12] }),
    );
    let task = plan.tree.task(11).unwrap();
    assert_eq!(Value::Object(task.metadata.clone()), json!({ "b": 2, "c": 3 }));
    assert_eq!((task.name.as_str(), task.instruction.as_str(), &task.dependencies[..]), ("A2", "First.", &[12][..]));
    assert_eq!((task.created_at.as_str(), task.updated_at.as_str()), ("first", "second"));
    plan.done("update_task", json!({ "task_id": 11, "dependencies": [], "instruction": "" }));
    let task = plan.tree.task(11).unwrap();
    assert!(task.dependencies.is_empty() && task.instruction.is_empty());
}

#[test]
fn update_task_instruction_adds_a_paragraph_once() {
    let mut plan = Plan::new();
    for text in ["Read.", "Read.", "Write.\n\nTwice.", "Write.", " Twice. ", "Rea"] {
        plan.done("update_task_instruction", json!({ "task_id": 11, "instruction": text }));
    }
    assert_eq!(plan.tree.task(11).unwrap().instruction, "Read.\n\nWrite.\n\nTwice.\n\nRea");
    let (code, _) =
        plan.clone_rejected("update_task_instruction", json!({ "task_id": 11, "instruction": "x".repeat(19_990) }));
    assert_eq!(code, "too-long");
}

impl Plan {
    fn clone_rejected(&mut self, name: &str, parameters: Value) -> (&'static str, String) {
        self.tree.accept(2);
        self.rejected(name, parameters)
    }
}

#[test]
fn delete_task_removes_the_subtree_and_says_what_no_longer_depends_on_it() {
    let mut plan = Plan::new();
    plan.done("update_task", json!({ "task_id": 21, "dependencies": [12, 11, 3] }));
    plan.done("update_task", json!({ "task_id": 13, "dependencies": [11] }));
    let summary = plan.done("delete_task", json!({ "task_name": "One", "plan_id": 42 }));
    insta_json(
        &summary,
        json!({
            "plan_id": 42, "task_id": 1, "name": "One", "removed": 4,
            "removed_tasks": [{ "task_id": 1, "name": "One" }, { "task_id": 11, "name": "A" }, { "task_id": 12, "name": "B" },
                { "task_id": 13, "name": "C" }],
            "no_longer_depend_on_them": [{ "task_id": 21, "name": "Data", "removed_dependencies": [11, 12] }],
        }),
    );
    assert_eq!(plan.tree.task(21).unwrap().dependencies, [3]);
    assert_eq!((plan.children(None), plan.tree.len()), (vec![2, 3], 3));
    plan.set(21, TaskStatus::Running);
    let (code, _) = plan.clone_rejected("delete_task", json!({ "task_id": 2 }));
    assert_eq!(code, "task-running");
}

fn insta_json(found: &Value, expected: Value) {
    assert_eq!(*found, expected, "{found:#}");
}

#[test]
fn rerun_task_resets_a_task_alone_or_with_what_needs_it() {
    let mut plan = Plan::new();
    plan.done("update_task", json!({ "task_id": 2, "dependencies": [11] }));
    for id in [1, 2, 3, 11, 12, 13, 21] {
        plan.set(id, TaskStatus::Completed);
    }
    plan.tree.set_plan_status(TaskStatus::Completed);
    let alone = plan.done("rerun_task", json!({ "task_id": 11 }));
    assert_eq!((&alone["reset"], &alone["reset_tasks"][0]["task_id"]), (&json!(1), &json!(11)));
    let task = plan.tree.task(11).unwrap();
    assert_eq!((task.status, &task.result), (TaskStatus::Pending, &Value::Null));
    assert_eq!(plan.tree.head().status, TaskStatus::Pending);
    // What depends on it with what is in that, and what contains it.
    let all = plan.done("rerun_task", json!({ "task_id": "11", "with_dependents": true }));
    let ids: Vec<u64> =
        all["reset_tasks"].as_array().unwrap().iter().map(|task| task["task_id"].as_u64().unwrap()).collect();
    assert_eq!(ids, [11, 1, 2, 21]);
    plan.set(21, TaskStatus::Running);
    let (code, text) = plan.clone_rejected("rerun_task", json!({ "task_id": 11, "with_dependents": true }));
    assert_eq!((code, text.as_str()), ("task-running", "task 21 is running; wait until it has ended"));
}

#[test]
fn show_tasks_query_status_and_request_subgraph_show_the_plan() {
    let mut plan = Plan::new();
    plan.done("update_task", json!({ "task_id": 2, "dependencies": [1], "instruction": "Second." }));
    plan.set(11, TaskStatus::Completed);
    let shown = plan.done("show_tasks", json!({ "plan_id": 42 }));
    assert_eq!((&shown["tasks"], &shown["tasks_left_out"], &shown["title"]), (&json!(7), &json!(0), &json!("Paper")));
    let ids: Vec<&Value> = shown["list"].as_array().unwrap().iter().map(|task| &task["task_id"]).collect();
    assert_eq!(ids, [1, 11, 12, 13, 2, 21, 3]);
    let tree = "- [1] One (pending)\n  - [11] A (completed)\n  - [12] B (pending)\n  - [13] C (pending)\n\
                - [2] Two (pending; after 1)\n  - [21] Data (pending)\n- [3] Data (pending)\n";
    assert_eq!(shown["tree"], tree);
    let status = plan.done("query_status", json!({}));
    assert_eq!(
        status["tasks_by_status"],
        json!({ "pending": 6, "running": 0, "completed": 1, "failed": 0, "skipped": 0 })
    );
    // The owning plan, and what the task waits for: also what the tasks that contain it depend on.
    let of_task = plan.done("query_status", json!({ "task_id": 21 }));
    assert_eq!((&of_task["plan"]["plan_id"], &of_task["path"]), (&json!(42), &json!("Two / Data")));
    assert_eq!(of_task["waits_for"][0]["task_id"], 1);
    let graph = plan.done("request_subgraph", json!({ "logical_id": 2, "max_depth": 1 }));
    assert_eq!((&graph["task"]["instruction"], &graph["descendants"][0]["task_id"]), (&json!("Second."), &json!(21)));
    assert_eq!((&graph["depends_on"][0]["name"], &graph["is_complete"]), (&json!("One"), &json!(true)));
    let graph = plan.done("request_subgraph", json!({ "task_id": 1, "max_depth": 0 }));
    assert_eq!((&graph["descendants"], &graph["is_complete"]), (&json!([]), &json!(false)));
    assert_eq!(graph["dependents"][0]["task_id"], 2);
}

#[test]
fn a_name_is_looked_up_exactly_then_without_case_and_width_and_asks_when_it_is_ambiguous() {
    let mut plan = Plan::new();
    plan.done("update_task", json!({ "task_id": 3, "name": "data" }));
    for (name, id) in [("Data", 21), ("data", 3), ("ｏｎｅ", 1), ("  TWO ", 2)] {
        assert_eq!(plan.done("query_status", json!({ "task_name": name }))["task"]["task_id"], id, "{name}");
    }
    let (code, text) = plan.clone_rejected("delete_task", json!({ "task_name": "DATA" }));
    assert_eq!(code, "ambiguous-task-name");
    let expected = "2 tasks of plan 42 are named \"DATA\": 3 (data), 21 (Two / Data); ask which one is meant, and give its `task_id`";
    assert_eq!(text, expected);
    let (code, text) = plan.rejected("delete_task", json!({ "task_name": "Tow" }));
    assert_eq!(
        (code, text.as_str()),
        ("unknown-task-name", "no task of plan 42 is named \"Tow\"; did you mean `Two`?")
    );
}

#[test]
fn dependencies_form_no_circle_with_each_other_and_with_the_tree() {
    let mut plan = Plan::new();
    plan.done("update_task", json!({ "task_id": 2, "dependencies": [1] }));
    plan.done("update_task", json!({ "task_id": 3, "dependencies": [21] }));
    plan.tree.accept(2);
    let table = [
        (
            "update_task",
            json!({ "task_id": 1, "dependencies": [1] }),
            "own-dependency",
            "task 1 cannot depend on itself",
        ),
        (
            "update_task",
            json!({ "task_id": 1, "dependencies": [77] }),
            "unknown-dependency",
            "task 77, on which task 1 is to depend, is not in plan 42",
        ),
        (
            "create_task",
            json!({ "task_name": "x", "dependencies": [77] }),
            "unknown-dependency",
            "task 77, on which task 100 is to depend, is not in plan 42",
        ),
        // 1 → 2 → 1
        (
            "update_task",
            json!({ "task_id": 1, "dependencies": [2] }),
            "circular-dependency",
            "the tasks would wait for each other: 1 → 2 → 1",
        ),
        // The dependencies of a task hold for what is in it: 11 → 21 → 2 → 1 → 11.
        (
            "update_task",
            json!({ "task_id": 11, "dependencies": [21] }),
            "circular-dependency",
            "the tasks would wait for each other: 11 → 21 → 2 → 1 → 11",
        ),
        (
            "update_task",
            json!({ "task_id": 11, "dependencies": [12, 3] }),
            "circular-dependency",
            "the tasks would wait for each other: 11 → 3 → 21 → 2 → 1 → 11",
        ),
        // A task ends after its children, which start after it has started.
        (
            "update_task",
            json!({ "task_id": 11, "dependencies": [1] }),
            "circular-dependency",
            "the tasks would wait for each other: 11 → 1 → 11",
        ),
        (
            "update_task",
            json!({ "task_id": 1, "dependencies": [12] }),
            "circular-dependency",
            "the tasks would wait for each other: 1 → 12 → 1",
        ),
        (
            "create_task",
            json!({ "task_name": "x", "parent_id": 1, "dependencies": [3] }),
            "circular-dependency",
            "the tasks would wait for each other: 100 → 3 → 21 → 2 → 1 → 100",
        ),
        (
            "move_task",
            json!({ "task_id": 3, "new_parent_id": 1 }),
            "circular-dependency",
            "the tasks would wait for each other: 3 → 21 → 2 → 1 → 3",
        ),
        (
            "move_task",
            json!({ "task_id": 1, "new_parent_id": 2 }),
            "circular-dependency",
            "the tasks would wait for each other: 2 → 1 → 2",
        ),
    ];
    for (name, parameters, code, text) in table {
        plan.ids = IdsFrom(100);
        let found = plan.rejected(name, parameters.clone());
        assert_eq!((found.0, found.1.as_str()), (code, text), "{name} {parameters}");
    }
    plan.done("update_task", json!({ "task_id": 13, "dependencies": [11, 12] }));
    let ready = plan.tree.ready(9);
    assert_eq!(ready, [11, 12]);
    plan.set(11, TaskStatus::Completed);
    assert_eq!(plan.tree.ready_after(11, 9), Vec::<TaskId>::new());
    plan.set(12, TaskStatus::Completed);
    assert_eq!(plan.tree.ready_after(12, 9), [13]);
    plan.set(13, TaskStatus::Completed);
    assert_eq!(plan.tree.ready_after(13, 9), [1]);
    plan.set(1, TaskStatus::Completed);
    assert_eq!(plan.tree.ready_after(1, 9), [21]);
    assert_eq!(plan.tree.all_dependents(11), [1, 2, 3, 13, 21]);
}

#[test]
fn wrong_parameters_are_named() {
    let long = "x".repeat(201);
    let too_many: Vec<u64> = (1000..1101).collect();
    let table = [
        ("create_taks", json!({}), "there is no operation `create_taks`; did you mean `create_task`?"),
        ("create_task", json!({}), "`create_task` needs the parameter `task_name`"),
        (
            "create_task",
            json!({ "task_name": " " }),
            "the parameter `task_name` of `create_task` must be text that is not empty",
        ),
        ("create_task", json!({ "task_name": 7 }), "the parameter `task_name` of `create_task` must be text"),
        ("create_task", json!({ "task_name": long }), "`task_name` can have at most 200 characters"),
        (
            "create_task",
            json!({ "task_name": "x", "parent": 1 }),
            "`create_task` has no parameter `parent`; did you mean `parent_id`?",
        ),
        (
            "create_task",
            json!({ "task_name": "x", "status": 1 }),
            "`create_task` has no parameter `status`; it has `task_name`, `plan_id`, `parent_id`, `task_type`, `instruction`, `metadata`, `dependencies`, `anchor_task_id`, `anchor_position`, `insert_before`, `insert_after`, `position`",
        ),
        ("create_task", json!({ "task_name": "x", "plan_id": 7 }), "this is plan 42, not plan 7"),
        (
            "create_task",
            json!({ "task_name": "x", "parent_id": 77 }),
            "there is no task 77 in plan 42; use only ids that were given to you",
        ),
        (
            "create_task",
            json!({ "task_name": "x", "parent_id": 1.5 }),
            "the parameter `parent_id` of `create_task` must be an id, which is a number",
        ),
        (
            "create_task",
            json!({ "task_name": "x", "anchor_task_id": 77, "anchor_position": "after" }),
            "there is no task 77 in plan 42; use only ids that were given to you",
        ),
        (
            "create_task",
            json!({ "task_name": "x", "anchor_position": "above" }),
            "the parameter `anchor_position` of `create_task` must be `first_child`, `last_child`, `before` or `after`",
        ),
        (
            "create_task",
            json!({ "task_name": "x", "position": -1 }),
            "the parameter `position` of `create_task` must be a whole number from 0 to 1000000000",
        ),
        (
            "create_task",
            json!({ "task_name": "x", "insert_before": 1, "insert_after": 2 }),
            "`create_task` cannot have both `insert_before` and `insert_after`",
        ),
        (
            "create_task",
            json!({ "task_name": "x", "insert_before": 1, "anchor_task_id": 2 }),
            "`create_task` cannot have both `anchor_task_id` and `insert_before`",
        ),
        (
            "create_task",
            json!({ "task_name": "x", "instruction": "x".repeat(20_001) }),
            "`instruction` can have at most 20000 characters",
        ),
        (
            "create_task",
            json!({ "task_name": "x", "metadata": { "a": "x".repeat(17_000) } }),
            "`metadata` can have at most 16384 bytes as JSON",
        ),
        (
            "create_task",
            json!({ "task_name": "x", "metadata": [] }),
            "the parameter `metadata` of `create_task` must be an object",
        ),
        (
            "create_task",
            json!({ "task_name": "x", "dependencies": "1,2" }),
            "the parameter `dependencies` of `create_task` must be a list of ids, which are numbers",
        ),
        (
            "create_task",
            json!({ "task_name": "x", "dependencies": too_many }),
            "task 1000, on which task 100 is to depend, is not in plan 42",
        ),
        (
            "create_task",
            json!({ "task_name": "x", "task_type": "t".repeat(51) }),
            "`task_type` can have at most 50 characters",
        ),
        (
            "update_task",
            json!({ "task_id": 1 }),
            "`update_task` needs one of the parameters `name`, `instruction`, `metadata`, `dependencies`",
        ),
        ("update_task", json!({ "name": "x" }), "`update_task` needs one of the parameters `task_id`, `task_name`"),
        (
            "update_task",
            json!({ "task_id": 1, "name": "" }),
            "the parameter `name` of `update_task` must be text that is not empty",
        ),
        (
            "update_task_instruction",
            json!({ "task_id": 1 }),
            "`update_task_instruction` needs the parameter `instruction`",
        ),
        (
            "move_task",
            json!({ "task_id": 1 }),
            "`move_task` needs one of the parameters `new_parent_id`, `new_parent_name`",
        ),
        (
            "move_task",
            json!({ "task_id": 1, "new_parent_id": 2, "new_parent_name": "Two" }),
            "`move_task` cannot have both `new_parent_id` and `new_parent_name`",
        ),
        (
            "delete_task",
            json!({ "task_id": 77 }),
            "there is no task 77 in plan 42; use only ids that were given to you",
        ),
        (
            "rerun_task",
            json!({ "task_id": 1, "with_dependents": "yes" }),
            "the parameter `with_dependents` of `rerun_task` must be true or false",
        ),
        (
            "request_subgraph",
            json!({ "logical_id": 1, "task_id": 2 }),
            "`request_subgraph` cannot have both `logical_id` and `task_id`",
        ),
        ("request_subgraph", json!({}), "`request_subgraph` needs one of the parameters `logical_id`, `task_id`"),
        (
            "request_subgraph",
            json!({ "task_id": 1, "max_depth": 11 }),
            "the parameter `max_depth` of `request_subgraph` must be a whole number from 0 to 10",
        ),
        ("show_tasks", json!({ "id": 1 }), "`show_tasks` has no parameter `id`; it has `plan_id`"),
    ];
    for (name, parameters, text) in table {
        let mut plan = Plan::new();
        assert_eq!(plan.rejected(name, parameters.clone()).1, text, "{name} {parameters}");
    }
    for name in TASK_OPERATIONS {
        assert!(parameters_of(name).unwrap().contains(&"plan_id"), "{name}");
        let unknown: Map<String, Value> = Map::from_iter([("zzz".to_owned(), json!(1))]);
        assert_eq!(TaskOperation::parse(name, &unknown).unwrap_err().code(), "unknown-parameter", "{name}");
    }
}

#[test]
fn a_plan_has_at_most_fifty_levels_and_a_task_a_hundred_dependencies() {
    let mut plan = Plan::new();
    let mut parent = 3;
    for id in 101..=149 {
        plan.ids = IdsFrom(id);
        plan.done("create_task", json!({ "task_name": "deep", "parent_id": parent }));
        parent = id;
    }
    let (code, _) = plan.clone_rejected("create_task", json!({ "task_name": "deeper", "parent_id": parent }));
    assert_eq!(code, "too-many-levels");
    let (code, _) = plan.rejected("move_task", json!({ "task_id": 1, "new_parent_id": 148 }));
    assert_eq!(code, "too-many-levels");
    plan.done("move_task", json!({ "task_id": 1, "new_parent_id": 147 }));
    plan.ids = IdsFrom(1000);
    for _ in 0..101 {
        plan.done("create_task", json!({ "task_name": "leaf" }));
    }
    let dependencies: Vec<u64> = (1000..1101).collect();
    let (code, _) = plan.clone_rejected("update_task", json!({ "task_id": 2, "dependencies": dependencies }));
    assert_eq!(code, "too-many-dependencies");
    plan.done("update_task", json!({ "task_id": 2, "dependencies": dependencies[1..] }));
}

#[test]
fn an_outline_shows_the_upper_levels_first_and_counts_the_rest() {
    let mut plan = Plan::new();
    let whole = plan.tree.outline(10_000);
    assert_eq!(whole.lines().count(), 7);
    let short = plan.tree.outline(120);
    assert_eq!(short, "- [1] One (pending)\n  - … 3 more\n- [2] Two (pending)\n  - … 1 more\n- [3] Data (pending)\n");
    assert_eq!(plan.tree.outline(40), "- … 3 more\n");
    assert_eq!(plan.tree.outline_of(Some(2), 1000), "- [2] Two (pending)\n  - [21] Data (pending)\n");
    for number in 0..300 {
        plan.done("create_task", json!({ "task_name": format!("task {number}"), "parent_id": 1 }));
    }
    assert!(plan.tree.outline(3000).chars().count() <= 3000);
}
