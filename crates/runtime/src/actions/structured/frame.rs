//! The state of an `ai_act` between turns.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::actions::plans::execution::PlanRun;
use crate::actions::plans::generation::Generation;
use crate::actions::structured::instruction::Instruction;
use crate::actions::tools::call::ToolCallState;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ActPoint {
    #[default]
    Start,
    /// The model is asked again in the same round.
    Ask,
    /// The operations of the last reply are carried out.
    Perform,
    /// The person writes next.
    Wait,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ActFrame {
    pub at: ActPoint,
    /// The current round, from 1; 0 before the first.
    pub round: u32,
    /// How often the model was asked in this round.
    pub asked: u32,
    /// Tells the operations of one reply from those of others, so that each edit of a plan has a key of its own.
    pub batch: u64,
    /// Whether these keys name the place. Those of earlier releases do not, and their edits must be found again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_place: bool,
    /// The operations that are still to be carried out, in their order.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    pub queue: VecDeque<Instruction>,
    /// Those that did not hold up the others, and are joined at the end.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    pub joined: VecDeque<Instruction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<Box<RunningOperation>>,
    /// The entries of the last reply's operations, for the next prompt of the round.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<Value>,
    /// Those of earlier replies of the round.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier_results: Vec<Value>,
    /// What tools gave in this round.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_results: Vec<Value>,
    /// The calls of tools in this round, so that none is made twice.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<MadeCall>,
    /// Whether the model must learn of the results before the person writes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tells_model: bool,
    /// The last message to the person.
    pub message: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub unusable_openings: u32,
    #[serde(skip_serializing_if = "is_zero")]
    pub substitutes: u32,
}

/// A call of a tool that ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct MadeCall {
    /// A digest of the tool and its arguments, which may contain sensitive values.
    pub digest: String,
    pub status: String,
}

/// An operation that takes several turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunningOperation {
    pub instruction: Instruction,
    /// The number of attempts that failed.
    #[serde(default)]
    pub failures: u32,
    /// Whether the pause before the next attempt is still to come.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pauses: bool,
    #[serde(default)]
    pub progress: OperationProgress,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OperationProgress {
    #[default]
    Starting,
    Tool(Box<ToolCallState>),
    Generation(Generation),
    Execution(PlanRun),
}

impl ActFrame {
    /// Forgets what was carried out in the round, which is over.
    pub(crate) fn forget_round(&mut self) {
        self.results.clear();
        self.earlier_results.clear();
        self.tool_results.clear();
        self.calls.clear();
        self.tells_model = false;
    }

    /// Whether something may have been carried out in the round.
    pub(crate) fn may_have_changed(&self) -> bool {
        let is_made = |entry: &&Value| {
            entry.get("status").and_then(Value::as_str).is_some_and(|status| !["refused", "rejected"].contains(&status))
        };
        self.earlier_results.iter().chain(&self.results).find(is_made).is_some()
    }

    /// All entries of the round so far.
    pub(crate) fn all_results(&self) -> Vec<Value> {
        self.earlier_results.iter().chain(&self.results).cloned().collect()
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde asks for a reference
fn is_zero(count: &u32) -> bool {
    *count == 0
}
