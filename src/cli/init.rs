//! `init`: begin a project: one that runs, validates and tests at once.

use clap::Args;

use crate::cli::exit::Exit;
use crate::engine::environment::Environment;
use crate::engine::error::EngineError;

/// `init`.
#[derive(Debug, Args)]
pub struct Init {}

/// Runs the subcommand.
///
/// # Errors
/// Always, until it is built.
pub fn init(options: &Init, environment: &Environment) -> Result<Exit, EngineError> {
    let _ = (options, environment);
    Err(EngineError::failed("`init` is not built yet"))
}
