//! The one writer of files: what takes the place of a file does so whole or not at all, as the file that it was.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, OFlags, access, fcntl_getfl, fcntl_setfl};

/// The bits of a mode that say who may do what.
const PERMISSIONS: u32 = 0o7777;

/// Any of these, and somebody may write.
const WRITABLE: u32 = 0o222;

/// What a new file may be, as far as the person's `umask` lets it.
const USUAL: u32 = 0o666;

/// While it is written, nobody else reads what takes the place of another file.
const OWN: u32 = 0o600;

/// The most links that are followed one after another, as systems do.
const MOST_LINKS: usize = 40;

/// Writes `bytes` to `path`, so that a reader sees the old file or the new one, never half. Makes missing directories. What is
/// replaced keeps its permissions and, where the system lets it, its owner; a link stays one, and what it leads to is written.
/// What is no file at all, such as `/dev/stdout` or a pipe, gets the bytes as they come.
///
/// # Errors
/// As the operating system has them; also for a directory, and for a file that is read-only. Nothing is left behind then.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut replacing = FileReplacement::begin(path)?;
    replacing.write_all(bytes)?;
    replacing.finish()
}

/// [`replace`] piece by piece, for what need not be in memory as a whole. Dropped before [`FileReplacement::finish`], it leaves
/// everything as it was.
#[derive(Debug)]
pub struct FileReplacement {
    into: Into,
}

#[derive(Debug)]
enum Into {
    Itself(File),
    /// A file beside the one that it will be, and what that is already.
    Place {
        beside: TemporaryFile,
        real: PathBuf,
        like: Option<Box<Metadata>>,
    },
}

impl FileReplacement {
    /// Begins to write what `path` will hold.
    pub fn begin(path: &Path) -> io::Result<Self> {
        let into = match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
            }
            Ok(metadata) if !metadata.is_file() || is_output(&metadata) => Into::Itself(opened_through(path)?),
            Ok(_) => {
                let real = fs::canonicalize(path)?;
                let metadata = fs::metadata(&real)?;
                if !may_be_written(&real, &metadata) {
                    return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is read-only"));
                }
                Into::Place { beside: TemporaryFile::own(&real)?, real, like: Some(Box::new(metadata)) }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let real = leads_to(path)?;
                fs::create_dir_all(folder_of(&real))?;
                Into::Place { beside: TemporaryFile::usual(&real)?, real, like: None }
            }
            Err(error) => return Err(error),
        };
        Ok(Self { into })
    }

    /// Everything is written: now it takes its place.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        match self.into {
            Into::Itself(_) => Ok(()),
            Into::Place { beside, real, like } => {
                beside.file.sync_all()?;
                if let Some(metadata) = like {
                    // A folder that several people share: the new file is then of the one who wrote it, as any other of theirs.
                    let _ = beside.belong_like(&metadata);
                    beside.be_as(&metadata)?;
                }
                beside.take_the_place_of(&real)
            }
        }
    }

    fn file(&mut self) -> &File {
        match &self.into {
            Into::Itself(file) => file,
            Into::Place { beside, .. } => &beside.file,
        }
    }
}

impl Write for FileReplacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

/// Whether both paths lead to one file, however they are written.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    let of = |path: &Path| fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
    of(one).is_some_and(|one| of(other) == Some(one))
}

/// Whether this file is meant to be written, by this user. To root everything is writable; what nobody may write to stays.
pub fn may_be_written(path: &Path, metadata: &Metadata) -> bool {
    metadata.mode() & WRITABLE != 0 && access(path, Access::WRITE_OK).is_ok()
}

/// Whether this file is what the program writes to already: `> FILE` with `-o /dev/stdout`.
fn is_output(metadata: &Metadata) -> bool {
    let same = |one: Metadata| (one.dev(), one.ino()) == (metadata.dev(), metadata.ino());
    ["/dev/stdout", "/dev/stderr"].iter().any(|path| fs::metadata(path).is_ok_and(same))
}

fn opened_through(path: &Path) -> io::Result<File> {
    // A pipe that nobody reads would be waited for.
    let file = OpenOptions::new().append(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Where a path leads that nothing is at yet: past the links that lead there.
fn leads_to(path: &Path) -> io::Result<PathBuf> {
    let mut at = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&at) {
            Ok(next) => at = folder_of(&at).join(next),
            Err(_) => return Ok(at),
        }
    }
    Err(io::Error::other("its links form a loop"))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A hidden name in the same folder that nobody else has or can foresee.
pub fn name_beside(path: &Path) -> io::Result<PathBuf> {
    if path.file_name().is_none() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it has no file name"));
    }
    // Not made from its name, which may be as long as a name can be.
    Ok(folder_of(path).join(format!(".bcc-{}", uuid::Uuid::now_v7().simple())))
}

/// A new file in the folder of another one; removed unless it takes its place.
#[derive(Debug)]
pub struct TemporaryFile {
    path: PathBuf,
    file: File,
}

impl TemporaryFile {
    fn new(real: &Path, mode: u32) -> io::Result<Self> {
        let path = name_beside(real)?;
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path)?;
        Ok(Self { path, file })
    }

    /// Makes an empty file beside `real`, where nothing is yet: with the permissions that new files have. Nothing that is there
    /// is opened, and no link followed.
    pub fn usual(real: &Path) -> io::Result<Self> {
        Self::new(real, USUAL)
    }

    /// The same for what takes the place of another file: for nobody else's eyes yet.
    pub fn own(real: &Path) -> io::Result<Self> {
        Self::new(real, OWN)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fills it, and waits until the disk has it.
    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.file).write_all(bytes)?;
        self.file.sync_all()
    }

    /// Gives it to the owner and the group of another file, where it is not theirs.
    pub fn belong_like(&self, like: &Metadata) -> io::Result<()> {
        let own = self.file.metadata()?;
        if (own.uid(), own.gid()) == (like.uid(), like.gid()) {
            return Ok(());
        }
        fchown(&self.file, Some(like.uid()), Some(like.gid()))
    }

    pub fn be_as(&self, like: &Metadata) -> io::Result<()> {
        self.file.set_permissions(Permissions::from_mode(like.mode() & PERMISSIONS))?;
        self.file.sync_all()
    }

    /// Renames it to `real`, whatever file is there.
    ///
    /// # Errors
    /// As the operating system has them; it is removed then.
    pub fn take_the_place_of(self, real: &Path) -> io::Result<()> {
        fs::rename(&self.path, real)?;
        // The name is on the disk as well when its folder is; what fails here can no longer be undone, and harms nobody.
        let _ = File::open(folder_of(real)).map(|folder| folder.sync_all());
        Ok(())
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // After the renaming there is none of this name.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    fn count(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn a_file_is_replaced_as_what_it_was() {
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
    fn a_new_file_may_be_read_as_any_other_that_is_made() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("usual"), "").unwrap();
        replace(&root.path().join("new"), b"new").unwrap();
        assert_eq!(mode(&root.path().join("new")), mode(&root.path().join("usual")));
    }

    #[test]
    fn what_is_planted_beside_a_file_is_neither_opened_nor_followed() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::write(at("victim"), "mine").unwrap();
        // The name that such a file could be foreseen to have.
        symlink("victim", at(&format!(".file.{}", std::process::id()))).unwrap();
        symlink("victim", at(&format!(".bcc-mend.{}.0", std::process::id()))).unwrap();
        replace(&at("file"), b"new").unwrap();
        assert_eq!(fs::read(at("victim")).unwrap(), b"mine");
        assert!(!at("file").is_symlink());
    }

    #[test]
    fn what_cannot_be_replaced_stays_and_nothing_is_left_behind() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir(at("folder")).unwrap();
        fs::write(at("readonly"), "old").unwrap();
        fs::set_permissions(at("readonly"), Permissions::from_mode(0o444)).unwrap();
        symlink("circle", at("circle")).unwrap();
        let long = "x".repeat(300);
        for (name, why) in [("folder", "directory"), ("readonly", "read-only"), ("circle", ""), (long.as_str(), "")] {
            let error = replace(&at(name), b"new").unwrap_err();
            assert!(error.to_string().contains(why), "{name}: {error}");
        }
        assert_eq!(fs::read(at("readonly")).unwrap(), b"old");
        assert_eq!(count(root.path()), 3, "nothing else is left behind");
    }

    #[test]
    fn what_is_no_file_gets_the_bytes_and_stays_what_it_is() {
        replace(Path::new("/dev/null"), b"gone").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        let root = tempfile::tempdir().unwrap();
        let socket = root.path().join("socket");
        let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert!(replace(&socket, b"x").is_err());
        assert_eq!(count(root.path()), 1);
    }

    #[test]
    fn one_file_is_known_by_all_of_its_names() {
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
