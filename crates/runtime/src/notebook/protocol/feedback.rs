//! The feedback on a behavior (docs/protocol.md).

use serde::{Deserialize, Serialize};

/// The measured counts and times of one behavior.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Feedback {
    pub behavior_id: String,
    /// The number of performed actions, successful or not.
    pub actions_executed: u32,
    /// The number of successful actions.
    pub actions_succeeded: u32,
    /// The number of failed actions.
    pub actions_failed: u32,
    /// `success`, or the error of the last action.
    pub last_action_result: String,
    /// The total time of the actions, in milliseconds.
    pub execution_time_ms: u64,
    pub sections_added: u32,
    pub cells_added: u32,
    pub code_cells_executed: u32,
}
