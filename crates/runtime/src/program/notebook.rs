//! The operations of a turn on the notebook of its session.

use crate::notebook::cell::Cell;
use crate::notebook::large_outputs::{
    MAX_INLINE_BYTES, MIN_KEPT_BYTES, MIN_KEPT_BYTES_OF_MANY, large_parts, leave_out, refer, size, take_libraries,
};
use crate::notebook::protocol::outline::NotebookOutline;
use crate::notebook::state::NotebookState;
use crate::program::event::Event;
use crate::program::flow::ActionError;
use crate::program::turn::Turn;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_store::error::StoreError;

/// The maximum number of libraries for charts that a session keeps.
const MAX_CHART_LIBRARIES: usize = 8;

impl Turn<'_> {
    /// The state of the notebook, with the changes of this turn.
    pub fn notebook_state(&self) -> NotebookState {
        self.work().notebook.clone().unwrap_or_else(|| self.notebook.clone())
    }

    /// What `read` takes from that state, without a copy of the whole.
    pub(crate) fn of_notebook_state<T>(&self, read: impl FnOnce(&NotebookState) -> T) -> T {
        let work = self.work();
        read(work.notebook.as_ref().unwrap_or(self.notebook))
    }

    pub fn set_notebook_state(&self, state: NotebookState) {
        self.work().notebook = Some(state);
    }

    /// The cell with this id, with the changes of this turn.
    pub async fn cell(&self, cell_id: &str) -> Result<Option<Cell>, ActionError> {
        if let Some(cell) = self.work().cells.values().find(|cell| cell.id == cell_id) {
            return Ok(Some(cell.clone()));
        }
        self.cells.cell(cell_id).await.map_err(|error| unreadable(&error))
    }

    /// The last `count` cells, in order, with the changes of this turn.
    pub(crate) async fn last_cells(&self, count: usize) -> Result<Vec<Cell>, ActionError> {
        let mut cells = self.cells.tail(count).await.map_err(|error| unreadable(&error))?;
        let work = self.work();
        for cell in &mut cells {
            if let Some(changed) = work.cells.get(&cell.number) {
                cell.clone_from(changed);
            }
        }
        let last = cells.last().map_or(0, |cell| cell.number);
        cells.extend(work.cells.range(last + 1..).map(|(_, cell)| cell.clone()));
        let over = cells.len().saturating_sub(count);
        cells.drain(..over);
        Ok(cells)
    }

    /// At most `limit` cells after number `after`, in order, as they were when the turn started.
    pub(crate) async fn cells_after(&self, after: u64, limit: usize) -> Result<Vec<Cell>, ActionError> {
        self.cells.cells(after, limit).await.map_err(|error| unreadable(&error))
    }

    /// The outline of the cells before number `before`, as they were when the turn started.
    pub(crate) async fn outline(&self, before: u64) -> Result<NotebookOutline, ActionError> {
        self.cells.outline(before).await.map_err(|error| unreadable(&error))
    }

    /// Adds a cell, or replaces the one with its number. The id of a cell never changes.
    pub fn put_cell(&self, cell: Cell) {
        self.work().cells.insert(cell.number, cell);
    }

    /// Adds a cell, or replaces the one with its number, as [`Turn::put_cell`] does. The large parts of its outputs are stored on their
    /// own; those that a session has no more space for are left out with a note.
    pub(crate) async fn put_cell_with_outputs(
        &self,
        mut cell: Cell,
        state: &mut NotebookState,
    ) -> Result<(), ActionError> {
        let limit = self.services.host.kernel.limits().session;
        for library in take_libraries(&mut cell.outputs) {
            let bytes = state.kept_bytes.saturating_add(library.text.len() as u64);
            let is_known = state.chart_libraries.contains(&library.sha256);
            if !is_known && bytes <= limit && state.chart_libraries.len() < MAX_CHART_LIBRARIES {
                state.chart_libraries.push(library.sha256.clone());
                state.kept_bytes = bytes;
                self.work().texts.push(library);
            }
        }
        let mut parts = large_parts(&cell.outputs, MIN_KEPT_BYTES);
        // Many outputs that are not large are one together.
        let kept: usize = parts.iter().map(|part| part.row.text.len()).sum();
        if size(&cell.outputs).saturating_sub(kept) > MAX_INLINE_BYTES {
            parts = large_parts(&cell.outputs, MIN_KEPT_BYTES_OF_MANY);
        }
        for part in parts {
            let is_new = !self.work().texts.iter().any(|row| row.sha256 == part.row.sha256)
                && !self.cells.has_text(&part.row.sha256).await.map_err(|error| unreadable(&error))?;
            let bytes = state.kept_bytes.saturating_add(if is_new { part.row.text.len() as u64 } else { 0 });
            if is_new && bytes > limit {
                leave_out(&mut cell.outputs, &part);
                continue;
            }
            state.kept_bytes = bytes;
            refer(&mut cell.outputs, &part);
            if is_new {
                self.work().texts.push(part.row);
            }
        }
        self.put_cell(cell);
        Ok(())
    }

    pub(crate) fn emit_notebook_event(&self, event: Event) {
        self.emit(event);
    }

    /// Names the code that the open external effect runs, for a question about it.
    pub(crate) fn name_effect_code(&self, code: &str) {
        self.work().effect_code = Some(self.masker.text(code));
    }

    /// Closes the announced external effect: it ended, or its handling was decided. `summary` contains no text of a person or a
    /// model.
    pub fn close_effect(&self, summary: impl Into<Message>) {
        let Some(effect) = self.effect else { return };
        let (effect_id, kind) = (effect.id.clone(), effect.kind.clone());
        self.emit(Event::EffectFinished { effect_id, kind, summary: summary.into() });
        self.work().effect_closed = true;
    }
}

fn unreadable(error: &StoreError) -> ActionError {
    ActionError::failed("notebook-unreadable", msg!("the notebook cannot be read: {error}"))
}
