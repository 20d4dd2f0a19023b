//! Inspects a store without creating, locking or writing anything.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rusqlite::OpenFlags;

use crate::error::StoreError;
use crate::sqlite::disk::{read_lock_file, sibling};
use crate::sqlite::locks::lock::{self, LockText};
use crate::sqlite::open::{check_header, connect, existing, has_journal, open_read_only};
use crate::sqlite::schema::{self, MIGRATIONS};
use crate::sqlite::store::SqliteStore;

/// The maximum number of lock files that are read.
const MAX_LOCKS: usize = 1000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreInspection {
    /// The layout of the store; 0 for an empty file.
    pub layout: u32,
    /// The newest layout that this release supports.
    pub newest_layout: u32,
    /// The length of its file, in bytes.
    pub bytes: u64,
    /// The length of the log next to it, in bytes. The changes in the log are not included in `sessions`.
    pub log_bytes: u64,
    pub sessions: BTreeMap<String, u64>,
    /// The content of each lock file, which describes its holder. The file of a killed process remains, but blocks nothing.
    pub holders: Vec<String>,
}

/// Inspects the store at `path`; `None` if there is no file.
/// Errors: As [`crate::sqlite::open::open_read_only`] for an unreadable store. An older layout is not an error.
pub fn inspect(path: &Path) -> Result<Option<StoreInspection>, StoreError> {
    let store = path.display().to_string();
    let Some(file) = existing(path, &store)? else { return Ok(None) };
    let length = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
    let mut inspection = StoreInspection {
        newest_layout: schema::newest_layout(MIGRATIONS),
        bytes: length(&file),
        log_bytes: length(&sibling(&file, "-wal")),
        holders: holders(&lock::directory(&file)),
        ..StoreInspection::default()
    };
    let counted = check_header(&file, &store, MIGRATIONS).and_then(|has_content| {
        // While a change without a log is not complete, the file itself is half-written.
        if !has_content || has_journal(&file) {
            return Ok(());
        }
        let connection = connect(&file, OpenFlags::SQLITE_OPEN_READ_ONLY, "?immutable=1")?;
        inspection.layout = schema::layout(&connection)?;
        let mut statement = connection.prepare("SELECT status, count(*) FROM head GROUP BY status")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?)))?;
        for row in rows {
            let (status, count) = row?;
            inspection.sessions.insert(status, u64::try_from(count).unwrap_or_default());
        }
        Ok(())
    });
    counted.map_err(|failure| failure.into_store_error(&store))?;
    Ok(Some(inspection))
}

/// Opens the store at `path` for reading only, without creating anything next to it: if there is no log to checkpoint and
/// no write in progress, only the file itself is read, in its current state. Otherwise like [`open_read_only`], which
/// shares the log with the writers.
pub fn open_immutable(path: &Path) -> Result<SqliteStore, StoreError> {
    let store = path.display().to_string();
    let Some(file) = existing(path, &store)? else { return Err(StoreError::Missing { store }) };
    if ["-wal", "-journal"].into_iter().any(|end| sibling(&file, end).exists()) {
        return open_read_only(path);
    }
    let opened = check_header(&file, &store, MIGRATIONS).and_then(|has_content| {
        if !has_content {
            return Err(StoreError::Missing { store: store.clone() }.into());
        }
        let connection = connect(&file, OpenFlags::SQLITE_OPEN_READ_ONLY, "?immutable=1")?;
        let (found, known) = (schema::layout(&connection)?, schema::newest_layout(MIGRATIONS));
        // `check_header` has already rejected a newer layout.
        if found < known {
            return Err(StoreError::Outdated { store: store.clone(), found, known }.into());
        }
        Ok(connection)
    });
    let connection = opened.map_err(|failure| failure.into_store_error(&store))?;
    Ok(SqliteStore::new(connection, store, &file))
}

fn holders(directory: &Path) -> Vec<String> {
    if directory.is_symlink() {
        return vec![];
    }
    let entries = fs::read_dir(directory).into_iter().flatten().take(MAX_LOCKS);
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let locks = files.filter(|path| path.extension().is_some_and(|extension| extension == "lock"));
    let texts = locks.filter_map(|path| read_lock_file(&path));
    let mut descriptions: Vec<String> = texts.map(|text| LockText::parse(&text).holder).collect();
    descriptions.sort();
    descriptions
}
