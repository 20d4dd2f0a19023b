//! Applies an operation to a plan.

use serde_json::{Value, json};

use crate::plan::create::{create, placed_view};
use crate::plan::error::OperationError;
use crate::plan::execution::rerun;
use crate::plan::operation::{TaskOperation, TaskOperationKind};
use crate::plan::relocate::{delete, move_task};
use crate::plan::show::{full_view, query_status, show_tasks, subgraph};
use crate::plan::tree::{PlanTree, TaskIds};
use crate::plan::update::{update, update_instruction};

/// Applies an operation, and returns its result for the one who asked for it.
/// Errors: the operation is rejected, and the tree is unchanged.
pub fn apply(tree: &mut PlanTree, operation: &TaskOperation, ids: &mut dyn TaskIds) -> Result<Value, OperationError> {
    if let Some(plan) = operation.plan.filter(|plan| *plan != tree.id()) {
        return Err(OperationError::OtherPlan { plan, bound: tree.id() });
    }
    match &operation.kind {
        TaskOperationKind::Create(new) => {
            let (id, place) = create(tree, new, ids)?;
            Ok(placed_view(tree, id, &place))
        }
        TaskOperationKind::Update { task, change } => {
            let id = tree.find(task)?;
            update(tree, id, change)?;
            Ok(json!({ "plan_id": tree.id(), "task": full_view(tree, id, None) }))
        }
        TaskOperationKind::UpdateInstruction { task, instruction } => {
            let id = tree.find(task)?;
            update_instruction(tree, id, instruction)?;
            Ok(json!({ "plan_id": tree.id(), "task": full_view(tree, id, None) }))
        }
        TaskOperationKind::Move { task, parent, place } => {
            let id = tree.find(task)?;
            let place = move_task(tree, id, parent, place)?;
            Ok(placed_view(tree, id, &place))
        }
        TaskOperationKind::Delete { task } => {
            let id = tree.find(task)?;
            delete(tree, id)
        }
        TaskOperationKind::Show => Ok(show_tasks(tree)),
        TaskOperationKind::QueryStatus { task } => query_status(tree, task.as_ref()),
        TaskOperationKind::Rerun { task, with_dependents } => {
            let id = tree.find(task)?;
            rerun(tree, id, *with_dependents)
        }
        TaskOperationKind::RequestSubgraph { task, max_depth } => subgraph(tree, *task, *max_depth),
    }
}
