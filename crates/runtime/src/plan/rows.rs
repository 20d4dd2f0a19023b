//! Plans and tasks as rows of the store, and back.

use std::collections::{BTreeMap, HashSet};

use bcc_lang::message::{ToMessage, msg};
use bcc_store::plan_rows::{PlanEditRow, PlanRow, PlanTaskRow, StoredPlan};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plan::error::OperationError;
use crate::plan::task::{PlanHead, PlanTask, TaskId, TaskStatus};
use crate::plan::tree::{PlanTree, TaskNode};

fn json(value: &impl Serialize) -> Result<String, OperationError> {
    serde_json::to_string(value).map_err(|error| OperationError::Unreadable { why: error.to_message() })
}

/// A task as a row. Its parent is a column.
fn task_row(node: &TaskNode) -> Result<PlanTaskRow, OperationError> {
    let TaskNode { task, rank } = node;
    let body = json(&PlanTask { parent: None, ..task.clone() })?;
    Ok(PlanTaskRow { id: task.id, parent: task.parent, rank: *rank, body })
}

/// The body of the row of a plan: what it is for, and how many tasks it has, so that plans can be listed without reading their tasks.
#[derive(Serialize, Deserialize)]
pub(crate) struct PlanBody {
    #[serde(flatten)]
    pub(crate) head: PlanHead,
    #[serde(default)]
    pub(crate) tasks_by_status: BTreeMap<TaskStatus, usize>,
}

pub(crate) fn body_of(row: &PlanRow) -> Result<PlanBody, OperationError> {
    serde_json::from_str(&row.body).map_err(|error| OperationError::Unreadable { why: error.to_message() })
}

impl PlanTree {
    /// The plan of these rows. A task whose parent is missing, because a damaged store was recovered, becomes a root; a dependency on a
    /// task that is missing is left out.
    pub(crate) fn from_rows(stored: StoredPlan) -> Result<Self, OperationError> {
        let StoredPlan { plan, tasks } = stored;
        let head = body_of(&plan)?.head;
        let mut tree = Self::new(plan.id, &plan.user, head);
        tree.revision = plan.revision;
        let known: HashSet<TaskId> = tasks.iter().map(|task| task.id).collect();
        for row in tasks {
            let mut task: PlanTask = serde_json::from_str(&row.body)
                .map_err(|error| OperationError::Unreadable { why: error.to_message() })?;
            task.id = row.id;
            task.parent = row.parent.filter(|parent| known.contains(parent));
            task.dependencies.retain(|dependency| known.contains(dependency) && *dependency != row.id);
            tree.attach(TaskNode { task, rank: row.rank });
        }
        tree.check_reached()?;
        Ok(tree)
    }

    /// Errors: some tasks contain each other.
    pub(crate) fn check_reached(&self) -> Result<(), OperationError> {
        if self.all().count() == self.len() {
            return Ok(());
        }
        Err(OperationError::Unreadable { why: msg!("some of its tasks contain each other") })
    }

    /// The row of the plan.
    pub(crate) fn row(&self) -> Result<PlanRow, OperationError> {
        let head = self.head();
        Ok(PlanRow {
            id: self.id(),
            user: self.user().to_owned(),
            revision: self.revision,
            status: head.status.name().to_owned(),
            title: head.title.clone(),
            created_at: head.created_at.clone(),
            updated_at: head.updated_at.clone(),
            body: json(&PlanBody { head: head.clone(), tasks_by_status: self.counts().all().collect() })?,
        })
    }

    /// The rows of all tasks, sorted by id.
    pub(crate) fn task_rows(&self) -> Result<Vec<PlanTaskRow>, OperationError> {
        let mut rows = self.nodes().map(task_row).collect::<Result<Vec<_>, _>>()?;
        rows.sort_unstable_by_key(|row| row.id);
        Ok(rows)
    }

    /// What has changed, as one edit.
    pub(crate) fn edit_row(&self, key: &str, result: &Value) -> Result<PlanEditRow, OperationError> {
        let PlanRow { id, revision, status, title, updated_at, body, .. } = self.row()?;
        let mut edit = PlanEditRow {
            plan: id,
            revision,
            key: key.to_owned(),
            result: json(result)?,
            status,
            title,
            updated_at,
            body,
            ..PlanEditRow::default()
        };
        for (id, node) in self.changed_tasks() {
            match node {
                Some(node) => edit.put.push(task_row(node)?),
                None => edit.removed.push(id),
            }
        }
        Ok(edit)
    }
}
