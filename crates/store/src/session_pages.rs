//! Reads the list of sessions page by page, so that a store of any size needs little memory.

use std::collections::VecDeque;

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
    /// What is left of the current page.
    page: VecDeque<SessionRow>,
    is_last: bool,
}

impl<'s> SessionPages<'s> {
    pub fn new(store: &'s dyn Store, filter: SessionFilter) -> Self {
        Self { store, filter, after: None, page: VecDeque::new(), is_last: false }
    }

    /// The next session; none at the end.
    ///
    /// # Errors
    /// As [`Store::sessions_page`].
    pub async fn next(&mut self) -> Result<Option<SessionRow>, StoreError> {
        if self.page.is_empty() && !self.is_last {
            self.page = self.store.sessions_page(&self.filter, self.after.as_ref(), PAGE).await?.into();
            self.is_last = self.page.len() < PAGE;
            self.after = self.page.back().map(SessionCursor::after);
        }
        Ok(self.page.pop_front())
    }
}
