//! Reads the list of sessions page by page, so that a store of any size needs little memory.

use crate::contract::Store;
use crate::error::StoreError;
use crate::rows::{SessionCursor, SessionFilter, SessionRow};

/// The number of sessions that are read at once.
const PAGE: usize = 200;

/// The sessions of a filter, the most recently updated first.
pub struct SessionPages<'s> {
    store: &'s dyn Store,
    filter: SessionFilter,
    after: Option<SessionCursor>,
    is_over: bool,
}

impl<'s> SessionPages<'s> {
    pub fn new(store: &'s dyn Store, filter: SessionFilter) -> Self {
        Self { store, filter, after: None, is_over: false }
    }

    /// The next sessions; none at the end.
    ///
    /// # Errors
    /// As [`Store::sessions_page`].
    pub async fn next(&mut self) -> Result<Vec<SessionRow>, StoreError> {
        if self.is_over {
            return Ok(vec![]);
        }
        let page = self.store.sessions_page(&self.filter, self.after.as_ref(), PAGE).await?;
        self.is_over = page.len() < PAGE;
        self.after = page.last().map(SessionCursor::after);
        Ok(page)
    }

    /// The first of the sessions left for which `is_wanted` is true.
    ///
    /// # Errors
    /// As [`Store::sessions_page`].
    pub async fn find(
        mut self,
        mut is_wanted: impl FnMut(&SessionRow) -> bool,
    ) -> Result<Option<SessionRow>, StoreError> {
        loop {
            let page = self.next().await?;
            if page.is_empty() {
                return Ok(None);
            }
            if let Some(found) = page.into_iter().find(&mut is_wanted) {
                return Ok(Some(found));
            }
        }
    }
}
