//! A cell that runs again because the kernel has lost its memory: shown while it runs, but never stored.

use serde::Serialize;

use crate::notebook::cell::CellEnd;
use crate::program::location::EventLocation;

/// A cell that begins to run again, or has ended. Like a fragment of a message, it has no `seq`.
#[derive(Debug, Serialize)]
pub struct CellRerunPiece<'a> {
    /// When, RFC 3339, UTC.
    pub at: &'a str,
    pub session_id: &'a str,
    /// `cell_rerun`.
    pub r#type: &'static str,
    pub cell_id: &'a str,
    /// The effect that needs the memory: the code that runs afterwards.
    pub effect_id: &'a str,
    /// Which of the cells that run again it is, from 1.
    pub number: usize,
    /// How many cells run again.
    pub total: usize,
    /// How it ended; none if it begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<CellEnd>,
    pub location: &'a EventLocation,
}

impl CellRerunPiece<'_> {
    /// Whether it is the first one.
    pub const fn starts(&self) -> bool {
        self.number == 1 && self.ended.is_none()
    }
}
