//! A store in memory that records every commit.

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bcc_store::error::StoreError;
use bcc_store::rows::{Commit, DocumentRow, NewSessionRow};

use hooked_store::{Hook, HookedStore, SessionCreation, Write};

#[path = "../../tests/support/hooked_store.rs"]
mod hooked_store;

#[derive(Default)]
pub(crate) struct Recorded {
    pub(crate) created: Vec<(NewSessionRow, Vec<DocumentRow>)>,
    /// The commits, including the first one of the session.
    pub(crate) commits: Vec<Commit>,
}

/// A store in memory that records.
pub(crate) type Recorder = HookedStore<Recording>;

#[derive(Default)]
pub(crate) struct Recording(Mutex<Recorded>);

impl Recorder {
    pub(crate) fn take(&self) -> Recorded {
        std::mem::take(&mut self.hook.recorded())
    }
}

impl Recording {
    fn recorded(&self) -> MutexGuard<'_, Recorded> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Hook for Recording {
    async fn around(
        &self,
        new_session: Option<SessionCreation<'_>>,
        commit: &Commit,
        write: Write<'_>,
    ) -> Result<(), StoreError> {
        {
            let mut recorded = self.recorded();
            recorded.created.extend(new_session.map(|(new, documents)| (new.clone(), documents.to_vec())));
            recorded.commits.push(commit.clone());
        }
        write.await
    }
}
