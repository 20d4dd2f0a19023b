//! Shows the output of the command or the cell of a turn while it runs.

use crate::effects::output::{OutputObserver, OutputStream};
use crate::program::output_piece::OutputPiece;
use crate::program::turn::Turn;

/// Passes the output of the command or the cell of a turn to the observer of its session.
pub(crate) struct TurnOutput<'a, 'b> {
    turn: &'a Turn<'b>,
    cell_id: Option<&'a str>,
}

impl<'a, 'b> TurnOutput<'a, 'b> {
    pub(crate) const fn of_command(turn: &'a Turn<'b>) -> Self {
        Self { turn, cell_id: None }
    }

    pub(crate) const fn of_cell(turn: &'a Turn<'b>, cell_id: &'a str) -> Self {
        Self { turn, cell_id: Some(cell_id) }
    }
}

impl OutputObserver for TurnOutput<'_, '_> {
    fn output(&self, stream: OutputStream, text: &str, left_out: u64) {
        let Self { turn, cell_id } = self;
        let Some(effect) = turn.effect else { return };
        turn.services.observer.output(&OutputPiece {
            at: &turn.services.clock.at(turn.last_seq + 1),
            session_id: turn.session_id,
            r#type: if cell_id.is_some() { "cell_output" } else { "effect_output" },
            cell_id: *cell_id,
            effect_id: &effect.id,
            stream: stream.name(),
            text: &turn.masker.text(text),
            left_out,
            location: turn.place,
        });
    }
}
