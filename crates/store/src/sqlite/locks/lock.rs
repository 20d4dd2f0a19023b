//! Session locks. A lock is a file that names its owner, and ends with the owner: a process has one locked file
//! ([`crate::sqlite::locks::owner`]) for all its locks, so that it can have thousands.
//!
//! The file of a lock is itself locked only while a process looks at it and changes it, so that one process at a time decides whether the
//! lock is free. Nothing is synced: after a power failure every owner is dead. Releases that kept the file of a lock open as long as the
//! lock lasted are respected, and respect these locks, whose files they reject as too large.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crate::content_hash::hash;
use crate::contract::{LockNotice, LockReply, LockRequest, SessionLock};
use crate::error::StoreError;
use crate::lock_signals::LockSignals;
use crate::sqlite::disk::{MAX_LOCK_BYTES, existing_lock_file, is_same_file, lock_file, private_directory, sibling};
use crate::sqlite::error;
use crate::sqlite::locks::holder::Waits;
use crate::sqlite::locks::inbox;
use crate::sqlite::locks::owner::{self, LockOwner};

/// The maximum number of attempts while a previous holder keeps removing the lock file during its release, or ends.
const MAX_ATTEMPTS: u32 = 1024;

/// The pause between two attempts while a process that is ending holds the lock, or another one is looking at it.
const RELEASE_PAUSE: Duration = Duration::from_millis(5);

/// How often a process that waits for news of a lock looks whether it still has it.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// The number of characters of the hash of a session's id in the name of its lock file.
const NAME_LENGTH: usize = 32;

/// The start of a lock file that names its owner.
const OWNED: &str = "owner ";

/// The minimum size of a lock file that names its owner, in bytes: more than the 1024 that earlier releases accept, which would otherwise
/// take the lock, because the file itself is not locked.
const OWNED_BYTES: usize = 1100;

/// The maximum length of the description of a holder that is stored, in bytes.
const MAX_HOLDER_BYTES: usize = 1024;

/// The locks of a store, as one process has them.
#[derive(Debug)]
pub(crate) struct SessionLocks {
    store: String,
    directory: PathBuf,
    /// Exists since the first lock.
    owner: Mutex<Option<Arc<LockOwner>>>,
    /// Whether other processes can ask this one for its locks.
    listens: AtomicBool,
}

/// An acquired lock. Dropping it releases it and removes its file.
#[derive(Debug)]
pub(crate) struct FileLock {
    path: PathBuf,
    owner: Arc<LockOwner>,
    number: u64,
    signals: Arc<LockSignals>,
}

/// What is in a lock file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LockText {
    /// The token of the owner, and the number of the lock among its locks; `None` in the file of an earlier release.
    owner: Option<(String, u64)>,
    /// The description of the holder.
    pub(crate) holder: String,
}

/// What became of an attempt to acquire a lock.
enum Attempt {
    Acquired(FileLock),
    Held {
        holder: String,
    },
    /// The previous holder has removed the file, so no other process would find this lock.
    Removed,
}

#[async_trait]
impl SessionLock for FileLock {
    /// [`LockNotice::Lost`] if the file of the lock, its owner's, or their directory was removed or replaced: another process can then
    /// acquire the lock.
    async fn notice(&self) -> LockNotice {
        let lost = async {
            loop {
                tokio::time::sleep(CHECK_INTERVAL).await;
                if self.is_gone() {
                    return LockNotice::Lost;
                }
            }
        };
        tokio::select! {
            notice = self.signals.notice() => notice,
            notice = lost => notice,
        }
    }

    async fn interrupted(&self) {
        self.signals.interrupted().await;
    }

    fn set_busy(&self, is_busy: bool) {
        self.signals.set_busy(is_busy);
    }
}

impl FileLock {
    /// Whether other processes do not find this lock any more.
    fn is_gone(&self) -> bool {
        let is_other = match existing_lock_file(&self.path).and_then(|file| LockText::read(&file)) {
            Ok(text) => !text.is_of(self.owner.token(), self.number),
            // The process may have too many open files, which says nothing about the lock.
            Err(error) => matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput),
        };
        is_other || !self.owner.is_present()
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        if let Some(inbox) = self.owner.inbox() {
            inbox.remove(&self.path, &self.signals);
        }
        // If the directory was replaced, the path leads to the lock of another process. As long as the owner's file is there, no other
        // process changes the file of this lock.
        if !self.is_gone() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

pub(crate) fn directory(store: &Path) -> PathBuf {
    sibling(store, ".locks")
}

/// The name of a session's lock file. The id of a session may be any text; its hash is a valid file name on every system.
pub(crate) fn file_name(id: &str) -> String {
    format!("{}.lock", hash(id).chars().take(NAME_LENGTH).collect::<String>())
}

/// Rejects a link in the place of the directory of locks, which could lead anywhere.
pub(crate) fn reject_linked(directory: &Path) -> Result<(), StoreError> {
    if directory.is_symlink() {
        return Err(not_a_lock(directory));
    }
    Ok(())
}

fn not_a_lock(path: &Path) -> StoreError {
    StoreError::NotALock { lock: path.display().to_string() }
}

impl SessionLocks {
    /// The locks of `store`, as the user wrote its path, in `directory`.
    pub(crate) fn new(store: &str, directory: &Path) -> Self {
        let (store, directory) = (store.to_owned(), directory.to_owned());
        Self { store, directory, owner: Mutex::default(), listens: AtomicBool::new(false) }
    }

    /// From now on, other processes can ask this one for its locks.
    pub(crate) fn listen(&self) {
        self.listens.store(true, Ordering::Release);
    }

    /// Asks the process that has the lock of a session for it.
    pub(crate) fn ask_for(&self, id: &str, request: LockRequest) -> Result<LockReply, StoreError> {
        reject_linked(&self.directory)?;
        let path = self.directory.join(file_name(id));
        let asked = || {
            let text = match existing_lock_file(&path) {
                Ok(file) => LockText::read(&file)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(LockReply::Asked),
                Err(error) => return Err(error),
            };
            match &text.owner {
                Some((token, _)) if owner::is_alive(&self.directory, token)? => {
                    inbox::ask(&self.directory, token, &path, request)
                }
                Some(_) => Ok(LockReply::Asked),
                // An earlier release, or a process that has not written its name yet, which is asked the next time.
                None if text == LockText::unknown() => Ok(LockReply::Asked),
                None => Ok(LockReply::Impossible),
            }
        };
        asked().map_err(|error: io::Error| error::io(&self.store, &error))
    }

    /// Acquires the lock of a session without waiting for a process that runs.
    /// Errors: [`StoreError::Held`] with the description of the holder.
    pub(crate) fn acquire(&self, id: &str, holder: &str) -> Result<FileLock, StoreError> {
        self.acquire_with(id, holder, &mut || std::thread::sleep(RELEASE_PAUSE))
    }

    /// [`SessionLocks::acquire`] with this pause between two attempts.
    fn acquire_with(&self, id: &str, holder: &str, pause: &mut dyn FnMut()) -> Result<FileLock, StoreError> {
        reject_linked(&self.directory)?;
        private_directory(&self.directory).map_err(|error| error::io(&self.store, &error))?;
        let path = self.directory.join(file_name(id));
        let mut waits = Waits::default();
        for _ in 0..MAX_ATTEMPTS {
            let attempt = self.attempt(&path, holder).map_err(|error| match error.kind() {
                io::ErrorKind::InvalidInput => not_a_lock(&path),
                _ => error::io(&self.store, &error),
            })?;
            match attempt {
                Attempt::Acquired(lock) => return Ok(lock),
                Attempt::Removed => {}
                Attempt::Held { holder } if !waits.once_more(&holder) => {
                    return Err(StoreError::Held { store: self.store.clone(), id: id.to_owned(), holder });
                }
                Attempt::Held { .. } => pause(),
            }
        }
        Err(StoreError::Busy { store: self.store.clone() })
    }

    fn attempt(&self, path: &Path, holder: &str) -> io::Result<Attempt> {
        let mut file = lock_file(path)?;
        match file.try_lock() {
            Ok(()) if is_same_file(path, &file) => {}
            Ok(()) => return Ok(Attempt::Removed),
            // A process of an earlier release has the lock, or another process is looking at it.
            Err(TryLockError::WouldBlock) => {
                // Some systems do not let others read a locked file.
                let holder = LockText::read(&file).map_or_else(|_| LockText::unknown().holder, |text| text.holder);
                return Ok(Attempt::Held { holder });
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let found = LockText::read(&file)?;
        if let Some((token, _)) = &found.owner {
            if owner::is_alive(&self.directory, token)? {
                return Ok(Attempt::Held { holder: found.holder });
            }
            owner::remove_dead(&self.directory, token);
        }
        let owner = self.owner()?;
        let number = owner.next_lock();
        if let Err(error) = LockText::write(&mut file, owner.token(), number, holder) {
            // It may name this owner, which does not have the lock.
            let _ = file.set_len(0);
            return Err(error);
        }
        let signals = Arc::default();
        if let Some(inbox) = owner.inbox() {
            inbox.add(path, &signals);
        }
        Ok(Attempt::Acquired(FileLock { path: path.to_owned(), owner, number, signals }))
    }

    /// The owner of the locks of this process: a new one if there is none, or if other processes cannot find it any more.
    fn owner(&self) -> io::Result<Arc<LockOwner>> {
        let mut owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(owner) = owner.as_ref().filter(|owner| owner.is_present()) {
            return Ok(Arc::clone(owner));
        }
        let new = Arc::new(LockOwner::new(&self.directory, self.listens.load(Ordering::Acquire))?);
        *owner = Some(Arc::clone(&new));
        Ok(new)
    }
}

impl LockText {
    /// The text of a lock file.
    pub(crate) fn parse(text: &str) -> Self {
        let owned = || {
            let (first, rest) = text.strip_prefix(OWNED)?.split_once('\n')?;
            let (token, number) = first.split_once(' ')?;
            // The end of the text tells that it was written completely.
            let holder = rest.strip_suffix('\n')?.trim_end_matches(' ');
            let owner = owner::is_token(token).then(|| number.parse().ok().map(|number| (token.into(), number)));
            Some(Self { owner: Some(owner??), holder: holder.to_owned() })
        };
        owned().unwrap_or_else(|| Self { owner: None, holder: text.to_owned() })
    }

    /// Of a holder that has the lock but has not written its description yet.
    fn unknown() -> Self {
        Self { owner: None, holder: "another process".to_owned() }
    }

    fn read(file: &File) -> io::Result<Self> {
        let mut bytes = Vec::new();
        let length = file.take(MAX_LOCK_BYTES).read_to_end(&mut bytes)?;
        Ok(if length > 0 { Self::parse(&String::from_utf8_lossy(&bytes)) } else { Self::unknown() })
    }

    fn write(file: &mut File, token: &str, number: u64, holder: &str) -> io::Result<()> {
        let holder = holder.get(..holder.floor_char_boundary(MAX_HOLDER_BYTES)).unwrap_or_default();
        let text = format!("{OWNED}{token} {number}\n{holder}");
        let text = format!("{text:OWNED_BYTES$}\n");
        file.rewind()?;
        file.write_all(text.as_bytes())?;
        // Not before: some file systems write a file to the disk if it was emptied and filled again.
        file.set_len(text.len().try_into().unwrap_or(u64::MAX))
    }

    fn is_of(&self, owner: &str, lock: u64) -> bool {
        self.owner.as_ref().is_some_and(|(token, number)| token == owner && *number == lock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::locks::holder::is_running;

    fn locks(directory: &Path) -> SessionLocks {
        SessionLocks::new("store", directory)
    }

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
        let path = directory.path().join(file_name("s"));
        let dead = format!("{OWNED}{} 3\nlong dead\n", "0".repeat(owner::TOKEN_LENGTH));
        for left in ["process 1, long dead", "", "owner ", &"x".repeat(1500), &dead] {
            fs::write(&path, left).unwrap();
            let locks = locks(directory.path());
            let lock = locks.acquire("s", "me").unwrap();
            assert_eq!(LockText::parse(&fs::read_to_string(&path).unwrap()).holder, "me", "{left:?}");
            drop((lock, locks));
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "{left:?}");
        }
    }

    #[test]
    fn the_description_of_a_holder_is_read_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let locks = locks(directory.path());
        for (holder, read) in [("", ""), ("a\nb", "a\nb"), (&"林".repeat(2000), &*"林".repeat(341))] {
            let lock = locks.acquire("s", holder).unwrap();
            let Err(StoreError::Held { holder: found, .. }) = locks.acquire("s", "me") else { panic!() };
            assert_eq!(found, read);
            let length = fs::metadata(&lock.path).unwrap().len();
            // More than an earlier release accepts, and not more than this one does.
            assert!((1025..=MAX_LOCK_BYTES).contains(&length), "{length}");
        }
    }

    #[test]
    fn the_lock_of_an_earlier_release_is_respected_as_long_as_its_process_holds_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(file_name("s"));
        let mut earlier = lock_file(&path).unwrap();
        earlier.lock().unwrap();
        earlier.write_all(b"an earlier release").unwrap();
        let locks = locks(directory.path());
        let Err(StoreError::Held { holder, .. }) = locks.acquire("s", "me") else { panic!() };
        assert_eq!(holder, "an earlier release");
        assert_eq!(fs::read_to_string(&path).unwrap(), holder);
        drop(earlier);
        locks.acquire("s", "me").unwrap();
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
            let mut held = Some(locks(directory.path()).acquire("s", &holder).unwrap());
            let mut pauses = 0;
            let acquired = locks(directory.path()).acquire_with("s", "me", &mut || {
                pauses += 1;
                // The system releases the locks of a process that is gone after a while.
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
        let home = tempfile::tempdir().unwrap();
        let (directory, moved) = (home.path().join("locks"), home.path().join("moved"));
        let (own, another) = (locks(&directory), locks(&directory));
        let lock = own.acquire("s", "me").unwrap();
        fs::rename(&directory, moved).unwrap();
        let other = another.acquire("s", "another").unwrap();
        assert!(lock.is_gone() && !other.is_gone());
        drop(lock);
        assert!(matches!(own.acquire("s", "me"), Err(StoreError::Held { .. })));
        // Its next locks are in the new directory.
        let next = own.acquire("t", "me").unwrap();
        assert!(matches!(another.acquire("t", "another"), Err(StoreError::Held { .. })));
        drop((other, next));
        own.acquire("s", "me").unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn the_loss_of_a_lock_is_noticed() {
        type Lose = fn(&Path, &FileLock);
        let losses: [(&str, Lose); 4] = [
            ("the directory is gone", |directory, _| fs::remove_dir_all(directory).unwrap()),
            ("the file of the lock is gone", |_, lock| fs::remove_file(&lock.path).unwrap()),
            ("another process has the lock", |directory, lock| {
                fs::remove_file(&lock.path).unwrap();
                std::mem::forget(locks(directory).acquire("s", "another").unwrap());
            }),
            ("the owner is gone", |directory, _| {
                for path in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
                    if path.extension().is_some_and(|extension| extension == "owner") {
                        fs::remove_file(path).unwrap();
                    }
                }
                std::mem::forget(locks(directory).acquire("s", "another").unwrap());
            }),
        ];
        for (what, lose) in losses {
            let home = tempfile::tempdir().unwrap();
            let directory = home.path().join("locks");
            let own = locks(&directory);
            let lock = own.acquire("s", "me").unwrap();
            let hour = Duration::from_secs(3600);
            assert!(tokio::time::timeout(hour, lock.notice()).await.is_err(), "{what}: nothing is lost yet");
            lose(&directory, &lock);
            assert_eq!(lock.notice().await, LockNotice::Lost, "{what}");
            drop(lock);
            if what.starts_with("another") || what.starts_with("the owner") {
                assert!(matches!(own.acquire("s", "me"), Err(StoreError::Held { .. })), "{what}");
            }
        }
    }

    #[test]
    fn only_one_thread_holds_the_lock_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let active = std::sync::atomic::AtomicUsize::new(0);
        let acquired = std::sync::atomic::AtomicUsize::new(0);
        let shared = locks(directory.path());
        std::thread::scope(|scope| {
            for number in 0..8 {
                let (shared, active, acquired, directory) = (&shared, &active, &acquired, &directory);
                scope.spawn(move || {
                    for _ in 0..200 {
                        // With the owner of others, with one that lives on, and with one that ends like that of a process.
                        let own = (number > 3).then(|| locks(directory.path()));
                        let Ok(lock) = own.as_ref().unwrap_or(shared).acquire("s", "me") else { continue };
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
