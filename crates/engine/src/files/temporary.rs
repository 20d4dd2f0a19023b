//! Temporary files that replace others. A killed process leaves none behind: on Linux, the file has no name until it is complete,
//! and elsewhere the next process that writes to the folder removes it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{File, Metadata, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, RawMode, linkat, openat, renameat, statat, unlinkat};

use crate::files::within::FOLDER;
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
        return Err(no_name());
    }
    Ok(folder_of(path).join(unique_name()))
}

/// Not made from the name of the file, which may already have the maximum length.
fn unique_name() -> String {
    format!("{PREFIX}{}", uuid::Uuid::now_v7().simple())
}

fn no_name() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it has no file name")
}

/// A new file in the folder of another one. It is removed unless it replaces that file. The folder stays the same, whatever takes its
/// place at its path.
#[derive(Debug)]
pub struct TemporaryFile {
    folder: OwnedFd,
    /// Its name. On Linux, it does not exist until the file is complete.
    name: String,
    is_named: bool,
    /// Locked, so that other processes can tell that it is in use.
    file: File,
}

impl TemporaryFile {
    fn new(real: &Path, mode: u32) -> io::Result<Self> {
        Self::in_folder(openat(CWD, folder_of(real), FOLDER, Mode::empty())?, mode)
    }

    fn in_folder(folder: OwnedFd, mode: u32) -> io::Result<Self> {
        remove_abandoned(&folder);
        match unnamed(&folder, mode) {
            Some(file) => Ok(Self { folder, name: unique_name(), is_named: false, file }),
            None => Self::named(folder, mode),
        }
    }

    fn named(folder: OwnedFd, mode: u32) -> io::Result<Self> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for _ in 0..MAX_ATTEMPTS {
            let name = unique_name();
            let file = File::from(openat(&folder, &name, flags, mode_of(mode))?);
            // Some file systems have no locks; files are not removed there as abandoned either.
            let taken = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
            if !taken && is_same(&folder, &name, &file) {
                return Ok(Self { folder, name, is_named: true, file });
            }
        }
        Err(io::ErrorKind::ResourceBusy.into())
    }

    /// Creates an empty file next to `real`, with the permissions of a new file. It opens no existing file and follows no link.
    pub(crate) fn with_default_permissions(real: &Path) -> io::Result<Self> {
        Self::new(real, DEFAULT_MODE)
    }

    /// [`Self::with_default_permissions`] in an open folder.
    pub(crate) fn new_in(folder: OwnedFd) -> io::Result<Self> {
        Self::in_folder(folder, DEFAULT_MODE)
    }

    /// The same, readable only by its owner whatever the `umask` is, to replace an existing file.
    pub fn with_private_permissions(real: &Path) -> io::Result<Self> {
        Self::private(Self::new(real, PRIVATE_MODE)?)
    }

    /// [`Self::with_private_permissions`] in an open folder.
    pub(crate) fn private_in(folder: OwnedFd) -> io::Result<Self> {
        Self::private(Self::in_folder(folder, PRIVATE_MODE)?)
    }

    fn private(self) -> io::Result<Self> {
        self.file.set_permissions(Permissions::from_mode(PRIVATE_MODE))?;
        Ok(self)
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

    /// Sets the permissions to those of `like`. They are durable after the next sync.
    pub fn copy_permissions(&self, like: &Metadata) -> io::Result<()> {
        self.file.set_permissions(Permissions::from_mode(like.mode() & PERMISSIONS))
    }

    /// Gives it the name of `real`, which is in its folder, as well, unless there is such a file.
    ///
    /// # Errors
    /// `AlreadyExists`; other errors also on file systems without hard links.
    pub(crate) fn link(&self, real: &Path) -> io::Result<()> {
        let name = real.file_name().ok_or_else(no_name)?;
        match self.is_named {
            true => Ok(linkat(&self.folder, &self.name, &self.folder, name, AtFlags::empty())?),
            false => link_unnamed(&self.file, &self.folder, name),
        }
    }

    /// Gives it the name of `real`, which is in its folder, and replaces an existing file.
    ///
    /// # Errors
    /// Errors of the operating system; the temporary file is removed then.
    pub fn replace(mut self, real: &Path) -> io::Result<()> {
        let name = real.file_name().ok_or_else(no_name)?;
        if !self.is_named {
            link_unnamed(&self.file, &self.folder, OsStr::new(&self.name))?;
            self.is_named = true;
        }
        renameat(&self.folder, &self.name, &self.folder, name)?;
        // Syncing the folder makes the new name durable. An error here is harmless and cannot be undone.
        let _ = readable(&self.folder).map(|folder| File::from(folder).sync_all());
        Ok(())
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // After a rename, there is no file of this name.
        if self.is_named {
            let _ = unlinkat(&self.folder, &self.name, AtFlags::empty());
        }
    }
}

fn mode_of(mode: u32) -> Mode {
    Mode::from_raw_mode(mode as RawMode)
}

/// The folder, opened so that it can be listed and synced.
pub(crate) fn readable(folder: &OwnedFd) -> io::Result<OwnedFd> {
    Ok(openat(folder, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// A file in `folder` without a name; `None` if the file system has no such files.
#[cfg(target_os = "linux")]
fn unnamed(folder: &OwnedFd, mode: u32) -> Option<File> {
    // Its name is created through this folder, which may be missing in a container.
    if !Path::new(DESCRIPTORS).is_dir() {
        return None;
    }
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = File::from(openat(folder, ".", flags, mode_of(mode)).ok()?);
    // For the moment in which it has a temporary name. Nobody else can hold this lock.
    let _ = file.try_lock();
    Some(file)
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_folder: &OwnedFd, _mode: u32) -> Option<File> {
    None
}

/// The folder of the open files of this process.
const DESCRIPTORS: &str = "/proc/self/fd";

fn link_unnamed(file: &File, folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
    let descriptor = Path::new(DESCRIPTORS).join(file.as_raw_fd().to_string());
    Ok(linkat(CWD, &descriptor, folder, name, AtFlags::SYMLINK_FOLLOW)?)
}

/// Removes the temporary files of processes that were killed. Each folder is searched once.
fn remove_abandoned(folder: &OwnedFd) {
    // The number of a folder that is deleted is used again for another one, which is created later.
    static SEARCHED: Mutex<BTreeSet<(u64, u64, Option<SystemTime>)>> = Mutex::new(BTreeSet::new());
    let Ok(folder) = readable(folder) else { return };
    let Ok(entries) = Dir::read_from(&folder) else { return };
    let folder = File::from(folder);
    let Ok(found) = folder.metadata() else { return };
    let id = (found.dev(), found.ino(), found.created().ok());
    if !SEARCHED.lock().unwrap_or_else(PoisonError::into_inner).insert(id) {
        return;
    }
    remove_abandoned_of(&folder, entries);
}

fn remove_abandoned_of(folder: &File, entries: Dir) {
    for entry in entries.filter_map(Result::ok).take(MAX_ENTRIES) {
        let Some(name) = entry.file_name().to_str().ok().filter(|name| is_temporary_name(name)) else { continue };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = openat(folder, name, flags, Mode::empty()).map(File::from) else { continue };
        let is_own =
            file.metadata().is_ok_and(|found| found.is_file() && found.uid() == rustix::process::geteuid().as_raw());
        if is_own && file.try_lock().is_ok() {
            let _ = unlinkat(folder, name, AtFlags::empty());
        }
    }
}

fn is_temporary_name(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|id| id.len() == ID_LENGTH && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Whether the name in the folder is that of the file.
fn is_same(folder: &OwnedFd, name: &str, file: &File) -> bool {
    let id = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
    let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).map(id);
    found.is_ok() && found == rustix::fs::fstat(file).map(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
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
        // A folder of another test that was deleted at this moment may have had the same number.
        let folder = File::open(root.path()).unwrap();
        remove_abandoned_of(&folder, Dir::read_from(&folder).unwrap());
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
        let named = || TemporaryFile::named(File::open(root.path()).unwrap().into(), PRIVATE_MODE).unwrap();
        let temporary = named();
        let other = File::open(root.path().join(&temporary.name)).unwrap();
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        temporary.write(b"new").unwrap();
        temporary.replace(&real).unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"new");
        drop(named());
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
