//! `new`: write a new script, skill, test or scheme of templates into the project.

use clap::Args;

use crate::cli::exit::Exit;
use crate::engine::environment::Environment;
use crate::engine::error::EngineError;

/// `new`.
#[derive(Debug, Args)]
pub struct New {}

/// Runs the subcommand.
///
/// # Errors
/// Always, until it is built.
pub fn new(options: &New, environment: &Environment) -> Result<Exit, EngineError> {
    let _ = (options, environment);
    Err(EngineError::failed("`new` is not built yet"))
}
