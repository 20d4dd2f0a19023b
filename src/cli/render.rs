//! `templates render`: the messages that would be sent, without sending them.

use clap::Args;

use crate::cli::exit::Exit;
use crate::engine::environment::Environment;
use crate::engine::error::EngineError;

/// `templates render`.
#[derive(Debug, Args)]
pub struct Render {}

/// Runs the subcommand.
///
/// # Errors
/// Always, until it is built.
pub fn render(options: &Render, environment: &Environment) -> Result<Exit, EngineError> {
    let _ = (options, environment);
    Err(EngineError::failed("`templates render` is not built yet"))
}
