//! `completions`: print what a shell needs to complete commands and options.

use clap::Args;

use crate::cli::exit::Exit;
use crate::engine::error::EngineError;

/// `completions`.
#[derive(Debug, Args)]
pub struct Completions {}

/// Runs the subcommand.
///
/// # Errors
/// Always, until it is built.
pub fn completions(options: &Completions) -> Result<Exit, EngineError> {
    let _ = options;
    Err(EngineError::failed("`completions` is not built yet"))
}
