//! Measures operations on plans of 100, 10,000 and 100,000 tasks (target: the same time for each), in memory and in SQLite, and how long
//! reading a plan takes. Half of the tasks are roots, each of which contains one of the others.

#![allow(clippy::expect_used, clippy::print_stdout, reason = "a bench may fail where it stands, and prints its table")]

use std::sync::Arc;
use std::time::Instant;

use bcc_runtime::plan::access::PlanAccess;
use bcc_runtime::plan::document::{DOCUMENT_VERSION, PlanDocument};
use bcc_runtime::plan::operation::TaskOperation;
use bcc_runtime::plan::task::{PlanHead, PlanTask};
use bcc_runtime::plan::tree::PlanTree;
use bcc_store::contract::Store;
use bcc_store::memory::MemoryStore;
use bcc_store::sqlite::open::open;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// How often each operation is timed.
const REPETITIONS: u64 = 200;

const AT: &str = "2026-11-26T00:00:00Z";

fn document(tasks: u64) -> PlanDocument {
    let task = |id: u64| PlanTask {
        id,
        parent: id.checked_sub(tasks / 2).filter(|parent| *parent > 0),
        name: format!("Task {id}: collect the sources for section {}", id % 97),
        instruction: "Read them and note what they say.".to_owned(),
        dependencies: if id > 1 && id <= tasks / 2 { vec![id - 1] } else { vec![] },
        ..PlanTask::default()
    };
    let head = PlanHead { title: "A report".to_owned(), ..PlanHead::default() };
    PlanDocument { bcc_plan: DOCUMENT_VERSION, plan_id: 1, head, tasks: (1..=tasks).map(task).collect() }
}

/// The median of the times of an operation, in microseconds. The parameters are those of each repetition.
fn median(runtime: &Runtime, access: &PlanAccess, name: &str, parameters: impl Fn(u64) -> Value) -> f64 {
    let mut times: Vec<f64> = (0..REPETITIONS)
        .map(|number| {
            let parameters = parameters(number);
            let started = Instant::now();
            let operation = TaskOperation::parse(name, parameters.as_object().expect("an object")).expect("valid");
            runtime
                .block_on(access.run(&operation, Some(1), &format!("{name} {number} {parameters}"), AT))
                .expect("applied");
            started.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().expect("there are times")
}

fn measure(runtime: &Runtime, label: &str, store: &Arc<dyn Store>, tasks: u64) {
    let access = PlanAccess::new(Arc::clone(store), "bench");
    runtime.block_on(access.import(document(tasks), false, "import", AT)).expect("imported");
    let started = Instant::now();
    runtime.block_on(access.with_tree(1, PlanTree::len)).expect("read");
    let read = started.elapsed().as_secs_f64() * 1e3;
    let (half, middle) = (tasks / 2, tasks / 4);
    // Different tasks, spread over the plan.
    let some = |number: u64| 1 + number * 7919 % half;
    let created = median(
        runtime,
        &access,
        "create_task",
        |number| json!({ "task_name": format!("new {number}"), "dependencies": [half] }),
    );
    let inserted = median(
        runtime,
        &access,
        "create_task",
        |number| json!({ "task_name": format!("inserted {number}"), "anchor_task_id": middle, "anchor_position": "before" }),
    );
    let moved = median(
        runtime,
        &access,
        "move_task",
        |number| json!({ "task_id": half + 1 + number % (half / 2), "new_parent_id": some(number * 3 + 1).max(2), "anchor_position": "first_child" }),
    );
    let updated = median(
        runtime,
        &access,
        "update_task",
        |number| json!({ "task_id": some(number), "instruction": format!("Again {number}.") }),
    );
    let named = median(runtime, &access, "query_status", |number| json!({ "task_name": format!("new {number}") }));
    let queried = median(runtime, &access, "query_status", |_| json!({ "plan_id": 1 }));
    let deleted = median(runtime, &access, "delete_task", |number| json!({ "task_name": format!("new {number}") }));
    println!(
        "  {label:8} {tasks:7} tasks   create {created:7.1}   insert {inserted:7.1}   move {moved:7.1}   update {updated:7.1}   \
         find {named:7.1}   query {queried:7.1}   delete {deleted:7.1} µs   read {read:7.1} ms"
    );
}

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    for tasks in [100, 10_000, 100_000] {
        measure(
            &runtime,
            "memory",
            &(Arc::new(MemoryStore::default()) as Arc<dyn Store>),
            tasks - 400_u64.min(tasks / 10),
        );
        let directory = tempfile::tempdir().expect("a directory");
        let store = open(&directory.path().join("sessions.db")).expect("a store");
        measure(&runtime, "SQLite", &(Arc::new(store) as Arc<dyn Store>), tasks - 400_u64.min(tasks / 10));
    }
}
