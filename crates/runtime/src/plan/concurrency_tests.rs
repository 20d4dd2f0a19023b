//! Tests of plans that several processes edit at once, or that a killed process has edited.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bcc_store::sqlite::open::open;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::plan::access::{PlanAccess, PlanAccessError};
use crate::plan::operation::TaskOperation;
use crate::plan::task::{PlanHead, PlanId, TaskId};
use crate::plan::tree::PlanTree;

/// Passes the store and the name of the process to the same test, run again as another process.
const STORE: &str = "BCC_PLAN_TEST_STORE";
const NAME: &str = "BCC_PLAN_TEST_NAME";

/// The number of edits of each process.
const EDITS: usize = 60;

const AT: &str = "2026-11-26T00:00:00Z";

fn access(path: &Path) -> PlanAccess {
    PlanAccess::new(Arc::new(open(path).unwrap()), "anna")
}

fn new_store() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sessions.db");
    (directory, path)
}

async fn create(access: &PlanAccess) -> PlanId {
    let head = PlanHead { goal: "写白皮书\nand more".into(), ..PlanHead::default() };
    let (plan, _) = access.create("create", head, |_, _| Ok(Value::Null)).await.unwrap();
    plan
}

fn operation(name: &str, parameters: Value) -> TaskOperation {
    TaskOperation::parse(name, parameters.as_object().unwrap()).unwrap()
}

/// The edit `number` of a process: a new task at the beginning.
async fn edit(access: &PlanAccess, plan: PlanId, name: &str, number: usize) -> Result<Value, PlanAccessError> {
    let create = operation("create_task", json!({ "task_name": format!("{name} {number}"), "position": 0 }));
    access.run(&create, Some(plan), &format!("{name} {number}"), AT).await
}

/// The test as another process.
fn process(test: &str, store: &Path, name: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("plan::concurrency_tests::{test}")]);
    command.env(STORE, store).env(NAME, name).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Makes the edits of the process that this is, if it is another one of the test.
async fn is_other_process() -> bool {
    let (Some(store), Ok(name)) = (std::env::var_os(STORE), std::env::var(NAME)) else { return false };
    let access = access(Path::new(&store));
    for number in 0..EDITS {
        while let Err(error) = edit(&access, 1, &name, number).await {
            // The plan is created later, or others edit it all the time.
            assert!(matches!(error, PlanAccessError::NoPlan { .. } | PlanAccessError::Contended { .. }), "{error}");
        }
    }
    true
}

fn names(tree: &PlanTree) -> Vec<String> {
    assert!(tree.is_consistent());
    tree.all().map(|id| tree.task(id).unwrap().name.clone()).collect()
}

#[tokio::test]
async fn the_edits_of_two_processes_at_once_all_hold() {
    if is_other_process().await {
        return;
    }
    let (_directory, path) = new_store();
    let access = access(&path);
    let test = "the_edits_of_two_processes_at_once_all_hold";
    let mut processes = ["one", "two"].map(|name| process(test, &path, name));
    create(&access).await;
    for process in &mut processes {
        assert!(process.wait().unwrap().success());
    }
    let found = access.with_tree(1, names).await.unwrap();
    for name in ["one", "two"] {
        let expected: Vec<String> = (0..EDITS).rev().map(|number| format!("{name} {number}")).collect();
        let of_process: Vec<String> = found.iter().filter(|task| task.starts_with(name)).cloned().collect();
        assert_eq!(of_process, expected);
    }
    assert_eq!(found.len(), 2 * EDITS);
}

#[tokio::test]
async fn a_killed_process_goes_on_without_losing_or_repeating_an_edit() {
    if is_other_process().await {
        return;
    }
    let (_directory, path) = new_store();
    let access = access(&path);
    create(&access).await;
    for kill_after in [0, 1, 3, 7, 20, 41] {
        let mut process = process("a_killed_process_goes_on_without_losing_or_repeating_an_edit", &path, "killed");
        let started = Instant::now();
        while access.with_tree(1, PlanTree::len).await.unwrap() < kill_after {
            assert!(started.elapsed() < Duration::from_secs(60), "the other process makes no edits");
        }
        process.kill().unwrap();
        process.wait().unwrap();
        let found = access.with_tree(1, names).await.unwrap();
        // A prefix of the edits, each once.
        let expected: Vec<String> = (0..found.len()).rev().map(|number| format!("killed {number}")).collect();
        assert_eq!(found, expected);
    }
    let mut process = process("a_killed_process_goes_on_without_losing_or_repeating_an_edit", &path, "killed");
    assert!(process.wait().unwrap().success());
    assert_eq!(access.with_tree(1, PlanTree::len).await.unwrap(), EDITS);
}

#[tokio::test]
async fn an_edit_is_recognised_by_its_key_and_gives_its_result_again() {
    let (_directory, path) = new_store();
    let first = access(&path);
    let plan = create(&first).await;
    assert_eq!(first.create("create", PlanHead::default(), |_, _| Ok(json!(1))).await.unwrap(), (plan, Value::Null));
    let created = edit(&first, plan, "a", 1).await.unwrap();
    let id = created["task"]["task_id"].as_u64().unwrap();
    let again = access(&path);
    assert_eq!(edit(&again, plan, "a", 1).await.unwrap(), created);
    // Also an edit that would fail now.
    let delete = operation("delete_task", json!({ "task_id": id }));
    let deleted = again.run(&delete, None, "delete", AT).await.unwrap();
    assert_eq!(first.run(&delete, None, "delete", AT).await.unwrap(), deleted);
    let error = first.run(&delete, None, "another", AT).await.unwrap_err();
    assert_eq!((error.code(), error.to_string()), ("unknown-task", format!("there is no task {id}")));
    let removed = first.delete(plan, "remove").await.unwrap();
    assert_eq!(removed, json!({ "plan_id": 1, "title": "写白皮书", "removed_tasks": 0 }));
    assert_eq!(again.delete(plan, "remove").await.unwrap(), removed);
    assert_eq!(again.delete(plan, "other").await.unwrap_err().to_string(), "there is no plan 1");
}

#[tokio::test]
async fn an_edit_that_others_contradict_is_rejected_with_the_reason() {
    let (_directory, path) = new_store();
    let (one, two) = (access(&path), access(&path));
    let plan = create(&one).await;
    let created = edit(&one, plan, "a", 1).await.unwrap();
    let id: TaskId = created["task"]["task_id"].as_u64().unwrap();
    assert_eq!(two.with_tree(plan, PlanTree::len).await.unwrap(), 1);
    one.run(&operation("delete_task", json!({ "task_id": id })), None, "delete", AT).await.unwrap();
    let update = operation("update_task", json!({ "plan_id": plan, "task_id": id, "name": "b" }));
    let error = two.run(&update, None, "update", AT).await.unwrap_err();
    assert_eq!(error.code(), "unknown-task");
    // So that no attempt fails because no ids are reserved.
    edit(&two, plan, "first", 0).await.unwrap();
    // Somebody who changes the plan within every attempt.
    let mut attempts = 0;
    let other = access(&path);
    let result = two
        .edit(plan, "contended", AT, |tree, ids| {
            attempts += 1;
            let key = format!("other {attempts}");
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                    runtime.block_on(edit(&other, plan, &key, 0)).unwrap();
                });
            });
            crate::plan::apply::apply(tree, &operation("create_task", json!({ "task_name": "mine" })), ids)
        })
        .await;
    assert_eq!((result.unwrap_err(), attempts), (PlanAccessError::Contended { plan }, 5));
    assert_eq!(one.with_tree(plan, PlanTree::len).await.unwrap(), 6);
}

#[tokio::test]
async fn the_plans_of_another_user_do_not_exist() {
    let (_directory, path) = new_store();
    let anna = access(&path);
    let bob = PlanAccess::new(Arc::new(open(&path).unwrap()), "bob");
    let plan = create(&anna).await;
    let created = edit(&anna, plan, "a", 1).await.unwrap();
    let id = created["task"]["task_id"].as_u64().unwrap();
    let no_plan = PlanAccessError::NoPlan { plan };
    assert_eq!(bob.list().await.unwrap(), []);
    assert_eq!(bob.with_tree(plan, PlanTree::len).await, Err(no_plan.clone()));
    assert_eq!(edit(&bob, plan, "b", 1).await, Err(no_plan.clone()));
    assert_eq!(bob.delete(plan, "delete").await, Err(no_plan));
    assert_eq!(bob.plan_of_task(id).await, Err(PlanAccessError::NoTask { task: id }));
    let listed = anna.list().await.unwrap();
    assert_eq!((listed.len(), listed[0].tasks(), listed[0].head.title.as_str()), (1, 1, "写白皮书"));
    assert_eq!(anna.plan_of_task(id).await, Ok(plan));
}
