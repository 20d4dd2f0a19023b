//! What was needed last, by a text that says all that it is made from.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// How many are kept. Of a program, one takes about as much memory as its texts, which are mostly templates.
pub(crate) const MAX_RECENT: usize = 32;

/// The entries that were needed last, the newest first.
pub(crate) struct RecentlyUsed<T> {
    entries: Mutex<VecDeque<(String, T)>>,
}

impl<T> Default for RecentlyUsed<T> {
    fn default() -> Self {
        Self { entries: Mutex::default() }
    }
}

impl<T: Clone> RecentlyUsed<T> {
    /// The entry of this key, which is now the newest one.
    pub(crate) fn get(&self, key: &str) -> Option<T> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let place = entries.iter().position(|(of, _)| of == key)?;
        let entry = entries.remove(place)?;
        let found = entry.1.clone();
        entries.push_front(entry);
        Some(found)
    }

    /// Keeps an entry; the oldest one goes if there are too many. If two make the same entry at once, the first one stays, so that
    /// all share it. Returns the one that is kept.
    pub(crate) fn put(&self, key: String, entry: T) -> T {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, kept)) = entries.iter().find(|(of, _)| *of == key) {
            return kept.clone();
        }
        entries.truncate(MAX_RECENT - 1);
        entries.push_front((key, entry.clone()));
        entry
    }
}
