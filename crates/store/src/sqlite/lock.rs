//! Session locks: locked files, which the kernel unlocks when the process ends for any reason.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::contract::SessionLock;
use crate::error::StoreError;
use crate::sqlite::disk::{MAX_LOCK_BYTES, is_same_file, lock_file, private_directory, sibling};
use crate::sqlite::error;

/// The maximum number of attempts while a previous holder keeps removing the lock file during its release, or ends.
const MAX_ATTEMPTS: u32 = 1024;

/// The maximum number of attempts while a process that is ending holds the lock, and the pause between two of them. A killed
/// process holds its locks until the system has removed its memory.
const MAX_RELEASE_ATTEMPTS: u32 = 1000;
const RELEASE_PAUSE: Duration = Duration::from_millis(5);

/// The number of characters of the hash of a session's id in the name of its lock file.
const NAME_LENGTH: usize = 32;

/// An acquired lock. Dropping it removes its file and then releases the lock.
#[derive(Debug)]
pub(crate) struct FileLock {
    path: PathBuf,
    // Closing the file releases the lock.
    file: File,
}

impl SessionLock for FileLock {}

impl Drop for FileLock {
    fn drop(&mut self) {
        // If the directory was replaced, the path leads to the lock of another process.
        if is_same_file(&self.path, &self.file) {
            // A leftover file does no harm: the lock is held by the kernel, not by the existence of the file.
            let _ = fs::remove_file(&self.path);
        }
    }
}

pub(crate) fn directory(store: &Path) -> PathBuf {
    sibling(store, ".locks")
}

/// The name of a session's lock file. The id of a session may be any text; its hash is a valid file name on every system.
pub(crate) fn file_name(id: &str) -> String {
    let digits = Sha256::digest(id.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("{}.lock", digits.chars().take(NAME_LENGTH).collect::<String>())
}

/// Rejects a link in the place of the directory of locks, which could lead anywhere.
pub(crate) fn reject_linked(directory: &Path) -> Result<(), StoreError> {
    if directory.is_symlink() {
        return Err(StoreError::NotALock { lock: directory.display().to_string() });
    }
    Ok(())
}

/// Acquires the lock of a session without waiting for a process that runs.
/// Errors: [`StoreError::Held`] with the description of the holder.
pub(crate) fn acquire(store: &str, directory: &Path, id: &str, holder: &str) -> Result<FileLock, StoreError> {
    acquire_with(store, directory, id, holder, &mut || std::thread::sleep(RELEASE_PAUSE))
}

/// [`acquire`] with this pause between two attempts.
fn acquire_with(
    store: &str,
    directory: &Path,
    id: &str,
    holder: &str,
    pause: &mut dyn FnMut(),
) -> Result<FileLock, StoreError> {
    let report = |error: io::Error| error::io(store, &error);
    reject_linked(directory)?;
    private_directory(directory).map_err(report)?;
    let path = directory.join(file_name(id));
    let mut waits = Waits::default();
    for _ in 0..MAX_ATTEMPTS {
        let mut file = lock_file(&path).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => StoreError::NotALock { lock: path.display().to_string() },
            _ => report(error),
        })?;
        match file.try_lock() {
            Ok(()) if is_same_file(&path, &file) => {
                file.set_len(0).and_then(|()| file.write_all(holder.as_bytes())).map_err(report)?;
                return Ok(FileLock { path, file });
            }
            // The previous holder has removed this file, so no other process would find this lock: try again.
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = read_holder(file);
                if !waits.once_more(&holder) {
                    return Err(StoreError::Held { store: store.to_owned(), id: id.to_owned(), holder });
                }
                pause();
            }
            Err(TryLockError::Error(error)) => return Err(report(error)),
        }
    }
    Err(StoreError::Busy { store: store.to_owned() })
}

/// How often a lock was found held.
#[derive(Default)]
struct Waits {
    total: u32,
    /// Whether its holder ran the last time.
    was_running: bool,
}

impl Waits {
    /// Whether to try again: the holder is ending, or may have begun to end while its state was read.
    fn once_more(&mut self, holder: &str) -> bool {
        self.total += 1;
        let is_running = process_of(holder).is_none_or(is_running);
        let once_more = self.total <= MAX_RELEASE_ATTEMPTS && !(is_running && self.was_running);
        self.was_running = is_running;
        once_more && process_of(holder) != Some(std::process::id())
    }
}

/// The process that a holder describes.
fn process_of(holder: &str) -> Option<u32> {
    holder.strip_prefix("pid ")?.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Whether a process exists and is not about to end.
fn is_running(process: u32) -> bool {
    let Ok(pid) = i32::try_from(process) else { return false };
    let exists = rustix::process::Pid::from_raw(pid).is_some_and(|pid| {
        // Without the permission to send a signal, there is a process.
        rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH)
    });
    exists && !is_ending(process)
}

/// Whether Linux says that a process is ending; other systems do not say.
fn is_ending(process: u32) -> bool {
    /// The flag of a process that is ending, and the bit of SIGKILL among pending signals.
    const EXITING: u64 = 0x4;
    const KILLED: u64 = 1 << 8;
    // The name of the program, which may contain any character, is in parentheses.
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields: Vec<&str> =
        stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default();
    let is_dead = fields.first().is_some_and(|state| matches!(*state, "Z" | "X" | "x"));
    let is_exiting =
        fields.get(6).and_then(|flags| flags.parse::<u64>().ok()).is_some_and(|flags| flags & EXITING != 0);
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let is_killed = status
        .lines()
        .filter_map(|line| line.strip_prefix("SigPnd:").or_else(|| line.strip_prefix("ShdPnd:")))
        .filter_map(|signals| u64::from_str_radix(signals.trim(), 16).ok())
        .any(|signals| signals & KILLED != 0);
    is_dead || is_exiting || is_killed
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

    /// A process that has ended and was waited for.
    fn ended_process() -> u32 {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    }

    #[test]
    fn the_lock_of_a_process_that_is_gone_is_waited_for_and_that_of_a_running_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let running = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let zombie = std::process::Command::new("true").spawn().unwrap();
        while is_running(zombie.id()) {
            std::thread::yield_now();
        }
        let cases = [
            (format!("pid {} (now)", ended_process()), true),
            (format!("pid {}", zombie.id()), true),
            (format!("pid {} (now)", running.id()), false),
            (format!("pid {}", std::process::id()), false),
            ("somebody".to_owned(), false),
        ];
        for (holder, is_gone) in cases {
            let mut held = Some(acquire("store", directory.path(), "s", &holder).unwrap());
            let mut pauses = 0;
            let acquired = acquire_with("store", directory.path(), "s", "me", &mut || {
                pauses += 1;
                // The system releases the lock of a process that is gone after a while.
                if pauses == 10 {
                    held = None;
                }
            });
            assert_eq!(acquired.is_ok(), is_gone, "{holder}: {acquired:?}, {pauses}");
            assert!(is_gone || pauses <= 1, "{holder}: {pauses}");
        }
        for mut child in [running, zombie] {
            let _ = child.kill();
            child.wait().unwrap();
        }
    }

    #[test]
    fn a_lock_in_a_directory_that_was_replaced_removes_no_lock_of_another_process() {
        let directory = tempfile::tempdir().unwrap();
        let (locks, moved) = (directory.path().join("locks"), directory.path().join("moved"));
        let lock = acquire("store", &locks, "s", "me").unwrap();
        fs::rename(&locks, moved).unwrap();
        let other = acquire("store", &locks, "s", "another").unwrap();
        drop(lock);
        assert!(matches!(acquire("store", &locks, "s", "me"), Err(StoreError::Held { .. })));
        drop(other);
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
