//! A path that a document names another by: a test its script, a script its skills. It begins at the folder of the document
//! and stays in the project.

use std::io;
use std::path::{Component, Path, PathBuf};

use crate::files::read_bounded;
use crate::project::absolute;
use bcc_check::document_paths::DocumentPathError;
use bcc_lang::source::text::MAX_FILE_BYTES;

/// Where the path `written` in the document at `real` leads: absolute, links resolved as far as it exists.
///
/// # Errors
/// When it is empty or begins at the root of the machine.
pub fn place(written: &str, real: &Path) -> Result<PathBuf, DocumentPathError> {
    if written.trim().is_empty() {
        return Err(DocumentPathError::Empty);
    }
    if Path::new(written).is_absolute() {
        return Err(DocumentPathError::Absolute);
    }
    Ok(plain(&absolute(&real.parent().unwrap_or(real).join(written))))
}

/// The bytes of the file at `real`.
pub fn bytes(real: &Path) -> Result<Vec<u8>, DocumentPathError> {
    if real.is_dir() {
        return Err(DocumentPathError::Folder);
    }
    match read_bounded(real, MAX_FILE_BYTES as u64) {
        Ok(bytes) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(DocumentPathError::Absent),
        Err(error) => Err(DocumentPathError::Unreadable(error.to_string())),
    }
}

/// The path without `.` and `..`: one that does not exist cannot be resolved by the system.
pub fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}
