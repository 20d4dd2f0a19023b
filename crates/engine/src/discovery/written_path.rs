//! Resolves the path of a document in another one: of a script in a test, of a skill in a script. It is relative to the folder
//! of the referring document, and must stay in the project.

use bcc_lang::message::ToMessage;
use std::io;
use std::path::{Path, PathBuf};

use crate::files::read_bounded;
use crate::files::within::normalize;
use crate::project::absolute;
use bcc_check::document_paths::DocumentPathError;
use bcc_lang::source::text::MAX_FILE_BYTES;

/// Resolves the path `written` in the document at `real`: absolute, with links resolved as far as it exists.
///
/// # Errors
/// When it is empty or absolute.
pub fn resolve(written: &str, real: &Path) -> Result<PathBuf, DocumentPathError> {
    if written.trim().is_empty() {
        return Err(DocumentPathError::Empty);
    }
    if Path::new(written).is_absolute() {
        return Err(DocumentPathError::Absolute);
    }
    Ok(normalize(&absolute(&real.parent().unwrap_or(real).join(written))))
}

/// The bytes of the file at `real`, a path that [`resolve`] returned.
pub fn read(real: &Path) -> Result<Vec<u8>, DocumentPathError> {
    if real.is_dir() {
        return Err(DocumentPathError::Folder);
    }
    read_bounded(real, MAX_FILE_BYTES as u64).map_err(|error| unusable(&error))
}

pub(crate) fn unusable(error: &io::Error) -> DocumentPathError {
    match error.kind() {
        io::ErrorKind::NotFound => DocumentPathError::Absent,
        _ => DocumentPathError::Unreadable(error.to_message()),
    }
}
