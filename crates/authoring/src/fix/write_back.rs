//! A mended text, put in the place of the file that it was made from: whole or not at all, with the same permissions, and only
//! where nothing of the file is lost by it.

use bcc_lang::message::ToMessage;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bcc_engine::files::read_bounded;
use bcc_engine::files::write::{TemporaryFile, may_be_written};
use bcc_lang::source::text::MAX_FILE_BYTES;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ToMessage)]
pub enum WriteOutcome {
    /// It has several names. A new file would take the place of one, and the others would go on with the old text.
    #[error("it has {0} hard links, and only one of them would be updated")]
    Linked(u64),
    /// Nobody may write to it, or not this user.
    #[error("it is read-only")]
    ReadOnly,
    /// It belongs to another user, and what is written anew would not.
    #[error("it belongs to another user")]
    Foreign,
    /// Somebody else wrote to it in the meantime.
    #[error("it changed while it was being fixed")]
    Changed,
    #[error("{0}")]
    Failed(String),
}

impl WriteOutcome {
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

impl From<io::Error> for WriteOutcome {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Puts `after` in the place of the file at `path`, which held `before` when it was read. A link stays one: what it leads to is
/// replaced. A reader sees the old text or the new one, also when the disk is full or the program is killed.
/// Errors: Why the file was left as it was.
pub fn put(path: &Path, before: &str, after: &str) -> Result<(), WriteOutcome> {
    let real = std::fs::canonicalize(path)?;
    let metadata = writable(&real)?;
    let beside = TemporaryFile::own(&real)?;
    beside.write(after.as_bytes())?;
    beside.belong_like(&metadata).map_err(|_| WriteOutcome::Foreign)?;
    beside.be_as(&metadata)?;
    // As late as can be: what an editor saved since this was read must not be lost.
    let now = writable(&real)?;
    let same = (now.dev(), now.ino()) == (metadata.dev(), metadata.ino());
    if !same || read_bounded(&real, MAX_FILE_BYTES as u64)? != before.as_bytes() {
        return Err(WriteOutcome::Changed);
    }
    Ok(beside.take_the_place_of(&real)?)
}

/// What is known of a file that may be replaced.
fn writable(real: &Path) -> Result<Metadata, WriteOutcome> {
    let metadata = std::fs::metadata(real)?;
    if metadata.nlink() > 1 {
        return Err(WriteOutcome::Linked(metadata.nlink()));
    }
    if !may_be_written(real, &metadata) {
        return Err(WriteOutcome::ReadOnly);
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
    fn a_file_keeps_its_permissions_and_a_link_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a.yaml"), folder.path().join("link.yaml"));
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("a.yaml", &link).unwrap();
        assert_eq!(put(&link, "old", "new"), Ok(()));
        assert_eq!((std::fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("new", 0o640));
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left behind");
    }

    #[test]
    fn a_file_that_cannot_be_replaced_without_loss_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["changed", "linked", "readonly"] {
            std::fs::write(path(name), "old").unwrap();
        }
        std::fs::hard_link(path("linked"), path("other")).unwrap();
        std::fs::set_permissions(path("readonly"), Permissions::from_mode(0o444)).unwrap();
        assert_eq!(put(&path("changed"), "older", "new"), Err(WriteOutcome::Changed));
        assert_eq!(put(&path("linked"), "old", "new"), Err(WriteOutcome::Linked(2)));
        assert_eq!(put(&path("readonly"), "old", "new"), Err(WriteOutcome::ReadOnly));
        assert!(matches!(put(&path("gone"), "old", "new"), Err(WriteOutcome::Failed(_))));
        for name in ["changed", "linked", "readonly", "other"] {
            assert_eq!(std::fs::read_to_string(path(name)).unwrap(), "old", "{name}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4, "nothing else is left behind");
    }
}
