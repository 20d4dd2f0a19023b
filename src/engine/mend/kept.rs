//! A mended text, put in the place of the file that it was made from: whole or not at all, with the same permissions, and only
//! where nothing of the file is lost by it.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::engine::files::read_bounded;
use crate::source::text::MAX_FILE_BYTES;

/// The bits of a mode that say who may do what.
const PERMISSIONS: u32 = 0o7777;

/// Any of these, and somebody may write.
const WRITABLE: u32 = 0o222;

/// How many names are tried for the file beside: others may be at work in the same folder.
const MOST_NAMES: u32 = 100;

/// Why a file was kept as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Kept {
    /// It has several names. A new file would take the place of one, and the others would go on with the old text.
    #[error("it has {0} names (hard links), and only one of them would get the new text")]
    Linked(u64),
    /// Nobody may write to it, or not this user.
    #[error("it is read-only")]
    ReadOnly,
    /// It belongs to another user, and what is written anew would not.
    #[error("it belongs to another user")]
    Foreign,
    /// Somebody else wrote to it in the meantime.
    #[error("it changed while it was being mended")]
    Changed,
    /// The system refused, as it says.
    #[error("{0}")]
    Failed(String),
}

impl Kept {
    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Linked(_) => "mend one of them by hand, or make copies of them",
            Self::ReadOnly => "make it writable, as with `chmod u+w`, if it may be changed",
            Self::Foreign => "let its owner do this",
            Self::Changed => "save what is open in an editor, and try again",
            Self::Failed(_) => "nothing was changed in it: mend what the message says, and try again",
        }
    }
}

impl From<io::Error> for Kept {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Puts `after` in the place of the file at `path`, which held `before` when it was read. A link stays one: what it leads to is
/// replaced. A reader sees the old text or the new one, also when the disk is full or the program is killed.
///
/// # Errors
/// Why the file was left as it was.
pub fn put(path: &Path, before: &str, after: &str) -> Result<(), Kept> {
    let real = std::fs::canonicalize(path)?;
    let metadata = writable(&real)?;
    let beside = Beside::new(&real)?;
    beside.write(after, &metadata)?;
    // As late as can be: what an editor saved since this was read must not be lost.
    let now = writable(&real)?;
    let same = (now.dev(), now.ino()) == (metadata.dev(), metadata.ino());
    if !same || read_bounded(&real, MAX_FILE_BYTES as u64)? != before.as_bytes() {
        return Err(Kept::Changed);
    }
    beside.take_the_place_of(&real)?;
    // The name is on the disk as well when its folder is; what fails here can no longer be undone, and harms nobody.
    let _ = real.parent().and_then(|folder| File::open(folder).ok()).map(|folder| folder.sync_all());
    Ok(())
}

/// What is known of a file that may be replaced.
fn writable(real: &Path) -> Result<Metadata, Kept> {
    let metadata = std::fs::metadata(real)?;
    if metadata.nlink() > 1 {
        return Err(Kept::Linked(metadata.nlink()));
    }
    // To root everything is writable; what nobody may write to is meant to stay.
    if metadata.mode() & WRITABLE == 0 || access(real, Access::WRITE_OK).is_err() {
        return Err(Kept::ReadOnly);
    }
    Ok(metadata)
}

/// A new file in the folder of another one; removed unless it takes its place.
struct Beside {
    path: PathBuf,
    file: File,
}

impl Beside {
    fn new(real: &Path) -> io::Result<Self> {
        let folder = real.parent().unwrap_or(Path::new("/"));
        let id = std::process::id();
        for number in 0..MOST_NAMES {
            let path = folder.join(format!(".bcc-mend.{id}.{number}"));
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => return Ok(Self { path, file }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "there are too many temporary files in its folder"))
    }

    fn write(&self, text: &str, like: &Metadata) -> Result<(), Kept> {
        (&self.file).write_all(text.as_bytes())?;
        let own = self.file.metadata()?;
        if (own.uid(), own.gid()) != (like.uid(), like.gid()) {
            fchown(&self.file, Some(like.uid()), Some(like.gid())).map_err(|_| Kept::Foreign)?;
        }
        self.file.set_permissions(Permissions::from_mode(like.mode() & PERMISSIONS))?;
        self.file.sync_all()?;
        Ok(())
    }

    fn take_the_place_of(&self, real: &Path) -> io::Result<()> {
        std::fs::rename(&self.path, real)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // After the renaming there is none of this name.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & PERMISSIONS
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
        assert_eq!(put(&path("changed"), "older", "new"), Err(Kept::Changed));
        assert_eq!(put(&path("linked"), "old", "new"), Err(Kept::Linked(2)));
        assert_eq!(put(&path("readonly"), "old", "new"), Err(Kept::ReadOnly));
        assert!(matches!(put(&path("gone"), "old", "new"), Err(Kept::Failed(_))));
        for name in ["changed", "linked", "readonly", "other"] {
            assert_eq!(std::fs::read_to_string(path(name)).unwrap(), "old", "{name}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4, "nothing else is left behind");
    }
}
