//! Creates files and directories that are accessible only to their owner from the moment they exist.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

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

/// Whether `path` still refers to the open `file`.
#[cfg(unix)]
pub(crate) fn is_same_file(path: &Path, file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (std::fs::metadata(path), file.metadata()) {
        (Ok(current), Ok(opened)) => current.dev() == opened.dev() && current.ino() == opened.ino(),
        _ => false,
    }
}

/// On other systems an open file cannot be removed, so its path always refers to it.
#[cfg(not(unix))]
pub(crate) fn is_same_file(_path: &Path, _file: &File) -> bool {
    true
}
