//! What an edit has changed in a plan, with what was there before, so that it can be undone.

use std::collections::BTreeMap;

use crate::plan::task::{PlanHead, TaskId};
use crate::plan::tree::TaskNode;

/// The changes since the last accepted edit.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangeLog {
    /// The tasks that may have changed as they were before; none for one that did not exist.
    pub(crate) before: BTreeMap<TaskId, Option<TaskNode>>,
    pub(crate) head_before: Option<PlanHead>,
}

impl ChangeLog {
    pub(crate) fn keep(&mut self, id: TaskId, node: Option<&TaskNode>) {
        self.before.entry(id).or_insert_with(|| node.cloned());
    }
}
