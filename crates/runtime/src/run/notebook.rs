//! The stored notebook of a session: its cells are rows, its state is one row that is written when it changes, and so is each variable of
//! its kernel.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use crate::notebook::cell::Cell;
use crate::notebook::json_size::json_size;
use crate::notebook::kernel_variables::KernelVariables;
use crate::notebook::protocol::outline::NotebookOutline;
use crate::notebook::state::NotebookState;
use crate::program::cell_reader::CellReader;
use crate::program::flow::ActionError;
use crate::program::work::TurnWork;
use crate::run::draft::CommitDraft;
use crate::run::held_commits::HeldCommits;
use crate::run::outline_cache::OutlineCache;
use bcc_store::contract::Store;
use bcc_store::error::StoreError;
use bcc_store::rows::{CellRow, VariableKey, VariableRow};

/// The scope of a notebook's state; it exists only in the store.
const NOTEBOOK: &str = "notebook";

/// The scope of the variables of its kernel; it exists only in the store.
const KERNEL: &str = "kernel";

/// The cells in the store, and those that are not written yet. Copies share what is remembered of them.
#[derive(Clone)]
pub(crate) struct StoredCells {
    store: Arc<dyn Store>,
    held: Arc<HeldCommits>,
    session: String,
    pub(crate) outline: Arc<OutlineCache>,
}

impl StoredCells {
    pub(crate) fn new(store: Arc<dyn Store>, held: Arc<HeldCommits>, session: &str) -> Self {
        Self { store, held, session: session.to_owned(), outline: Arc::default() }
    }

    /// Cells of the store with those that were not written when they were read, in their order.
    fn with_held(&self, rows: Vec<CellRow>, mut held: BTreeMap<u64, CellRow>) -> Result<Vec<Cell>, StoreError> {
        for row in rows {
            held.entry(row.number).or_insert(row);
        }
        held.values().map(|row| self.read(row)).collect()
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
        if let Some(row) = self.held.cells().values().find(|row| row.id == cell_id) {
            return self.read(row).map(Some);
        }
        self.store.cell(&self.session, cell_id).await?.as_ref().map(|row| self.read(row)).transpose()
    }

    async fn cells(&self, after: u64, limit: usize) -> Result<Vec<Cell>, StoreError> {
        // Before the store is read: what is written meanwhile is found in one of them.
        let held = self.held.cells().split_off(&after.saturating_add(1));
        let mut cells = self.with_held(self.store.cells(&self.session, after, limit).await?, held)?;
        cells.truncate(limit);
        Ok(cells)
    }

    async fn tail(&self, count: usize) -> Result<Vec<Cell>, StoreError> {
        let held = self.held.cells();
        let mut cells = self.with_held(self.store.cells_tail(&self.session, count).await?, held)?;
        cells.drain(..cells.len().saturating_sub(count));
        Ok(cells)
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
    let bytes = work.cells.values().map(json_size).fold(0, usize::saturating_add);
    if work.cells.len() > MAX_CELLS || bytes > MAX_CELL_BYTES {
        let message = msg!(
            "a turn can write at most {MAX_CELLS} cells and {MAX_CELL_BYTES} bytes to the notebook, and this one wrote more"
        );
        return Err(ActionError::failed("notebook-too-much", message));
    }
    Ok(())
}

pub(crate) fn cell_row(cell: &Cell) -> Result<CellRow, serde_json::Error> {
    Ok(CellRow { number: cell.number, id: cell.id.clone(), body: serde_json::to_string(cell)? })
}

/// Adds the rows of a state to a draft. `stored` is the state that the store has.
pub(crate) fn write_state(
    state: &mut NotebookState,
    stored: &NotebookState,
    at: &str,
    draft: &mut CommitDraft,
) -> Result<(), serde_json::Error> {
    let row = |scope: &str, name: &str, value: String| VariableRow {
        scope: scope.to_owned(),
        name: name.to_owned(),
        value,
        at: at.to_owned(),
        ..VariableRow::default()
    };
    let changes = state.kernel_variables.changes_from(&stored.kernel_variables);
    for (name, value) in &changes.put {
        draft.variables.push(row(KERNEL, name, serde_json::to_string(value)?));
    }
    let key = |name| VariableKey { scope: KERNEL.to_owned(), path: String::new(), name };
    draft.variables_removed.extend(changes.removed.into_iter().map(key));
    draft.variables.push(row(NOTEBOOK, "state", serde_json::to_string(state)?));
    Ok(())
}

/// The state of the notebook among the variables of a session, if there is one.
///
/// # Errors
/// It cannot be read. The message is a part of one that names the session.
pub fn state_of(rows: &[VariableRow]) -> Result<Option<NotebookState>, Message> {
    read_state(rows).map_err(|error| msg!("the state of its notebook: {error}"))
}

/// As [`state_of`], with the error of JSON.
///
/// # Errors
/// It cannot be read.
pub fn read_state(rows: &[VariableRow]) -> Result<Option<NotebookState>, serde_json::Error> {
    let Some(row) = rows.iter().find(|row| row.scope == NOTEBOOK) else { return Ok(None) };
    let mut state: NotebookState = serde_json::from_str(&row.value)?;
    let of_kernel = rows.iter().filter(|row| row.scope == KERNEL);
    let read = |row: &VariableRow| Ok((row.name.clone(), serde_json::from_str(&row.value)?));
    let of_kernel: Vec<_> = of_kernel.map(read).collect::<Result<_, serde_json::Error>>()?;
    // Stores of earlier versions have them in the state.
    if state.kernel_variables.is_empty() {
        state.kernel_variables = KernelVariables::from_rows(of_kernel.into_iter());
    }
    Ok(Some(state))
}

#[cfg(test)]
mod tests {
    use bcc_store::memory::MemoryStore;
    use bcc_store::rows::{Commit, NewSessionRow};

    use super::*;
    use crate::run::held_commits::PreparedCommit;

    fn rows(cells: &[(u64, &str)]) -> Commit {
        let row = |(number, content): &(u64, &str)| {
            let cell =
                Cell { id: format!("c{number}"), number: *number, content: (*content).to_owned(), ..Cell::default() };
            cell_row(&cell).unwrap()
        };
        Commit { cells_put: cells.iter().map(row).collect(), ..Commit::default() }
    }

    fn contents(cells: &[Cell]) -> Vec<&str> {
        cells.iter().map(|cell| cell.content.as_str()).collect()
    }

    #[tokio::test]
    async fn cells_that_are_not_written_yet_are_read_with_the_others() {
        let store = Arc::new(MemoryStore::default());
        let session = NewSessionRow { id: "s".to_owned(), ..NewSessionRow::default() };
        store.create(&session, &[], &rows(&[(1, "a"), (2, "b"), (3, "c")])).await.unwrap();
        let held = Arc::new(HeldCommits::default());
        for cells in [&[(2, "older")][..], &[(2, "B"), (4, "d")], &[(5, "e")]] {
            held.waiting().push(PreparedCommit { commit: rows(cells), events: vec![] });
        }
        let stored = StoredCells::new(store, held, "s");
        assert_eq!(contents(&stored.cells(0, 9).await.unwrap()), ["a", "B", "c", "d", "e"]);
        assert_eq!(contents(&stored.cells(1, 2).await.unwrap()), ["B", "c"]);
        assert_eq!(contents(&stored.cells(3, 9).await.unwrap()), ["d", "e"]);
        assert_eq!(contents(&stored.tail(3).await.unwrap()), ["c", "d", "e"]);
        assert_eq!(contents(&stored.tail(9).await.unwrap()), ["a", "B", "c", "d", "e"]);
        for (id, content) in [("c1", Some("a")), ("c2", Some("B")), ("c5", Some("e")), ("c6", None)] {
            assert_eq!(stored.cell(id).await.unwrap().map(|cell| cell.content), content.map(str::to_owned), "{id}");
        }
    }
}
