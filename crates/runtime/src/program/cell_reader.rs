//! Read access to the committed cells of a notebook.

use async_trait::async_trait;

use crate::notebook::cell::Cell;
use crate::notebook::protocol::outline::NotebookOutline;
use bcc_store::error::StoreError;

/// Reads the cells of a session's notebook, as committed.
#[async_trait]
pub trait CellReader: Send + Sync {
    async fn cell(&self, cell_id: &str) -> Result<Option<Cell>, StoreError>;

    /// At most `limit` cells after number `after`, in order.
    async fn cells(&self, after: u64, limit: usize) -> Result<Vec<Cell>, StoreError>;

    /// The last `count` cells, in order.
    async fn tail(&self, count: usize) -> Result<Vec<Cell>, StoreError>;

    /// The outline of the cells before number `before`.
    async fn outline(&self, before: u64) -> Result<NotebookOutline, StoreError>;

    /// Whether the session has stored the text with this hash.
    async fn has_text(&self, sha256: &str) -> Result<bool, StoreError>;
}

/// An empty notebook, for turns outside of a session's course.
pub struct NoCells;

#[async_trait]
impl CellReader for NoCells {
    async fn cell(&self, _: &str) -> Result<Option<Cell>, StoreError> {
        Ok(None)
    }

    async fn cells(&self, _: u64, _: usize) -> Result<Vec<Cell>, StoreError> {
        Ok(vec![])
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
