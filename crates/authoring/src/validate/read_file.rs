//! Reads one file: the result is its text, a skipped file, or a finding.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::validate::roots::OwnFolders;
use bcc_engine::discovery::documents::is_document;
use bcc_engine::discovery::walk::FoundFile;
use bcc_engine::discovery::walk::unreadable;
use bcc_engine::files::MAX_TEMPLATE_BYTES;
use bcc_engine::files::within::read_within;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::near::near_miss;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::{MAX_STATE_FILE_BYTES, SourceFile};

#[derive(Debug)]
pub enum FileRead {
    Text(Arc<SourceFile>),
    /// Its bytes: it was not given by name, and is not a document of the language.
    Skipped(Vec<u8>),
    Wrong(Box<Diagnostic>),
}

/// Reads a document. A file found below a folder is skipped if it does not look like a document, unless it is in a
/// folder that contains only documents.
pub fn document(found: &FoundFile, own: &OwnFolders) -> FileRead {
    let bytes = match found.read(MAX_STATE_FILE_BYTES as u64) {
        Ok(bytes) => bytes,
        Err(error) => return FileRead::Wrong(Box::new(not_read(found, &error))),
    };
    if !found.named && !is_document(&bytes) && !own.contains(&found.resolved) {
        return FileRead::Skipped(bytes);
    }
    match SourceFile::from_bytes(found.shown.as_str(), bytes) {
        Ok(file) => FileRead::Text(Arc::new(file)),
        Err(diagnostic) => FileRead::Wrong(diagnostic),
    }
}

/// The finding for a file that does not exist or cannot be accessed; `None` if its metadata can be read.
pub fn absent(found: &FoundFile) -> Option<Diagnostic> {
    std::fs::metadata(&found.path).err().map(|error| not_read(found, &error))
}

/// The finding for a template or a schema of a project that could not be read; `reason` is the original error.
pub(crate) fn read_failure(project: &Path, path: &Path, shown: &str, reason: impl Into<Message>) -> Diagnostic {
    let reason = reason.into();
    match read_within(project, path, MAX_TEMPLATE_BYTES) {
        Ok(bytes) if bytes.len() as u64 > MAX_TEMPLATE_BYTES => {
            let file = Arc::new(SourceFile::new(shown, ""));
            let limit = MAX_TEMPLATE_BYTES / (1024 * 1024);
            let message = msg!("{shown} is larger than {limit} MiB, the limit for templates and schemas");
            Diagnostic::error("file-too-large", message, &file, Span::default())
                .with_help("check that this is the right file; move text that the template does not need elsewhere")
        }
        Ok(bytes) => match SourceFile::from_bytes(shown, bytes) {
            Err(diagnostic) => *diagnostic,
            Ok(_) => unreadable(shown, msg!("{shown} could not be read: {reason}")),
        },
        Err(error) => unreadable(shown, msg!("{shown} cannot be read: {error}")),
    }
}

fn not_read(found: &FoundFile, error: &io::Error) -> Diagnostic {
    let shown = &found.shown;
    if error.kind() == io::ErrorKind::InvalidInput && error.get_ref().is_some() {
        return unreadable(shown, msg!("{shown} cannot be read: {error}"))
            .with_help("specify a file or a folder; save what comes from a pipe or a device to a file first");
    }
    // Such an error already says that it is a link.
    if error.get_ref().is_some() {
        return unreadable(shown, msg!("{shown} cannot be read: {error}"))
            .with_help("only a file that you specify yourself may be a link to a file outside the project");
    }
    if error.kind() != io::ErrorKind::NotFound || found.path.is_symlink() {
        let message = match found.path.is_symlink() {
            true => msg!("{shown}, which is a link, cannot be read: {error}"),
            false => msg!("{shown} cannot be read: {error}"),
        };
        return unreadable(shown, message);
    }
    if !found.named {
        return unreadable(shown, msg!("{shown} no longer exists; it existed when the check started"));
    }
    let missing = unreadable(shown, msg!("there is no file {shown}"));
    match sibling(&found.path) {
        Some(near) => missing.with_help(msg!("did you mean `{near}`?")),
        None => missing.with_help("check the name and the current folder"),
    }
}

/// The file in the same folder with the most similar name.
pub fn sibling(path: &Path) -> Option<String> {
    let typed = path.file_name()?.to_str()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut names: Vec<String> =
        std::fs::read_dir(folder).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    near_miss(typed, names.iter().map(String::as_str)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::request::ValidateRequest;
    use bcc_engine::discovery::walk::FileRole;
    use std::path::PathBuf;

    #[test]
    fn a_file_that_was_deleted_after_it_was_found_is_reported() {
        let path = tempfile::tempdir().unwrap().path().join("gone.yaml");
        let found = FoundFile {
            resolved: path.clone(),
            path,
            shown: "gone.yaml".into(),
            named: false,
            boundary: PathBuf::new(),
            role: FileRole::Document,
        };
        let own = OwnFolders::of(&ValidateRequest::default(), None, Path::new("/"));
        let FileRead::Wrong(diagnostic) = document(&found, &own) else { panic!("it was read") };
        assert_eq!(diagnostic.rule, "unreadable-file");
        assert!(diagnostic.message.to_string().contains("it existed when the check started"), "{}", diagnostic.message);
    }
}
