//! `man`: write the manual pages.

use clap::Args;

use crate::cli::exit::Exit;
use crate::engine::error::EngineError;

/// `man`.
#[derive(Debug, Args)]
pub struct Man {}

/// Runs the subcommand.
///
/// # Errors
/// Always, until it is built.
pub fn man(options: &Man) -> Result<Exit, EngineError> {
    let _ = options;
    Err(EngineError::failed("`man` is not built yet"))
}
