//! The output of a command while it runs: shown, but never stored in this form. What is stored is the result of the command.

use serde::Serialize;

use crate::effects::output::{OutputObserver, OutputStream};
use crate::program::location::EventLocation;
use crate::program::turn::Turn;

/// A piece of the output of a running command. Like a fragment of a message, it has no `seq`.
#[derive(Debug, Serialize)]
pub struct OutputPiece<'a> {
    /// When, RFC 3339, UTC.
    pub at: &'a str,
    pub session_id: &'a str,
    /// `effect_output`.
    pub r#type: &'static str,
    pub effect_id: &'a str,
    /// `stdout` or `stderr`.
    pub stream: &'static str,
    /// Complete lines, or the end of the output. Sensitive values are masked.
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

/// Passes the output of the command of a turn to the observer of its session.
pub(crate) struct TurnOutput<'a, 'b>(pub(crate) &'a Turn<'b>);

impl OutputObserver for TurnOutput<'_, '_> {
    fn output(&self, stream: OutputStream, text: &str, left_out: u64) {
        let Self(turn) = self;
        let Some(effect) = turn.effect else { return };
        turn.services.observer.output(&OutputPiece {
            at: &turn.services.clock.at(turn.last_seq + 1),
            session_id: turn.session_id,
            r#type: "effect_output",
            effect_id: &effect.id,
            stream: stream.name(),
            text: &turn.masker.text(text),
            left_out,
            location: turn.place,
        });
    }
}
