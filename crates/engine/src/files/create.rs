//! Creates files and folders without replacing existing ones: each file completely or not at all, and all files or none.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use crate::files::temporary::{TemporaryFile, temporary_name};

/// Writes `bytes` to a new file: a reader sees no file or the complete one. Returns whether it was created; an existing file,
/// folder or link of this name is left unchanged. The parent folder must exist.
///
/// # Errors
/// Errors of the operating system; nothing is left behind then.
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    match path.symlink_metadata() {
        Ok(_) => return Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        // Such as a path that is too long: nobody could open the file by it.
        Err(error) => return Err(error),
    }
    publish(TemporaryFile::with_default_permissions(path)?, path, bytes)
}

/// [`create`] of a file in a folder, which is created if it is missing.
///
/// # Errors
/// As [`create`].
pub(crate) fn create_in(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<bool> {
    fs::create_dir_all(folder)?;
    create(&folder.join(name), bytes)
}

/// [`create`] with a file that only its owner can read.
///
/// # Errors
/// Errors of the operating system; nothing is left behind then.
pub(crate) fn create_private(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    publish(TemporaryFile::with_private_permissions(path)?, path, bytes)
}

/// Writes `bytes` to a temporary file and gives it the name `path`, unless this name exists.
pub(crate) fn publish(temporary: TemporaryFile, path: &Path, bytes: &[u8]) -> io::Result<bool> {
    temporary.write(bytes)?;
    match temporary.link(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        // Some file systems do not support hard links. A file that is created at this moment is then overwritten.
        Err(_) if path.symlink_metadata().is_err() => temporary.replace(path).map(|()| true),
        Err(error) => Err(error),
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Created {
    pub written: Vec<String>,
    /// The names that already existed.
    pub existing: Vec<String>,
}

/// Creates `folder`, its missing parents, and these files in it. A new folder appears together with all of its files.
///
/// # Errors
/// Errors of the operating system; everything that was created until then is removed.
pub fn create_all(folder: &Path, files: &[(String, Vec<u8>)]) -> io::Result<Created> {
    let parent =
        folder.parent().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it has no parent folder"))?;
    let missing: Vec<&Path> = parent.ancestors().take_while(|ancestor| ancestor.symlink_metadata().is_err()).collect();
    let result = fs::create_dir_all(parent).and_then(|()| match folder.symlink_metadata() {
        Ok(_) => into_folder(folder, files),
        Err(_) => new_folder(folder, files),
    });
    if result.is_err() {
        // The deepest first. A folder that is no longer empty stays.
        missing.iter().for_each(|ancestor| drop(fs::remove_dir(ancestor)));
    }
    result
}

fn new_folder(folder: &Path, files: &[(String, Vec<u8>)]) -> io::Result<Created> {
    let temporary = temporary_name(folder)?;
    let result = fs::create_dir(&temporary)
        .and_then(|()| files.iter().try_for_each(|(name, bytes)| write(&temporary.join(name), bytes)))
        .and_then(|()| fs::rename(&temporary, folder));
    if let Err(error) = result {
        let _ = fs::remove_dir_all(&temporary);
        return Err(error);
    }
    Ok(Created { written: files.iter().map(|(name, _)| name.clone()).collect(), existing: vec![] })
}

fn into_folder(folder: &Path, files: &[(String, Vec<u8>)]) -> io::Result<Created> {
    let mut created = Created::default();
    for (name, bytes) in files {
        match create(&folder.join(name), bytes) {
            Ok(true) => created.written.push(name.clone()),
            Ok(false) => created.existing.push(name.clone()),
            Err(error) => {
                created.written.iter().for_each(|name| drop(fs::remove_file(folder.join(name))));
                return Err(error);
            }
        }
    }
    Ok(created)
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = fs::File::create_new(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn files(names: &[&str]) -> Vec<(String, Vec<u8>)> {
        names.iter().map(|name| ((*name).to_owned(), name.as_bytes().to_vec())).collect()
    }

    fn entries(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn an_existing_file_folder_or_link_is_not_replaced() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        fs::write(path("file"), "mine").unwrap();
        fs::create_dir(path("folder")).unwrap();
        symlink("nowhere", path("link")).unwrap();
        for name in ["file", "folder", "link"] {
            assert!(!create(&path(name), b"yours").unwrap(), "{name}");
        }
        assert!(create(&path("new"), b"yours").unwrap());
        assert_eq!(fs::read(path("file")).unwrap(), b"mine");
        assert_eq!(fs::read(path("new")).unwrap(), b"yours");
        assert_eq!(entries(root.path()), ["file", "folder", "link", "new"]);
    }

    #[test]
    fn a_new_folder_has_all_files_and_an_existing_one_gets_the_missing_files() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a/b/gentle");
        let first = create_all(&folder, &files(&["x.md", "y.md"])).unwrap();
        assert_eq!(first.written, ["x.md", "y.md"]);
        assert_eq!(entries(&root.path().join("a/b")), ["gentle"]);
        let second = create_all(&folder, &files(&["y.md", "z.md"])).unwrap();
        assert_eq!((second.written, second.existing), (vec!["z.md".to_owned()], vec!["y.md".to_owned()]));
        assert_eq!(entries(&folder), ["x.md", "y.md", "z.md"]);
    }

    #[test]
    fn what_was_created_before_an_error_is_removed() {
        let root = tempfile::tempdir().unwrap();
        // The second file cannot be created.
        let bad = files(&["x.md", "no/such.md"]);
        assert!(create_all(&root.path().join("_system/config/gentle"), &bad).is_err());
        assert!(entries(root.path()).is_empty());
        let folder = root.path().join("there");
        fs::create_dir(&folder).unwrap();
        assert!(create_all(&folder, &bad).is_err());
        assert!(entries(&folder).is_empty());
        fs::write(root.path().join("file"), "").unwrap();
        assert!(create_all(&root.path().join("file"), &files(&["x.md"])).is_err());
        assert!(create_all(&root.path().join("file/below"), &files(&["x.md"])).is_err());
        assert_eq!(entries(root.path()), ["file", "there"]);
    }
}
