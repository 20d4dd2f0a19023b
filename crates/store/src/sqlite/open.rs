//! Opens a store, or says why not, without touching what is not ours.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::StoreError;
use crate::sqlite::disk::{new_private_file, private_directory};
use crate::sqlite::error::{self, Failure};
use crate::sqlite::schema::{self, APPLICATION_ID, STEPS};
use crate::sqlite::store::SqliteStore;

/// The layout of the tables that this release writes, as a number that grows with every change of them.
pub const LAYOUT: usize = STEPS.len();

/// How long a call waits for another process that has the store locked.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How often the change to a write-ahead log is tried, which SQLite itself does not wait for, and how long between.
const WAL_ATTEMPTS: u32 = 250;
const WAL_PAUSE: Duration = Duration::from_millis(20);

/// The least that an SQLite file with anything in it can have, in bytes: one page of the smallest size.
const SMALLEST: u64 = 512;

/// How many prepared statements stay: more than there are.
const STATEMENTS: usize = 64;

/// Opens the store at `path` for reading and writing; makes it (0600) when it is not there, and its directory (0700),
/// but no directory above that one.
/// Errors: [`StoreError::Corrupt`], [`StoreError::NotOurs`], [`StoreError::Newer`], [`StoreError::NotAFile`]: the file
/// is left byte for byte as it was. [`StoreError::ReadOnly`], [`StoreError::Denied`], [`StoreError::Full`],
/// [`StoreError::Busy`], [`StoreError::Io`].
pub fn open(path: &Path) -> Result<SqliteStore, StoreError> {
    open_with(path, STEPS)
}

/// Opens the store at `path` for reading only, on a disk that cannot be written too. Nothing is made, nothing migrated.
/// Errors: [`StoreError::Missing`] when there is no store, [`StoreError::Outdated`] when it must be migrated first; and as
/// [`open`].
pub fn open_read_only(path: &Path) -> Result<SqliteStore, StoreError> {
    let store = path.display().to_string();
    let Some(file) = existing(path, &store)? else { return Err(StoreError::Missing { store }) };
    if !inspect(&file, &store, STEPS).map_err(|failure| failure.about(&store))? {
        return Err(StoreError::Missing { store });
    }
    let connection = reader(&file, &store).map_err(|failure| failure.about(&store))?;
    Ok(SqliteStore::new(connection, store, &file, true))
}

/// [`open`], with these steps of migration.
pub(crate) fn open_with(path: &Path, steps: &[&str]) -> Result<SqliteStore, StoreError> {
    let store = path.display().to_string();
    let file = match existing(path, &store)? {
        Some(file) => file,
        None => make(path).map_err(|error| error::io(&store, &error))?,
    };
    let connection = inspect(&file, &store, steps)
        .and_then(|_| writer(&file, &store, steps))
        .map_err(|failure| failure.about(&store))?;
    Ok(SqliteStore::new(connection, store, &file, false))
}

/// The true path of the file at `path`, so that every process finds the same lock files; `None` when nothing is there.
pub(crate) fn existing(path: &Path, store: &str) -> Result<Option<PathBuf>, StoreError> {
    match fs::canonicalize(path) {
        Ok(file) if file.is_file() => Ok(Some(file)),
        Ok(_) => Err(StoreError::NotAFile { store: store.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error::io(store, &error)),
    }
}

/// Makes the file, and the directory that it lies in.
fn make(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    if let Some(directory) = path.parent() {
        private_directory(directory)?;
    }
    match new_private_file(&path) {
        // Another process was faster; its file will do.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => drop(made?),
    }
    fs::canonicalize(path)
}

/// Looks at the header in the main file alone: no lock, no log, no write, so that nothing beside a foreign file is made
/// or changed. Says whether there is anything in it.
///
/// SQLite does the reading, because closing a file that this process has open a second time through anything else would
/// drop the locks of the first.
pub(crate) fn inspect(file: &Path, store: &str, steps: &[&str]) -> Result<bool, Failure> {
    match fs::metadata(file).map_err(|error| error::io(store, &error))?.len() {
        0 => return Ok(false),
        // SQLite would take a file of one byte for an empty one.
        length if length < SMALLEST => {
            return Err(StoreError::Corrupt { store: store.to_owned(), reason: error::NOT_SQLITE.to_owned() }.into());
        }
        _ => {}
    }
    let connection = connect(file, OpenFlags::SQLITE_OPEN_READ_ONLY, "?immutable=1")?;
    // Not to write it: with this, a main file that is shorter than its header says, which the log makes good, passes.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, true)?;
    let application: i32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    if application != APPLICATION_ID {
        return Err(StoreError::NotOurs { store: store.to_owned() }.into());
    }
    let (found, known) = (schema::layout(&connection)?, schema::newest(steps));
    if found > known {
        return Err(StoreError::Newer { store: store.to_owned(), found, known }.into());
    }
    Ok(true)
}

/// A connection that writes, on a store with the newest layout.
fn writer(file: &Path, store: &str, steps: &[&str]) -> Result<Connection, Failure> {
    let mut connection = connect(file, OpenFlags::SQLITE_OPEN_READ_WRITE, "")?;
    if connection.is_readonly("main")? {
        return Err(StoreError::ReadOnly { store: store.to_owned() }.into());
    }
    // Until it is known to be ours to write, not even the log is folded in.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.execute_batch("PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL;")?;
    // Still without a log when the file is new, so that its mark is in the main file before there is a log to look into.
    schema::migrate(&mut connection, store, steps)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    write_ahead(&connection)?;
    // The log is folded in every 1,000 pages, and shrinks again after a long transaction. What is deleted inside of a
    // page is overwritten.
    connection.execute_batch(
        "PRAGMA wal_autocheckpoint = 1000; PRAGMA journal_size_limit = 8388608; PRAGMA secure_delete = FAST;",
    )?;
    Ok(connection)
}

/// Changes to a write-ahead log. A file system without shared memory keeps its rollback journal: slower, as durable.
fn write_ahead(connection: &Connection) -> Result<(), Failure> {
    let mut attempts = 1;
    loop {
        match connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0)) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && attempts < WAL_ATTEMPTS => {
                attempts += 1;
                std::thread::sleep(WAL_PAUSE);
            }
            Err(error) => return Err(error.into()),
            Ok(mode) => {
                if mode != "wal" {
                    tracing::warn!(mode, "the store's file system does not take a write-ahead log");
                }
                return Ok(());
            }
        }
    }
}

/// A connection that only reads. Where SQLite cannot even make its shared memory beside the file, because the disk is
/// read-only, and no log waits to be folded in, the main file is all there is and cannot change.
fn reader(file: &Path, store: &str) -> Result<Connection, Failure> {
    let mut connection = connect(file, OpenFlags::SQLITE_OPEN_READ_ONLY, "")?;
    let found = match schema::layout(&connection) {
        Err(error) if needs_to_write(&error) && !has_log(file) => {
            connection = connect(file, OpenFlags::SQLITE_OPEN_READ_ONLY, "?immutable=1")?;
            schema::layout(&connection)?
        }
        Err(error) if needs_to_write(&error) => {
            let reason = "its latest changes are in the log next to it, which can be read only where it can be written; copy the file with its `-wal` to such a location";
            return Err(StoreError::Io { store: store.to_owned(), reason: reason.to_owned() }.into());
        }
        found => found?,
    };
    let known = schema::newest(STEPS);
    let store = store.to_owned();
    match found {
        found if found > known => Err(StoreError::Newer { store, found, known }.into()),
        found if found < known => Err(StoreError::Outdated { store, found, known }.into()),
        _ => Ok(connection),
    }
}

fn needs_to_write(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly))
}

/// Whether a log with anything in it lies beside the file.
fn has_log(file: &Path) -> bool {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    fs::metadata(PathBuf::from(log)).is_ok_and(|log| log.len() > 0)
}

/// Opens an existing file. It may come from a stranger: its triggers and views do not run.
pub(crate) fn connect(file: &Path, access: OpenFlags, query: &str) -> Result<Connection, Failure> {
    let flags = access | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(uri(file, query), flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // Plans do not depend on what is bound. Otherwise a look-up by a unique text is planned anew with every value.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

/// The file as a URI, in which no character of its path has a meaning.
fn uri(file: &Path, query: &str) -> String {
    let mut uri = "file:".to_owned();
    for byte in file.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => uri.push(char::from(*byte)),
            // Writing to a String cannot fail.
            _ => drop(write!(uri, "%{byte:02X}")),
        }
    }
    uri + query
}
