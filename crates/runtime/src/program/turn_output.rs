//! Shows the output of the command or the cell of a turn while it runs.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::effects::output::{OutputObserver, OutputStream};
use crate::program::output_piece::OutputPiece;
use crate::program::turn::Turn;

/// Passes the output of the command or the cell of a turn to the observer of its session.
pub(crate) struct TurnOutput<'a, 'b> {
    turn: &'a Turn<'b>,
    cell_id: Option<&'a str>,
    /// Of each stream of a cell, the end of an unfinished line that may be the beginning of a sensitive value.
    held: Mutex<HeldEnds>,
}

#[derive(Default)]
struct HeldEnds {
    stdout: String,
    stderr: String,
}

impl HeldEnds {
    const fn of(&mut self, stream: OutputStream) -> &mut String {
        match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        }
    }
}

impl<'a, 'b> TurnOutput<'a, 'b> {
    pub(crate) fn of_command(turn: &'a Turn<'b>) -> Self {
        Self { turn, cell_id: None, held: Mutex::default() }
    }

    pub(crate) fn of_cell(turn: &'a Turn<'b>, cell_id: &'a str) -> Self {
        Self { turn, cell_id: Some(cell_id), held: Mutex::default() }
    }

    /// Passes on the end of the output if it was held back.
    pub(crate) fn finish(&self) {
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            self.show_held(stream);
        }
    }

    fn show_held(&self, stream: OutputStream) {
        let held = std::mem::take(self.held().of(stream));
        if !held.is_empty() {
            self.show(stream, &held, 0);
        }
    }

    fn held(&self) -> MutexGuard<'_, HeldEnds> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, stream: OutputStream, text: &str, left_out: u64) {
        let Self { turn, cell_id, .. } = self;
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

impl OutputObserver for TurnOutput<'_, '_> {
    fn output(&self, stream: OutputStream, text: &str, left_out: u64) {
        if self.cell_id.is_none() {
            return self.show(stream, text, left_out);
        }
        if left_out > 0 {
            self.show_held(stream);
        }
        let text = std::mem::take(self.held().of(stream)) + text;
        let is_finished = text.ends_with(['\n', '\r']);
        let (shown, held) = text.split_at(if is_finished { text.len() } else { self.turn.masker.decided(&text) });
        held.clone_into(self.held().of(stream));
        if !shown.is_empty() || left_out > 0 {
            self.show(stream, shown, left_out);
        }
    }
}
