//! Creates files and directories that are accessible only to their owner from the moment they exist, and opens lock files.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// The path of a file whose name is that of `file` and `end`, as in `sessions.db-wal`.
pub(crate) fn sibling(file: &Path, end: &str) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(end);
    path.into()
}

/// The reason why a lock file is rejected.
pub const NOT_A_LOCK: &str = "it is a link, or something else than a lock file; remove it, and try again";

/// The maximum size of a lock file, in bytes: it contains at most its owner and a short description of its holder.
pub(crate) const MAX_LOCK_BYTES: u64 = 4096;

/// Creates one directory (0700), but none of its parents. An existing directory stays unchanged.
pub fn private_directory(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(path) {
        // Covers a read-only file system on which the directory exists.
        Err(_) if path.is_dir() => Ok(()),
        result => result,
    }
}

/// Opens a lock file for reading and writing; creates it (0600) if it does not exist. It follows no link and changes nothing in
/// the file, which may have been put there by someone else.
///
/// # Errors
/// `InvalidInput` with [`NOT_A_LOCK`] if there is something other than a short regular file with a single name.
pub fn lock_file(path: &Path) -> io::Result<File> {
    let not_a_lock = || io::Error::new(io::ErrorKind::InvalidInput, NOT_A_LOCK);
    let mut options = private_options();
    no_link(&mut options);
    let file = options.create(true).truncate(false).open(path).map_err(|error| match path.symlink_metadata() {
        Ok(found) if !found.is_file() => not_a_lock(),
        _ => error,
    })?;
    if is_lock(&file.metadata()?) { Ok(file) } else { Err(not_a_lock()) }
}

fn is_lock(metadata: &std::fs::Metadata) -> bool {
    metadata.is_file() && metadata.len() <= MAX_LOCK_BYTES && names(metadata) <= 1
}

/// Opens an existing lock file for reading.
///
/// # Errors
/// As [`lock_file`].
pub(crate) fn existing_lock_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    no_link(options.read(true));
    let file = options.open(path)?;
    if is_lock(&file.metadata()?) { Ok(file) } else { Err(io::Error::new(io::ErrorKind::InvalidInput, NOT_A_LOCK)) }
}

/// Reads the description of the holder from a lock file that may exist; `None` for anything else, such as a link.
pub(crate) fn read_lock_file(path: &Path) -> Option<String> {
    let file = existing_lock_file(path).ok()?;
    io::read_to_string(io::Read::take(file, MAX_LOCK_BYTES)).ok()
}

/// Rejects links when the file is opened, and does not wait for the other end of a pipe.
fn no_link(options: &mut OpenOptions) {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags.bits().cast_signed());
    }
}

/// The number of names of a file: its hard links.
#[cfg(unix)]
fn names(metadata: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(metadata)
}

#[cfg(not(unix))]
fn names(_metadata: &std::fs::Metadata) -> u64 {
    1
}

/// Creates an empty file (0600).
/// Errors: `AlreadyExists` if the path exists.
pub(crate) fn new_private_file(path: &Path) -> io::Result<File> {
    private_options().create_new(true).open(path)
}

fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Identifies a file, whatever its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    number: u64,
}

impl FileId {
    #[cfg(unix)]
    fn of(metadata: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self { device: metadata.dev(), number: metadata.ino() }
    }

    /// On other systems an open file cannot be removed or moved, so its path always refers to it.
    #[cfg(not(unix))]
    fn of(_metadata: &std::fs::Metadata) -> Self {
        Self { device: 0, number: 0 }
    }

    /// Of the file at `path`.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        std::fs::metadata(path).map(|metadata| Self::of(&metadata))
    }
}

/// Whether `path` still refers to the open `file`.
pub(crate) fn is_same_file(path: &Path, file: &File) -> bool {
    match (FileId::at(path), file.metadata()) {
        (Ok(current), Ok(opened)) => current == FileId::of(&opened),
        _ => false,
    }
}
