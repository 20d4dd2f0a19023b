//! Replaces files atomically, with their permissions. All files that replace others are written here.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, IoSlice, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::fs::{Access, AtFlags, CWD, OFlags, accessat, fcntl_getfl, fcntl_setfl};

use crate::files::not_regular;
use crate::files::temporary::TemporaryFile;

/// The write bits: of the owner, the group and others.
const WRITABLE: u32 = 0o222;

/// From this size on, in bytes, the two halves of a file are written and made durable at the same time.
const LARGE: usize = 2 * 1024 * 1024;

/// How many pieces a system call takes: `IOV_MAX` of Linux and macOS.
const MAX_PIECES: usize = 1024;

/// The limit on chained links, as in operating systems.
const MAX_LINKS: usize = 40;

/// Writes `bytes` to `path`, so that a reader sees the old file or the new one, never a part. Creates missing directories. A
/// replaced file keeps its permissions and, if the system permits it, its owner. For a link, its target is replaced. The bytes
/// are written directly to what is not a regular file, such as `/dev/stdout` or a pipe.
///
/// # Errors
/// Errors of the operating system; also for a directory and for a read-only file. Nothing is left behind then.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut replacing = FileReplacement::start(path)?;
    replacing.write_all(bytes)?;
    replacing.finish()
}

/// [`replace`] for a document that contains a conversation: only its owner can read a new file, whatever the `umask` is.
///
/// # Errors
/// As [`replace`].
pub fn replace_document(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut replacing = FileReplacement::start_document(path)?;
    replacing.write_all(bytes)?;
    replacing.finish()
}

/// [`replace`] for a file that only its owner may read or write, whatever its permissions were and whatever the `umask` is.
///
/// # Errors
/// As [`replace`]; also for everything that is not a regular file.
pub(crate) fn replace_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let real = match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => return Err(not_regular()),
        Ok(_) => fs::canonicalize(path)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => resolve_links(path)?,
        Err(error) => return Err(error),
    };
    fs::create_dir_all(folder_of(&real))?;
    let temporary = TemporaryFile::with_private_permissions(&real)?;
    temporary.write(bytes)?;
    temporary.replace(&real)
}

/// [`replace`] in pieces, for contents that need not be in memory completely. If it is dropped before
/// [`FileReplacement::finish`], the file stays unchanged.
#[derive(Debug)]
pub(crate) struct FileReplacement {
    target: Target,
    /// Whether nothing was written since it was synced.
    is_synced: bool,
}

#[derive(Debug)]
enum Target {
    Direct(File),
    /// A temporary file in the same folder, and the metadata of the original file, if there is one.
    Replacement {
        temporary: TemporaryFile,
        real: PathBuf,
        original: Option<Box<Metadata>>,
    },
}

impl FileReplacement {
    /// Starts to write the new contents of `path`.
    pub(crate) fn start(path: &Path) -> io::Result<Self> {
        Self::start_with(path, TemporaryFile::with_default_permissions)
    }

    /// Starts to write a document that contains a conversation, as [`replace_document`] does.
    pub(crate) fn start_document(path: &Path) -> io::Result<Self> {
        Self::start_with(path, TemporaryFile::with_private_permissions)
    }

    /// `create` makes the file if there is none.
    fn start_with(path: &Path, create: fn(&Path) -> io::Result<TemporaryFile>) -> io::Result<Self> {
        let target = match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
            }
            Ok(metadata) if !metadata.is_file() || is_output(&metadata) => Target::Direct(open_for_append(path)?),
            Ok(_) => {
                let real = fs::canonicalize(path)?;
                let metadata = fs::metadata(&real)?;
                if !is_writable(&real, &metadata) {
                    return Err(read_only());
                }
                Target::Replacement {
                    temporary: TemporaryFile::with_private_permissions(&real)?,
                    real,
                    original: Some(Box::new(metadata)),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let real = resolve_links(path)?;
                fs::create_dir_all(folder_of(&real))?;
                Target::Replacement { temporary: create(&real)?, real, original: None }
            }
            Err(error) => return Err(error),
        };
        Ok(Self { target, is_synced: false })
    }

    /// Writes all pieces. Of many megabytes, the first half is on its way to the disk while the second half is written.
    pub(crate) fn write_pieces(&mut self, mut pieces: Vec<IoSlice<'_>>) -> io::Result<()> {
        self.is_synced = false;
        let is_large = pieces.iter().map(|piece| piece.len()).sum::<usize>() >= LARGE;
        let file = match &self.target {
            Target::Replacement { temporary, .. } if is_large => temporary.file(),
            _ => return write_all(self.file(), &mut pieces),
        };
        let half = pieces.len() / 2;
        let (first, second) = pieces.split_at_mut(half);
        write_all(file, first)?;
        thread::scope(|scope| {
            let early = thread::Builder::new().spawn_scoped(scope, || file.sync_data());
            let written = write_all(file, second);
            match early.map(|thread| thread.join()) {
                // A failure is reported to one call only, so it counts here.
                Ok(Ok(synced)) => written.and(synced),
                Ok(Err(panic)) => resume_unwind(panic),
                // No thread can be started. Everything is synced at the end anyway.
                Err(_) => written,
            }
        })
    }

    /// Makes what was written durable, so that [`FileReplacement::finish`] takes little time.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.flush()?;
        if let Target::Replacement { temporary, original, .. } = &self.target {
            if let Some(metadata) = original {
                // In a shared folder this can fail: the new file then belongs to the current user.
                let _ = temporary.copy_owner(metadata);
                temporary.copy_permissions(metadata)?;
            }
            // Once, after everything: each sync waits for the disk.
            temporary.file().sync_all()?;
        }
        self.is_synced = true;
        Ok(())
    }

    /// The metadata of the new file, which stay the same when it is put in place.
    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        self.file().metadata()
    }

    /// Puts the new contents in place.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        if !self.is_synced {
            self.sync()?;
        }
        match self.target {
            Target::Direct(_) => Ok(()),
            Target::Replacement { temporary, real, .. } => temporary.replace(&real),
        }
    }

    fn file(&self) -> &File {
        match &self.target {
            Target::Direct(file) => file,
            Target::Replacement { temporary, .. } => temporary.file(),
        }
    }
}

impl Write for FileReplacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_synced = false;
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

/// Writes all pieces, many of them at a time.
fn write_all(mut file: &File, pieces: &mut [IoSlice<'_>]) -> io::Result<()> {
    let mut left = pieces;
    // Removes empty pieces: that none of their bytes is written is no error.
    IoSlice::advance_slices(&mut left, 0);
    while !left.is_empty() {
        let at_once = left.get(..left.len().min(MAX_PIECES)).unwrap_or_default();
        match file.write_vectored(at_once) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut left, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether both paths refer to the same file.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
    identity(one).is_some_and(|one| identity(other) == Some(one))
}

/// Whether this user may write to the file. A file without any write bit is not replaced, not even by root.
pub fn is_writable(path: &Path, metadata: &Metadata) -> bool {
    is_writable_at(CWD, path, metadata)
}

/// [`is_writable`] for a path relative to `folder`.
pub(crate) fn is_writable_at(folder: impl AsFd, path: &Path, metadata: &Metadata) -> bool {
    metadata.mode() & WRITABLE != 0 && accessat(folder, path, Access::WRITE_OK, AtFlags::empty()).is_ok()
}

pub(crate) fn read_only() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "it is read-only")
}

/// Whether this file is already standard output or standard error: `> FILE` with `-o /dev/stdout`.
fn is_output(metadata: &Metadata) -> bool {
    let same = |one: Metadata| (one.dev(), one.ino()) == (metadata.dev(), metadata.ino());
    ["/dev/stdout", "/dev/stderr"].iter().any(|path| fs::metadata(path).is_ok_and(same))
}

fn open_for_append(path: &Path) -> io::Result<File> {
    // Without `NONBLOCK`, opening a pipe without a reader would block.
    let file = OpenOptions::new().append(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

/// The target of a path whose file does not exist yet: the end of the chain of links.
fn resolve_links(path: &Path) -> io::Result<PathBuf> {
    let mut current = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&current) {
            Ok(next) => current = folder_of(&current).join(next),
            Err(_) => return Ok(current),
        }
    }
    Err(io::Error::other("its links form a loop"))
}

pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    fn count(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn pieces_are_written_in_order_whatever_their_number_and_size() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        for (count, size) in [(0, 0), (1, 5), (3000, 7), (2000, 3000), (1, 3_000_000)] {
            let texts: Vec<String> = (0..count).map(|number| format!("{number}{}|", " ".repeat(size))).collect();
            // Empty ones among them.
            let pieces = texts.iter().flat_map(|text| [text.as_str(), ""]);
            let mut replacement = FileReplacement::start(&file).unwrap();
            replacement.write_pieces(pieces.map(|piece| IoSlice::new(piece.as_bytes())).collect()).unwrap();
            replacement.finish().unwrap();
            assert!(fs::read_to_string(&file).unwrap() == texts.concat(), "{count} of {size}");
        }
    }

    #[test]
    fn a_replaced_file_keeps_its_permissions_and_a_link_stays_a_link() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::write(at("file"), "old").unwrap();
        fs::set_permissions(at("file"), Permissions::from_mode(0o640)).unwrap();
        symlink("file", at("link")).unwrap();
        symlink("deep/new", at("dangling")).unwrap();
        replace(&at("link"), b"new").unwrap();
        assert!(at("link").is_symlink());
        assert_eq!((fs::read(at("file")).unwrap().as_slice(), mode(&at("file"))), (b"new".as_slice(), 0o640));
        replace(&at("dangling"), b"made").unwrap();
        assert!(at("dangling").is_symlink());
        assert_eq!(fs::read(at("deep/new")).unwrap(), b"made");
        assert_eq!((count(root.path()), count(&at("deep"))), (4, 1), "nothing else is left behind");
    }

    #[test]
    fn a_document_is_private_unless_it_replaces_a_file() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::write(at("old"), "").unwrap();
        fs::set_permissions(at("old"), Permissions::from_mode(0o644)).unwrap();
        for (name, expected) in [("old", 0o644), ("new", 0o600)] {
            replace_document(&at(name), b"x").unwrap();
            assert_eq!(mode(&at(name)), expected, "{name}");
        }
    }

    #[test]
    fn a_new_file_has_the_default_permissions() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("usual"), "").unwrap();
        replace(&root.path().join("new"), b"new").unwrap();
        assert_eq!(mode(&root.path().join("new")), mode(&root.path().join("usual")));
    }

    #[test]
    fn files_planted_next_to_a_file_are_neither_opened_nor_followed() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::write(at("victim"), "mine").unwrap();
        // Names that a temporary file could be predicted to have.
        symlink("victim", at(&format!(".file.{}", std::process::id()))).unwrap();
        symlink("victim", at(&format!(".bcc-mend.{}.0", std::process::id()))).unwrap();
        replace(&at("file"), b"new").unwrap();
        assert_eq!(fs::read(at("victim")).unwrap(), b"mine");
        assert!(!at("file").is_symlink());
    }

    #[test]
    fn a_file_that_cannot_be_replaced_stays_and_nothing_is_left_behind() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir(at("folder")).unwrap();
        fs::write(at("readonly"), "old").unwrap();
        fs::set_permissions(at("readonly"), Permissions::from_mode(0o444)).unwrap();
        symlink("circle", at("circle")).unwrap();
        let long = "x".repeat(300);
        for (name, reason) in [("folder", "directory"), ("readonly", "read-only"), ("circle", ""), (long.as_str(), "")]
        {
            let error = replace(&at(name), b"new").unwrap_err();
            assert!(error.to_string().contains(reason), "{name}: {error}");
        }
        assert_eq!(fs::read(at("readonly")).unwrap(), b"old");
        assert_eq!(count(root.path()), 3, "nothing else is left behind");
    }

    #[test]
    fn bytes_are_written_directly_to_what_is_not_a_regular_file() {
        replace(Path::new("/dev/null"), b"gone").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        let root = tempfile::tempdir().unwrap();
        let socket = root.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert!(replace(&socket, b"x").is_err());
        assert_eq!(count(root.path()), 1);
    }

    #[test]
    fn a_file_is_recognized_by_all_of_its_names() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir(at("folder")).unwrap();
        fs::write(at("file"), "").unwrap();
        fs::write(at("other"), "").unwrap();
        symlink("file", at("link")).unwrap();
        fs::hard_link(at("file"), at("second")).unwrap();
        for name in ["file", "link", "second", "folder/../file"] {
            assert!(is_same_file(&at("file"), &at(name)), "{name}");
        }
        assert!(!is_same_file(&at("file"), &at("other")) && !is_same_file(&at("gone"), &at("gone")));
    }
}
