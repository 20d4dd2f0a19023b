//! Shows the output of the command of a turn while it runs.

use crate::effects::output::{OutputObserver, OutputStream};
use crate::program::output_piece::OutputPiece;
use crate::program::turn::Turn;

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
