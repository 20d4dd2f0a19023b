//! A folder below `.bcc/` of a project that only its owner can read: what can be computed again from the project.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use bcc_store::sqlite::disk::{lock_file, private_directory};

use crate::files::within::{read_within, resolve_within};
use crate::files::write::replace_private;

#[derive(Clone, Debug)]
pub struct PrivateFolder {
    project: PathBuf,
    path: PathBuf,
}

/// Excludes other processes until it is dropped.
#[derive(Debug)]
pub struct FolderLock(#[expect(dead_code, reason = "the lock ends when the file is closed")] File);

/// The name of the file by which processes exclude each other.
const LOCK: &str = "lock";

impl PrivateFolder {
    /// The folder `name` below `.bcc/`; it is created if it does not exist.
    ///
    /// # Errors
    /// Errors of the operating system; also if a link leads out of the project.
    pub fn open(project: &Path, name: &str) -> io::Result<Self> {
        let mut path = project.to_path_buf();
        for part in [".bcc", name] {
            path.push(part);
            match private_directory(&path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        let path = resolve_within(project, &path)?;
        Ok(Self { project: project.to_path_buf(), path })
    }

    /// Reads a file of at most `max_bytes` bytes; of a larger one, one more byte.
    pub fn read(&self, name: &str, max_bytes: u64) -> io::Result<Vec<u8>> {
        read_within(&self.project, &self.path.join(name), max_bytes)
    }

    /// Writes a file: a reader sees the old content or the new one.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        replace_private(&self.path.join(name), bytes)
    }

    pub fn contains(&self, name: &str) -> bool {
        self.path.join(name).symlink_metadata().is_ok_and(|metadata| metadata.is_file())
    }

    /// The names of the files, except the lock.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let names = std::fs::read_dir(&self.path)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        Ok(names.filter(|name| name != LOCK).collect())
    }

    pub fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }

    /// The lock of the folder; none while somebody else holds it.
    pub fn try_lock(&self) -> io::Result<Option<FolderLock>> {
        let file = lock_file(&self.path.join(LOCK))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(FolderLock(file))),
            Err(std::fs::TryLockError::WouldBlock) => Ok(None),
            Err(std::fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn only_the_owner_can_read_what_is_written() {
        let project = tempfile::tempdir().unwrap();
        let folder = PrivateFolder::open(project.path(), "graph").unwrap();
        folder.write("a", b"text").unwrap();
        assert_eq!(folder.read("a", 100).unwrap(), b"text");
        let mode = |path: &str| project.path().join(path).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(".bcc/graph"), mode(".bcc/graph/a")), (0o700, 0o600));
        let lock = PrivateFolder::open(project.path(), "graph").unwrap().try_lock().unwrap();
        assert!(lock.is_some() && folder.try_lock().unwrap().is_none());
        drop(lock);
        assert!(folder.try_lock().unwrap().is_some());
        assert_eq!(folder.names().unwrap(), ["a"]);
    }

    #[test]
    fn a_link_out_of_the_project_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let project = directory.path().join("project");
        std::fs::create_dir_all(&project).unwrap();
        std::fs::create_dir_all(directory.path().join("outside/graph")).unwrap();
        symlink("../outside", project.join(".bcc")).unwrap();
        assert!(PrivateFolder::open(&project, "graph").is_err());
    }
}
