//! Tests of names, dependencies, parameters and limits: what is rejected, and how that is said; and of the outline.

use serde_json::{Map, Value, json};

use crate::plan::operation::{TASK_OPERATIONS, TaskOperation, parameters_of};
use crate::plan::operation_tests::Plan;
use crate::plan::task::{TaskId, TaskStatus};
use crate::plan::tree::IdsFrom;

#[test]
fn a_name_is_looked_up_exactly_then_without_case_and_width_and_asks_when_it_is_ambiguous() {
    let mut plan = Plan::new();
    plan.done("update_task", json!({ "task_id": 3, "name": "data" }));
    for (name, id) in [("Data", 21), ("data", 3), ("ｏｎｅ", 1), ("  TWO ", 2)] {
        assert_eq!(plan.done("query_status", json!({ "task_name": name }))["task"]["task_id"], id, "{name}");
    }
    let (code, text) = plan.rejected_later("delete_task", json!({ "task_name": "DATA" }));
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
    let (code, _) = plan.rejected_later("create_task", json!({ "task_name": "deeper", "parent_id": parent }));
    assert_eq!(code, "too-many-levels");
    let (code, _) = plan.rejected("move_task", json!({ "task_id": 1, "new_parent_id": 148 }));
    assert_eq!(code, "too-many-levels");
    plan.done("move_task", json!({ "task_id": 1, "new_parent_id": 147 }));
    plan.ids = IdsFrom(1000);
    for _ in 0..101 {
        plan.done("create_task", json!({ "task_name": "leaf" }));
    }
    let dependencies: Vec<u64> = (1000..1101).collect();
    let (code, _) = plan.rejected_later("update_task", json!({ "task_id": 2, "dependencies": dependencies }));
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
