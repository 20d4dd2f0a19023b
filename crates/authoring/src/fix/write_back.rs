//! Replaces a file with its fixed text: atomically, with the same permissions, and only if no data is lost.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bcc_engine::files::read_bounded;
use bcc_engine::files::temporary::TemporaryFile;
use bcc_engine::files::write::is_writable;
use bcc_lang::source::text::MAX_FILE_BYTES;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ToMessage)]
pub enum WriteError {
    /// The file has several hard links. Replacing one of them would leave the others with the old text.
    #[error("it has {0} hard links, and only one of them would be updated")]
    Linked(u64),
    /// The file is not writable.
    #[error("it is read-only")]
    ReadOnly,
    /// The file belongs to another user, and a new file would not.
    #[error("it belongs to another user")]
    Foreign,
    /// The file was changed in the meantime.
    #[error("it changed while it was being fixed")]
    Changed,
    #[error("{0}")]
    Failed(Message),
}

impl WriteError {
    pub fn help(&self) -> &'static str {
        match self {
            Self::Linked(_) => "fix one of them by hand, or replace them with copies",
            Self::ReadOnly => "if it may be changed, make it writable, for example with `chmod u+w`",
            Self::Foreign => "ask its owner to do this",
            Self::Changed => "save the file if it is open in an editor, and try again",
            Self::Failed(_) => "the file was not changed: fix the reported problem, and try again",
        }
    }
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_message())
    }
}

/// Replaces the file at `path`, which contained `before` when it was read, with `after`. A symbolic link is kept, and
/// its target is replaced. Readers see either the old or the new text, even if the disk is full or the process is
/// killed.
/// Errors: why the file was not changed.
pub(crate) fn replace_file(path: &Path, before: &str, after: &str) -> Result<(), WriteError> {
    let real = std::fs::canonicalize(path)?;
    let metadata = writable(&real)?;
    let temporary = TemporaryFile::with_private_permissions(&real)?;
    temporary.copy_owner(&metadata).map_err(|_| WriteError::Foreign)?;
    temporary.copy_permissions(&metadata)?;
    temporary.write(after.as_bytes())?;
    // Checked as late as possible: changes that an editor saved in the meantime must not be lost.
    let current = writable(&real)?;
    let same = (current.dev(), current.ino()) == (metadata.dev(), metadata.ino());
    if !same || read_bounded(&real, MAX_FILE_BYTES as u64)? != before.as_bytes() {
        return Err(WriteError::Changed);
    }
    Ok(temporary.replace(&real)?)
}

/// The metadata of a file that may be replaced.
fn writable(real: &Path) -> Result<Metadata, WriteError> {
    let metadata = std::fs::metadata(real)?;
    if metadata.nlink() > 1 {
        return Err(WriteError::Linked(metadata.nlink()));
    }
    if !is_writable(real, &metadata) {
        return Err(WriteError::ReadOnly);
    }
    Ok(metadata)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn permissions_and_symbolic_links_are_preserved() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a.yaml"), folder.path().join("link.yaml"));
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("a.yaml", &link).unwrap();
        assert_eq!(replace_file(&link, "old", "new"), Ok(()));
        assert_eq!((std::fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("new", 0o640));
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left behind");
    }

    #[test]
    fn a_file_that_cannot_be_replaced_without_loss_is_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["changed", "linked", "readonly"] {
            std::fs::write(path(name), "old").unwrap();
        }
        std::fs::hard_link(path("linked"), path("other")).unwrap();
        std::fs::set_permissions(path("readonly"), Permissions::from_mode(0o444)).unwrap();
        assert_eq!(replace_file(&path("changed"), "older", "new"), Err(WriteError::Changed));
        assert_eq!(replace_file(&path("linked"), "old", "new"), Err(WriteError::Linked(2)));
        assert_eq!(replace_file(&path("readonly"), "old", "new"), Err(WriteError::ReadOnly));
        assert!(matches!(replace_file(&path("gone"), "old", "new"), Err(WriteError::Failed(_))));
        for name in ["changed", "linked", "readonly", "other"] {
            assert_eq!(std::fs::read_to_string(path(name)).unwrap(), "old", "{name}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4, "nothing else is left behind");
    }
}
