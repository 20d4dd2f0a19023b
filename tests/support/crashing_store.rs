//! A store that simulates a process crash at every commit, before or after the write.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bcc_store::error::StoreError;
use bcc_store::rows::Commit;
use tokio::sync::Notify;

use hooked_store::{Hook, HookedStore, SessionCreation, Write};

#[path = "hooked_store.rs"]
pub(crate) mod hooked_store;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CrashMode {
    Never,
    /// At each commit, before the write: the turn is lost and repeated.
    Before,
    /// At each commit, after the write: no memory is left after a turn.
    After,
    /// At some of the commits, before or after, determined by this seed.
    #[allow(dead_code, reason = "conversations die at every commit")]
    Sometimes(u64),
}

/// The state of the crashes.
#[derive(Debug, Default)]
struct CrashState {
    enabled: bool,
    /// Whether this commit was already attempted once.
    attempted: bool,
    commits: u64,
}

/// A store in memory that crashes the process that writes to it.
pub(crate) type CrashingStore = HookedStore<CrashHook>;

pub(crate) struct CrashHook {
    mode: CrashMode,
    state: Mutex<CrashState>,
    crashed: Notify,
}

impl CrashingStore {
    pub(crate) fn new(mode: CrashMode) -> Arc<Self> {
        Arc::new(Self::with(CrashHook { mode, state: Mutex::default(), crashed: Notify::new() }))
    }

    /// Runs `future` until it is done or crashes at a commit; then returns `None` and drops everything that it held.
    pub(crate) async fn run_until_crash<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let _guard = CrashGuard::new(&self.hook.state);
        tokio::select! {
            biased;
            () = self.hook.crashed.notified() => None,
            done = future => Some(done),
        }
    }
}

impl CrashHook {
    async fn crash(&self) {
        self.crashed.notify_one();
        std::future::pending().await
    }
}

#[async_trait]
impl Hook for CrashHook {
    // A store writes all of them or none.
    fn together(&self, _commits: &[Commit]) -> bool {
        true
    }

    async fn around(&self, _: Option<SessionCreation<'_>>, _: &Commit, write: Write<'_>) -> Result<(), StoreError> {
        let mode = {
            let mut state = self.state.lock().unwrap();
            match self.mode {
                _ if !state.enabled => CrashMode::Never,
                CrashMode::Before => {
                    state.attempted = !state.attempted;
                    if state.attempted { CrashMode::Before } else { CrashMode::Never }
                }
                CrashMode::Sometimes(seed) => {
                    state.commits += 1;
                    match fastrand::Rng::with_seed(seed ^ state.commits << 32).u8(..20) {
                        0 => CrashMode::Before,
                        1 => CrashMode::After,
                        _ => CrashMode::Never,
                    }
                }
                other => other,
            }
        };
        if mode == CrashMode::Before {
            self.crash().await;
        }
        write.await?;
        if mode == CrashMode::After {
            self.crash().await;
        }
        Ok(())
    }
}

/// Enables crashes at commits as long as it exists; dropping it disables them, also when the future is canceled.
struct CrashGuard<'a>(&'a Mutex<CrashState>);

impl<'a> CrashGuard<'a> {
    fn new(state: &'a Mutex<CrashState>) -> Self {
        state.lock().unwrap().enabled = true;
        Self(state)
    }
}

impl Drop for CrashGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().unwrap().enabled = false;
    }
}
