//! What is stored about branches that run at the same time: in the frame of their action, and in the frame of each branch.

use std::collections::BTreeMap;

use bcc_lang::message::message::Message;
use bcc_lang::message::stored;
use bcc_lang::value::scopes::{Scope, Scopes};
use serde::{Deserialize, Serialize};

use crate::program::flow::{BranchBlock, BranchLimits};

/// How the branches of an action run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BranchRules {
    /// The branches. Each comes after those that it depends on.
    pub branches: Vec<BranchBlock>,
    pub limits: BranchLimits,
}

impl Default for BranchRules {
    fn default() -> Self {
        Self { branches: vec![], limits: BranchLimits { fail_fast: true, at_once: 1 } }
    }
}

impl BranchRules {
    /// The branches that this one depends on, directly or not, in their order.
    pub(crate) fn before(&self, branch: &BranchBlock) -> Vec<&BranchBlock> {
        let mut ids: Vec<&str> = branch.after.iter().map(String::as_str).collect();
        // Each comes after those that it depends on, so one pass from the end is enough.
        let mut before: Vec<&BranchBlock> = Vec::new();
        for other in self.branches.iter().rev() {
            if ids.contains(&other.id.as_str()) {
                ids.extend(other.after.iter().map(String::as_str));
                before.push(other);
            }
        }
        before.reverse();
        before
    }
}

/// A branch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct BranchState {
    /// The instance path of its variables.
    pub path: String,
    /// How it ended; none while it waits for its turn or runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<BranchEnd>,
    /// Whether it has started.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub started: bool,
    /// Why it failed.
    #[serde(default, with = "stored::option", skip_serializing_if = "Option::is_none")]
    pub error: Option<Message>,
    /// The scopes that the author named for variables that it set: they apply when it is merged.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scopes: BTreeMap<String, Scope>,
}

/// The scopes of a branch, or of the session outside of branches.
#[derive(Debug, Default)]
pub(crate) struct BranchScopes {
    pub scopes: Scopes,
    /// The scopes outside the running skills in it, outermost first.
    pub outer: Vec<Scopes>,
}

/// How a branch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BranchEnd {
    Completed,
    Failed,
    /// Another one failed while it ran.
    Cancelled,
    /// It never started: one that it depends on did not complete, or another one failed.
    Skipped,
}

impl BranchEnd {
    /// The name in outcomes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Skipped => "skipped",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        [Self::Completed, Self::Failed, Self::Cancelled, Self::Skipped].into_iter().find(|end| end.name() == name)
    }
}
