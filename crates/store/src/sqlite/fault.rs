//! What SQLite and the operating system report, as what it means for a store. Their own messages are not passed on: they
//! may quote what was to be written.

use std::io;

use rusqlite::{Error, ErrorCode};

use crate::error::ArchiveError;

/// `SQLITE_IOERR_SHMSIZE`: the index of the write-ahead log could not grow, which is how a full disk may show first.
const IOERR_SHMSIZE: i32 = 10 | (19 << 8);

/// What is wrong with a file that is no database.
pub(crate) const NOT_SQLITE: &str = "it is not an SQLite file";

/// Why a piece of work on a store ended: SQLite reported something, or a rule of the archive refused it.
#[derive(Debug)]
pub(crate) enum Failure {
    Sqlite(Error),
    Refused(ArchiveError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        Self::Refused(error)
    }
}

impl Failure {
    /// What it means for this store.
    pub(crate) fn about(self, store: &str) -> ArchiveError {
        match self {
            Self::Refused(error) => error,
            Self::Sqlite(error) => sqlite(store, &error),
        }
    }
}

pub(crate) fn sqlite(store: &str, error: &Error) -> ArchiveError {
    let store = store.to_owned();
    let damaged = |reason: &str| ArchiveError::Corrupt { store: store.clone(), reason: reason.to_owned() };
    match error {
        Error::FromSqlConversionFailure(..) | Error::InvalidColumnType(..) | Error::Utf8Error(..) => {
            damaged("a row holds what no row of its kind may hold")
        }
        Error::IntegralValueOutOfRange(..) => damaged("a row holds a number out of its range"),
        Error::ToSqlConversionFailure(_) => ArchiveError::TooLarge { store },
        _ => match error.sqlite_error().map(|error| (error.code, error.extended_code)) {
            Some((ErrorCode::NotADatabase, _)) => damaged(NOT_SQLITE),
            Some((ErrorCode::DatabaseCorrupt, _)) => damaged("the file is damaged"),
            Some((ErrorCode::ReadOnly, _)) => ArchiveError::ReadOnly { store },
            Some((ErrorCode::DiskFull, _) | (_, IOERR_SHMSIZE)) => ArchiveError::Full { store },
            Some((ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed, _)) => {
                ArchiveError::Busy { store }
            }
            Some((ErrorCode::CannotOpen | ErrorCode::PermissionDenied, _)) => ArchiveError::Denied { store },
            Some((ErrorCode::TooBig, _)) => ArchiveError::TooLarge { store },
            Some((code, extended)) => {
                ArchiveError::Io { store, reason: format!("SQLite reports {code:?}, {extended}") }
            }
            None => ArchiveError::Io { store, reason: "SQLite was used wrongly; please report it".to_owned() },
        },
    }
}

pub(crate) fn io(store: &str, error: &io::Error) -> ArchiveError {
    let store = store.to_owned();
    match error.kind() {
        io::ErrorKind::PermissionDenied => ArchiveError::Denied { store },
        io::ErrorKind::ReadOnlyFilesystem => ArchiveError::ReadOnly { store },
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ArchiveError::Full { store },
        io::ErrorKind::IsADirectory => ArchiveError::NotAFile { store },
        io::ErrorKind::NotADirectory => {
            ArchiveError::Io { store, reason: "a part of its path is a file, not a directory".to_owned() }
        }
        // Only a directory above the store's own can be missing: that one is made.
        io::ErrorKind::NotFound => {
            ArchiveError::Io { store, reason: "the directory that it should lie in does not exist".to_owned() }
        }
        kind => ArchiveError::Io { store, reason: kind.to_string() },
    }
}
