//! Writes to standard output, and documents to files.

use crate::cli::language::Translate;
use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::msg;
use std::io::{self, ErrorKind, IsTerminal};
use std::path::Path;

use serde_json::Value;

use crate::cli::language::translated;
use crate::cli::output::write_bytes;
use crate::cli::terminal::plain;
use bcc_engine::error::EngineError;
use bcc_engine::files::write::replace;

/// Writes bytes unchanged. Returns whether standard output is still open: a closed pipe (`| head`) is not an error, a full disk is.
pub fn write(bytes: &[u8]) -> io::Result<bool> {
    match write_bytes(bytes) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true),
    }
}

/// [`write`] with an [`EngineError`].
pub fn write_out(bytes: &[u8]) -> Result<(), EngineError> {
    let written = write(bytes).map_err(|error| msg!("cannot write to standard output: {error}"));
    written.map(drop).map_err(EngineError::failed)
}

/// Prints one or more lines. Control characters are removed for a terminal.
pub fn print(text: &str) -> Result<(), EngineError> {
    let shown = if io::stdout().is_terminal() { plain(text) } else { text.to_owned() };
    write_out(format!("{shown}\n").as_bytes())
}

/// Prints a text of this program in the language of the person.
pub fn print_translated<T: Translate + ?Sized>(text: &T) -> Result<(), EngineError> {
    print(&translated(text))
}

pub fn print_json(document: &Value) -> Result<(), EngineError> {
    print(&serde_json::to_string_pretty(document).map_err(|error| EngineError::failed(error.to_message()))?)
}

/// Writes a document to a file.
pub fn save(path: &Path, bytes: &[u8]) -> Result<(), EngineError> {
    replace(path, bytes)
        .map_err(|error| EngineError::failed(msg!("{path} cannot be written: {error}", path = path.display())))
}
