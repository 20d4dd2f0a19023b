//! `move_task` and `delete_task`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::plan::error::OperationError;
use crate::plan::limits::MAX_LEVELS;
use crate::plan::operation::{ParentReference, TaskPlacement};
use crate::plan::placement::{self, ResolvedPlace};
use crate::plan::task::{TaskId, TaskStatus};
use crate::plan::tree::PlanTree;

/// The maximum number of tasks that a summary names.
const MAX_NAMED: usize = 50;

/// Moves a task with everything in it.
/// Errors: [`OperationError::OwnSubtree`], [`OperationError::CircularDependency`], [`OperationError::TooManyLevels`], and those of
/// references. The tree is unchanged.
pub(crate) fn move_task(
    tree: &mut PlanTree,
    id: TaskId,
    parent: &ParentReference,
    place: &TaskPlacement,
) -> Result<ResolvedPlace, OperationError> {
    let old_parent = tree.existing(id)?.parent;
    let old_position = tree.position(id).unwrap_or_default();
    let place = placement::resolve(tree, parent, place, Some(id))?;
    if let Some(parent) = place.parent {
        if parent == id || tree.ancestors(parent).any(|ancestor| ancestor == id) {
            return Err(OperationError::OwnSubtree { task: id, parent });
        }
        if place.parent != old_parent && tree.level(parent).saturating_add(levels(tree, id)) > MAX_LEVELS {
            return Err(OperationError::TooManyLevels);
        }
        if place.parent != old_parent {
            tree.check_place(id, parent)?;
        }
    }
    if (place.parent, place.position) == (old_parent, old_position) {
        return Ok(place);
    }
    tree.move_to(id, place.parent, place.position);
    Ok(place)
}

/// The number of levels of a task and what is in it.
fn levels(tree: &PlanTree, id: TaskId) -> usize {
    let mut level = vec![id];
    let mut count = 0;
    while !level.is_empty() && count <= MAX_LEVELS {
        count += 1;
        level = level.into_iter().flat_map(|id| tree.children(Some(id))).collect();
    }
    count
}

/// Deletes a task with everything in it, and the dependencies of other tasks on these. Returns a summary.
/// Errors: [`OperationError::Running`] while one of them runs. The tree is unchanged.
pub(crate) fn delete(tree: &mut PlanTree, id: TaskId) -> Result<Value, OperationError> {
    let name = tree.existing(id)?.name.clone();
    let removed: Vec<TaskId> = tree.subtree(id).collect();
    let is_running = |id: &TaskId| tree.task(*id).is_some_and(|task| task.status == TaskStatus::Running);
    if let Some(task) = removed.iter().copied().find(is_running) {
        return Err(OperationError::Running { task });
    }
    let named: Vec<Value> = removed
        .iter()
        .take(MAX_NAMED)
        .filter_map(|id| tree.task(*id))
        .map(|task| json!({ "task_id": task.id, "name": task.name }))
        .collect();
    let mut released: BTreeMap<TaskId, Vec<TaskId>> = BTreeMap::new();
    // Children first, and the dependencies on a task before it.
    for removed in removed.iter().rev() {
        let dependents: Vec<TaskId> = tree.dependents(*removed).collect();
        for dependent in dependents {
            tree.change(dependent, |task| task.dependencies.retain(|dependency| dependency != removed));
            released.entry(dependent).or_default().push(*removed);
        }
        tree.remove(*removed);
    }
    released.retain(|id, _| tree.task(*id).is_some());
    let released: Vec<Value> = released
        .into_iter()
        .take(MAX_NAMED)
        .filter_map(|(id, mut removed)| {
            removed.sort_unstable();
            removed.truncate(MAX_NAMED);
            let name = &tree.task(id)?.name;
            Some(json!({ "task_id": id, "name": name, "removed_dependencies": removed }))
        })
        .collect();
    Ok(json!({
        "plan_id": tree.id(),
        "task_id": id,
        "name": name,
        "removed": removed.len(),
        "removed_tasks": named,
        "no_longer_depend_on_them": released,
    }))
}
