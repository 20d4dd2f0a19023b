//! The file of a process that locks sessions. The kernel unlocks it when the process ends for any reason, and this ends the locks of all its
//! sessions: there is no time of expiry, and nothing to renew.

use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sqlite::disk::{NOT_A_LOCK, existing_lock_file, is_same_file, new_private_file};
use crate::sqlite::locks::inbox::{self, LockInbox};

/// What the names of these files end with.
const EXTENSION: &str = "owner";

/// The number of characters of a token.
pub(crate) const TOKEN_LENGTH: usize = 32;

/// The maximum number of attempts to create a file: another process may look at it before it is locked, and remove it.
const MAX_ATTEMPTS: u32 = 64;

/// An owner of locks that lives as long as this value and its process.
#[derive(Debug)]
pub(crate) struct LockOwner {
    token: String,
    path: PathBuf,
    // Closing the file unlocks it.
    file: File,
    /// The number of locks that this owner has had.
    locks: AtomicU64,
    /// Where other processes ask for its locks, if they can.
    inbox: Option<LockInbox>,
}

impl LockOwner {
    /// A new owner, with a file in the directory of locks. With `listens`, other processes can ask it for its locks.
    pub(crate) fn new(directory: &Path, listens: bool) -> io::Result<Self> {
        let mut owner = Self::silent(directory)?;
        // Not before its file exists: an inbox without an owner is removed.
        owner.inbox = listens.then(|| LockInbox::open(directory, &owner.token)).transpose()?;
        Ok(owner)
    }

    fn silent(directory: &Path) -> io::Result<Self> {
        for _ in 0..MAX_ATTEMPTS {
            let token = new_token();
            let path = path_of(directory, &token);
            let file = match new_private_file(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                created => created?,
            };
            match file.try_lock() {
                Ok(()) if is_same_file(&path, &file) => {
                    return Ok(Self { token, path, file, locks: AtomicU64::new(0), inbox: None });
                }
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => {
                    let _ = fs::remove_file(&path);
                    return Err(error);
                }
            }
        }
        Err(io::ErrorKind::ResourceBusy.into())
    }

    /// Identifies it among all owners, also those of other processes and of earlier ones.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// The number of a new lock of this owner.
    pub(crate) fn next_lock(&self) -> u64 {
        self.locks.fetch_add(1, Ordering::Relaxed)
    }

    /// Where other processes ask for its locks, if they can.
    pub(crate) fn inbox(&self) -> Option<&LockInbox> {
        self.inbox.as_ref()
    }

    /// Whether other processes find this owner: its file, or the directory of locks, was not removed or replaced.
    pub(crate) fn is_present(&self) -> bool {
        is_same_file(&self.path, &self.file)
    }
}

impl Drop for LockOwner {
    fn drop(&mut self) {
        if self.is_present() {
            // A leftover file does no harm: the kernel holds the lock.
            let _ = fs::remove_file(&self.path);
        }
    }
}

pub(crate) fn new_token() -> String {
    // Each state has other keys, so that its hash is as good as a random number.
    let random = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", random(), random())
}

fn path_of(directory: &Path, token: &str) -> PathBuf {
    directory.join(token).with_extension(EXTENSION)
}

/// Whether the owner with this token lives. An owner that is dead stays dead.
///
/// # Errors
/// `InvalidInput` with [`NOT_A_LOCK`] if there is something else in the place of its file.
pub(crate) fn is_alive(directory: &Path, token: &str) -> io::Result<bool> {
    let path = path_of(directory, token);
    match existing_lock_file(&path) {
        // A shared lock, so that several processes can look at the same time.
        Ok(file) => match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(_) if path.symlink_metadata().is_ok_and(|found| !found.is_file()) => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, NOT_A_LOCK))
        }
        Err(error) => Err(error),
    }
}

/// Removes the file of an owner if it is dead.
pub(crate) fn remove_dead(directory: &Path, token: &str) {
    let path = path_of(directory, token);
    if let Ok(file) = existing_lock_file(&path)
        // Held until the file is gone, so that a new owner that has not locked its file yet notices.
        && file.try_lock_shared().is_ok()
    {
        let _ = fs::remove_file(&path);
        remove_inbox(directory, token);
    }
}

/// Removes what others have asked an owner that is dead. `remove_dir_all` follows no link.
fn remove_inbox(directory: &Path, token: &str) {
    let _ = fs::remove_dir_all(inbox::path_of(directory, token));
}

/// Removes the files of all dead owners.
pub(crate) fn remove_all_dead(directory: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let Some(token) = path.file_stem().and_then(|stem| stem.to_str()).filter(|token| is_token(token)) else {
            continue;
        };
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            remove_dead(directory, token);
        } else if path.extension().is_some_and(|extension| extension == inbox::EXTENSION)
            && is_alive(directory, token).is_ok_and(|is_alive| !is_alive)
        {
            remove_inbox(directory, token);
        }
    }
}

/// Whether a text, which may come from a file of someone else, is a token.
pub(crate) fn is_token(text: &str) -> bool {
    text.len() == TOKEN_LENGTH && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_lives_until_it_is_dropped_and_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let owner = LockOwner::new(directory.path(), false).unwrap();
        let token = owner.token().to_owned();
        assert!(is_token(&token) && is_alive(directory.path(), &token).unwrap());
        // Two that look at the same time do not take each other for the owner.
        let file = existing_lock_file(&path_of(directory.path(), &token)).unwrap();
        remove_all_dead(directory.path());
        assert!(owner.is_present() && is_alive(directory.path(), &token).unwrap());
        drop(owner);
        file.try_lock_shared().unwrap();
        assert!(!is_alive(directory.path(), &token).unwrap());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn files_of_dead_owners_are_removed_and_no_others() {
        let directory = tempfile::tempdir().unwrap();
        let owner = LockOwner::new(directory.path(), false).unwrap();
        fs::write(path_of(directory.path(), &new_token()), "").unwrap();
        fs::write(directory.path().join("mine.owner"), "").unwrap();
        fs::write(directory.path().join("store.open"), "").unwrap();
        remove_all_dead(directory.path());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3);
        assert!(owner.is_present());
    }

    #[test]
    fn what_others_asked_a_dead_owner_is_removed_and_that_of_a_living_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let owner = LockOwner::new(directory.path(), true).unwrap();
        let left = inbox::path_of(directory.path(), &new_token());
        fs::create_dir(&left).unwrap();
        fs::write(left.join("a.release"), "").unwrap();
        remove_all_dead(directory.path());
        assert!(!left.exists() && inbox::path_of(directory.path(), owner.token()).exists());
        drop(owner);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn many_owners_that_begin_while_dead_ones_are_removed_all_live() {
        let directory = tempfile::tempdir().unwrap();
        let is_done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::SeqCst) {
                    remove_all_dead(directory.path());
                }
            });
            let begin = || {
                for _ in 0..200 {
                    let owner = LockOwner::new(directory.path(), false).unwrap();
                    assert!(owner.is_present() && is_alive(directory.path(), owner.token()).unwrap());
                }
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(begin)).collect();
            let ended = threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect::<Vec<_>>();
            is_done.store(true, Ordering::SeqCst);
            assert!(ended.iter().all(Result::is_ok), "{ended:?}");
        });
    }
}
