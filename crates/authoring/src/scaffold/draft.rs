//! Files to be created in a folder: all of them or none, without overwriting anything.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bcc_engine::error::EngineError;
use bcc_engine::files::create::create;
use bcc_engine::files::temporary::temporary_name;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDraft {
    /// The path relative to the target folder, with `/`.
    pub path: String,
    pub text: String,
}

impl FileDraft {
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into() }
    }
}

/// The paths below `base` that conflict with `drafts`: existing files, and paths that must be folders inside `base` but
/// are not. Without duplicates, in the order of the drafts.
pub(crate) fn conflicts(base: &Path, drafts: &[FileDraft]) -> io::Result<Vec<String>> {
    let real = base.canonicalize().unwrap_or_else(|_| base.to_path_buf());
    let mut found: Vec<String> = Vec::new();
    for draft in drafts {
        let parts: Vec<&str> = draft.path.split('/').collect();
        for length in 1..=parts.len() {
            let path = parts.iter().take(length).collect::<PathBuf>();
            let (full_path, is_file) = (base.join(&path), length == parts.len());
            match full_path.symlink_metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                Err(error) => return Err(error),
                Ok(_) if !is_file && full_path.is_dir() && full_path.canonicalize()?.starts_with(&real) => {}
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

/// Writes `drafts` below `base` in order, and creates missing folders. A new `base` is created atomically with all of
/// its files. If something fails, everything that was created is removed again.
/// Errors: `Failed`, with the paths that could not be removed.
pub fn write_all(base: &Path, drafts: &[FileDraft]) -> Result<(), EngineError> {
    let mut created = Created::default();
    let written = match base.symlink_metadata() {
        Ok(_) => created.write_files(base, drafts),
        Err(_) => created.create_directory(base, drafts),
    };
    let Err(WriteFailure { path, error }) = written else { return Ok(()) };
    let remaining = created.undo();
    let message = match remaining.as_slice() {
        [] => msg!("{path} cannot be written: {error}; no files were left behind", path = path.display()),
        remaining => {
            let remaining = Message::values(remaining.iter().map(|path| path.display()));
            msg!("{} cannot be written: {error}; these could not be removed: {}", path.display(), remaining)
        }
    };
    Err(EngineError::failed(message))
}

/// The created paths, in order.
#[derive(Default)]
struct Created {
    folders: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

/// A path that could not be created, and the error.
struct WriteFailure {
    path: PathBuf,
    error: io::Error,
}

impl Created {
    /// Creates a new folder with all of its files. It has a temporary name until it is complete, so an interrupted run
    /// can be repeated.
    fn create_directory(&mut self, base: &Path, drafts: &[FileDraft]) -> Result<(), WriteFailure> {
        let failure = |error| WriteFailure { path: base.to_path_buf(), error };
        self.create_folder(base.parent().unwrap_or(Path::new("")))?;
        let temporary = temporary_name(base).map_err(failure)?;
        self.write_files(&temporary, drafts).map_err(|WriteFailure { path, error }| {
            let path = path.strip_prefix(&temporary).map(|inside| base.join(inside)).unwrap_or(path.clone());
            WriteFailure { path, error }
        })?;
        fs::rename(&temporary, base).map_err(failure)
    }

    fn write_files(&mut self, base: &Path, drafts: &[FileDraft]) -> Result<(), WriteFailure> {
        self.create_folder(base)?;
        drafts.iter().try_for_each(|draft| {
            let path = base.join(&draft.path);
            self.create_folder(path.parent().unwrap_or(base))?;
            self.create_file(path, &draft.text)
        })
    }

    fn create_folder(&mut self, folder: &Path) -> Result<(), WriteFailure> {
        let missing: Vec<&Path> = folder.ancestors().take_while(|one| !one.is_dir()).collect();
        for one in missing.into_iter().rev().filter(|one| !one.as_os_str().is_empty()) {
            match fs::create_dir(one) {
                Ok(()) => self.folders.push(one.to_path_buf()),
                // Another process created it first.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && one.is_dir() => {}
                Err(error) => return Err(WriteFailure { path: one.to_path_buf(), error }),
            }
        }
        Ok(())
    }

    fn create_file(&mut self, path: PathBuf, text: &str) -> Result<(), WriteFailure> {
        match create(&path, text.as_bytes()) {
            Ok(true) => {
                self.files.push(path);
                Ok(())
            }
            Ok(false) => Err(WriteFailure { path, error: io::ErrorKind::AlreadyExists.into() }),
            Err(error) => Err(WriteFailure { path, error }),
        }
    }

    /// Removes everything that was created, deepest first. Returns what remains.
    fn undo(self) -> Vec<PathBuf> {
        let files = self.files.into_iter().rev().filter(|file| fs::remove_file(file).is_err());
        let mut remaining: Vec<PathBuf> = files.collect();
        remaining.extend(self.folders.into_iter().rev().filter(|folder| fs::remove_dir(folder).is_err()));
        remaining
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
    fn existing_paths_conflict_with_new_files() {
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
            assert_eq!(conflicts(root.path(), &drafts(&paths)).unwrap(), expected, "{paths:?}");
        }
        assert_eq!(conflicts(&at("nothing"), &drafts(&["a"])).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn only_created_files_are_removed_after_a_failure() {
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
