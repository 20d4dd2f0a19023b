//! `update_task` and `update_task_instruction`: change what a task says.

use serde_json::Value;

use crate::plan::create::checked_dependencies;
use crate::plan::error::OperationError;
use crate::plan::limits::{check_controls, check_instruction, check_metadata, checked_name};
use crate::plan::operation::TaskChange;
use crate::plan::task::TaskId;
use crate::plan::tree::PlanTree;

/// Changes a task.
/// Errors: those of names, dependencies and limits. The tree is unchanged.
pub(crate) fn update(tree: &mut PlanTree, id: TaskId, change: &TaskChange) -> Result<(), OperationError> {
    let before = tree.existing(id)?.clone();
    let mut after = before.clone();
    if let Some(name) = &change.name {
        after.name = checked_name("update_task", "name", name)?;
    }
    if let Some(instruction) = &change.instruction {
        check_instruction(instruction)?;
        after.instruction.clone_from(instruction);
    }
    for (key, value) in change.metadata.iter().flatten() {
        match value {
            Value::Null => after.metadata.shift_remove(key),
            value => after.metadata.insert(key.clone(), value.clone()),
        };
    }
    check_metadata(&after.metadata)?;
    if change.metadata.is_some() {
        check_controls("update_task", &after.metadata)?;
    }
    if let Some(dependencies) = &change.dependencies {
        after.dependencies = checked_dependencies(tree, id, dependencies)?;
    }
    if after == before {
        return Ok(());
    }
    tree.change(id, |task| *task = after);
    if change.dependencies.is_some()
        && let Err(error) = tree.check_dependencies(id)
    {
        tree.replace(before);
        return Err(error);
    }
    Ok(())
}

/// Adds to the instruction of a task, as a new paragraph. A text that the instruction already has as one of its paragraphs is not added
/// again.
/// Errors: the instruction becomes too long. The tree is unchanged.
pub(crate) fn update_instruction(tree: &mut PlanTree, id: TaskId, instruction: &str) -> Result<(), OperationError> {
    let old = tree.existing(id)?.instruction.as_str();
    let added = instruction.trim();
    let merged = if old.trim().is_empty() {
        added.to_owned()
    } else if format!("\n\n{}\n\n", old.trim()).contains(&format!("\n\n{added}\n\n")) {
        return Ok(());
    } else {
        format!("{}\n\n{added}", old.trim_end())
    };
    check_instruction(&merged)?;
    tree.change(id, |task| task.instruction = merged);
    Ok(())
}
