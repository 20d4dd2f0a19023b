//! Where a project may begin: a directory that is there or can be made, with nothing in it that would be overwritten.

use bcc_lang::message::msg;
use std::io;
use std::path::{Path, PathBuf};

use bcc_engine::error::EngineError;
use bcc_engine::project::{CONFIG_FILE, absolute};

/// The directory that a project may begin in, from the root, with the links resolved of what is there of it.
/// Errors: `Usage` when it is no directory, leads nowhere, or has a name that is not UTF-8; `Failed` when it cannot be looked at.
pub fn place(directory: &Path) -> Result<PathBuf, EngineError> {
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
            nothing_else(directory)?
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

/// That what is missing of a directory can be made: nothing above it is a file or a link to nowhere.
fn nothing_else(directory: &Path) -> Result<(), EngineError> {
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

/// `path` from the root, with links resolved as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let there = whole.ancestors().find(|part| part.exists()).unwrap_or(&whole);
    match whole.strip_prefix(there) {
        Ok(rest) if !rest.as_os_str().is_empty() => absolute(there).join(rest),
        _ => absolute(&whole),
    }
}

/// The project that lies around a directory, above it.
pub fn project_above(real: &Path) -> Option<&Path> {
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
    fn a_place_that_is_no_directory_and_can_be_none_is_refused_with_the_reason() {
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
            let error = place(&path).unwrap_err();
            assert!(matches!(error, EngineError::Usage { .. }), "{error}");
            assert!(error.to_string().contains(why), "{error}");
        }
    }

    #[test]
    fn a_place_is_known_by_its_real_path_whether_or_not_it_is_there() {
        let root = tempfile::tempdir().unwrap();
        let real = absolute(root.path());
        fs::create_dir(root.path().join("folder")).unwrap();
        symlink("folder", root.path().join("link")).unwrap();
        let table = [("folder", "folder"), ("link", "folder"), ("link/new/deep", "folder/new/deep"), ("new", "new")];
        for (given, expected) in table {
            assert_eq!(place(&root.path().join(given)).unwrap(), real.join(expected));
        }
    }

    #[test]
    fn a_project_around_a_place_is_found_and_its_own_file_is_not_one() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b")).unwrap();
        fs::write(root.path().join("a").join(CONFIG_FILE), "").unwrap();
        assert_eq!(project_above(&root.path().join("a/b/c")), Some(root.path().join("a").as_path()));
        assert_eq!(project_above(&root.path().join("a")), None);
    }
}
