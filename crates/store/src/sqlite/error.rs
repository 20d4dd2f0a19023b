//! Converts errors of SQLite and of the operating system to [`StoreError`]. Their own messages are not passed on: they
//! may quote the data to be written.

use bcc_lang::message::library::library;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::io;

use rusqlite::{Error, ErrorCode};

use crate::error::StoreError;

/// `SQLITE_IOERR_SHMSIZE`: the index of the write-ahead log could not grow. This may be the first sign of a full disk.
const IOERR_SHMSIZE: i32 = 10 | (19 << 8);

/// The reason for rejecting a file that is not a database.
pub(crate) const NOT_SQLITE: &str = "it is not an SQLite file";

/// Why an operation on a store failed: an error of SQLite, or a check of the store.
#[derive(Debug)]
pub(crate) enum Failure {
    Sqlite(Error),
    Store(StoreError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Failure {
    /// The error for the store at this path.
    pub(crate) fn into_store_error(self, store: &str) -> StoreError {
        match self {
            Self::Store(error) => error,
            Self::Sqlite(error) => sqlite(store, &error),
        }
    }
}

pub(crate) fn sqlite(store: &str, error: &Error) -> StoreError {
    let store = store.to_owned();
    let damaged = |reason: &'static str| StoreError::Corrupt { store: store.clone(), reason: Message::word(reason) };
    match error {
        Error::FromSqlConversionFailure(..) | Error::InvalidColumnType(..) | Error::Utf8Error(..) => {
            damaged("a row contains invalid data")
        }
        Error::IntegralValueOutOfRange(..) => damaged("a row contains a number that is out of range"),
        Error::ToSqlConversionFailure(_) => StoreError::TooLarge { store },
        _ => match error.sqlite_error().map(|error| (error.code, error.extended_code)) {
            Some((ErrorCode::NotADatabase, _)) => damaged(NOT_SQLITE),
            Some((ErrorCode::DatabaseCorrupt, _)) => damaged("the file is damaged"),
            Some((ErrorCode::ReadOnly, _)) => StoreError::ReadOnly { store },
            Some((ErrorCode::DiskFull, _) | (_, IOERR_SHMSIZE)) => StoreError::Full { store },
            Some((ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed, _)) => {
                StoreError::Busy { store }
            }
            Some((ErrorCode::CannotOpen | ErrorCode::PermissionDenied, _)) => StoreError::Denied { store },
            Some((ErrorCode::TooBig, _)) => StoreError::TooLarge { store },
            Some((code, extended)) => StoreError::Io { store, reason: msg!("SQLite reports {code:?}, {extended}") },
            None => StoreError::Io { store, reason: Message::word("SQLite was used incorrectly; please report it") },
        },
    }
}

/// The error when the thread that writes or reads a store does not exist any more.
pub(crate) fn thread_ended(store: &str) -> StoreError {
    StoreError::Io { store: store.to_owned(), reason: Message::word("the thread that uses it has ended") }
}

pub(crate) fn io(store: &str, error: &io::Error) -> StoreError {
    let store = store.to_owned();
    match error.kind() {
        io::ErrorKind::PermissionDenied => StoreError::Denied { store },
        io::ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly { store },
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full { store },
        io::ErrorKind::IsADirectory => StoreError::NotAFile { store },
        io::ErrorKind::NotADirectory => {
            StoreError::Io { store, reason: Message::word("a part of its path is a file, not a directory") }
        }
        // The directory of the store is created, so only a parent of it can be missing.
        io::ErrorKind::NotFound => {
            StoreError::Io { store, reason: Message::word("the directory that should contain it does not exist") }
        }
        kind => StoreError::Io { store, reason: library(&kind.to_string()) },
    }
}
