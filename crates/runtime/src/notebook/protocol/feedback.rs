//! What came of a behavior (docs/protocol.md).

use serde::{Deserialize, Serialize};

/// True counts and times of one behavior.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Feedback {
    pub behavior_id: String,
    /// How many of its actions were carried out, with or without success.
    pub actions_executed: u32,
    /// How many of them did what they were to do.
    pub actions_succeeded: u32,
    /// How many did not.
    pub actions_failed: u32,
    /// `success`, or what was wrong with the last action.
    pub last_action_result: String,
    /// How long its actions took together, in milliseconds.
    pub execution_time_ms: u64,
    pub sections_added: u32,
    pub cells_added: u32,
    pub code_cells_executed: u32,
}
