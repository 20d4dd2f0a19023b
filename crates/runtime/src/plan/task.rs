//! A plan and its tasks as they are stored.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::plan::editing_session::PlanEditor;

/// The beginning of the names of blocks that run tasks of plans.
pub(crate) const TASK_BLOCK: &str = "task_";

/// The number of a plan, unique in a store.
pub type PlanId = u64;

/// The number of a task, unique in a store, so that it also tells the plan.
pub type TaskId = u64;

/// Where a task, or a whole plan, is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    #[default]
    Pending,
    Running,
    Completed,
    Failed,
    Skipped,
}

impl TaskStatus {
    pub const ALL: [Self; 5] = [Self::Pending, Self::Running, Self::Completed, Self::Failed, Self::Skipped];

    /// The name in events, results and the store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether nothing more happens to the task by itself.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Skipped)
    }
}

/// What a plan is for; its tasks are stored one by one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanHead {
    pub title: String,
    #[serde(default)]
    pub goal: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub style: Option<String>,
    /// The sections that were asked for, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sections: Option<Value>,
    #[serde(default)]
    pub status: TaskStatus,
    /// The session that executes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_in: Option<String>,
    /// The session that made it.
    #[serde(default)]
    pub session_id: String,
    /// The sessions with sensitive values that edited it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub editors: Vec<PlanEditor>,
    /// The script of that session (`workflow_id` of `list_plans`).
    #[serde(default)]
    pub workflow_id: String,
    #[serde(default)]
    pub created_at: String,
    #[serde(default)]
    pub updated_at: String,
}

/// The place that runs a task: an action of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRunner {
    pub session: String,
    /// The path of the action, with its blocks and branches.
    pub action: String,
}

/// A task of a plan. Its position among its siblings is kept by the plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanTask {
    pub id: TaskId,
    /// The task that contains it; none for a root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_type: Option<String>,
    #[serde(default)]
    pub instruction: String,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The tasks that must be completed before it runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<TaskId>,
    #[serde(default)]
    pub status: TaskStatus,
    /// What runs it, or has run it; none for a task that is pending, and one that was never started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_by: Option<TaskRunner>,
    /// What its execution gave; null before.
    #[serde(default)]
    pub result: Value,
    /// Why it failed or was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default)]
    pub created_at: String,
    #[serde(default)]
    pub updated_at: String,
}

impl PlanTask {
    pub fn is_running(&self) -> bool {
        self.status == TaskStatus::Running
    }
}
