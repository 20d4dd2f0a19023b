//! `show_tasks`, `query_status` and `request_subgraph`: what a plan contains, as JSON with a maximum size.

use serde_json::{Map, Value, json};

use crate::plan::error::OperationError;
use crate::plan::operation::TaskReference;
use crate::plan::task::TaskId;
use crate::plan::tree::PlanTree;

/// The maximum number of tasks that `show_tasks` lists.
const MAX_LISTED: usize = 500;

/// The maximum length of the tree of `show_tasks`, in characters.
const MAX_TREE_CHARS: usize = 20_000;

/// The maximum number of tasks of a subgraph.
const MAX_NODES: usize = 200;

/// The maximum number of related tasks that are named.
const MAX_RELATED: usize = 50;

/// The maximum length of the instructions inside a subgraph, in characters; that of the requested task is whole.
const MAX_INSTRUCTION_CHARS: usize = 500;

/// The maximum size of a result that is shown, as JSON in bytes.
const MAX_RESULT_BYTES: usize = 8 * 1024;

pub(crate) fn set_text(view: &mut Map<String, Value>, key: &str, text: &str) {
    view.insert(key.to_owned(), Value::String(text.to_owned()));
}

/// A task without its instruction, its metadata and its result.
pub(crate) fn task_view(tree: &PlanTree, id: TaskId) -> Value {
    let Some(task) = tree.task(id) else { return Value::Null };
    let mut view = Map::new();
    view.insert("task_id".to_owned(), json!(id));
    set_text(&mut view, "name", &task.name);
    view.insert("parent_id".to_owned(), json!(task.parent));
    view.insert("position".to_owned(), json!(tree.position(id)));
    set_text(&mut view, "status", task.status.name());
    if let Some(task_type) = &task.task_type {
        set_text(&mut view, "task_type", task_type);
    }
    if !task.dependencies.is_empty() {
        view.insert("dependencies".to_owned(), json!(task.dependencies));
    }
    if let Some(error) = &task.error {
        set_text(&mut view, "error", error);
    }
    Value::Object(view)
}

/// A task with its instruction, its metadata and its result, if that is not too large.
pub(crate) fn full_view(tree: &PlanTree, id: TaskId, max_instruction: Option<usize>) -> Value {
    let (Some(task), Value::Object(mut view)) = (tree.task(id), task_view(tree, id)) else { return Value::Null };
    let max = max_instruction.unwrap_or(usize::MAX);
    let mut instruction: String = task.instruction.chars().take(max).collect();
    if instruction.len() < task.instruction.len() {
        instruction.push('…');
    }
    set_text(&mut view, "instruction", &instruction);
    if !task.metadata.is_empty() && max_instruction.is_none() {
        view.insert("metadata".to_owned(), Value::Object(task.metadata.clone()));
    }
    if !task.result.is_null() {
        let fits = serde_json::to_vec(&task.result).is_ok_and(|json| json.len() <= MAX_RESULT_BYTES);
        let key = if fits { "result" } else { "result_is_left_out" };
        view.insert(key.to_owned(), if fits { task.result.clone() } else { Value::Bool(true) });
    }
    Value::Object(view)
}

fn named(tree: &PlanTree, ids: impl Iterator<Item = TaskId>) -> Vec<Value> {
    ids.take(MAX_RELATED)
        .filter_map(|id| tree.task(id))
        .map(|task| json!({ "task_id": task.id, "name": task.name, "status": task.status.name() }))
        .collect()
}

/// The plan without its tasks: what `list_plans` and `query_status` show of it.
pub(crate) fn plan_view(tree: &PlanTree) -> Map<String, Value> {
    let counts: Map<String, Value> =
        tree.counts().all().map(|(status, count)| (status.name().to_owned(), json!(count))).collect();
    let mut view = Map::new();
    view.insert("plan_id".to_owned(), json!(tree.id()));
    set_text(&mut view, "title", &tree.head().title);
    set_text(&mut view, "goal", &tree.head().goal);
    set_text(&mut view, "status", tree.head().status.name());
    view.insert("tasks".to_owned(), json!(tree.len()));
    view.insert("tasks_by_status".to_owned(), Value::Object(counts));
    view
}

pub(crate) fn show_tasks(tree: &PlanTree) -> Value {
    let mut view = plan_view(tree);
    let list: Vec<Value> = tree.all().take(MAX_LISTED).map(|id| task_view(tree, id)).collect();
    view.insert("tasks_left_out".to_owned(), json!(tree.len().saturating_sub(list.len())));
    view.insert("list".to_owned(), Value::Array(list));
    set_text(&mut view, "tree", &tree.outline(MAX_TREE_CHARS));
    Value::Object(view)
}

pub(crate) fn query_status(tree: &PlanTree, task: Option<&TaskReference>) -> Result<Value, OperationError> {
    let Some(task) = task else { return Ok(Value::Object(plan_view(tree))) };
    let id = tree.find(task)?;
    let waits_for = tree.waits_for(id, MAX_RELATED);
    Ok(json!({
        "plan": plan_view(tree),
        "task": full_view(tree, id, None),
        "path": tree.path(id),
        "children": tree.child_count(Some(id)),
        "waits_for": named(tree, waits_for.into_iter()),
    }))
}

/// A task with what is in it, down to `max_depth` levels below it, and what is related to it.
pub(crate) fn subgraph(tree: &PlanTree, id: TaskId, max_depth: usize) -> Result<Value, OperationError> {
    let task = tree.existing(id)?;
    // Level by level, so that the nearest tasks are there if there are too many.
    let mut nodes = Vec::new();
    let mut level: Vec<TaskId> = tree.children(Some(id)).take(MAX_NODES + 1).collect();
    let mut is_complete = true;
    for _ in 0..max_depth {
        for child in &level {
            if nodes.len() >= MAX_NODES {
                is_complete = false;
                break;
            }
            nodes.push(full_view(tree, *child, Some(MAX_INSTRUCTION_CHARS)));
        }
        level = level.into_iter().flat_map(|id| tree.children(Some(id))).take(MAX_NODES + 1).collect();
    }
    let mut ancestors: Vec<TaskId> = tree.ancestors(id).collect();
    ancestors.reverse();
    Ok(json!({
        "plan_id": tree.id(),
        "task": full_view(tree, id, None),
        "path": tree.path(id),
        "ancestors": named(tree, ancestors.into_iter()),
        "descendants": nodes,
        "is_complete": is_complete && level.is_empty(),
        "depends_on": named(tree, task.dependencies.iter().copied()),
        "dependents": named(tree, tree.dependents(id)),
    }))
}
