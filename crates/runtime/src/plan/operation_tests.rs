//! Tests of the operations: each with its parameters, defaults, notes and errors.

use serde_json::{Value, json};

use crate::plan::apply::apply;
use crate::plan::error::OperationError;
use crate::plan::execution::TaskProgress;
use crate::plan::operation::TaskOperation;
use crate::plan::task::{PlanHead, TaskId, TaskRunner, TaskStatus};
use crate::plan::tree::{IdsFrom, PlanTree, TaskIds};

/// A plan in a test: `1 One (11 A, 12 B, 13 C), 2 Two (21 Data), 3 Data`.
pub(crate) struct Plan {
    pub(crate) tree: PlanTree,
    pub(crate) ids: IdsFrom,
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
    pub(crate) fn new() -> Self {
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

    pub(crate) fn done(&mut self, name: &str, parameters: Value) -> Value {
        self.run(name, parameters.clone()).unwrap_or_else(|error| panic!("{name} {parameters}: {error}"))
    }

    /// The code and the message of the error; the tree is unchanged.
    pub(crate) fn rejected(&mut self, name: &str, parameters: Value) -> (&'static str, String) {
        let error = self.run(name, parameters.clone()).expect_err(&format!("{name} {parameters}"));
        assert!(!self.tree.is_changed(), "{name} {parameters}: {error}");
        (error.code(), error.to_string())
    }

    /// As [`Plan::rejected`], after the changes so far were stored.
    pub(crate) fn rejected_later(&mut self, name: &str, parameters: Value) -> (&'static str, String) {
        self.tree.accept(2);
        self.rejected(name, parameters)
    }

    pub(crate) fn children(&self, parent: impl Into<Option<TaskId>>) -> Vec<TaskId> {
        self.tree.children(parent.into()).collect()
    }

    pub(crate) fn set(&mut self, id: TaskId, status: TaskStatus) {
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
        plan.rejected_later("update_task_instruction", json!({ "task_id": 11, "instruction": "x".repeat(19_990) }));
    assert_eq!(code, "too-long");
}

#[test]
fn delete_task_removes_the_subtree_and_says_what_no_longer_depends_on_it() {
    let mut plan = Plan::new();
    plan.done("update_task", json!({ "task_id": 21, "dependencies": [12, 11, 3] }));
    plan.done("update_task", json!({ "task_id": 13, "dependencies": [11] }));
    let summary = plan.done("delete_task", json!({ "task_name": "One", "plan_id": 42 }));
    assert_json(
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
    let (code, _) = plan.rejected_later("delete_task", json!({ "task_id": 2 }));
    assert_eq!(code, "task-running");
}

fn assert_json(found: &Value, expected: Value) {
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
    let (code, text) = plan.rejected_later("rerun_task", json!({ "task_id": 11, "with_dependents": true }));
    assert_eq!((code, text.as_str()), ("task-running", "task 21 is running; wait until it has ended"));
}

#[test]
fn only_the_place_that_runs_a_task_may_start_it_again() {
    let mut plan = Plan::new();
    let at = |session: &str, action: &str| TaskRunner { session: session.to_owned(), action: action.to_owned() };
    let place = at("anna-1", "topic/report/task_11/run");
    plan.tree.claim(11, place.clone()).unwrap();
    plan.tree.accept(2);
    // It was killed before it stored that it had started the task.
    plan.tree.claim(11, place.clone()).unwrap();
    assert!(!plan.tree.is_changed());
    for other in [at("anna-2", "topic/report/task_11/run"), at("anna-1", "topic/again/task_11/run")] {
        let error = plan.tree.claim(11, other).unwrap_err();
        assert!(matches!(error, OperationError::Running { task: 11 }), "{error}");
    }
    plan.set(11, TaskStatus::Completed);
    let error = plan.tree.claim(11, place).unwrap_err();
    assert!(matches!(error, OperationError::Over { task: 11, .. }), "{error}");
    assert_eq!(plan.tree.task(11).unwrap().run_by, None);
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
