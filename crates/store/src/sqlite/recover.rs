//! Checks a store completely, and saves what can be read of a damaged one in a new store. Nothing of the store itself is
//! changed.
//!
//! The log is read beyond a damaged part, since every frame has a checksum: a page of which a later frame is whole is not
//! affected by the damage. Rows in other pages cannot be read, and their sessions are recovered as they were before.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bcc_lang::message::message::Message;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::StoreError;
use crate::sqlite::damage::{DAMAGED, DAMAGED_FILE, FILES, Unclean, copy_file, free_path, sync_directory};
use crate::sqlite::disk::{new_private_file, sibling};
use crate::sqlite::error::{self, Failure};
use crate::sqlite::in_use::OpeningStore;
use crate::sqlite::locks::lock;
use crate::sqlite::open::{check_header, connect, existing, has_journal, has_log, writer};
use crate::sqlite::salvage::{Attempt, Found, Saved, Source};
use crate::sqlite::schema::{self, APPLICATION_ID, MIGRATIONS};
use crate::sqlite::wal::{Wal, is_log_missing};
use crate::sqlite::{image, salvage_links, salvage_plans};

/// The end of the name of a recovered store, before its time.
const RECOVERED: &str = ".recovered-";

/// Creates a temporary directory in this one, or in that of the system. The caller may have to remove it if the process is
/// interrupted, because it contains conversations.
pub type NewDirectory = fn(Option<&Path>) -> io::Result<tempfile::TempDir>;

/// What a check or a recovery found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// What is damaged, apart from sessions.
    pub damage: Vec<Message>,
    /// Whether commits are lost of which it is not known to which sessions they belong.
    pub misses_commits: bool,
    /// Whether plans, or tasks of plans, are lost.
    pub misses_plans: bool,
    /// Whether links, or conversations that began by them, are lost.
    pub misses_links: bool,
    /// All sessions whose id can be read, sorted by id.
    pub sessions: Vec<RecoveredSession>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredSession {
    pub id: String,
    pub saved: Saved,
    /// The number of answers that can be read.
    pub answers: u64,
    /// How many there were, if that is known.
    pub all_answers: Option<u64>,
}

/// Where a recovered store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    pub report: RecoveryReport,
    /// The new store; none if the store is sound.
    pub store: Option<PathBuf>,
    /// The damaged store, if the new one has its place.
    pub moved_to: Option<PathBuf>,
}

impl RecoveryReport {
    /// Whether nothing is damaged.
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty() && self.is_complete()
    }

    /// Whether all sessions and all plans can be read whole.
    pub fn is_complete(&self) -> bool {
        let misses_rows = self.misses_commits || self.misses_plans || self.misses_links;
        !misses_rows && self.sessions.iter().all(|session| session.saved == Saved::Whole)
    }
}

/// Checks the store at `path`: its log, the structure of its file, and whether every session is whole. Writes only to the
/// directory for temporary files, which `temporary` creates in a directory, or in that of the system.
/// Errors: [`StoreError::Missing`], [`StoreError::InUse`], those of a store of another program or of a newer release, and
/// those of the operating system.
pub fn check(path: &Path, temporary: NewDirectory) -> Result<RecoveryReport, StoreError> {
    let store = path.display().to_string();
    let file = file_of(path, &store)?;
    let _opening = alone(OpeningStore::start_reading(&lock::directory(&file), &store)?, &store)?;
    let directory = temporary(None).map_err(|error| error::io(&store, &error))?;
    salvage(&file, &store, directory.path(), &directory.path().join("check.db"))
}

/// Saves what can be read of the store at `path` in a new store next to it. `replaces` moves the store away, and puts the
/// new one in its place.
/// `temporary` and errors: as of [`check`].
pub fn recover(path: &Path, replaces: bool, temporary: NewDirectory) -> Result<Recovery, StoreError> {
    let store = path.display().to_string();
    let file = file_of(path, &store)?;
    let opening = alone(Some(OpeningStore::start(&lock::directory(&file), &store)?), &store)?;
    let report_io = |error: io::Error| error::io(&store, &error);
    let directory = temporary(file.parent()).map_err(report_io)?;
    let new = directory.path().join("recovered.db");
    let report = salvage(&file, &store, directory.path(), &new)?;
    if report.is_sound() {
        return Ok(Recovery { report, store: None, moved_to: None });
    }
    let moved = || {
        let target = free_path(&file, RECOVERED)?;
        fs::rename(&new, &target)?;
        sync_directory(&target)?;
        if !replaces {
            return Ok((target, None));
        }
        let aside = replace(&file, &target)?;
        Ok((file.clone(), Some(aside)))
    };
    let (new, moved_to) = moved().map_err(report_io)?;
    drop(opening);
    Ok(Recovery { report, store: Some(new), moved_to })
}

/// Moves the files of a store away, and puts the one in `new` in their place. Returns where they are.
fn replace(file: &Path, new: &Path) -> io::Result<PathBuf> {
    let aside = free_path(file, DAMAGED)?;
    // If this is interrupted, there is no file, or its log is there without it, and both are noticed.
    for end in FILES {
        match fs::rename(sibling(file, end), sibling(&aside, end)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            renamed => renamed?,
        }
    }
    fs::rename(new, file)?;
    sync_directory(file)?;
    Ok(aside)
}

/// The file of the store, which may be gone if its log is there.
fn file_of(path: &Path, store: &str) -> Result<PathBuf, StoreError> {
    match existing(path, store)? {
        Some(file) => Ok(file),
        None if has_log(path) => std::path::absolute(path).map_err(|error| error::io(store, &error)),
        None => Err(StoreError::Missing { store: store.to_owned() }),
    }
}

/// Ensures that no other process has the store open.
fn alone(opening: Option<OpeningStore>, store: &str) -> Result<Option<OpeningStore>, StoreError> {
    if opening.as_ref().is_none_or(|opening| opening.is_alone) {
        return Ok(opening);
    }
    Err(StoreError::InUse { store: store.to_owned() })
}

/// Copies what can be read to a new store in `target`. `directory` is for temporary files.
fn salvage(file: &Path, store: &str, directory: &Path, target: &Path) -> Result<RecoveryReport, StoreError> {
    let mut report = RecoveryReport::default();
    let undone = (has_journal(file) && !has_log(file)).then(|| undone_copy(file, directory)).transpose();
    let undone = undone.map_err(|error| error::io(store, &error))?;
    let file = undone.as_deref().unwrap_or(file);
    let unclean = Unclean::of(file, store)?;
    report.damage.extend(unclean.damage.map(Message::word));
    let wal = Wal::of(file).map_err(|error| error::io(store, &error))?;
    if wal.as_ref().is_some_and(Wal::misses_commits)
        || is_log_missing(file).is_ok_and(|is_missing| is_missing && wal.is_none())
    {
        report.misses_commits = true;
        report
            .damage
            .push(Message::word("the last commits in the log cannot be read, so a session may lack its last answers"));
    }
    if wal.is_none() && matches!(check_header(file, store, MIGRATIONS), Ok(false)) {
        // A store to which nothing was written.
        return Ok(report);
    }
    let sources = sources(file, wal.as_ref(), store, directory)?;
    let (layout, is_sound) = match sources.first() {
        Some(source) => {
            let layout = schema::layout(&source.connection).map_err(|error| error::sqlite(store, &error))?;
            (layout, has_sound_structure(&source.connection))
        }
        None => return Err(StoreError::Missing { store: store.to_owned() }),
    };
    if !is_sound {
        report.damage.push(Message::word(DAMAGED_FILE));
    }
    let migrations = MIGRATIONS.get(..usize::try_from(layout).unwrap_or(usize::MAX)).unwrap_or(MIGRATIONS);
    new_private_file(target).map_err(|error| error::io(store, &error))?;
    let mut connection = writer(target, store, migrations, false).map_err(|failure| failure.into_store_error(store))?;
    let copied = (|| {
        copy_all(&sources, &mut connection, store, &mut report)?;
        schema::migrate(&mut connection, store, MIGRATIONS)
    })();
    copied.map_err(|failure: Failure| failure.into_store_error(store))?;
    connection.close().map_err(|(_, error)| error::sqlite(store, &error))?;
    Ok(report)
}

/// A copy of the file in which the change without a log that was interrupted is undone.
fn undone_copy(file: &Path, directory: &Path) -> io::Result<PathBuf> {
    let copy = directory.join("undone.db");
    for end in ["", "-journal"] {
        copy_file(&sibling(file, end), &sibling(&copy, end))?;
    }
    // Reading it is enough. If that fails, what the file contains is examined as it is.
    let _ = connect(&copy, OpenFlags::SQLITE_OPEN_READ_WRITE, "").map(|connection| schema::layout(&connection));
    Ok(copy)
}

/// The databases to read from, the newest first: the file with its log up to the newest commit, and, if a page of that is
/// damaged, also up to the newest commit of which no page is.
fn sources(file: &Path, wal: Option<&Wal>, store: &str, directory: &Path) -> Result<Vec<Source>, StoreError> {
    let report = |error: io::Error| error::io(store, &error);
    let mut states = vec![0];
    if let Some(wal) = wal {
        states = vec![wal.newest_commit(), wal.newest_whole_commit()];
        states.dedup();
    }
    let mut sources = Vec::new();
    let mut first_error = None;
    for (number, frames) in states.into_iter().enumerate() {
        let path = directory.join(format!("image-{number}.db"));
        image::build(file, wal, frames, &path).map_err(report)?;
        let opened = match open_image(&path) {
            Err(failure) if is_damaged(&failure) && repair_schema(&path, directory, store)? => open_image(&path),
            opened => opened,
        };
        match opened {
            Ok(connection) => sources.push(Source { connection, is_newest: number == 0 }),
            Err(failure) => drop(first_error.get_or_insert(failure.into_store_error(store))),
        }
    }
    match first_error {
        Some(error) if sources.is_empty() => Err(error),
        _ => Ok(sources),
    }
}

fn open_image(path: &Path) -> Result<Connection, Failure> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY, "?immutable=1")?;
    known_database(&connection, &path.display().to_string())?;
    Ok(connection)
}

fn is_damaged(failure: &Failure) -> bool {
    matches!(failure, Failure::Sqlite(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt))
}

/// Whether the damaged list of tables in an image could be replaced by that of a new store.
fn repair_schema(image: &Path, directory: &Path, store: &str) -> Result<bool, StoreError> {
    let template = directory.join("template.db");
    if !template.exists() {
        new_private_file(&template).map_err(|error| error::io(store, &error))?;
    }
    let connection = writer(&template, store, MIGRATIONS, false).map_err(|failure| failure.into_store_error(store))?;
    let pages = || -> rusqlite::Result<Vec<u32>> {
        // Writes the log to the file.
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        let mut statement = connection.prepare("SELECT pageno FROM dbstat WHERE name = 'sqlite_schema'")?;
        statement.query_map([], |row| row.get(0))?.collect()
    };
    let pages = pages().map_err(|error| error::sqlite(store, &error))?;
    connection.close().map_err(|(_, error)| error::sqlite(store, &error))?;
    image::repair_schema(image, &template, &pages).map_err(|error| error::io(store, &error))
}

/// Errors: the database is not a store that this release can read.
fn known_database(connection: &Connection, store: &str) -> Result<(), Failure> {
    let application: i32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    if application != APPLICATION_ID {
        return Err(StoreError::ForeignDatabase { store: store.to_owned() }.into());
    }
    let (found, known) = (schema::layout(connection)?, schema::newest_layout(MIGRATIONS));
    if found > known {
        return Err(StoreError::Newer { store: store.to_owned(), found, known }.into());
    }
    // The tables can be found.
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))?;
    Ok(())
}

fn has_sound_structure(connection: &Connection) -> bool {
    let checked = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0));
    checked.is_ok_and(|found| found == "ok")
}

fn copy_all(
    sources: &[Source],
    connection: &mut Connection,
    store: &str,
    report: &mut RecoveryReport,
) -> Result<(), Failure> {
    let mut sessions: BTreeMap<String, Found> = BTreeMap::new();
    for source in sources {
        for found in source.sessions() {
            sessions.entry(found.id.clone()).or_insert(found);
        }
    }
    for found in sessions.into_values() {
        report.sessions.push(copy_session(sources, connection, store, found)?);
    }
    let transaction = connection.transaction()?;
    let mut are_complete = true;
    for source in sources {
        // A variable of a newer source is kept.
        are_complete = source.copy_user_variables(&transaction)?;
        if are_complete {
            break;
        }
    }
    if !are_complete {
        report.damage.push(Message::word("some global variables of users cannot be read"));
    }
    if !salvage_plans::copy(sources, &transaction)? {
        report.misses_plans = true;
        report.damage.push(Message::word("some plans, or tasks of plans, cannot be read"));
    }
    if !salvage_links::copy(sources, &transaction)? {
        report.misses_links = true;
        report
            .damage
            .push(Message::word("some links, or the list of the conversations that began by them, cannot be read"));
    }
    transaction.commit()?;
    Ok(())
}

/// Copies a session as completely as possible.
fn copy_session(
    sources: &[Source],
    connection: &mut Connection,
    store: &str,
    found: Found,
) -> Result<RecoveredSession, Failure> {
    let newest = sources.iter().find_map(|source| source.newest(found.key));
    let all_answers = newest.map(|(_, answers)| answers);
    let mut attempts = Vec::new();
    for attempt in [Attempt::AsItIs, Attempt::Earlier] {
        for (number, source) in sources.iter().enumerate() {
            let transaction = connection.transaction()?;
            let Some(revision) = source.copy_session(&transaction, store, &found, attempt)? else { continue };
            if attempt == Attempt::AsItIs && newest.is_none_or(|(newest, _)| newest == revision) && source.is_newest {
                let answers = answers(&transaction, found.key)?;
                transaction.commit()?;
                return Ok(RecoveredSession { id: found.id, saved: Saved::Whole, answers, all_answers });
            }
            attempts.push((revision, attempt, number));
        }
    }
    attempts.sort_by_key(|(revision, ..)| std::cmp::Reverse(*revision));
    let readable = (0..sources.len()).map(|number| (0, Attempt::Readable, number));
    for (_, attempt, number) in attempts.into_iter().chain(readable) {
        let transaction = connection.transaction()?;
        let Some(source) = sources.get(number) else { continue };
        if source.copy_session(&transaction, store, &found, attempt)?.is_none() {
            continue;
        }
        let answers = answers(&transaction, found.key)?;
        transaction.commit()?;
        let saved = if attempt == Attempt::Readable { Saved::Readable } else { Saved::Earlier };
        return Ok(RecoveredSession { id: found.id, saved, answers, all_answers });
    }
    Ok(RecoveredSession { id: found.id, saved: Saved::Nothing, answers: 0, all_answers })
}

fn answers(connection: &Connection, session: i64) -> Result<u64, Failure> {
    let sql = "SELECT answers FROM head WHERE session = ?";
    Ok(connection.query_row(sql, [session], |row| crate::sqlite::write::count(row, 0))?)
}
