//! The location of an event: where in a script, and in which visit of it.

use serde::{Deserialize, Serialize};

/// A location as events report it (docs/sessions.md).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventLocation {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
    /// The instance path, which tells visits apart: `topic_a#2/skill_comfort/ask_1`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
}
