//! Files that are to be written into a folder: all of them or none, and none in the place of another.

use bcc_lang::message::msg;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bcc_engine::error::EngineError;
use bcc_engine::files::create::create;
use bcc_engine::files::write::name_beside;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDraft {
    /// Where, from the folder that it is written into, with `/`.
    pub path: String,
    pub text: String,
}

impl FileDraft {
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into() }
    }
}

/// What stands in the way of `drafts` below `base`: paths that something has already, and what is no folder, or leads out
/// of `base`, where a folder is needed. Each once, in the order of the drafts.
pub fn in_the_way(base: &Path, drafts: &[FileDraft]) -> io::Result<Vec<String>> {
    let real = base.canonicalize().unwrap_or_else(|_| base.to_path_buf());
    let mut found: Vec<String> = Vec::new();
    for draft in drafts {
        let parts: Vec<&str> = draft.path.split('/').collect();
        for length in 1..=parts.len() {
            let path = parts.iter().take(length).collect::<PathBuf>();
            let (whole, is_file) = (base.join(&path), length == parts.len());
            match whole.symlink_metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                Err(error) => return Err(error),
                Ok(_) if !is_file && whole.is_dir() && whole.canonicalize()?.starts_with(&real) => {}
                Ok(_) => {
                    let shown = path.display().to_string();
                    if !found.contains(&shown) {
                        found.push(shown);
                    }
                    break;
                }
            }
        }
    }
    Ok(found)
}

/// Writes `drafts` below `base` in their order, and makes what is missing of `base` and of the folders in it. A `base` that is
/// not there comes into being with all of them at once. When something fails, what was made by then is taken away again.
/// Errors: `Failed`, with what could not be taken away again, if anything.
pub fn write_all(base: &Path, drafts: &[FileDraft]) -> Result<(), EngineError> {
    let mut made = Made::default();
    let written = match base.symlink_metadata() {
        Ok(_) => made.all(base, drafts),
        Err(_) => made.whole(base, drafts),
    };
    let Err(Torn { path, error }) = written else { return Ok(()) };
    let left = made.undo();
    let message = match left.as_slice() {
        [] => msg!("{path} cannot be written: {error}; no files were left behind", path = path.display()),
        left => {
            let left: Vec<String> = left.iter().map(|path| path.display().to_string()).collect();
            msg!("{} cannot be written: {error}; these could not be removed: {}", path.display(), left.join(", "))
        }
    };
    Err(EngineError::failed(message))
}

/// What was made, in that order.
#[derive(Default)]
struct Made {
    folders: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

/// What could not be made, and why.
struct Torn {
    path: PathBuf,
    error: io::Error,
}

impl Made {
    /// A new folder with everything in it: under another name, until it is whole. Who is stopped in the middle can begin anew.
    fn whole(&mut self, base: &Path, drafts: &[FileDraft]) -> Result<(), Torn> {
        let torn = |error| Torn { path: base.to_path_buf(), error };
        self.folder(base.parent().unwrap_or(Path::new("")))?;
        let aside = name_beside(base).map_err(torn)?;
        self.all(&aside, drafts).map_err(|Torn { path, error }| {
            let path = path.strip_prefix(&aside).map(|inside| base.join(inside)).unwrap_or(path.clone());
            Torn { path, error }
        })?;
        fs::rename(&aside, base).map_err(torn)
    }

    fn all(&mut self, base: &Path, drafts: &[FileDraft]) -> Result<(), Torn> {
        self.folder(base)?;
        drafts.iter().try_for_each(|draft| {
            let path = base.join(&draft.path);
            self.folder(path.parent().unwrap_or(base))?;
            self.file(path, &draft.text)
        })
    }

    fn folder(&mut self, folder: &Path) -> Result<(), Torn> {
        let missing: Vec<&Path> = folder.ancestors().take_while(|one| !one.is_dir()).collect();
        for one in missing.into_iter().rev().filter(|one| !one.as_os_str().is_empty()) {
            match fs::create_dir(one) {
                Ok(()) => self.folders.push(one.to_path_buf()),
                // Somebody else was quicker.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && one.is_dir() => {}
                Err(error) => return Err(Torn { path: one.to_path_buf(), error }),
            }
        }
        Ok(())
    }

    fn file(&mut self, path: PathBuf, text: &str) -> Result<(), Torn> {
        match create(&path, text.as_bytes()) {
            Ok(true) => {
                self.files.push(path);
                Ok(())
            }
            Ok(false) => Err(Torn { path, error: io::ErrorKind::AlreadyExists.into() }),
            Err(error) => Err(Torn { path, error }),
        }
    }

    /// Takes everything away again, the deepest first. Gives what stays.
    fn undo(self) -> Vec<PathBuf> {
        let files = self.files.into_iter().rev().filter(|file| fs::remove_file(file).is_err());
        let mut left: Vec<PathBuf> = files.collect();
        left.extend(self.folders.into_iter().rev().filter(|folder| fs::remove_dir(folder).is_err()));
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn drafts(paths: &[&str]) -> Vec<FileDraft> {
        paths.iter().map(|path| FileDraft::new(*path, "new")).collect()
    }

    fn tree(root: &Path) -> Vec<String> {
        let mut names = Vec::new();
        let mut open = vec![root.to_path_buf()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                names.push(path.strip_prefix(root).unwrap().display().to_string());
                if path.is_dir() && !path.is_symlink() {
                    open.push(path);
                }
            }
        }
        names.sort();
        names
    }

    #[test]
    fn whatever_has_the_name_of_a_new_file_stands_in_the_way() {
        let (root, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = |name: &str| root.path().join(name);
        fs::write(at("file"), "mine").unwrap();
        fs::create_dir(at("folder")).unwrap();
        fs::write(at("folder/file"), "mine").unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        symlink(other.path(), at("outside")).unwrap();
        symlink("folder", at("inside")).unwrap();
        let table = [
            (vec!["file"], vec!["file"]),
            (vec!["file/below", "file/besides"], vec!["file"]),
            (vec!["folder"], vec!["folder"]),
            (vec!["folder/file", "folder/new", "new/deep/file"], vec!["folder/file"]),
            (vec!["dangling", "dangling/below"], vec!["dangling"]),
            (vec!["outside/new"], vec!["outside"]),
            (vec!["inside/new", "new"], vec![]),
            (vec!["inside/file"], vec!["inside/file"]),
        ];
        for (paths, expected) in table {
            assert_eq!(in_the_way(root.path(), &drafts(&paths)).unwrap(), expected, "{paths:?}");
        }
        assert_eq!(in_the_way(&at("nothing"), &drafts(&["a"])).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn what_was_made_before_a_failure_is_taken_away_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("there")).unwrap();
        fs::write(root.path().join("there/mine"), "mine").unwrap();
        let before = tree(root.path());
        let base = root.path().join("there");
        for wrong in ["mine", "mine/below", &format!("deep/{}", "x".repeat(300))] {
            let error = write_all(&base, &drafts(&["a", "b/c/d", wrong])).unwrap_err();
            assert!(error.to_string().contains("no files were left behind"), "{error}");
            assert_eq!(tree(root.path()), before, "{wrong}");
        }
        assert_eq!(fs::read_to_string(base.join("mine")).unwrap(), "mine");
        assert!(write_all(&root.path().join("new/deep"), &drafts(&["a", &"x".repeat(300)])).is_err());
        assert_eq!(tree(root.path()), before);
        write_all(&root.path().join("new/deep"), &drafts(&["a", "b/c"])).unwrap();
        assert_eq!(tree(&root.path().join("new/deep")), ["a", "b", "b/c"]);
    }
}
