//! What `run` does with a workflow state file (docs/workflows.md): it waits for decisions that are made in the file, and begins again when
//! the steps that are still to run were changed.

use std::sync::Arc;

use bcc_engine::state_file::keeper::{FileEvent, StateFileKeeper};

/// The state file of the session that is driven.
#[derive(Clone)]
pub struct WatchedFile {
    pub keeper: Arc<StateFileKeeper>,
    /// Whether the process stays while the session waits for a decision.
    pub waits: bool,
}

/// Waits until somebody changes the file; forever without a file.
pub async fn changed(watched: Option<&WatchedFile>) -> FileEvent {
    match watched {
        Some(watched) => watched.keeper.changed().await,
        None => std::future::pending().await,
    }
}
