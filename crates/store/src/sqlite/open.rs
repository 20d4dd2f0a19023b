//! Opens a store. A file that is not a store of this program is not changed.

use bcc_lang::message::message::Message;
use std::fmt::Write;
use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::StoreError;
use crate::sqlite::damage::{DAMAGED_FILE, LOG_WITHOUT_FILE, Unclean, copy_aside, quick_check};
use crate::sqlite::disk::{new_private_file, private_directory, sibling};
use crate::sqlite::error::{self, Failure};
use crate::sqlite::in_use::OpeningStore;
use crate::sqlite::locks::lock;
use crate::sqlite::locks::owner;
use crate::sqlite::presence::Presence;
use crate::sqlite::schema::{self, APPLICATION_ID, MIGRATIONS};
use crate::sqlite::store::SqliteStore;

/// The version of the table layout that this release writes. It grows with every change of the tables.
pub const LAYOUT: usize = MIGRATIONS.len();

/// How often a call looks whether another process still has the store locked: for about a minute, because hundreds of processes may be on
/// overloaded processors.
const BUSY_ATTEMPTS: i32 = 560;

/// The longest pause between two looks, in milliseconds: of the first ones, and then. SQLite's own pauses are always the same, so that the
/// same processes come first again and again; here they are random, and grow, so that hundreds of processes do not take the time of the one
/// that writes.
const MAX_BUSY_PAUSE_MS: u64 = 48;
const MAX_LATE_PAUSE_MS: u64 = 250;
const EARLY_ATTEMPTS: i32 = 100;

/// The number of attempts to switch to a write-ahead log, for which SQLite itself does not wait, and the pause between them.
const WAL_ATTEMPTS: u32 = 250;
const WAL_PAUSE: Duration = Duration::from_millis(20);

/// The minimum size of an SQLite file that is not empty, in bytes: one page of the smallest size.
const MIN_BYTES: u64 = 512;

/// The capacity of the statement cache: more than the number of statements in use.
const STATEMENT_CACHE_CAPACITY: usize = 128;

/// Opens the store at `path` for reading and writing. Creates it (0600) and its directory (0700) if they do not exist,
/// but no parent of that directory.
/// Errors: [`StoreError::Corrupt`], [`StoreError::ForeignDatabase`], [`StoreError::Newer`], [`StoreError::NotAFile`]: the
/// file is left byte for byte unchanged. [`StoreError::Damaged`]: so it is, and copied. [`StoreError::ReadOnly`], [`StoreError::Denied`], [`StoreError::Full`],
/// [`StoreError::Busy`], [`StoreError::Io`].
pub fn open(path: &Path) -> Result<SqliteStore, StoreError> {
    open_with(path, MIGRATIONS)
}

/// Opens the store at `path` for reading only; this also works on a read-only disk. Creates and migrates nothing.
/// Errors: [`StoreError::Missing`] if there is no store, [`StoreError::Outdated`] if it must be migrated first, and the
/// errors of [`open`].
pub fn open_read_only(path: &Path) -> Result<SqliteStore, StoreError> {
    let store = path.display().to_string();
    let Some(file) = existing(path, &store)? else { return Err(StoreError::Missing { store }) };
    if !check_header(&file, &store, MIGRATIONS).map_err(|failure| failure.into_store_error(&store))? {
        return Err(StoreError::Missing { store });
    }
    let (opening, is_alone) = match OpeningStore::start_reading(&lock::directory(&file), &store) {
        // Another user may read the file and not the locks, so it is unknown whether it is in use.
        Err(StoreError::Denied { .. }) => (None, false),
        opening => opening.map(|opening| {
            let is_alone = opening.as_ref().is_none_or(|opening| opening.is_alone);
            (opening, is_alone)
        })?,
    };
    if is_alone && let Unclean { damage: Some(reason), .. } = Unclean::of(&file, &store)? {
        return Err(StoreError::Corrupt { store, reason: Message::word(reason) });
    }
    drop(opening);
    let connection = reader(&file, &store).map_err(|failure| failure.into_store_error(&store))?;
    Ok(SqliteStore::new(connection, store, &file))
}

/// [`open`] with these migrations.
pub(crate) fn open_with(path: &Path, migrations: &[&str]) -> Result<SqliteStore, StoreError> {
    let store = path.display().to_string();
    let file = match existing(path, &store)? {
        Some(file) => file,
        None => create_file(path, &store)?,
    };
    // Somebody may have created it, readable for everyone. If it belongs to another user, its permissions are theirs.
    if fs::metadata(&file).is_ok_and(|metadata| metadata.len() == 0) {
        let _ = fs::set_permissions(&file, fs::Permissions::from_mode(0o600));
    }
    check_header(&file, &store, migrations)
        .and_then(|_| ensure_writable(&file, &store))
        .map_err(|failure| failure.into_store_error(&store))?;
    let opening = OpeningStore::start(&lock::directory(&file), &store)?;
    let unclean = if opening.is_alone { Unclean::of(&file, &store)? } else { Unclean::default() };
    if let Some(reason) = unclean.damage {
        return Err(copied_aside(&file, store, reason));
    }
    let connection = match writer(&file, &store, migrations, unclean.needs_check)
        .map_err(|failure| failure.into_store_error(&store))
    {
        // Only the check that follows an unclean end reads so much that it finds damage before the first commit.
        Err(StoreError::Corrupt { .. }) if unclean.needs_check => {
            return Err(copied_aside(&file, store, DAMAGED_FILE));
        }
        opened => opened?,
    };
    let presence = Presence::of(path, &store, &file)?;
    if opening.is_alone {
        // Killed processes have left them.
        owner::remove_all_dead(&lock::directory(&file));
    }
    let in_use = opening.finish(&store)?;
    Ok(SqliteStore::for_writing(connection, store, &file, presence, in_use))
}

/// The error for a damaged store, which is copied so that nothing that happens to it later loses more.
fn copied_aside(file: &Path, store: String, reason: &'static str) -> StoreError {
    match copy_aside(file) {
        Ok(copy) => StoreError::Damaged { store, reason: Message::word(reason), copy: copy.display().to_string() },
        Err(error) => error::io(&store, &error),
    }
}

/// What SQLite appends to the name of a store for the files that it opens next to it.
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// The canonical path of the file at `path`, so that every process uses the same lock files; `None` if it does not exist.
/// Errors: also if a link, a pipe or something else is in the place of a file next to it: opening it could wait forever, or
/// change another file.
pub(crate) fn existing(path: &Path, store: &str) -> Result<Option<PathBuf>, StoreError> {
    match fs::canonicalize(path) {
        Ok(file) if file.is_file() => {
            reject_planted(&file, store)?;
            Ok(Some(file))
        }
        Ok(_) => Err(StoreError::NotAFile { store: store.to_owned() }),
        // The log of a file that is gone is copied, so it must not be a link to a file of someone else either.
        Err(error) if error.kind() == io::ErrorKind::NotFound => reject_planted(path, store).map(|()| None),
        Err(error) => Err(error::io(store, &error)),
    }
}

/// Rejects anything but regular files in the place of the files next to the store.
fn reject_planted(file: &Path, store: &str) -> Result<(), StoreError> {
    let is_planted = |companion: &PathBuf| companion.symlink_metadata().is_ok_and(|metadata| !metadata.is_file());
    match COMPANIONS.iter().map(|end| sibling(file, end)).find(is_planted) {
        None => Ok(()),
        Some(planted) => {
            Err(StoreError::NotAStoreFile { store: store.to_owned(), file: planted.display().to_string() })
        }
    }
}

/// Creates the file and its directory.
/// Errors: [`StoreError::Damaged`] if the log of a file that is gone is there: a new file would take over its content.
fn create_file(path: &Path, store: &str) -> Result<PathBuf, StoreError> {
    let created = || {
        let path = std::path::absolute(path)?;
        if let Some(directory) = path.parent() {
            private_directory(directory)?;
        }
        if has_log(&path) {
            return Ok(Err(path));
        }
        match new_private_file(&path) {
            // Another process has created the file in the meantime.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => drop(created?),
        }
        fs::canonicalize(path).map(Ok)
    };
    match created().map_err(|error| error::io(store, &error))? {
        Ok(path) => Ok(path),
        Err(path) => Err(copied_aside(&path, store.to_owned(), LOG_WITHOUT_FILE)),
    }
}

/// Checks the header of the main file only: without locks, logs or writes, so that nothing next to a file of another
/// program is created or changed. Returns whether the file has any content.
///
/// SQLite reads the file, because if this process opened the file by other means as well, closing it would release the
/// locks that SQLite holds on it.
///
/// A database without anything in it is a store whose creation was interrupted, like an empty file.
pub(crate) fn check_header(file: &Path, store: &str, migrations: &[&str]) -> Result<bool, Failure> {
    match fs::metadata(file).map_err(|error| error::io(store, &error))?.len() {
        0 => return Ok(false),
        // SQLite would treat a file of one byte as empty.
        length if length < MIN_BYTES => {
            return Err(
                StoreError::Corrupt { store: store.to_owned(), reason: Message::word(error::NOT_SQLITE) }.into()
            );
        }
        _ => {}
    }
    let connection = connect(file, OpenFlags::SQLITE_OPEN_READ_ONLY, "?immutable=1")?;
    // Not for writing: this setting accepts a main file shorter than its header says, whose missing pages are in the log.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, true)?;
    let application: i32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let (found, known) = (schema::layout(&connection)?, schema::newest_layout(migrations));
    if application != APPLICATION_ID {
        if application == 0 && found == 0 && !has_log(file) && has_no_tables(&connection) {
            return Ok(false);
        }
        return Err(StoreError::ForeignDatabase { store: store.to_owned() }.into());
    }
    if found > known {
        return Err(StoreError::Newer { store: store.to_owned(), found, known }.into());
    }
    Ok(true)
}

fn has_no_tables(connection: &Connection) -> bool {
    let sql = "SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)";
    connection.query_row(sql, [], |row| row.get(0)).is_ok_and(|is_empty: bool| is_empty)
}

/// Errors: [`StoreError::ReadOnly`]. This reads and writes nothing.
fn ensure_writable(file: &Path, store: &str) -> Result<(), Failure> {
    if connect(file, OpenFlags::SQLITE_OPEN_READ_WRITE, "")?.is_readonly("main")? {
        return Err(StoreError::ReadOnly { store: store.to_owned() }.into());
    }
    Ok(())
}

/// A connection for writing to a store, which is migrated to the newest layout. `checked` first checks its structure.
pub(crate) fn writer(file: &Path, store: &str, migrations: &[&str], checked: bool) -> Result<Connection, Failure> {
    let mut connection = connect(file, OpenFlags::SQLITE_OPEN_READ_WRITE, "")?;
    // Until it is certain that this program may write the file, not even the log is checkpointed.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.execute_batch("PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL;")?;
    if checked {
        quick_check(&connection, store)?;
    }
    // A new file has no log yet, so its application id is in the main file before a log exists.
    schema::migrate(&mut connection, store, migrations)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    enable_wal(&connection)?;
    // The log is checkpointed every 1,000 pages, and shrinks again after a long transaction. Deleted content within a
    // page is overwritten.
    connection.execute_batch(
        "PRAGMA wal_autocheckpoint = 1000; PRAGMA journal_size_limit = 8388608; PRAGMA secure_delete = FAST;",
    )?;
    // The first read creates the log, whose presence is then checked.
    schema::layout(&connection)?;
    Ok(connection)
}

/// Switches to a write-ahead log. Without shared memory SQLite keeps its rollback journal, which is slower but as durable.
fn enable_wal(connection: &Connection) -> Result<(), Failure> {
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

/// A connection for reading only. If SQLite cannot create its shared memory next to the file, because the disk is
/// read-only, and there is no log to checkpoint, the main file contains everything and is opened as immutable.
fn reader(file: &Path, store: &str) -> Result<Connection, Failure> {
    if has_journal(file) {
        undo_interrupted(file, store)?;
    }
    let mut connection = connect(file, OpenFlags::SQLITE_OPEN_READ_ONLY, "")?;
    let found = match schema::layout(&connection) {
        Err(error) if needs_to_write(&error) && !has_log(file) => {
            connection = connect(file, OpenFlags::SQLITE_OPEN_READ_ONLY, "?immutable=1")?;
            schema::layout(&connection)?
        }
        Err(error) if needs_to_write(&error) => {
            let reason = "its latest changes are in the log next to it, which can be read only where it can be written; copy the file with its `-wal` to such a location";
            return Err(StoreError::Io { store: store.to_owned(), reason: Message::word(reason) }.into());
        }
        found => found?,
    };
    let known = schema::newest_layout(MIGRATIONS);
    let store = store.to_owned();
    match found {
        found if found > known => Err(StoreError::Newer { store, found, known }.into()),
        found if found < known => Err(StoreError::Outdated { store, found, known }.into()),
        _ => Ok(connection),
    }
}

/// Undoes a commit without a log that was interrupted; a connection for reading only cannot do this. A commit in progress is not
/// affected. Without a log, such as while a store is created, the file itself is half-written until then.
/// Errors: [`StoreError::Missing`] if nothing is left, because it was the first commit.
fn undo_interrupted(file: &Path, store: &str) -> Result<(), Failure> {
    let connection = connect(file, OpenFlags::SQLITE_OPEN_READ_WRITE, "")?;
    match schema::layout(&connection) {
        Err(error) if needs_to_write(&error) => {
            let reason = "its last change was interrupted, and can be undone only where it can be written; copy the file with its `-journal` to such a location";
            return Err(StoreError::Io { store: store.to_owned(), reason: Message::word(reason) }.into());
        }
        found => found?,
    };
    drop(connection);
    match check_header(file, store, MIGRATIONS)? {
        true => Ok(()),
        false => Err(StoreError::Missing { store: store.to_owned() }.into()),
    }
}

fn needs_to_write(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly))
}

/// Whether there is a non-empty log next to the file.
pub(crate) fn has_log(file: &Path) -> bool {
    fs::metadata(sibling(file, "-wal")).is_ok_and(|log| log.len() > 0)
}

/// Whether the file is being changed without a log, or such a change was interrupted.
pub(crate) fn has_journal(file: &Path) -> bool {
    fs::metadata(sibling(file, "-journal")).is_ok_and(|journal| journal.len() > 0)
}

/// Opens an existing file. It may come from an untrusted source: its triggers and views do not run.
pub(crate) fn connect(file: &Path, access: OpenFlags, query: &str) -> Result<Connection, Failure> {
    let flags = access | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(uri(file, query), flags)?;
    connection.busy_handler(Some(wait_for_others))?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE_CAPACITY);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // Query plans do not depend on bound values. Otherwise a lookup by a unique text is planned again for each value.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

/// Waits for another process that has the store locked. Returns whether to try again.
fn wait_for_others(attempt: i32) -> bool {
    // Each state has other keys, so that its hash is as good as a random number.
    let random = RandomState::new().build_hasher().finish();
    let longest = match attempt {
        ..EARLY_ATTEMPTS => u64::try_from(attempt).unwrap_or_default().saturating_add(2).min(MAX_BUSY_PAUSE_MS),
        _ => MAX_LATE_PAUSE_MS,
    };
    std::thread::sleep(Duration::from_millis(1 + random % longest));
    attempt < BUSY_ATTEMPTS
}

/// The path as a URI, with all special characters escaped.
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
