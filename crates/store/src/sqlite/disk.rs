//! Files and directories that only their owner may read, from the moment they exist.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

/// Makes one directory (0700), but none above it. One that is there stays as it is.
pub(crate) fn private_directory(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(path) {
        // Also where the file system is read-only, as long as the directory is there.
        Err(_) if path.is_dir() => Ok(()),
        done => done,
    }
}

/// Opens a file for reading and writing, made (0600) when it is not there.
pub(crate) fn private_file(path: &Path) -> io::Result<File> {
    private().create(true).truncate(false).open(path)
}

/// Makes an empty file (0600).
/// Errors: `AlreadyExists` when anything is there.
pub(crate) fn new_private_file(path: &Path) -> io::Result<File> {
    private().create_new(true).open(path)
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Whether `path` still leads to the open `file`.
#[cfg(unix)]
pub(crate) fn leads_to(path: &Path, file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (std::fs::metadata(path), file.metadata()) {
        (Ok(there), Ok(here)) => there.dev() == here.dev() && there.ino() == here.ino(),
        _ => false,
    }
}

/// Elsewhere an open file cannot be taken away, so that a path always leads to it.
#[cfg(not(unix))]
pub(crate) fn leads_to(_path: &Path, _file: &File) -> bool {
    true
}
