//! One file from the disk, whatever it turns out to be: a text, one of nobody's business, or a finding of its own.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::validate::roots::OwnFolders;
use bcc_engine::discovery::documents::seems_ours;
use bcc_engine::discovery::walk::FoundFile;
use bcc_engine::discovery::walk::unreadable;
use bcc_engine::files::{MOST_TEMPLATE_BYTES, read_bounded};
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::near::near_miss;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::{MAX_FILE_BYTES, SourceFile};

#[derive(Debug)]
pub enum FileRead {
    Text(Arc<SourceFile>),
    /// It was not named, and is no document of the language.
    PassedOver,
    Wrong(Box<Diagnostic>),
}

/// Reads a document. A file that was found below a folder is passed over when it does not seem to be one, unless it lies in a
/// folder where nothing else belongs.
pub fn document(found: &FoundFile, own: &OwnFolders) -> FileRead {
    let bytes = match read_bounded(&found.path, MAX_FILE_BYTES as u64) {
        Ok(bytes) => bytes,
        Err(error) => return FileRead::Wrong(Box::new(not_read(found, &error))),
    };
    if !found.named && !seems_ours(&bytes) && !own.have(&found.real) {
        return FileRead::PassedOver;
    }
    match SourceFile::from_bytes(found.shown.as_str(), bytes) {
        Ok(file) => FileRead::Text(Arc::new(file)),
        Err(diagnostic) => FileRead::Wrong(diagnostic),
    }
}

/// The finding about a file that is not there or cannot be told to be; none when it can be opened, as far as its path says.
pub fn absent(found: &FoundFile) -> Option<Diagnostic> {
    std::fs::metadata(&found.path).err().map(|error| not_read(found, &error))
}

/// The finding about a template or a schema that was refused, by what is wrong with it; `why` is what was said before.
pub fn refused(path: &Path, shown: &str, why: impl Into<Message>) -> Diagnostic {
    let why = why.into();
    match read_bounded(path, MOST_TEMPLATE_BYTES) {
        Ok(bytes) if bytes.len() as u64 > MOST_TEMPLATE_BYTES => {
            let file = Arc::new(SourceFile::new(shown, ""));
            let most = MOST_TEMPLATE_BYTES / (1024 * 1024);
            let message = msg!("{shown} is larger than {most} MiB, the limit for templates and schemas");
            Diagnostic::error("file-too-large", message, &file, Span::default())
                .with_help("check that this is the right file; move text that the template does not need elsewhere")
        }
        Ok(bytes) => match SourceFile::from_bytes(shown, bytes) {
            Err(diagnostic) => *diagnostic,
            Ok(_) => unreadable(shown, msg!("{shown} could not be read: {why}")),
        },
        Err(error) => {
            unreadable(shown, msg!("{shown} cannot be read: {error}", error = Message::text(error.to_string())))
        }
    }
}

fn not_read(found: &FoundFile, error: &io::Error) -> Diagnostic {
    let shown = &found.shown;
    if error.kind() != io::ErrorKind::NotFound || found.path.is_symlink() {
        let link = if found.path.is_symlink() { ", which is a link," } else { "" };
        return unreadable(shown, msg!("{shown}{link} cannot be read: {error}"));
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

/// The file in the same folder whose name is nearest.
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

    #[test]
    fn a_file_that_is_gone_since_it_was_found_is_told_so() {
        let path = tempfile::tempdir().unwrap().path().join("gone.yaml");
        let found =
            FoundFile { real: path.clone(), path, shown: "gone.yaml".into(), named: false, role: FileRole::Document };
        let own = OwnFolders::of(&ValidateRequest::default(), None, Path::new("/"));
        let FileRead::Wrong(diagnostic) = document(&found, &own) else { panic!("it was read") };
        assert_eq!(diagnostic.rule, "unreadable-file");
        assert!(diagnostic.message.to_string().contains("it existed when the check started"), "{}", diagnostic.message);
    }
}
