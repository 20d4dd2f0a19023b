//! `graph`: draw a script: its phases, topics, actions, routes, skills and triggers.

use clap::Args;

use crate::cli::exit::Exit;
use crate::engine::environment::Environment;
use crate::engine::error::EngineError;

/// `graph`.
#[derive(Debug, Args)]
pub struct Graph {}

/// Runs the subcommand.
///
/// # Errors
/// Always, until it is built.
pub fn graph(options: &Graph, environment: &Environment) -> Result<Exit, EngineError> {
    let _ = (options, environment);
    Err(EngineError::failed("`graph` is not built yet"))
}
