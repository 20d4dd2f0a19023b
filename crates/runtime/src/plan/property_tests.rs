//! Property test: any sequence of operations keeps a plan a tree without circles, and the store has what is in memory.

use std::sync::Arc;

use bcc_store::memory::MemoryStore;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::plan::access::PlanAccess;
use crate::plan::operation::TaskOperation;
use crate::plan::task::{PlanHead, PlanTask, TaskId};
use crate::plan::tree::PlanTree;

/// All tasks in order, with their positions.
fn content(tree: &PlanTree) -> Vec<(usize, PlanTask)> {
    tree.all().map(|id| (tree.position(id).unwrap(), tree.task(id).unwrap().clone())).collect()
}

fn id() -> impl Strategy<Value = TaskId> {
    1..20_u64
}

fn dependencies() -> impl Strategy<Value = Value> {
    prop::collection::vec(id(), 0..3).prop_map(|ids| json!(ids))
}

/// Parameters of a place, some of them contradictory.
fn place() -> impl Strategy<Value = Vec<(&'static str, Value)>> {
    prop_oneof![
        3 => Just(vec![]),
        2 => (0..6_u64).prop_map(|position| vec![("position", json!(position))]),
        4 => (id(), prop::sample::select(vec!["first_child", "last_child", "before", "after"]))
            .prop_map(|(anchor, position)| vec![("anchor_task_id", json!(anchor)), ("anchor_position", json!(position))]),
        1 => id().prop_map(|anchor| vec![("insert_before", json!(anchor))]),
        1 => id().prop_map(|anchor| vec![("insert_after", json!(anchor))]),
    ]
}

fn parent() -> impl Strategy<Value = Option<Value>> {
    prop_oneof![Just(None), Just(Some(Value::Null)), id().prop_map(|id| Some(json!(id)))]
}

/// A name of few, so that some are ambiguous.
fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["Data", "data", "ＤＡＴＡ", "数据准备", "Report"])
}

type Written = (&'static str, Map<String, Value>);

fn object(pairs: impl IntoIterator<Item = (&'static str, Value)>) -> Map<String, Value> {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn operation() -> impl Strategy<Value = Written> {
    let create = (name(), parent(), dependencies(), place()).prop_map(|(name, parent, dependencies, mut place)| {
        place.extend([("task_name", json!(name)), ("dependencies", dependencies)]);
        place.extend(parent.map(|parent| ("parent_id", parent)));
        ("create_task", object(place))
    });
    let move_task = (id(), parent(), place()).prop_map(|(id, parent, mut place)| {
        place.push(("task_id", json!(id)));
        place.extend(parent.map(|parent| ("new_parent_id", parent)));
        ("move_task", object(place))
    });
    let update = (id(), name(), dependencies()).prop_map(|(id, name, dependencies)| {
        ("update_task", object([("task_id", json!(id)), ("name", json!(name)), ("dependencies", dependencies)]))
    });
    let instruct = (name(), name()).prop_map(|(name, text)| {
        ("update_task_instruction", object([("task_name", json!(name)), ("instruction", json!(text))]))
    });
    let rerun = (id(), any::<bool>())
        .prop_map(|(id, all)| ("rerun_task", object([("task_id", json!(id)), ("with_dependents", json!(all))])));
    let by_id = |name: &'static str| id().prop_map(move |id| (name, object([("task_id", json!(id))])));
    prop_oneof![
        6 => create,
        5 => move_task,
        4 => update,
        1 => instruct,
        1 => rerun,
        1 => by_id("delete_task"),
        1 => by_id("query_status"),
        1 => by_id("request_subgraph"),
        1 => Just(("show_tasks", Map::new())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_operations_keeps_a_tree_that_the_store_has_as_well(
        written in prop::collection::vec(operation(), 1..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let store = Arc::new(MemoryStore::default());
            let access = PlanAccess::new(store.clone(), "anna");
            let (plan, _) = access.create("create", PlanHead::default(), |_, _| Ok(Value::Null)).await.unwrap();
            for (number, (name, parameters)) in written.iter().enumerate() {
                let before = access.with_tree(plan, content).await.unwrap();
                let operation = TaskOperation::parse(name, parameters);
                let result = match &operation {
                    Ok(operation) => access.run(operation, Some(plan), &format!("edit {number}"), "later").await.ok(),
                    Err(_) => None,
                };
                let (after, is_consistent, circle) = access
                    .with_tree(plan, |tree| (content(tree), tree.is_consistent(), tree.check_all_dependencies()))
                    .await
                    .unwrap();
                prop_assert!(is_consistent, "{name} {parameters:?}");
                prop_assert_eq!(circle, Ok(()), "{} {:?}", name, parameters);
                if result.is_none() || operation.is_ok_and(|operation| operation.is_read_only()) {
                    prop_assert_eq!(before, after.clone(), "{} {:?}", name, parameters);
                }
                let read = PlanAccess::new(store.clone(), "anna").with_tree(plan, content).await.unwrap();
                prop_assert_eq!(read, after, "{} {:?}", name, parameters);
            }
            Ok(())
        })?;
    }
}
