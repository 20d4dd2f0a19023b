//! The directory of a kernel, which contains its connection file with the key. It is removed when the kernel ends; those of processes
//! that were killed are removed when the next kernel starts.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{ErrorKind, Result};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use crate::notebook::kernel::message::random;

/// The permissions of everyone but the owner.
const OTHERS: u32 = 0o077;

/// The number of attempts to create a directory that another process takes for an abandoned one before it is locked.
const MAX_ATTEMPTS: usize = 8;

/// The number of directories that are searched for abandoned ones.
const MAX_ENTRIES: usize = 10_000;

/// A private directory, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct KernelDirectory {
    path: PathBuf,
    /// Locked, so that other processes can tell that it is in use.
    _lock: File,
}

impl KernelDirectory {
    /// A new directory in the run directory of the user, whose environment is `variables`.
    pub(crate) fn new(variables: &BTreeMap<String, String>) -> Result<Self> {
        let Some(parent) = run_directory(variables) else {
            return Self::create(std::env::temp_dir().join(format!("bcc-script-{}", random(8)?)));
        };
        remove_abandoned(&parent);
        for _ in 0..MAX_ATTEMPTS {
            match Self::create(parent.join(random(8)?)) {
                Err(error) if error.kind() == ErrorKind::ResourceBusy => {}
                created => return created,
            }
        }
        Err(ErrorKind::ResourceBusy.into())
    }

    fn create(path: PathBuf) -> Result<Self> {
        DirBuilder::new().mode(0o700).create(&path)?;
        let lock = File::open(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => ErrorKind::ResourceBusy.into(),
            _ => error,
        })?;
        // Some file systems have no locks; directories are not removed there as abandoned either.
        let taken = matches!(lock.try_lock(), Err(TryLockError::WouldBlock));
        if taken || !fs::metadata(&path).is_ok_and(|found| lock.metadata().is_ok_and(|own| own.ino() == found.ino())) {
            return Err(ErrorKind::ResourceBusy.into());
        }
        Ok(Self { path, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for KernelDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// `bcc-script` in `$XDG_RUNTIME_DIR`, or the directory of this user in that of temporary files; `None` if someone else has put
/// something else there.
fn run_directory(variables: &BTreeMap<String, String>) -> Option<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let given = variables.get("XDG_RUNTIME_DIR").map(Path::new).filter(|given| given.is_absolute() && given.is_dir());
    let path = match given {
        Some(given) => given.join("bcc-script"),
        None => std::env::temp_dir().join(format!("bcc-script-{user}")),
    };
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return None,
        _ => {}
    }
    let found = path.symlink_metadata().ok()?;
    (found.is_dir() && found.uid() == user && found.mode() & OTHERS == 0).then_some(path)
}

/// Removes the directories of processes that were killed.
fn remove_abandoned(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().filter_map(std::result::Result::ok).take(MAX_ENTRIES);
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        let path = entry.path();
        if File::open(&path).is_ok_and(|directory| directory.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn directories_of_killed_processes_are_removed_and_no_others() {
        let root = tempfile::tempdir().unwrap();
        let variables = BTreeMap::from([("XDG_RUNTIME_DIR".to_owned(), root.path().to_string_lossy().into_owned())]);
        let in_use = KernelDirectory::new(&variables).unwrap();
        let parent = in_use.path().parent().unwrap().to_path_buf();
        assert_eq!(parent, root.path().join("bcc-script"));
        assert_eq!(fs::metadata(&parent).unwrap().mode() & 0o777, 0o700);
        fs::create_dir(parent.join("killed")).unwrap();
        fs::write(parent.join("killed/connection.json"), "a key").unwrap();
        fs::create_dir(root.path().join("precious")).unwrap();
        fs::write(root.path().join("precious/file"), "mine").unwrap();
        symlink("../precious", parent.join("link")).unwrap();
        let second = KernelDirectory::new(&variables).unwrap();
        let name = |directory: &KernelDirectory| directory.path().file_name().unwrap().to_str().unwrap().to_owned();
        let mut expected = vec![name(&in_use), name(&second), "link".to_owned()];
        expected.sort();
        assert_eq!(names(&parent), expected);
        assert_eq!(names(&root.path().join("precious")), ["file"]);
        drop((in_use, second));
        assert_eq!(names(&parent), ["link"]);
    }

    #[test]
    fn a_directory_that_others_can_access_is_not_used() {
        let root = tempfile::tempdir().unwrap();
        let variables = BTreeMap::from([("XDG_RUNTIME_DIR".to_owned(), root.path().to_string_lossy().into_owned())]);
        let path = root.path().join("bcc-script");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let directory = KernelDirectory::new(&variables).unwrap();
        assert!(!directory.path().starts_with(&path));
        assert_eq!(fs::metadata(directory.path()).unwrap().mode() & 0o777, 0o700);
        fs::remove_dir(&path).unwrap();
        symlink(std::env::temp_dir(), &path).unwrap();
        assert!(!KernelDirectory::new(&variables).unwrap().path().starts_with(&path));
    }
}
