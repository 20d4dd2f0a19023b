//! Checks a store that was not closed, before it is opened for writing, and copies a damaged one: SQLite would take over what
//! it can of a damaged log, and delete the rest.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bcc_lang::message::message::Message;
use rusqlite::Connection;

use crate::error::StoreError;
use crate::sqlite::disk::{new_private_file, sibling};
use crate::sqlite::error::{self, Failure};
use crate::sqlite::wal::{Wal, WalDamage, is_log_missing};

/// The reason for rejecting a file whose structure is damaged.
pub(crate) const DAMAGED_FILE: &str = "the file is damaged";

/// The reason for rejecting a log that a new file would take over.
pub(crate) const LOG_WITHOUT_FILE: &str = "the file is empty or gone, but its log is there";

/// The maximum size of a store whose structure is checked after every unclean end, in bytes: this takes
/// about 0.1 s per 100 MB.
const MAX_CHECKED_BYTES: u64 = 256 << 20;

/// The end of the name of a damaged store that was copied or moved, before the time.
pub(crate) const DAMAGED: &str = ".damaged-";

/// The maximum number of earlier copies that a new one is compared with.
const MAX_COPIES: usize = 16;

/// The files of a store, by the end of their names.
pub(crate) const FILES: [&str; 3] = ["", "-wal", "-shm"];

/// What an unclean end of the last process left. The default is a clean end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unclean {
    /// The damage that is visible without reading the database.
    pub(crate) damage: Option<&'static str>,
    /// Whether the structure of the database must be checked.
    pub(crate) needs_check: bool,
}

impl Unclean {
    /// Of the store in `file`, which no process has open.
    pub(crate) fn of(file: &Path, store: &str) -> Result<Self, StoreError> {
        Self::read(file).map_err(|error| error::io(store, &error))
    }

    fn read(file: &Path) -> io::Result<Self> {
        let short = "the log of its latest commits is missing, or shorter than it was";
        let Some(wal) = Wal::of(file)? else {
            return Ok(Self { damage: is_log_missing(file)?.then_some(short), needs_check: false });
        };
        let bytes = match fs::metadata(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            metadata => metadata?.len(),
        };
        let damage = match wal.damage() {
            _ if bytes == 0 => Some(LOG_WITHOUT_FILE),
            Some(WalDamage::Changed) => Some("the log of its latest commits was changed after it was written"),
            Some(WalDamage::Short) => Some(short),
            None => None,
        };
        let page_bytes = u64::try_from(wal.page_bytes).unwrap_or(u64::MAX).max(1);
        let needs_check = bytes <= MAX_CHECKED_BYTES || wal.lacks_pages(bytes / page_bytes);
        Ok(Self { damage, needs_check })
    }
}

/// Checks the structure of a database, but not the content of its rows.
/// Errors: [`StoreError::Corrupt`].
pub(crate) fn quick_check(connection: &Connection, store: &str) -> Result<(), Failure> {
    let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found == "ok" {
        return Ok(());
    }
    Err(StoreError::Corrupt { store: store.to_owned(), reason: Message::word(DAMAGED_FILE) }.into())
}

/// Copies the files of a store, readable only by their owner, and returns the path of the copy. If there is such a copy
/// already, no further one is made.
pub(crate) fn copy_aside(file: &Path) -> io::Result<PathBuf> {
    if let Some(copy) = existing_copy(file)? {
        return Ok(copy);
    }
    let start = free_path(file, DAMAGED)?;
    for end in FILES {
        copy_file(&sibling(file, end), &sibling(&start, end))?;
    }
    sync_directory(&start)?;
    Ok(start)
}

/// A path for files of a store that does not exist: that of the store with `end` and the time.
pub(crate) fn free_path(file: &Path, end: &str) -> io::Result<PathBuf> {
    let time = Connection::open_in_memory()
        .and_then(|connection| connection.query_row("SELECT strftime('%Y%m%dT%H%M%SZ', 'now')", [], |row| row.get(0)))
        .map_err(io::Error::other)?;
    let time: String = time;
    let paths = (0_u32..).map(|number| match number {
        0 => sibling(file, &format!("{end}{time}")),
        number => sibling(file, &format!("{end}{time}-{number}")),
    });
    paths
        .take(MAX_COPIES)
        .find(|path| FILES.iter().all(|end| !sibling(path, end).exists()))
        .ok_or_else(|| io::Error::from(io::ErrorKind::AlreadyExists))
}

/// Copies a file that exists to a new one, which is then on the disk.
pub(crate) fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = match fs::File::open(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let mut target = new_private_file(to)?;
    io::copy(&mut source, &mut target)?;
    target.sync_all()
}

/// Ensures that the names of files next to `path` are on the disk.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(directory) if cfg!(unix) => fs::File::open(directory)?.sync_all(),
        _ => Ok(()),
    }
}

/// An earlier copy of the files as they are.
fn existing_copy(file: &Path) -> io::Result<Option<PathBuf>> {
    let (Some(directory), Some(name)) = (file.parent(), file.file_name()) else { return Ok(None) };
    let mut start = name.to_owned();
    start.push(DAMAGED);
    let mut copies: Vec<PathBuf> = fs::read_dir(directory)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let bytes = path.file_name().map(std::ffi::OsStr::as_encoded_bytes).unwrap_or_default();
            bytes.starts_with(start.as_encoded_bytes()) && bytes.ends_with(b"Z")
        })
        .collect();
    copies.sort();
    for copy in copies.into_iter().rev().take(MAX_COPIES) {
        // The index is rebuilt from the log, so it may differ.
        if same_content(file, &copy)? && same_content(&sibling(file, "-wal"), &sibling(&copy, "-wal"))? {
            return Ok(Some(copy));
        }
    }
    Ok(None)
}

/// Whether two files have the same content, or neither exists.
fn same_content(left: &Path, right: &Path) -> io::Result<bool> {
    let open = |path: &Path| match fs::File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    let (left, right) = match (open(left)?, open(right)?) {
        (None, None) => return Ok(true),
        (Some(left), Some(right)) => (left, right),
        _ => return Ok(false),
    };
    if left.metadata()?.len() != right.metadata()?.len() {
        return Ok(false);
    }
    let mut right = io::BufReader::new(right).bytes();
    for byte in io::BufReader::new(left).bytes() {
        if right.next().transpose()? != Some(byte?) {
            return Ok(false);
        }
    }
    Ok(right.next().is_none())
}
