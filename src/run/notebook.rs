//! The notebook of a session at rest: its cells are rows, its state is one row that is written when it changed.

use std::sync::Arc;

use async_trait::async_trait;

use crate::archive::contract::Archive;
use crate::archive::error::ArchiveError;
use crate::archive::rows::{CellRow, VariableRow};
use crate::notebook::cell::Cell;
use crate::notebook::state::State;
use crate::program::notebook::Shelf;

/// The scope, in the store only, of the state of a notebook.
pub(crate) const NOTEBOOK: &str = "notebook";

/// The cells of one session in its store.
pub(crate) struct StoredCells {
    pub(crate) archive: Arc<dyn Archive>,
    pub(crate) session: String,
}

impl StoredCells {
    fn read(&self, row: &CellRow) -> Result<Cell, ArchiveError> {
        // What is wrong is not repeated: it would quote the cell.
        let unreadable = |_| ArchiveError::CellUnreadable { id: self.session.clone(), number: row.number };
        serde_json::from_str(&row.body).map_err(unreadable)
    }
}

#[async_trait]
impl Shelf for StoredCells {
    async fn cell(&self, cell_id: &str) -> Result<Option<Cell>, ArchiveError> {
        self.archive.cell(&self.session, cell_id).await?.as_ref().map(|row| self.read(row)).transpose()
    }

    async fn cells(&self, after: u64, limit: usize) -> Result<Vec<Cell>, ArchiveError> {
        self.archive.cells(&self.session, after, limit).await?.iter().map(|row| self.read(row)).collect()
    }

    async fn tail(&self, count: usize) -> Result<Vec<Cell>, ArchiveError> {
        self.archive.cells_tail(&self.session, count).await?.iter().map(|row| self.read(row)).collect()
    }
}

/// The row of a cell.
pub(crate) fn cell_row(cell: &Cell) -> Result<CellRow, serde_json::Error> {
    Ok(CellRow { number: cell.number, id: cell.id.clone(), body: serde_json::to_string(cell)? })
}

/// The row of the state of a notebook.
pub(crate) fn state_row(state: &State, at: String) -> Result<VariableRow, serde_json::Error> {
    let value = serde_json::to_string(state)?;
    Ok(VariableRow { scope: NOTEBOOK.to_owned(), name: "state".to_owned(), value, at, ..VariableRow::default() })
}

/// The state of the notebook among the variables of a session; a new one when there is none.
pub(crate) fn state_of(rows: &[VariableRow]) -> Result<State, String> {
    let Some(row) = rows.iter().find(|row| row.scope == NOTEBOOK) else { return Ok(State::default()) };
    serde_json::from_str(&row.value).map_err(|error| format!("the state of its notebook: {error}"))
}
