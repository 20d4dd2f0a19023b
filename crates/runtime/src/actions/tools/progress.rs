//! Passes the progress of a call to the observer of its session while it runs.

use std::sync::{Mutex, PoisonError};

use crate::effects::tools::ToolProgress;
use crate::program::tool_progress::ToolProgressPiece;
use crate::program::turn::Turn;

/// The time between two reports of one call, in milliseconds. A tool can send many more than anybody can read.
const INTERVAL_MS: u64 = 100;

/// Passes the progress of one call in a turn to the observer of its session.
pub(crate) struct TurnToolProgress<'a, 'b> {
    turn: &'a Turn<'b>,
    tool: &'a str,
    reported: Mutex<Reported>,
}

/// What was reported of a call.
#[derive(Default)]
struct Reported {
    /// When the last report was passed on, in milliseconds of the session's clock.
    last: Option<u64>,
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
    fn takes(&mut self, now: u64, is_complete: bool) -> bool {
        let is_early = self.last.is_some_and(|last| now.saturating_sub(last) < INTERVAL_MS);
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
            || !self
                .reported
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .takes(self.turn.services.clock.elapsed_ms(), is_complete)
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
        let after = |ms: u64| 1000 + ms;
        assert!(reported.takes(after(0), false));
        assert!(!reported.takes(after(50), false));
        assert!(reported.takes(after(120), false));
        assert!(reported.takes(after(121), true), "the end is not left out");
        assert!(!reported.takes(after(122), true), "but it cannot be repeated at will");
        assert!(reported.takes(after(300), true));
    }
}
