//! `schema`: prints a JSON Schema for editors (docs/editors.md).

use crate::cli::arguments::Schema;
use crate::cli::exit::Exit;
use crate::cli::language::said;
use crate::cli::sessions::print;
use crate::engine::error::EngineError;
use crate::engine::schemas::{list, text};
use crate::source::near::near_miss;

/// Runs the subcommand.
///
/// # Errors
/// When there is no schema of this name, or it cannot be written.
pub fn schema(options: &Schema) -> Result<Exit, EngineError> {
    if options.list {
        let lines: Vec<String> = list().iter().map(|(name, says)| format!("{name:20} {}", said(says))).collect();
        print(&lines.join("\n"))?;
        return Ok(Exit::Done);
    }
    match text(&options.name) {
        Some(text) => print(text.trim_end())?,
        None => return Err(unknown(&options.name)),
    }
    Ok(Exit::Done)
}

fn unknown(name: &str) -> EngineError {
    let names: Vec<&str> = list().into_iter().map(|(name, _)| name).collect();
    let help = match near_miss(name, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", names.join(", ")),
    };
    EngineError::usage(format!("there is no schema `{name}`")).with_help(help)
}
