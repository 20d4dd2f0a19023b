//! Threads for work that blocks, a limited number at a time: otherwise, thousands of sessions that begin at once would take all threads and
//! open files of the process.

use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::error::StoreError;
use crate::sqlite::error;

pub(crate) struct BlockingThreads {
    turns: Arc<Semaphore>,
    /// The path of the store as the user wrote it.
    store: String,
}

impl BlockingThreads {
    /// At most `count` threads at a time.
    pub(crate) fn new(store: &str, count: usize) -> Self {
        Self { turns: Arc::new(Semaphore::new(count)), store: store.to_owned() }
    }

    /// Takes the turn of a thread, if there is one that nothing uses or waits for.
    pub(crate) fn try_turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turns.try_acquire().ok()
    }

    /// Runs `work` on a thread when it is its turn. Work that has started always runs to completion.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let ended = || error::thread_ended(&self.store);
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(|_| ended())?;
        let working = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work()
        });
        match working.await.map_err(tokio::task::JoinError::try_into_panic) {
            Ok(result) => result,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            // The runtime is shut down.
            Err(Err(_)) => Err(ended()),
        }
    }
}
