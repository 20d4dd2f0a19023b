//! `create_task`: adds a task.

use serde_json::{Map, Value, json};

use crate::plan::error::OperationError;
use crate::plan::limits::{
    MAX_DEPENDENCIES, MAX_LEVELS, MAX_TASKS, MAX_TYPE_CHARS, check_chars, check_controls, check_instruction,
    check_metadata, checked_name,
};
use crate::plan::operation::NewTask;
use crate::plan::placement::{self, ResolvedPlace};
use crate::plan::show::{set_text, task_view};
use crate::plan::task::{PlanTask, TaskId, TaskStatus};
use crate::plan::tree::{PlanTree, TaskIds};

/// Adds a task and returns its id, with the note of its place.
/// Errors: those of names, references, dependencies and limits. The tree is unchanged.
pub(crate) fn create(
    tree: &mut PlanTree,
    new: &NewTask,
    ids: &mut dyn TaskIds,
) -> Result<(TaskId, ResolvedPlace), OperationError> {
    let name = checked_name("create_task", "task_name", &new.name)?;
    check_instruction(&new.instruction)?;
    check_metadata(&new.metadata)?;
    check_controls("create_task", &new.metadata)?;
    if let Some(task_type) = &new.task_type {
        check_chars("task_type", task_type, MAX_TYPE_CHARS)?;
    }
    if tree.len() >= MAX_TASKS {
        return Err(OperationError::TooManyTasks);
    }
    let place = placement::resolve(tree, &new.parent, &new.place, None)?;
    if place.parent.is_some_and(|parent| tree.level(parent) >= MAX_LEVELS) {
        return Err(OperationError::TooManyLevels);
    }
    let id = ids.next_id().ok_or(OperationError::NoIds)?;
    let dependencies = checked_dependencies(tree, id, &new.dependencies)?;
    let task = PlanTask {
        id,
        parent: place.parent,
        name,
        task_type: new.task_type.clone(),
        instruction: new.instruction.clone(),
        metadata: new.metadata.clone(),
        dependencies,
        status: TaskStatus::Pending,
        run_by: None,
        result: Value::Null,
        error: None,
        created_at: tree.now.clone(),
        updated_at: tree.now.clone(),
    };
    tree.insert(task, place.position);
    if let Err(error) = tree.check_dependencies(id) {
        tree.remove(id);
        return Err(error);
    }
    Ok((id, place))
}

/// The dependencies without duplicates.
/// Errors: [`OperationError::OwnDependency`], [`OperationError::UnknownDependency`], [`OperationError::TooManyDependencies`].
pub(crate) fn checked_dependencies(
    tree: &PlanTree,
    task: TaskId,
    dependencies: &[TaskId],
) -> Result<Vec<TaskId>, OperationError> {
    let mut checked: Vec<TaskId> = Vec::new();
    for dependency in dependencies {
        if *dependency == task {
            return Err(OperationError::OwnDependency { task });
        }
        if tree.task(*dependency).is_none() {
            return Err(OperationError::UnknownDependency { task, dependency: *dependency, plan: tree.id() });
        }
        if checked.contains(dependency) {
            continue;
        }
        if checked.len() >= MAX_DEPENDENCIES {
            return Err(OperationError::TooManyDependencies);
        }
        checked.push(*dependency);
    }
    Ok(checked)
}

/// What `create_task` and `move_task` give.
pub(crate) fn placed_view(tree: &PlanTree, id: TaskId, place: &ResolvedPlace) -> Value {
    let mut view = Map::new();
    view.insert("plan_id".to_owned(), json!(tree.id()));
    view.insert("task".to_owned(), task_view(tree, id));
    if let Some(note) = &place.note {
        set_text(&mut view, "note", &note.to_string());
    }
    Value::Object(view)
}
