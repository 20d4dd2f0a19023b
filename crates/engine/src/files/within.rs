//! Opens the files of a project: no link leads out of its directory. Paths that the person named are opened by `read_bounded`, which
//! follows links.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, flock, mkdirat, openat, statat};
use rustix::io::Errno;

use crate::files::create::publish;
use crate::files::temporary::{TemporaryFile, readable};
use crate::files::write::{folder_of, is_writable_at, read_only};
use crate::files::{not_regular, read_file};

const LINK_OUT: &str = "it is a link that leads out of the project; replace it with a copy of what it leads to";
const BELOW_LINK_OUT: &str =
    "a folder of its path is a link that leads out of the project; replace the link with a copy of the folder";

/// The real path of what is at `path` in the directory `root`.
///
/// # Errors
/// Errors of the operating system; `PermissionDenied` with the reason if a link leads out of `root`.
pub fn resolve_within(root: &Path, path: &Path) -> io::Result<PathBuf> {
    let (root, inside) = resolve(root, path)?;
    // Joining nothing would add a separator.
    Ok(if inside.as_os_str().is_empty() { root } else { root.join(inside) })
}

/// The real path of `root`, and that of `path` relative to it.
fn resolve(root: &Path, path: &Path) -> io::Result<(PathBuf, PathBuf)> {
    let (real, root) = (fs::canonicalize(path)?, fs::canonicalize(root)?);
    if let Ok(inside) = real.strip_prefix(&root) {
        let inside = inside.to_path_buf();
        return Ok((root, inside));
    }
    let reason = if path.is_symlink() { LINK_OUT } else { BELOW_LINK_OUT };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
}

/// [`resolve`] for a path whose last parts may not exist yet.
fn resolve_new(root: &Path, path: &Path) -> io::Result<(PathBuf, PathBuf)> {
    let existing = path.ancestors().find(|ancestor| ancestor.symlink_metadata().is_ok()).unwrap_or(root);
    let (root, inside) = resolve(root, existing)?;
    Ok((root, inside.join(path.strip_prefix(existing).unwrap_or(Path::new("")))))
}

/// Reads a regular file of the project in `root`, of at most `max_bytes` bytes. Of a larger file, one more byte is read, so that
/// the caller can tell. Opening it has no effect, and does not wait, whatever is there.
///
/// # Errors
/// As [`resolve_within`]; `InvalidInput` for everything that is not a regular file.
pub fn read_within(root: &Path, path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    read_file(open_within(root, path)?, max_bytes)
}

/// Opens a regular file of the project in `root`, as [`read_within`] does.
///
/// # Errors
/// As [`read_within`].
pub(crate) fn open_within(root: &Path, path: &Path) -> io::Result<File> {
    let (root, inside) = resolve(root, path)?;
    open_without_links(&root, &inside)
}

/// [`replace`](crate::files::write::replace) for a file of the project in `root`. Creates missing folders.
///
/// # Errors
/// Errors of the operating system and of [`resolve_within`]; also for everything that is not a regular file, and for a read-only one.
pub fn replace_within(root: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (root, inside) = resolve_new(root, path)?;
    replace_without_links(&root, &inside, bytes, TemporaryFile::new_in)
}

/// [`replace_within`] for a document that contains a conversation: only its owner can read a new file.
///
/// # Errors
/// As [`replace_within`].
pub(crate) fn replace_document_within(root: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (root, inside) = resolve_new(root, path)?;
    replace_without_links(&root, &inside, bytes, TemporaryFile::private_in)
}

/// [`create`](crate::files::create::create) for a file of the project in `root`. Creates missing folders.
///
/// # Errors
/// As [`replace_within`].
pub(crate) fn create_within(root: &Path, path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let (folder, name) = folder_within(root, path)?;
    match statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => return Ok(false),
        Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    publish(TemporaryFile::new_in(folder)?, path, bytes)
}

/// Waits until nobody else holds the folder of a file of the project in `root`, and holds it as long as the result lives. Creates missing
/// folders.
///
/// # Errors
/// As [`replace_within`].
pub(crate) fn lock_folder_within(root: &Path, path: &Path) -> io::Result<OwnedFd> {
    let (folder, _) = folder_within(root, path)?;
    let readable = readable(&folder)?;
    match flock(&readable, FlockOperation::LockExclusive) {
        // Some file systems have no locks.
        Ok(()) | Err(Errno::NOTSUP | Errno::NOSYS | Errno::NOLCK) => Ok(readable),
        Err(error) => Err(error.into()),
    }
}

/// The folder of a file of the project in `root`, without following links, and the name of the file.
fn folder_within(root: &Path, path: &Path) -> io::Result<(OwnedFd, OsString)> {
    let (root, inside) = resolve_new(root, path)?;
    let name = inside.file_name().ok_or_else(not_regular)?.to_owned();
    Ok((open_folder(&root, folder_of(&inside), true)?, name))
}

/// Replaces the regular file `inside` the directory `root`, or creates it with its folders, as [`open_without_links`] opens it.
/// `create` makes the new file.
fn replace_without_links(
    root: &Path,
    inside: &Path,
    bytes: &[u8],
    create: fn(OwnedFd) -> io::Result<TemporaryFile>,
) -> io::Result<()> {
    let name = inside.file_name().ok_or_else(not_regular)?;
    let folder = open_folder(root, folder_of(inside), true)?;
    let original = match open_regular(&folder, name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        opened => Some(opened?.metadata()?),
    };
    let temporary = match original.as_ref() {
        Some(metadata) if !is_writable_at(&folder, Path::new(name), metadata) => return Err(read_only()),
        Some(_) => TemporaryFile::private_in(folder)?,
        None => create(folder)?,
    };
    if let Some(metadata) = original {
        // In a shared folder this can fail: the new file then belongs to the current user.
        let _ = temporary.copy_owner(&metadata);
        temporary.copy_permissions(&metadata)?;
    }
    temporary.write(bytes)?;
    temporary.replace(Path::new(name))
}

/// The path without `.` and `..`. The system resolves them only for existing paths.
pub fn normalize(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normalized.pop();
            }
            other => normalized.push(other),
        }
    }
    normalized
}

/// How a folder is opened to reach what is in it: reading a file needs no permission to list its folders.
#[cfg(target_os = "linux")]
pub(crate) const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC).union(OFlags::PATH);
#[cfg(not(target_os = "linux"))]
pub(crate) const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// Opens the regular file `inside` the directory `root`, one folder after the other: a link that takes the place of a part of the path
/// meanwhile is an error.
fn open_without_links(root: &Path, inside: &Path) -> io::Result<File> {
    let name = inside.file_name().ok_or_else(not_regular)?;
    open_regular(&open_folder(root, folder_of(inside), false)?, name)
}

fn open_folder(root: &Path, inside: &Path, creates: bool) -> io::Result<OwnedFd> {
    let flags = FOLDER | OFlags::NOFOLLOW;
    let mut folder = openat(CWD, root, flags, Mode::empty())?;
    for part in inside.components() {
        let name = match part {
            Component::CurDir => continue,
            Component::Normal(name) => name,
            _ => return Err(not_regular()),
        };
        folder = match openat(&folder, name, flags, Mode::empty()) {
            Err(Errno::NOENT) if creates => {
                match mkdirat(&folder, name, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
                    // Another process created it first.
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                openat(&folder, name, flags, Mode::empty())?
            }
            opened => opened?,
        };
    }
    Ok(folder)
}

fn open_regular(folder: &OwnedFd, name: &OsStr) -> io::Result<File> {
    let regular = |mode| match FileType::from_raw_mode(mode) {
        FileType::RegularFile => Ok(()),
        _ => Err(not_regular()),
    };
    // Checked before it is opened, because opening some devices has effects, and again after that, because it may have been
    // replaced with a pipe. Without `NONBLOCK`, opening a pipe would block until there is a writer.
    regular(statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(openat(folder, name, flags, Mode::empty())?);
    regular(rustix::fs::fstat(&file)?.st_mode)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::read_configured;
    use std::os::unix::fs::symlink;

    /// A project, and a folder next to it.
    fn folders() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let project = directory.path().join("project");
        fs::create_dir_all(project.join("deep/er")).unwrap();
        fs::create_dir_all(directory.path().join("outside/project")).unwrap();
        fs::write(project.join("deep/file"), "inside").unwrap();
        fs::write(directory.path().join("outside/secret"), "secret").unwrap();
        (directory, project)
    }

    #[test]
    fn links_are_followed_inside_the_project_and_nowhere_else() {
        let (directory, project) = folders();
        let at = |name: &str| project.join(name);
        symlink("deep/file", at("relative")).unwrap();
        symlink(at("relative"), at("absolute")).unwrap();
        symlink("deep", at("folder")).unwrap();
        for name in ["deep/file", "relative", "absolute", "folder/file", "deep/../folder/er/../file"] {
            assert_eq!(read_within(&project, &at(name), 100).unwrap(), b"inside", "{name}");
        }
        symlink("../outside/secret", at("out")).unwrap();
        symlink("out", at("again")).unwrap();
        symlink("../outside", at("outer")).unwrap();
        symlink("/proc/self", at("self")).unwrap();
        symlink("/proc/self/environ", at("environ")).unwrap();
        // A name that only starts like the project.
        fs::create_dir(directory.path().join("project2")).unwrap();
        fs::write(directory.path().join("project2/secret"), "secret").unwrap();
        symlink("../project2/secret", at("similar")).unwrap();
        for name in ["out", "again", "outer/secret", "self/environ", "environ", "similar", "../outside/secret"] {
            let error = read_within(&project, &at(name), 100).unwrap_err();
            assert!(error.to_string().contains("leads out of the project"), "{name}: {error}");
            let error = replace_within(&project, &at(name), b"new").unwrap_err();
            assert!(error.to_string().contains("leads out of the project"), "{name}: {error}");
        }
        assert_eq!(fs::read(directory.path().join("outside/secret")).unwrap(), b"secret");
        assert!(replace_within(&project, &at("outer/new/file"), b"new").is_err());
        assert_eq!(fs::read_dir(directory.path().join("outside")).unwrap().count(), 2);
    }

    #[test]
    fn a_link_that_replaces_a_part_of_the_path_meanwhile_is_not_followed() {
        let (directory, project) = folders();
        let real = fs::canonicalize(&project).unwrap();
        symlink("../outside/secret", project.join("out")).unwrap();
        symlink(directory.path().join("outside"), project.join("outer")).unwrap();
        assert!(open_without_links(&real, Path::new("deep/file")).is_ok());
        for name in ["out", "outer/secret", "../outside/secret"] {
            assert!(open_without_links(&real, Path::new(name)).is_err(), "{name}");
            assert!(replace_without_links(&real, Path::new(name), b"new", TemporaryFile::new_in).is_err(), "{name}");
        }
        assert!(replace_without_links(&real, Path::new("outer/made/file"), b"new", TemporaryFile::new_in).is_err());
        assert_eq!(fs::read_dir(directory.path().join("outside")).unwrap().count(), 2);
        assert_eq!(fs::read(directory.path().join("outside/secret")).unwrap(), b"secret");
    }

    /// A folder of the project and a link take each other's place while a file in it is replaced.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_link_that_is_planted_while_a_file_is_replaced_is_never_followed() {
        use rustix::fs::{RenameFlags, renameat_with};
        let (directory, project) = folders();
        let outside = directory.path().join("outside");
        fs::write(outside.join("file"), "theirs").unwrap();
        symlink(&outside, project.join("planted")).unwrap();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let mut replaced = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    renameat_with(CWD, project.join("planted"), CWD, project.join("deep"), RenameFlags::EXCHANGE)
                        .unwrap();
                }
            });
            for _ in 0..2000 {
                replaced += u32::from(replace_within(&project, &project.join("deep/file"), b"new").is_ok());
            }
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        assert!(replaced > 0);
        assert_eq!(fs::read(outside.join("file")).unwrap(), b"theirs");
        assert_eq!(fs::read_dir(outside).unwrap().count(), 3, "nothing was created");
    }

    #[test]
    fn a_file_that_the_configuration_names_is_outside_only_if_its_path_says_so() {
        let (directory, project) = folders();
        let outside = directory.path().join("outside/secret");
        symlink("../outside/secret", project.join("key")).unwrap();
        for name in ["key", "deep/../key", "./key"] {
            assert!(read_configured(&project, Path::new(name), 100).is_err(), "{name}");
        }
        for name in [Path::new("../outside/secret"), &outside] {
            assert_eq!(read_configured(&project, name, 100).unwrap(), b"secret", "{}", name.display());
        }
        assert_eq!(read_configured(&project, Path::new("deep/file"), 100).unwrap(), b"inside");
    }

    #[test]
    fn pipes_devices_and_folders_are_not_opened() {
        let (_directory, project) = folders();
        rustix::fs::mknodat(CWD, project.join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        for name in ["pipe", "deep"] {
            let error = read_within(&project, &project.join(name), 100).unwrap_err();
            assert!(error.to_string().contains("not a regular file"), "{name}: {error}");
            assert!(replace_within(&project, &project.join(name), b"new").is_err(), "{name}");
        }
        assert!(open_without_links(Path::new("/dev"), Path::new("null")).is_err());
    }

    #[test]
    fn files_are_replaced_and_created_with_their_folders() {
        let (_directory, project) = folders();
        symlink("deep", project.join("folder")).unwrap();
        for name in ["deep/file", "folder/new", "a/b/c"] {
            replace_within(&project, &project.join(name), b"new").unwrap();
            assert_eq!(fs::read(project.join(name)).unwrap(), b"new", "{name}");
        }
        symlink("nowhere", project.join("broken")).unwrap();
        assert!(replace_within(&project, &project.join("broken"), b"new").is_err());
    }
}
