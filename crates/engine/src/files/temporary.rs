//! Temporary files that replace others. A killed process leaves none behind: on Linux, the file has no name until it is complete,
//! and elsewhere the next process that writes to the folder removes it.

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::OFlags;

use crate::files::write::folder_of;

/// The permission bits of a mode.
const PERMISSIONS: u32 = 0o7777;

/// The mode of a new file, before the `umask`.
const DEFAULT_MODE: u32 = 0o666;

/// The mode of a file that will replace another one, while it is written.
const PRIVATE_MODE: u32 = 0o600;

/// The names of temporary files: this, and an id in hexadecimal digits.
const PREFIX: &str = ".bcc-";
const ID_LENGTH: usize = 32;

/// The number of attempts to create a file that another process takes for an abandoned one before it is locked.
const MAX_ATTEMPTS: usize = 8;

/// The number of entries of a folder among which abandoned files are searched.
const MAX_ENTRIES: usize = 10_000;

/// A hidden name in the same folder that is unique and cannot be predicted.
pub fn temporary_name(path: &Path) -> io::Result<PathBuf> {
    if path.file_name().is_none() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it has no file name"));
    }
    // Not made from the file name, which may already have the maximum length.
    Ok(folder_of(path).join(format!("{PREFIX}{}", uuid::Uuid::now_v7().simple())))
}

/// A new file in the folder of another one. It is removed unless it replaces that file.
#[derive(Debug)]
pub struct TemporaryFile {
    /// Its name. On Linux, it does not exist until the file is complete.
    path: PathBuf,
    is_named: bool,
    /// Locked, so that other processes can tell that it is in use.
    file: File,
}

impl TemporaryFile {
    fn new(real: &Path, mode: u32) -> io::Result<Self> {
        let path = temporary_name(real)?;
        remove_abandoned(folder_of(real));
        if let Some(file) = unnamed(folder_of(real), mode) {
            return Ok(Self { path, is_named: false, file });
        }
        Self::named(path, mode)
    }

    fn named(mut path: PathBuf, mode: u32) -> io::Result<Self> {
        for _ in 0..MAX_ATTEMPTS {
            let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path)?;
            // Some file systems have no locks; files are not removed there as abandoned either.
            let taken = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
            if !taken && fs::metadata(&path).is_ok_and(|found| same(&found, &file)) {
                return Ok(Self { path, is_named: true, file });
            }
            path = temporary_name(&path)?;
        }
        Err(io::ErrorKind::ResourceBusy.into())
    }

    /// Creates an empty file next to `real`, with the permissions of a new file. It opens no existing file and follows no link.
    pub(crate) fn with_default_permissions(real: &Path) -> io::Result<Self> {
        Self::new(real, DEFAULT_MODE)
    }

    /// The same, readable only by its owner whatever the `umask` is, to replace an existing file.
    pub fn with_private_permissions(real: &Path) -> io::Result<Self> {
        let temporary = Self::new(real, PRIVATE_MODE)?;
        temporary.file.set_permissions(Permissions::from_mode(PRIVATE_MODE))?;
        Ok(temporary)
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Writes the contents and syncs them to disk.
    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.file).write_all(bytes)?;
        self.file.sync_all()
    }

    /// Sets the owner and the group to those of `like`, if they differ.
    pub fn copy_owner(&self, like: &Metadata) -> io::Result<()> {
        let own = self.file.metadata()?;
        if (own.uid(), own.gid()) == (like.uid(), like.gid()) {
            return Ok(());
        }
        fchown(&self.file, Some(like.uid()), Some(like.gid()))
    }

    pub fn copy_permissions(&self, like: &Metadata) -> io::Result<()> {
        self.file.set_permissions(Permissions::from_mode(like.mode() & PERMISSIONS))?;
        self.file.sync_all()
    }

    /// Gives it the name `real` as well, unless there is such a file.
    ///
    /// # Errors
    /// `AlreadyExists`; other errors also on file systems without hard links.
    pub(crate) fn link(&self, real: &Path) -> io::Result<()> {
        match self.is_named {
            true => fs::hard_link(&self.path, real),
            false => link_unnamed(&self.file, real),
        }
    }

    /// Renames it to `real`, and replaces an existing file.
    ///
    /// # Errors
    /// Errors of the operating system; the temporary file is removed then.
    pub fn replace(mut self, real: &Path) -> io::Result<()> {
        if !self.is_named {
            link_unnamed(&self.file, &self.path)?;
            self.is_named = true;
        }
        fs::rename(&self.path, real)?;
        // Syncing the folder makes the new name durable. An error here is harmless and cannot be undone.
        let _ = File::open(folder_of(real)).map(|folder| folder.sync_all());
        Ok(())
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // After a rename, there is no file of this name.
        if self.is_named {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A file in `folder` without a name; `None` if the file system has no such files.
#[cfg(target_os = "linux")]
fn unnamed(folder: &Path, mode: u32) -> Option<File> {
    // Its name is created through this folder, which may be missing in a container.
    if !Path::new(DESCRIPTORS).is_dir() {
        return None;
    }
    let flags = OFlags::TMPFILE.bits().cast_signed();
    let file = OpenOptions::new().write(true).custom_flags(flags).mode(mode).open(folder).ok()?;
    // For the moment in which it has a temporary name. Nobody else can hold this lock.
    let _ = file.try_lock();
    Some(file)
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_folder: &Path, _mode: u32) -> Option<File> {
    None
}

/// The folder of the open files of this process.
const DESCRIPTORS: &str = "/proc/self/fd";

fn link_unnamed(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    let descriptor = Path::new(DESCRIPTORS).join(std::os::fd::AsRawFd::as_raw_fd(file).to_string());
    Ok(linkat(CWD, &descriptor, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// Removes the temporary files of processes that were killed. Each folder is searched once.
fn remove_abandoned(folder: &Path) {
    static SEARCHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let Ok(real) = fs::canonicalize(folder) else { return };
    if !SEARCHED.lock().unwrap_or_else(PoisonError::into_inner).insert(real) {
        return;
    }
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).take(MAX_ENTRIES);
    for entry in entries.filter(|entry| entry.file_name().to_str().is_some_and(is_temporary_name)) {
        let path = entry.path();
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let Ok(file) = OpenOptions::new().read(true).custom_flags(flags).open(&path) else { continue };
        let is_own =
            file.metadata().is_ok_and(|found| found.is_file() && found.uid() == rustix::process::geteuid().as_raw());
        if is_own && file.try_lock().is_ok() {
            let _ = fs::remove_file(&path);
        }
    }
}

fn is_temporary_name(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|id| id.len() == ID_LENGTH && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn same(found: &Metadata, file: &File) -> bool {
    file.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_files_of_killed_processes_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let id = |number: u32| format!("{PREFIX}{number:032x}");
        fs::write(at(&id(1)), "a key").unwrap();
        fs::write(at(&id(2)), "in use").unwrap();
        let in_use = File::open(at(&id(2))).unwrap();
        in_use.lock().unwrap();
        fs::write(at("mine"), "mine").unwrap();
        symlink("mine", at(&id(3))).unwrap();
        fs::create_dir(at(&id(4))).unwrap();
        fs::write(at(".bcc-note"), "mine").unwrap();
        drop(TemporaryFile::with_default_permissions(&at("new")).unwrap());
        let mut left: Vec<String> =
            fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        assert_eq!(left, [id(2), id(3), id(4), ".bcc-note".to_owned(), "mine".to_owned()]);
    }

    #[test]
    fn a_named_file_is_locked_and_replaces_another_one() {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().join("file");
        fs::write(&real, "old").unwrap();
        let temporary = TemporaryFile::named(temporary_name(&real).unwrap(), PRIVATE_MODE).unwrap();
        let other = File::open(&temporary.path).unwrap();
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        temporary.write(b"new").unwrap();
        temporary.replace(&real).unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"new");
        drop(TemporaryFile::named(temporary_name(&real).unwrap(), PRIVATE_MODE).unwrap());
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_has_no_name_until_it_is_complete() {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().join("file");
        let temporary = TemporaryFile::with_private_permissions(&real).unwrap();
        temporary.write(b"a key").unwrap();
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
        temporary.replace(&real).unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"a key");
        assert_eq!(fs::metadata(&real).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    }
}
