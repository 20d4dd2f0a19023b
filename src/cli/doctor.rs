//! `doctor`: look at configuration, trust, models and store: what works, what does not, and what to do.

use clap::Args;

use crate::cli::exit::Exit;
use crate::engine::environment::Environment;
use crate::engine::error::EngineError;

/// `doctor`.
#[derive(Debug, Args)]
pub struct Doctor {}

/// Runs the subcommand.
///
/// # Errors
/// Always, until it is built.
pub fn doctor(options: &Doctor, environment: &Environment) -> Result<Exit, EngineError> {
    let _ = (options, environment);
    Err(EngineError::failed("`doctor` is not built yet"))
}
