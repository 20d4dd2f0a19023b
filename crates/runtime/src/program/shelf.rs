//! Where the cells of a notebook are.

use async_trait::async_trait;

use crate::notebook::cell::Cell;
use bcc_store::error::ArchiveError;

/// Where the cells of a session's notebook are, as committed.
#[async_trait]
pub trait Shelf: Send + Sync {
    async fn cell(&self, cell_id: &str) -> Result<Option<Cell>, ArchiveError>;

    /// At most `limit` cells after number `after`, in order.
    async fn cells(&self, after: u64, limit: usize) -> Result<Vec<Cell>, ArchiveError>;

    /// The last `count` cells, in order.
    async fn tail(&self, count: usize) -> Result<Vec<Cell>, ArchiveError>;
}

/// No notebook at all: for turns beside a session.
pub struct EmptyShelf;

#[async_trait]
impl Shelf for EmptyShelf {
    async fn cell(&self, _: &str) -> Result<Option<Cell>, ArchiveError> {
        Ok(None)
    }

    async fn cells(&self, _: u64, _: usize) -> Result<Vec<Cell>, ArchiveError> {
        Ok(vec![])
    }

    async fn tail(&self, _: usize) -> Result<Vec<Cell>, ArchiveError> {
        Ok(vec![])
    }
}
