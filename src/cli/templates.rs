//! `templates`: list, show, render, compare, copy and check the prompt templates of a project.

use clap::Subcommand;

use crate::cli::exit::Exit;
use crate::cli::render::{Render, render};
use crate::engine::environment::Environment;
use crate::engine::error::EngineError;

/// `templates`.
#[derive(Debug, Subcommand)]
pub enum Templates {
    /// Show the messages that would be sent to the model, role by role, without sending them
    Render(Render),
}

/// Runs the subcommand.
///
/// # Errors
/// As [`EngineError`] sorts them.
pub fn templates(options: &Templates, environment: &Environment) -> Result<Exit, EngineError> {
    match options {
        Templates::Render(options) => render(options, environment),
    }
}
