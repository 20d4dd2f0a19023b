//! Looks at a store from outside: nothing is made, locked or written, so that looking is never the trouble.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::OpenFlags;

use crate::error::StoreError;
use crate::sqlite::lock;
use crate::sqlite::open::{connect, existing, inspect, open_read_only};
use crate::sqlite::schema::{self, STEPS};
use crate::sqlite::store::SqliteStore;

/// The most lock files that are looked at.
const MOST_LOCKS: usize = 1000;

/// The longest text that a holder says of itself, in bytes.
const LONGEST_HOLDER: u64 = 1024;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreInspection {
    /// The layout that it has; 0 for an empty file.
    pub layout: u32,
    /// The newest layout that this release knows.
    pub newest: u32,
    /// The length of its file, in bytes.
    pub bytes: u64,
    /// The length of the log beside it, whose changes are not among what is counted here, in bytes.
    pub log_bytes: u64,
    pub sessions: BTreeMap<String, u64>,
    /// What each lock file says of its holder. One whose process was killed stays behind, and holds nobody up.
    pub holders: Vec<String>,
}

/// Looks at the store at `path`; none when nothing is there.
/// Errors: As [`crate::sqlite::open::open_read_only`] for what cannot be read. An older layout is none.
pub fn look(path: &Path) -> Result<Option<StoreInspection>, StoreError> {
    let store = path.display().to_string();
    let Some(file) = existing(path, &store)? else { return Ok(None) };
    let length = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    let mut seen = StoreInspection {
        newest: schema::newest(STEPS),
        bytes: length(&file),
        log_bytes: length(&PathBuf::from(log)),
        holders: holders(&lock::directory(&file)),
        ..StoreInspection::default()
    };
    let counted = inspect(&file, &store, STEPS).and_then(|any| {
        if !any {
            return Ok(());
        }
        let connection = connect(&file, OpenFlags::SQLITE_OPEN_READ_ONLY, "?immutable=1")?;
        seen.layout = schema::layout(&connection)?;
        let mut statement = connection.prepare("SELECT status, count(*) FROM head GROUP BY status")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?)))?;
        for row in rows {
            let (status, count) = row?;
            seen.sessions.insert(status, u64::try_from(count).unwrap_or_default());
        }
        Ok(())
    });
    counted.map_err(|failure| failure.about(&store))?;
    Ok(Some(seen))
}

/// Opens the store at `path` for reading only, so that nothing is made beside it: where no log waits to be folded in and nobody is
/// in the middle of writing, the file alone is read, as it is at this moment. Else as
/// [`open_read_only`], which takes part in the log of those who write.
pub fn open_untouched(path: &Path) -> Result<SqliteStore, StoreError> {
    let store = path.display().to_string();
    let Some(file) = existing(path, &store)? else { return Err(StoreError::Missing { store }) };
    let beside = |end: &str| {
        let mut name = file.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name).exists()
    };
    if ["-wal", "-journal"].into_iter().any(beside) {
        return open_read_only(path);
    }
    let opened = inspect(&file, &store, STEPS).and_then(|any| {
        if !any {
            return Err(StoreError::Missing { store: store.clone() }.into());
        }
        let connection = connect(&file, OpenFlags::SQLITE_OPEN_READ_ONLY, "?immutable=1")?;
        let (found, known) = (schema::layout(&connection)?, schema::newest(STEPS));
        // A newer one is refused by now.
        if found < known {
            return Err(StoreError::Outdated { store: store.clone(), found, known }.into());
        }
        Ok(connection)
    });
    let connection = opened.map_err(|failure| failure.about(&store))?;
    Ok(SqliteStore::new(connection, store, &file, true))
}

fn holders(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().take(MOST_LOCKS);
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let locks = files.filter(|path| path.extension().is_some_and(|extension| extension == "lock") && path.is_file());
    let short = |path: &PathBuf| fs::metadata(path).is_ok_and(|metadata| metadata.len() <= LONGEST_HOLDER);
    let mut said: Vec<String> = locks.filter(short).filter_map(|path| fs::read_to_string(path).ok()).collect();
    said.sort();
    said
}
