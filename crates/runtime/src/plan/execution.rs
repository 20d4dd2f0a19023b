//! What the execution of a plan changes: statuses, results, errors, and tasks that run again.

use serde_json::{Value, json};

use crate::plan::error::OperationError;
use crate::plan::limits::{MAX_ERROR_CHARS, MAX_RESULT_BYTES, check_bytes};
use crate::plan::task::{PlanTask, TASK_BLOCK, TaskId, TaskRunner, TaskStatus};
use crate::plan::tree::PlanTree;

/// The maximum number of tasks that a summary names.
const MAX_NAMED: usize = 100;

/// What a task is after a step of its execution.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskProgress {
    pub status: TaskStatus,
    /// What it gave; null if nothing.
    pub result: Value,
    /// Why it failed or was skipped.
    pub error: Option<String>,
    /// What runs it or has run it.
    pub run_by: Option<TaskRunner>,
}

impl TaskProgress {
    pub fn of(status: TaskStatus) -> Self {
        Self { status, ..Self::default() }
    }

    pub fn running(by: TaskRunner) -> Self {
        Self { run_by: Some(by), ..Self::of(TaskStatus::Running) }
    }
}

/// The id of the branch that runs a task, and the name of its block.
pub(crate) fn branch_of(task: TaskId) -> String {
    format!("{TASK_BLOCK}{task}")
}

impl PlanTree {
    /// Sets the status, the result and the error of a task.
    /// Errors: [`OperationError::UnknownTask`], [`OperationError::TooLarge`] for the result. The tree is unchanged.
    pub fn set_progress(&mut self, id: TaskId, progress: &TaskProgress) -> Result<(), OperationError> {
        self.existing(id)?;
        check_bytes("result", &progress.result, MAX_RESULT_BYTES)?;
        let TaskProgress { status, result, error, run_by } = progress.clone();
        let error = error.map(|error| error.chars().take(MAX_ERROR_CHARS).collect());
        self.change(id, |task| *task = PlanTask { status, result, error, run_by, ..std::mem::take(task) });
        Ok(())
    }

    /// Starts a task. The place that runs it already may start it again: it was killed before it could note that it had started it.
    /// Errors: [`OperationError::UnknownTask`], [`OperationError::Running`], [`OperationError::Over`]: it has been run already. The tree
    /// is unchanged.
    pub fn claim(&mut self, task: TaskId, by: TaskRunner) -> Result<(), OperationError> {
        let found = self.existing(task)?;
        match found.status {
            TaskStatus::Pending => self.set_progress(task, &TaskProgress::running(by)),
            TaskStatus::Running if found.run_by.as_ref() == Some(&by) => Ok(()),
            TaskStatus::Running => Err(OperationError::Running { task }),
            status => Err(OperationError::Over { task, status: status.name() }),
        }
    }

    pub fn set_plan_status(&mut self, status: TaskStatus) {
        self.set_plan_progress(status, None);
    }

    /// A session executes the plan.
    pub fn set_plan_running(&mut self, session: &str) {
        self.set_plan_progress(TaskStatus::Running, Some(session.to_owned()));
    }

    /// A session other than this one that runs a task.
    pub(crate) fn other_runner(&self, session: &str) -> Option<String> {
        if self.counts().of(TaskStatus::Running) == 0 {
            return None;
        }
        let running = self.all().filter_map(|id| self.task(id)).filter(|task| task.is_running());
        let mut runners = running.filter_map(|task| Some(task.run_by.as_ref()?.session.as_str()));
        runners.find(|runner| *runner != session).map(str::to_owned)
    }

    fn set_plan_progress(&mut self, status: TaskStatus, runs_in: Option<String>) {
        if self.head().status != status || self.head().runs_in != runs_in {
            self.change_head(|head| (head.status, head.runs_in) = (status, runs_in));
        }
    }

    /// Makes a task pending again; with `with_dependents`, also everything that needs its result
    /// ([`PlanTree::all_dependents`]). Returns their ids.
    /// Errors: [`OperationError::UnknownTask`], [`OperationError::Running`]. The tree is unchanged.
    pub fn reset(&mut self, id: TaskId, with_dependents: bool) -> Result<Vec<TaskId>, OperationError> {
        self.existing(id)?;
        let mut ids = vec![id];
        if with_dependents {
            ids.extend(self.all_dependents(id));
        }
        let status = |id: &TaskId| self.task(*id).map(|task| task.status);
        if let Some(task) = ids.iter().copied().find(|id| status(id) == Some(TaskStatus::Running)) {
            return Err(OperationError::Running { task });
        }
        ids.retain(|other| *other == id || status(other) != Some(TaskStatus::Pending));
        for id in &ids {
            self.change(*id, |task| {
                (task.status, task.result, task.error) = (TaskStatus::Pending, Value::Null, None);
                task.run_by = None;
            });
        }
        if self.head().status.is_over() {
            self.set_plan_status(TaskStatus::Pending);
        }
        Ok(ids)
    }
}

/// `rerun_task`.
pub(crate) fn rerun(tree: &mut PlanTree, id: TaskId, with_dependents: bool) -> Result<Value, OperationError> {
    let reset = tree.reset(id, with_dependents)?;
    let named: Vec<Value> = reset
        .iter()
        .take(MAX_NAMED)
        .filter_map(|id| tree.task(*id))
        .map(|task| json!({ "task_id": task.id, "name": task.name }))
        .collect();
    Ok(json!({ "plan_id": tree.id(), "task_id": id, "reset": reset.len(), "reset_tasks": named }))
}
