//! Creates files and directories that are accessible only to their owner from the moment they exist.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// The path of a file whose name is that of `file` and `end`, as in `sessions.db-wal`.
pub(crate) fn sibling(file: &Path, end: &str) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(end);
    path.into()
}

/// Creates one directory (0700), but none of its parents. An existing directory stays unchanged.
pub(crate) fn private_directory(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(path) {
        // Covers a read-only file system on which the directory exists.
        Err(_) if path.is_dir() => Ok(()),
        result => result,
    }
}

/// Opens a file for reading and writing; creates it (0600) if it does not exist.
pub(crate) fn private_file(path: &Path) -> io::Result<File> {
    private_options().create(true).truncate(false).open(path)
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
