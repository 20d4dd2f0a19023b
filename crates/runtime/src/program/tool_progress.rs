//! The progress of a call of a tool while it runs: shown, but never stored.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use crate::effects::tools::ToolProgress;
use crate::program::location::EventLocation;
use crate::program::turn::Turn;

/// The time between two reports of one call. A tool can send many more than anybody can read.
const INTERVAL: Duration = Duration::from_millis(100);

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

/// Passes the progress of one call in a turn to the observer of its session.
pub(crate) struct TurnToolProgress<'a, 'b> {
    turn: &'a Turn<'b>,
    tool: &'a str,
    reported: Mutex<Reported>,
}

/// What was reported of a call.
#[derive(Default)]
struct Reported {
    last: Option<Instant>,
    /// Whether all of it was done: this is reported once without the pause.
    is_complete: bool,
}

impl<'a, 'b> TurnToolProgress<'a, 'b> {
    pub(crate) fn new(turn: &'a Turn<'b>, tool: &'a str) -> Self {
        Self { turn, tool, reported: Mutex::default() }
    }
}

impl Reported {
    /// Whether a report at this time is passed on.
    fn takes(&mut self, now: Instant, is_complete: bool) -> bool {
        let is_early = self.last.is_some_and(|last| now.duration_since(last) < INTERVAL);
        if is_early && (!is_complete || self.is_complete) {
            return false;
        }
        self.last = Some(now);
        self.is_complete |= is_complete;
        true
    }
}

impl ToolProgress for TurnToolProgress<'_, '_> {
    fn progress(&self, done: f64, total: Option<f64>) {
        let is_number = |number: &f64| number.is_finite() && *number >= 0.0;
        let total = total.filter(|total| is_number(total) && *total > 0.0);
        let is_complete = total.is_some_and(|total| done >= total);
        if !is_number(&done)
            || !self.reported.lock().unwrap_or_else(PoisonError::into_inner).takes(Instant::now(), is_complete)
        {
            return;
        }
        let Self { turn, tool, .. } = self;
        turn.services.observer.tool_progress(&ToolProgressPiece {
            at: &turn.services.clock.at(turn.last_seq + 1),
            session_id: turn.session_id,
            r#type: "tool_progress",
            tool,
            effect_id: turn.effect.map(|effect| effect.id.as_str()),
            done,
            total,
            location: turn.place,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_of_many_reports_are_passed_on_and_the_last_one_once() {
        let mut reported = Reported::default();
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        assert!(reported.takes(after(0), false));
        assert!(!reported.takes(after(50), false));
        assert!(reported.takes(after(120), false));
        assert!(reported.takes(after(121), true), "the end is not left out");
        assert!(!reported.takes(after(122), true), "but it cannot be repeated at will");
        assert!(reported.takes(after(300), true));
    }
}
