//! Commits that are prepared and not written yet.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bcc_store::rows::{CellRow, Commit};

use crate::program::event::Event;
use crate::program::location::EventLocation;

/// A prepared commit, with the data for observers once it is made.
pub(crate) struct PreparedCommit {
    pub(crate) commit: Commit,
    /// The events of its journal rows, in their order.
    pub(crate) events: Vec<(Arc<EventLocation>, Event, String)>,
}

/// The commits that are prepared and not written yet. What they changed in the session, its next turn sees already; nobody else does.
#[derive(Default)]
pub(crate) struct HeldCommits {
    waiting: Mutex<Vec<PreparedCommit>>,
    /// Whether the store may differ from what this object expects: while commits are prepared or written, and after that failed.
    pub(crate) is_open: Arc<AtomicBool>,
    /// The number of the first event that is being written; 0 if none is.
    pub(crate) written_from: AtomicU64,
}

impl HeldCommits {
    pub(crate) fn waiting(&self) -> MutexGuard<'_, Vec<PreparedCommit>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cells of the notebook that are not written yet, as the last commit leaves each.
    pub(crate) fn cells(&self) -> BTreeMap<u64, CellRow> {
        let waiting = self.waiting();
        let cells = waiting.iter().flat_map(|held| &held.commit.cells_put);
        cells.map(|row| (row.number, row.clone())).collect()
    }
}
