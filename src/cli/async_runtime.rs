//! The tokio runtime of commands that use models or stores, and other threads of the command line.

use bcc_engine::error::EngineError;
use bcc_lang::message::msg;

/// Runs `work` to completion on this thread.
pub fn wait_for<T>(work: impl Future<Output = Result<T, EngineError>>) -> Result<T, EngineError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| EngineError::failed(msg!("the runtime cannot be started: {error}")))?.block_on(work)
}

/// Runs `work` to completion, with all processors of the machine.
pub fn wait_on_all_processors<T>(work: impl Future<Output = Result<T, EngineError>>) -> Result<T, EngineError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| EngineError::failed(msg!("the runtime cannot be started: {error}")))?.block_on(work)
}

/// Runs `work` on a thread of its own, which ends with the process at the latest.
///
/// # Errors
/// When the system starts no further thread.
pub fn start_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), EngineError> {
    match std::thread::Builder::new().name(name.to_owned()).spawn(work) {
        Ok(_) => Ok(()),
        Err(error) => Err(EngineError::failed(msg!("cannot start a thread: {error}"))
            .with_help("end other programs, or raise the limits on processes and memory (`ulimit -a` shows them)")),
    }
}
