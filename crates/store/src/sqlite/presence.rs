//! Notices that the files of an open store were removed, moved or replaced. SQLite does not: it continues to write to files
//! that no path leads to.

use std::path::{Path, PathBuf};

use crate::error::StoreError;
use crate::sqlite::disk::{FileId, sibling};
use crate::sqlite::error;

/// The files of an open store.
#[derive(Debug)]
pub(crate) struct Presence {
    store: String,
    /// Each path that must lead to a file, and that file.
    files: Vec<(PathBuf, FileId)>,
}

impl Presence {
    /// Of the open store at `path`, as the user wrote it, whose file is `file`. If it has a log, the log exists.
    pub(crate) fn of(path: &Path, store: &str, file: &Path) -> Result<Self, StoreError> {
        let report = |error| error::io(store, &error);
        // The path of the user may be a symbolic link, and the working directory may change.
        let mut paths = vec![std::path::absolute(path).map_err(report)?, file.to_owned()];
        paths.dedup();
        let mut files = Vec::new();
        for path in paths {
            let id = FileId::at(&path).map_err(report)?;
            files.push((path, id));
        }
        // A store that takes no log has none.
        let log = sibling(file, "-wal");
        files.extend(FileId::at(&log).ok().map(|id| (log, id)));
        Ok(Self { store: store.to_owned(), files })
    }

    /// Whether every path leads to its file.
    pub(crate) fn is_complete(&self) -> bool {
        self.files.iter().all(|(path, id)| FileId::at(path).is_ok_and(|found| found == *id))
    }

    /// Errors: [`StoreError::Gone`].
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        if self.is_complete() { Ok(()) } else { Err(StoreError::Gone { store: self.store.clone() }) }
    }
}
