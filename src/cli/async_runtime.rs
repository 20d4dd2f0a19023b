//! The tokio runtime of commands that use models or stores. Other commands need none.

use bcc_engine::error::EngineError;
use bcc_lang::message::msg;

/// Runs `work` to completion on this thread.
pub fn wait_for<T>(work: impl Future<Output = Result<T, EngineError>>) -> Result<T, EngineError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| EngineError::failed(msg!("the runtime cannot be started: {error}")))?.block_on(work)
}
