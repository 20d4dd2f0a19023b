//! Session locks: locked files, which the kernel unlocks when the process ends for any reason.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::contract::SessionLock;
use crate::error::StoreError;
use crate::sqlite::disk::{MAX_LOCK_BYTES, is_same_file, lock_file, private_directory};
use crate::sqlite::error;

/// The maximum number of attempts while a previous holder keeps removing the lock file during its release.
const MAX_ATTEMPTS: u32 = 64;

/// The number of characters of the hash of a session's id in the name of its lock file.
const NAME_LENGTH: usize = 32;

/// An acquired lock. Dropping it removes its file and then releases the lock.
#[derive(Debug)]
pub(crate) struct FileLock {
    path: PathBuf,
    // Closing the file releases the lock.
    _file: File,
}

impl SessionLock for FileLock {}

impl Drop for FileLock {
    fn drop(&mut self) {
        // A leftover file does no harm: the lock is held by the kernel, not by the existence of the file.
        let _ = fs::remove_file(&self.path);
    }
}

pub(crate) fn directory(store: &Path) -> PathBuf {
    let mut path = store.as_os_str().to_owned();
    path.push(".locks");
    path.into()
}

/// The name of a session's lock file. The id of a session may be any text; its hash is a valid file name on every system.
pub(crate) fn file_name(id: &str) -> String {
    let digits = Sha256::digest(id.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("{}.lock", digits.chars().take(NAME_LENGTH).collect::<String>())
}

/// Acquires the lock of a session without waiting.
/// Errors: [`StoreError::Held`] with the description of the holder.
pub(crate) fn acquire(store: &str, directory: &Path, id: &str, holder: &str) -> Result<FileLock, StoreError> {
    let report = |error: io::Error| error::io(store, &error);
    if directory.is_symlink() {
        return Err(StoreError::NotALock { lock: directory.display().to_string() });
    }
    private_directory(directory).map_err(report)?;
    let path = directory.join(file_name(id));
    for _ in 0..MAX_ATTEMPTS {
        let mut file = lock_file(&path).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => StoreError::NotALock { lock: path.display().to_string() },
            _ => report(error),
        })?;
        match file.try_lock() {
            Ok(()) if is_same_file(&path, &file) => {
                file.set_len(0).and_then(|()| file.write_all(holder.as_bytes())).map_err(report)?;
                return Ok(FileLock { path, _file: file });
            }
            // The previous holder has removed this file, so no other process would find this lock: try again.
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::Held { store: store.to_owned(), id: id.to_owned(), holder: read_holder(file) });
            }
            Err(TryLockError::Error(error)) => return Err(report(error)),
        }
    }
    Err(StoreError::Busy { store: store.to_owned() })
}

fn read_holder(file: File) -> String {
    let mut bytes = Vec::new();
    match file.take(MAX_LOCK_BYTES).read_to_end(&mut bytes) {
        Ok(length) if length > 0 => String::from_utf8_lossy(&bytes).into_owned(),
        // The holder has the lock but has not written its description yet.
        _ => "another process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_has_a_unique_file_name() {
        let ids = ["", "a", "A", "../../etc/passwd", "林\0", &"x".repeat(1 << 16)];
        let names: std::collections::HashSet<_> = ids.iter().map(|id| file_name(id)).collect();
        assert_eq!(names.len(), ids.len());
        for name in names {
            assert!(name.len() == 37 && name.ends_with(".lock"), "{name}");
        }
    }

    #[test]
    fn a_file_left_by_a_killed_process_does_not_block() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(file_name("s")), "process 1, long dead").unwrap();
        let lock = acquire("store", directory.path(), "s", "me").unwrap();
        assert_eq!(fs::read_to_string(directory.path().join(file_name("s"))).unwrap(), "me");
        drop(lock);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn only_one_thread_holds_the_lock_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let active = std::sync::atomic::AtomicUsize::new(0);
        let acquired = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let Ok(lock) = acquire("store", directory.path(), "s", "me") else { continue };
                        assert_eq!(active.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                        acquired.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        active.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                        drop(lock);
                    }
                });
            }
        });
        assert!(acquired.into_inner() > 0);
    }
}
