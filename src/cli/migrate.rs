//! `migrate`: bring older scripts to today's spelling, without touching anything else of them.

use clap::Args;

use crate::cli::exit::Exit;
use crate::engine::environment::Environment;
use crate::engine::error::EngineError;

/// `migrate`.
#[derive(Debug, Args)]
pub struct Migrate {}

/// Runs the subcommand.
///
/// # Errors
/// Always, until it is built.
pub fn migrate(options: &Migrate, environment: &Environment) -> Result<Exit, EngineError> {
    let _ = (options, environment);
    Err(EngineError::failed("`migrate` is not built yet"))
}
