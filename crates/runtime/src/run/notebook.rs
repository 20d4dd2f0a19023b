//! The stored notebook of a session: its cells are rows, its state is one row that is written when it changes.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::io::{self, Write};
use std::sync::Arc;

use async_trait::async_trait;

use crate::notebook::cell::Cell;
use crate::notebook::protocol::outline::NotebookOutline;
use crate::notebook::state::NotebookState;
use crate::program::cell_reader::CellReader;
use crate::program::flow::ActionError;
use crate::program::work::TurnWork;
use crate::run::outline_cache::OutlineCache;
use bcc_store::contract::Store;
use bcc_store::error::StoreError;
use bcc_store::rows::{CellRow, VariableRow};

/// The scope of a notebook's state; it exists only in the store.
pub const NOTEBOOK: &str = "notebook";

/// The cells in the store. Copies share what is remembered of them.
#[derive(Clone)]
pub(crate) struct StoredCells {
    store: Arc<dyn Store>,
    session: String,
    pub(crate) outline: Arc<OutlineCache>,
}

impl StoredCells {
    pub(crate) fn new(store: Arc<dyn Store>, session: &str) -> Self {
        Self { store, session: session.to_owned(), outline: Arc::default() }
    }

    fn read(&self, row: &CellRow) -> Result<Cell, StoreError> {
        // The error is not repeated: it would quote the cell.
        let unreadable = |_| StoreError::CellUnreadable { id: self.session.clone(), number: row.number };
        serde_json::from_str(&row.body).map_err(unreadable)
    }
}

#[async_trait]
impl CellReader for StoredCells {
    async fn cell(&self, cell_id: &str) -> Result<Option<Cell>, StoreError> {
        self.store.cell(&self.session, cell_id).await?.as_ref().map(|row| self.read(row)).transpose()
    }

    async fn cells(&self, after: u64, limit: usize) -> Result<Vec<Cell>, StoreError> {
        self.store.cells(&self.session, after, limit).await?.iter().map(|row| self.read(row)).collect()
    }

    async fn tail(&self, count: usize) -> Result<Vec<Cell>, StoreError> {
        self.store.cells_tail(&self.session, count).await?.iter().map(|row| self.read(row)).collect()
    }

    async fn outline(&self, before: u64) -> Result<NotebookOutline, StoreError> {
        self.outline.outline(self, before).await
    }

    async fn has_text(&self, sha256: &str) -> Result<bool, StoreError> {
        self.store.has_text(&self.session, sha256).await
    }
}

/// The maximum number of cells that one turn may add or change. Actions add one at a time; this is a safety limit.
const MAX_CELLS: usize = 1_000;

/// The maximum number of bytes of the cells of one turn.
const MAX_CELL_BYTES: usize = 64 << 20;

/// Checks that the cells written by a turn are within the limits.
pub(crate) fn check_cell_limits(work: &TurnWork) -> Result<(), ActionError> {
    if work.cells.is_empty() {
        return Ok(());
    }
    let mut bytes = ByteCounter(0);
    let written = work.cells.values().try_for_each(|cell| serde_json::to_writer(&mut bytes, cell));
    if work.cells.len() > MAX_CELLS || bytes.0 > MAX_CELL_BYTES || written.is_err() {
        let message = msg!(
            "a turn can write at most {MAX_CELLS} cells and {MAX_CELL_BYTES} bytes to the notebook, and this one wrote more"
        );
        return Err(ActionError::failed("notebook-too-much", message));
    }
    Ok(())
}

/// Counts the bytes written to it.
struct ByteCounter(usize);

impl Write for ByteCounter {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.0 += buffer.len();
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) fn cell_row(cell: &Cell) -> Result<CellRow, serde_json::Error> {
    Ok(CellRow { number: cell.number, id: cell.id.clone(), body: serde_json::to_string(cell)? })
}

pub(crate) fn state_row(state: &NotebookState, at: String) -> Result<VariableRow, serde_json::Error> {
    let value = serde_json::to_string(state)?;
    Ok(VariableRow { scope: NOTEBOOK.to_owned(), name: "state".to_owned(), value, at, ..VariableRow::default() })
}

/// The state of the notebook among the variables of a session; a new one when there is none.
pub fn state_of(rows: &[VariableRow]) -> Result<NotebookState, Message> {
    let Some(row) = rows.iter().find(|row| row.scope == NOTEBOOK) else { return Ok(NotebookState::default()) };
    serde_json::from_str(&row.value).map_err(|error| msg!("the state of its notebook: {error}"))
}
