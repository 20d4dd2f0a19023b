//! Tells a process that opens a store whether another one has it open: only a store that is not in use can be checked after
//! an unclean end, because a process that writes changes its log at any time.
//!
//! These are locks of the operating system on files of the directory with the locks, which end with their process.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::error::StoreError;
use crate::sqlite::disk::{existing_lock_file, lock_file, private_directory};
use crate::sqlite::error;
use crate::sqlite::locks::lock::reject_linked;

/// The lock of a process that is opening the store.
const OPENING: &str = "store.opening";

/// The lock that all processes share that have the store open for writing.
const OPEN: &str = "store.open";

/// The time that a process waits until another one has opened the store, which may have to be checked, and the pause
/// between two attempts.
const OPENING_TIMEOUT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(10);

/// A store that is being opened. No other process opens it in the meantime.
pub(crate) struct OpeningStore {
    opening: File,
    open: File,
    /// Whether no other connection of this program has it open.
    pub(crate) is_alone: bool,
}

/// A store that is open. Dropping it ends this.
#[derive(Debug)]
pub(crate) struct InUse {
    _open: File,
}

impl OpeningStore {
    /// Starts to open the store with locks in `directory`, which is created.
    pub(crate) fn start(directory: &Path, store: &str) -> Result<Self, StoreError> {
        reject_linked(directory)?;
        private_directory(directory).map_err(|error| error::io(store, &error))?;
        Self::with(store, |name| lock_file(&directory.join(name))).map_err(|error| error.into_store_error(store))
    }

    /// [`OpeningStore::start`] to read the store: creates nothing. `None` if no process has opened the store for writing.
    pub(crate) fn start_reading(directory: &Path, store: &str) -> Result<Option<Self>, StoreError> {
        reject_linked(directory)?;
        match Self::with(store, |name| existing_lock_file(&directory.join(name))) {
            Ok(opening) => Ok(Some(opening)),
            Err(LockFailure::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into_store_error(store)),
        }
    }

    fn with(store: &str, file: impl Fn(&str) -> io::Result<File>) -> Result<Self, LockFailure> {
        let opening = file(OPENING)?;
        let mut waited = Duration::ZERO;
        while !try_lock(&opening)? {
            if waited >= OPENING_TIMEOUT {
                return Err(LockFailure::Store(StoreError::Busy { store: store.to_owned() }));
            }
            std::thread::sleep(PAUSE);
            waited += PAUSE;
        }
        let open = file(OPEN)?;
        let is_alone = try_lock(&open)?;
        Ok(Self { opening, open, is_alone })
    }

    /// The store is open.
    pub(crate) fn finish(self, store: &str) -> Result<InUse, StoreError> {
        // This may release the lock before it is acquired again; `opening` ensures that no other process finds the store
        // unused in between.
        self.open.lock_shared().map_err(|error| error::io(store, &error))?;
        drop(self.opening);
        Ok(InUse { _open: self.open })
    }
}

/// Why a store cannot be opened now.
enum LockFailure {
    Io(io::Error),
    Store(StoreError),
}

impl From<io::Error> for LockFailure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl LockFailure {
    fn into_store_error(self, store: &str) -> StoreError {
        match self {
            Self::Io(error) => error::io(store, &error),
            Self::Store(error) => error,
        }
    }
}

/// Whether the exclusive lock of the file was acquired.
fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
