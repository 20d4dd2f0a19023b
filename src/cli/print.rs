//! Writes to standard output, and documents to files.

use crate::cli::language::Translate;
use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::msg;
use std::io::{self, ErrorKind};
use std::path::Path;

use serde_json::Value;

use crate::cli::language::translated;
use crate::cli::output::write_bytes;
use bcc_engine::error::EngineError;
use bcc_engine::files::write::{replace, replace_document};
use bcc_lang::source::render::visible::{visible, visible_json};

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

/// Prints one or more lines for people. What a terminal would obey or hide is visible, also if the output goes to a file or another
/// program: it may show it on a terminal.
pub fn print(text: &str) -> Result<(), EngineError> {
    write_out(format!("{}\n", visible(text)).as_bytes())
}

/// Prints a text of this program in the language of the person.
pub fn print_translated<T: Translate + ?Sized>(text: &T) -> Result<(), EngineError> {
    print(&translated(text))
}

pub fn print_json(document: &Value) -> Result<(), EngineError> {
    print_json_text(&serde_json::to_string_pretty(document).map_err(|error| EngineError::failed(error.to_message()))?)
}

/// Prints a JSON document with exactly its content.
pub fn print_json_text(document: &str) -> Result<(), EngineError> {
    write_out(format!("{}\n", visible_json(document)).as_bytes())
}

/// Writes a document to a file.
pub fn save(path: &Path, bytes: &[u8]) -> Result<(), EngineError> {
    saved(path, replace(path, bytes))
}

/// [`save`] for a document that contains a conversation: only its owner can read a new file.
pub fn save_conversation(path: &Path, bytes: &[u8]) -> Result<(), EngineError> {
    saved(path, replace_document(path, bytes))
}

fn saved(path: &Path, written: io::Result<()>) -> Result<(), EngineError> {
    written.map_err(|error| EngineError::failed(msg!("{path} cannot be written: {error}", path = path.display())))
}
