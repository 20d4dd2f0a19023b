//! Checks the directory of a new project: it must exist or be creatable.

use bcc_lang::message::msg;
use std::io;
use std::path::{Path, PathBuf};

use bcc_engine::error::EngineError;
use bcc_engine::project::{CONFIG_FILE, absolute};

/// The absolute path of the directory of a new project; links are resolved as far as the path exists.
/// Errors: `Usage` if it is not a directory, is a broken link, or has a name that is not UTF-8; `Failed` if it cannot
/// be accessed.
pub(crate) fn project_directory(directory: &Path) -> Result<PathBuf, EngineError> {
    let shown = directory.display();
    if directory.as_os_str().is_empty() {
        return Err(EngineError::usage("the directory name is empty").with_help("`.` is the current directory"));
    }
    match directory.metadata() {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => {
            return Err(EngineError::usage(msg!("{shown} is a file, but a project is a directory"))
                .with_help("specify the name of a directory; it is created if it does not exist"));
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            check_creatable(directory)?
        }
        Err(error) => return Err(EngineError::failed(msg!("{shown} cannot be accessed: {error}"))),
    }
    let real = resolved(directory);
    if real.to_str().is_none() {
        let message = msg!("the path of the project is not UTF-8 text: {path}", path = real.display());
        return Err(EngineError::usage(message).with_help("rename the directory, or use another one"));
    }
    Ok(real)
}

/// Checks that the missing part of a directory can be created: no ancestor is a file or a broken link.
fn check_creatable(directory: &Path) -> Result<(), EngineError> {
    for part in directory.ancestors().filter(|part| !part.as_os_str().is_empty()) {
        let Ok(metadata) = part.symlink_metadata() else { continue };
        let shown = part.display();
        if metadata.is_symlink() && part.metadata().is_err() {
            return Err(EngineError::usage(msg!("{shown} is a broken link"))
                .with_help("remove the link, or create the directory that it points to"));
        }
        if !part.is_dir() {
            return Err(EngineError::usage(msg!("{shown} is a file, so it cannot contain a directory")));
        }
        break;
    }
    Ok(())
}

/// The absolute path; links are resolved as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    let absolute_path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let existing = absolute_path.ancestors().find(|part| part.exists()).unwrap_or(&absolute_path);
    match absolute_path.strip_prefix(existing) {
        Ok(rest) if !rest.as_os_str().is_empty() => absolute(existing).join(rest),
        _ => absolute(&absolute_path),
    }
}

/// The project that contains a directory.
pub(crate) fn project_above(real: &Path) -> Option<&Path> {
    real.ancestors().skip(1).find(|above| above.join(CONFIG_FILE).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_path_that_cannot_be_a_directory_is_rejected_with_the_reason() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::write(at("file"), "").unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        let strange = root.path().join(OsStr::from_bytes(b"caf\xe9"));
        let table = [
            (PathBuf::new(), "the directory name is empty"),
            (at("file"), "is a file, but a project is a directory"),
            (at("file/below/deep"), "is a file, so it cannot contain a directory"),
            (at("dangling"), "is a broken link"),
            (at("dangling/below"), "is a broken link"),
            (strange.clone(), "not UTF-8"),
            (strange.join("below"), "not UTF-8"),
        ];
        for (path, why) in table {
            let error = project_directory(&path).unwrap_err();
            assert!(matches!(error, EngineError::Usage { .. }), "{error}");
            assert!(error.to_string().contains(why), "{error}");
        }
    }

    #[test]
    fn a_directory_is_resolved_whether_or_not_it_exists() {
        let root = tempfile::tempdir().unwrap();
        let real = absolute(root.path());
        fs::create_dir(root.path().join("folder")).unwrap();
        symlink("folder", root.path().join("link")).unwrap();
        let table = [("folder", "folder"), ("link", "folder"), ("link/new/deep", "folder/new/deep"), ("new", "new")];
        for (given, expected) in table {
            assert_eq!(project_directory(&root.path().join(given)).unwrap(), real.join(expected));
        }
    }

    #[test]
    fn a_project_above_a_directory_is_found_and_its_own_file_does_not_count() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b")).unwrap();
        fs::write(root.path().join("a").join(CONFIG_FILE), "").unwrap();
        assert_eq!(project_above(&root.path().join("a/b/c")), Some(root.path().join("a").as_path()));
        assert_eq!(project_above(&root.path().join("a")), None);
    }
}
