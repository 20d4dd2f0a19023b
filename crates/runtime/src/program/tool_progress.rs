//! The progress of a call of a tool while it runs: shown, but never stored.

use serde::Serialize;

use crate::program::location::EventLocation;

/// How far a call of a tool is. Like a fragment of a message, it has no `seq`.
#[derive(Debug, Serialize)]
pub struct ToolProgressPiece<'a> {
    /// When, RFC 3339, UTC.
    pub at: &'a str,
    pub session_id: &'a str,
    /// `tool_progress`.
    pub r#type: &'static str,
    pub tool: &'a str,
    /// The effect of the call, if it was announced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect_id: Option<&'a str>,
    /// How much is done, in the unit of the tool.
    pub done: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    pub location: &'a EventLocation,
}
