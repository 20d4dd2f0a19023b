//! The output of a command or a cell while it runs: shown, but never stored in this form. What is stored is the result.

use serde::Serialize;

use crate::program::location::EventLocation;

/// A piece of the output of what runs. Like a fragment of a message, it has no `seq`.
#[derive(Debug, Serialize)]
pub struct OutputPiece<'a> {
    /// When, RFC 3339, UTC.
    pub at: &'a str,
    pub session_id: &'a str,
    /// `effect_output`, or `cell_output` for the code of a cell.
    pub r#type: &'static str,
    /// The cell whose code runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell_id: Option<&'a str>,
    pub effect_id: &'a str,
    /// `stdout` or `stderr`.
    pub stream: &'static str,
    /// Complete lines, or the end of the output. Of a cell, also a line that the next one replaces, which ends with a carriage return, and
    /// a line that is not finished, which the next text of the same stream continues. Sensitive values are masked.
    pub text: &'a str,
    /// The number of bytes before `text` that are not shown.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: u64,
    pub location: &'a EventLocation,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde wants a reference
fn is_zero(number: &u64) -> bool {
    *number == 0
}
