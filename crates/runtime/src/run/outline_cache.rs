//! The outline of a notebook in memory: a prompt reads only the cells that were added or changed since the last one.

use std::collections::BTreeSet;
use std::sync::{Mutex as SyncMutex, MutexGuard, PoisonError};

use tokio::sync::Mutex;

use crate::notebook::protocol::outline::NotebookOutline;
use crate::program::cell_reader::CellReader;
use bcc_store::error::StoreError;
use bcc_store::rows::CellRow;

/// The number of cells that are read at once.
const PAGE: usize = 100;

/// The maximum number of cells that are read when a process first needs the outline, the last ones.
const MAX_FIRST_CELLS: u64 = 5_000;

/// The outline of the cells that a session committed.
#[derive(Default)]
pub(crate) struct OutlineCache {
    read: Mutex<ReadCells>,
    commits: SyncMutex<ChangedCells>,
}

/// The cells that were read.
#[derive(Default)]
struct ReadCells {
    outline: NotebookOutline,
    /// The number of the last one.
    last: u64,
    is_started: bool,
}

/// The cells that were committed after they were read.
#[derive(Default)]
struct ChangedCells {
    /// The number of the last cell that was read, or is being read.
    last_read: u64,
    numbers: BTreeSet<u64>,
    is_everything: bool,
}

impl OutlineCache {
    /// These cells were added or changed.
    pub(crate) fn committed(&self, cells: &[CellRow]) {
        let mut commits = self.commits();
        let last_read = commits.last_read;
        commits.numbers.extend(cells.iter().map(|cell| cell.number).filter(|number| *number <= last_read));
    }

    /// The cells are those of another state of the session.
    pub(crate) fn forget(&self) {
        self.commits().is_everything = true;
    }

    fn commits(&self) -> MutexGuard<'_, ChangedCells> {
        self.commits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The outline of the cells before number `before`.
    pub(crate) async fn outline(&self, cells: &dyn CellReader, before: u64) -> Result<NotebookOutline, StoreError> {
        let mut read = self.read.lock().await;
        let changed = {
            let mut commits = self.commits();
            if std::mem::take(&mut commits.is_everything) || before <= read.last {
                *read = ReadCells::default();
                commits.numbers.clear();
            }
            // Before the cells are read: a change from now on may come too late for that.
            commits.last_read = before.saturating_sub(1);
            std::mem::take(&mut commits.numbers)
        };
        // If reading fails, or this future is dropped while it reads, nothing half read is left: the next call reads everything.
        let mut updated = std::mem::take(&mut *read);
        updated.update(cells, before, changed).await?;
        *read = updated;
        Ok(read.outline.clone())
    }
}

impl ReadCells {
    async fn update(&mut self, cells: &dyn CellReader, before: u64, changed: BTreeSet<u64>) -> Result<(), StoreError> {
        let sections: BTreeSet<(u64, u64)> =
            changed.iter().filter_map(|number| self.outline.section_with(*number)).collect();
        for (first, last) in sections {
            let mut section = NotebookOutline::default();
            add(&mut section, cells, first.saturating_sub(1), last + 1).await?;
            if !self.outline.replace(&section) {
                *self = Self::default();
                break;
            }
        }
        if !self.is_started {
            (self.is_started, self.last) = (true, before.saturating_sub(MAX_FIRST_CELLS + 1));
        }
        add(&mut self.outline, cells, self.last, before).await?;
        self.last = before.saturating_sub(1);
        Ok(())
    }
}

/// Adds the cells after number `after` and before number `before`.
async fn add(
    outline: &mut NotebookOutline,
    cells: &dyn CellReader,
    mut after: u64,
    before: u64,
) -> Result<(), StoreError> {
    while after + 1 < before {
        let missing = usize::try_from(before - 1 - after).unwrap_or(usize::MAX);
        let page = cells.cells(after, missing.min(PAGE)).await?;
        page.iter().filter(|cell| cell.number < before).for_each(|cell| outline.add(cell));
        // Numbers grow, whatever the store holds.
        match page.last() {
            Some(last) if last.number > after => after = last.number,
            _ => break,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use serde_json::json;

    use super::*;
    use crate::notebook::cell::{Cell, CellKind};

    /// A notebook that counts the cells which are read.
    struct CountedCells(SyncMutex<Vec<Cell>>, AtomicUsize);

    /// The same, but its second page waits.
    struct SlowCells<'c>(&'c CountedCells, AtomicUsize);

    #[async_trait]
    impl CellReader for SlowCells<'_> {
        async fn cell(&self, id: &str) -> Result<Option<Cell>, StoreError> {
            self.0.cell(id).await
        }

        async fn cells(&self, after: u64, limit: usize) -> Result<Vec<Cell>, StoreError> {
            if self.1.fetch_add(1, Ordering::Relaxed) == 1 {
                tokio::task::yield_now().await;
            }
            self.0.cells(after, limit).await
        }

        async fn tail(&self, count: usize) -> Result<Vec<Cell>, StoreError> {
            self.0.tail(count).await
        }

        async fn outline(&self, before: u64) -> Result<NotebookOutline, StoreError> {
            self.0.outline(before).await
        }

        async fn has_text(&self, sha256: &str) -> Result<bool, StoreError> {
            self.0.has_text(sha256).await
        }
    }

    #[async_trait]
    impl CellReader for CountedCells {
        async fn cell(&self, _: &str) -> Result<Option<Cell>, StoreError> {
            Ok(None)
        }

        async fn cells(&self, after: u64, limit: usize) -> Result<Vec<Cell>, StoreError> {
            let all = self.0.lock().unwrap();
            let page: Vec<Cell> = all.iter().filter(|cell| cell.number > after).take(limit).cloned().collect();
            self.1.fetch_add(page.len(), Ordering::Relaxed);
            Ok(page)
        }

        async fn tail(&self, _: usize) -> Result<Vec<Cell>, StoreError> {
            Ok(vec![])
        }

        async fn outline(&self, _: u64) -> Result<NotebookOutline, StoreError> {
            Ok(NotebookOutline::default())
        }

        async fn has_text(&self, _: &str) -> Result<bool, StoreError> {
            Ok(false)
        }
    }

    /// Every fifth cell is a heading.
    fn cell(number: u64, found: &str) -> Cell {
        let is_heading = number % 5 == 1;
        Cell {
            number,
            id: format!("cell-{number}"),
            kind: if is_heading { CellKind::Markdown } else { CellKind::Code },
            content: if is_heading { format!("## Section {number}") } else { "measure()".to_owned() },
            outputs: vec![json!({ "output_type": "stream", "text": format!("{found} {number}") })],
            ..Cell::default()
        }
    }

    impl CountedCells {
        fn reads(&self) -> usize {
            self.1.swap(0, Ordering::Relaxed)
        }

        fn put(&self, cache: &OutlineCache, cell: Cell) {
            let mut all = self.0.lock().unwrap();
            let row = CellRow { number: cell.number, id: cell.id.clone(), body: String::new() };
            match all.iter_mut().find(|earlier| earlier.number == cell.number) {
                Some(earlier) => *earlier = cell,
                None => all.push(cell),
            }
            cache.committed(&[row]);
        }

        /// The same as a process that starts now would get it.
        async fn anew(&self, before: u64) -> NotebookOutline {
            let outline = OutlineCache::default().outline(self, before).await.unwrap();
            self.reads();
            outline
        }
    }

    #[tokio::test]
    async fn only_cells_that_are_new_or_changed_are_read() {
        let cells = CountedCells((1..=4_000).map(|number| cell(number, "found")).collect::<Vec<_>>().into(), 0.into());
        let cache = OutlineCache::default();
        cache.outline(&cells, 3_990).await.unwrap();
        assert_eq!(cells.reads(), 3_989);
        cache.outline(&cells, 3_990).await.unwrap();
        assert_eq!(cells.reads(), 0);
        for number in 4_001..4_020 {
            cells.put(&cache, cell(number, "found"));
            assert_eq!(cache.outline(&cells, number - 10).await.unwrap(), cells.anew(number - 10).await, "{number}");
        }
        cells.put(&cache, cell(4_020, "found"));
        cache.outline(&cells, 4_010).await.unwrap();
        assert_eq!(cells.reads(), 1);
        // An earlier cell runs again: its section is read.
        cells.put(&cache, cell(3_905, "found again"));
        let outline = cache.outline(&cells, 4_010).await.unwrap();
        assert_eq!(cells.reads(), 5);
        assert_eq!(outline, cells.anew(4_010).await);
        // A cell that no prompt shows any more, and one that is not in the outline yet.
        cells.put(&cache, cell(3, "found again"));
        cells.put(&cache, cell(4_015, "found again"));
        cache.outline(&cells, 4_010).await.unwrap();
        assert_eq!(cells.reads(), 0);
        assert_eq!(cache.outline(&cells, 4_021).await.unwrap(), cells.anew(4_021).await);
    }

    #[tokio::test]
    async fn reading_that_is_dropped_half_way_leaves_nothing_half_read() {
        let cells = CountedCells((1..=250).map(|number| cell(number, "found")).collect::<Vec<_>>().into(), 0.into());
        let cache = OutlineCache::default();
        let slow = SlowCells(&cells, 0.into());
        let mut reading = Box::pin(cache.outline(&slow, 251));
        let is_pending =
            std::future::poll_fn(|context| std::task::Poll::Ready(reading.as_mut().poll(context).is_pending()));
        assert!(is_pending.await);
        drop(reading);
        assert_eq!(cache.outline(&cells, 251).await.unwrap(), cells.anew(251).await);
    }

    #[tokio::test]
    async fn an_outline_is_made_anew_if_sections_changed_or_answers_were_taken_back() {
        let cells = CountedCells((1..=40).map(|number| cell(number, "found")).collect::<Vec<_>>().into(), 0.into());
        let cache = OutlineCache::default();
        cache.outline(&cells, 41).await.unwrap();
        let text = Cell { content: "no heading".to_owned(), ..cell(21, "") };
        cells.put(&cache, text);
        let outline = cache.outline(&cells, 41).await.unwrap();
        assert_eq!(outline, cells.anew(41).await);
        cells.0.lock().unwrap().truncate(30);
        cache.forget();
        assert_eq!(cache.outline(&cells, 25).await.unwrap(), cells.anew(25).await);
        assert_eq!(cache.outline(&cells, 12).await.unwrap(), cells.anew(12).await);
    }
}
