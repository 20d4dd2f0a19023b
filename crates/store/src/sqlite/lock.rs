//! The hold on a session: a file that the kernel unlocks when its process dies, however it dies.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::contract::SessionLock;
use crate::error::StoreError;
use crate::sqlite::disk::{leads_to, private_directory, private_file};
use crate::sqlite::error;

/// How often a lock is tried for again whose file was taken away by the one who let go of it at that moment.
const ATTEMPTS: u32 = 64;

/// How much of what a holder says of itself is read, in bytes.
const LONGEST_HOLDER: u64 = 1024;

/// How many characters of the hash of a session's id name its lock file.
const NAME_LENGTH: usize = 32;

/// A lock that is held. Dropping it takes its file away and lets go, in this order.
#[derive(Debug)]
pub(crate) struct FileLock {
    path: PathBuf,
    // Closing it unlocks it.
    _file: File,
}

impl SessionLock for FileLock {}

impl Drop for FileLock {
    fn drop(&mut self) {
        // A file that stays behind is in nobody's way: the lock is the kernel's, not the file's presence.
        let _ = fs::remove_file(&self.path);
    }
}

pub(crate) fn directory(store: &Path) -> PathBuf {
    let mut path = store.as_os_str().to_owned();
    path.push(".locks");
    path.into()
}

/// The name of a session's lock file. A session's id may be any text; a hash is a name everywhere.
pub(crate) fn file_name(id: &str) -> String {
    let digits = Sha256::digest(id.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("{}.lock", digits.chars().take(NAME_LENGTH).collect::<String>())
}

/// Takes the lock of a session, at once or not at all.
/// Errors: [`StoreError::Held`] with what the holder says of itself.
pub(crate) fn take(store: &str, directory: &Path, id: &str, holder: &str) -> Result<FileLock, StoreError> {
    let report = |error: io::Error| error::io(store, &error);
    private_directory(directory).map_err(report)?;
    let path = directory.join(file_name(id));
    for _ in 0..ATTEMPTS {
        let mut file = private_file(&path).map_err(report)?;
        match file.try_lock() {
            Ok(()) if leads_to(&path, &file) => {
                file.set_len(0).and_then(|()| file.write_all(holder.as_bytes())).map_err(report)?;
                return Ok(FileLock { path, _file: file });
            }
            // The one before has taken this file away: what is locked here, nobody else will find.
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
    match file.take(LONGEST_HOLDER).read_to_end(&mut bytes) {
        Ok(length) if length > 0 => String::from_utf8_lossy(&bytes).into_owned(),
        // It holds the lock, but has not written yet.
        _ => "another process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_id_makes_a_file_name_of_its_own() {
        let ids = ["", "a", "A", "../../etc/passwd", "林\0", &"x".repeat(1 << 16)];
        let names: std::collections::HashSet<_> = ids.iter().map(|id| file_name(id)).collect();
        assert_eq!(names.len(), ids.len());
        for name in names {
            assert!(name.len() == 37 && name.ends_with(".lock"), "{name}");
        }
    }

    #[test]
    fn a_file_left_by_a_killed_process_holds_nobody_up() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(file_name("s")), "process 1, long dead").unwrap();
        let lock = take("store", home.path(), "s", "me").unwrap();
        assert_eq!(fs::read_to_string(home.path().join(file_name("s"))).unwrap(), "me");
        drop(lock);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
    }

    #[test]
    fn many_threads_never_hold_one_session_together() {
        let home = tempfile::tempdir().unwrap();
        let inside = std::sync::atomic::AtomicUsize::new(0);
        let taken = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let Ok(lock) = take("store", home.path(), "s", "me") else { continue };
                        assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                        taken.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                        drop(lock);
                    }
                });
            }
        });
        assert!(taken.into_inner() > 0);
    }
}
