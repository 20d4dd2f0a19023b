//! Files that are made and never replace others: each whole or not at all, and all of them or none.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use crate::files::write::{TemporaryFile, name_beside};

/// Writes `bytes` to a new file: a reader sees nothing or all of it. Says whether it was made; a file, a folder or a link that
/// has the name already stays as it is. The folder must be there.
///
/// # Errors
/// As the operating system has them; nothing is left behind then.
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    if path.symlink_metadata().is_ok() {
        return Ok(false);
    }
    let beside = TemporaryFile::usual(path)?;
    beside.write(bytes)?;
    match fs::hard_link(beside.path(), path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        // Some file systems know no second names. That somebody makes the file in this moment is all that is not seen.
        Err(_) if path.symlink_metadata().is_err() => beside.take_the_place_of(path).map(|()| true),
        Err(error) => Err(error),
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Created {
    pub written: Vec<String>,
    /// The names that something had already.
    pub kept: Vec<String>,
}

/// Makes `folder`, with what is missing above it, and these files in it, by name. A folder that is not there comes into being
/// with all of its files at once.
///
/// # Errors
/// As the operating system has them; what was made by then is taken away again.
pub fn create_all(folder: &Path, files: &[(String, Vec<u8>)]) -> io::Result<Created> {
    let above =
        folder.parent().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it has no parent folder"))?;
    let new: Vec<&Path> = above.ancestors().take_while(|one| one.symlink_metadata().is_err()).collect();
    let made = fs::create_dir_all(above).and_then(|()| match folder.symlink_metadata() {
        Ok(_) => into_folder(folder, files),
        Err(_) => new_folder(folder, files),
    });
    if made.is_err() {
        // The deepest first; one that holds something by now stays.
        new.iter().for_each(|one| drop(fs::remove_dir(one)));
    }
    made
}

fn new_folder(folder: &Path, files: &[(String, Vec<u8>)]) -> io::Result<Created> {
    let temporary = name_beside(folder)?;
    let made = fs::create_dir(&temporary)
        .and_then(|()| files.iter().try_for_each(|(name, bytes)| write(&temporary.join(name), bytes)))
        .and_then(|()| fs::rename(&temporary, folder));
    if let Err(error) = made {
        let _ = fs::remove_dir_all(&temporary);
        return Err(error);
    }
    Ok(Created { written: files.iter().map(|(name, _)| name.clone()).collect(), kept: vec![] })
}

fn into_folder(folder: &Path, files: &[(String, Vec<u8>)]) -> io::Result<Created> {
    let mut created = Created::default();
    for (name, bytes) in files {
        match create(&folder.join(name), bytes) {
            Ok(true) => created.written.push(name.clone()),
            Ok(false) => created.kept.push(name.clone()),
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
    fn a_file_that_is_there_stays_whatever_it_is() {
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
    fn a_folder_comes_with_all_its_files_and_one_that_is_there_gets_what_it_lacks() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a/b/gentle");
        let first = create_all(&folder, &files(&["x.md", "y.md"])).unwrap();
        assert_eq!(first.written, ["x.md", "y.md"]);
        assert_eq!(entries(&root.path().join("a/b")), ["gentle"]);
        let second = create_all(&folder, &files(&["y.md", "z.md"])).unwrap();
        assert_eq!((second.written, second.kept), (vec!["z.md".to_owned()], vec!["y.md".to_owned()]));
        assert_eq!(entries(&folder), ["x.md", "y.md", "z.md"]);
    }

    #[test]
    fn what_was_made_before_a_failure_is_taken_away_again() {
        let root = tempfile::tempdir().unwrap();
        // No file can have the second name.
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
