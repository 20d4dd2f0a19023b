//! The program of a stored session.

use std::sync::Arc;

use bcc_runtime::program::program::Program;
use bcc_store::rows::SessionRow;

use crate::engine::Engine;
use crate::error::EngineError;

impl Engine {
    /// The program that a stored session runs.
    ///
    /// # Errors
    /// `Failed` if the store cannot be read; `Invalid` if this version finds errors in the script.
    pub async fn session_program(&self, row: &SessionRow) -> Result<Arc<Program>, EngineError> {
        Ok(self.stored_programs.get(self.store().as_ref(), &row.manifest).await?.program)
    }
}
