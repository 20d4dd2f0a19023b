//! What the session asks about its branches.

use std::time::Duration;

use crate::run::branch_state::{BranchRules, BranchState};
use crate::run::frames::{branch_key, lineage, parent};
use crate::run::session::Session;

impl Session {
    /// The innermost branch that contains the frame `key`.
    pub(crate) fn enclosing_branch(&self, key: &str) -> Option<String> {
        let branches = lineage(parent(key)).filter(|key| self.branch(key).is_some());
        branches.last().map(str::to_owned)
    }

    /// The numbers of a branch and of those around it, the outermost first, each in the list of its action and from 1.
    pub(crate) fn branch_numbers(&self, branch: &str) -> String {
        let number = |key: &str| {
            let action = parent(key);
            let branches = &self.frames.get(action)?.branches.as_deref()?.branches;
            let number = branches.iter().position(|other| branch_key(action, other) == key)?;
            Some(format!("b{}.", number + 1))
        };
        lineage(branch).filter_map(number).collect()
    }

    /// The branches of all actions at `top` or below it, in their order.
    pub(crate) fn branches_within(&self, top: &str) -> Vec<String> {
        let mut found = Vec::new();
        for action in self.frames.parallel_within(top) {
            let branches = self.rules(&action).map(|rules| rules.branches).unwrap_or_default();
            found.extend(branches.iter().map(|branch| branch_key(&action, branch)));
        }
        found
    }

    pub(crate) fn rules(&self, action: &str) -> Option<BranchRules> {
        self.frames.get(action)?.branches.as_deref().cloned()
    }

    pub(crate) fn branch(&self, key: &str) -> Option<&BranchState> {
        self.frames.get(key)?.branch.as_deref()
    }

    pub(crate) fn change_branch(&mut self, key: &str) -> Option<&mut BranchState> {
        self.frames.change(key)?.branch.as_deref_mut()
    }

    /// Whether a branch has started and not ended.
    pub(crate) fn runs(&self, key: &str) -> bool {
        self.branch(key).is_some_and(|state| state.started && state.end.is_none())
    }

    /// How long it is until a request of a branch is due.
    pub(crate) fn branch_time_left(&self) -> Option<Duration> {
        let due = self.branch_requests.values().filter_map(|request| request.due_at.as_deref());
        due.filter_map(|due| self.services.clock.remaining(due)).min()
    }
}
