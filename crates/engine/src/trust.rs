//! Stores which `bcc-script.toml` files the user trusts (docs/configuration.md): the hash of the file by directory, in the user's
//! configuration directory. A changed file must be trusted again.

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::msg;
use bcc_store::sqlite::disk::lock_file;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::error::EngineError;
use crate::files::read_bounded;
use crate::files::write::replace_private;
use crate::pin::sha256;

/// The limit on the size of the trust file, in bytes.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

#[derive(Debug, Default, Serialize, Deserialize)]
struct Trusted {
    version: u32,
    directories: BTreeMap<String, String>,
}

fn file(environment: &Environment) -> Result<PathBuf, EngineError> {
    environment.config_directory().map(|directory| directory.join("trust.json")).ok_or_else(|| {
        EngineError::failed("the location of your configuration cannot be determined")
            .with_help("set HOME or XDG_CONFIG_HOME")
    })
}

fn load(path: &Path) -> Result<Trusted, EngineError> {
    let bytes = match read_bounded(path, MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Trusted::default()),
        Err(error) => {
            return Err(EngineError::failed(msg!("{path} cannot be read: {error}", path = path.display())));
        }
    };
    serde_json::from_slice(&bytes).map_err(|error| {
        EngineError::failed(msg!("{path} is damaged: {error}", path = path.display()))
            .with_help("remove it, then trust your projects again")
    })
}

/// Whether the user trusts the configuration `text` of the project `directory`.
pub(crate) fn is_trusted(environment: &Environment, directory: &Path, text: &[u8]) -> Result<bool, EngineError> {
    let Ok(path) = file(environment) else { return Ok(false) };
    let trusted = load(&path)?;
    Ok(trusted.directories.get(&directory.to_string_lossy().into_owned()) == Some(&sha256(text)))
}

/// Stores that the user trusts the configuration `text` of the project `directory`.
pub fn trust(environment: &Environment, directory: &Path, text: &[u8]) -> Result<(), EngineError> {
    let path = file(environment)?;
    let unwritable =
        |error: std::io::Error| EngineError::failed(msg!("{path} cannot be written: {error}", path = path.display()));
    // Held until the file is replaced: otherwise one of two processes that trust something at the same time would lose.
    let _lock = lock(&path).map_err(unwritable)?;
    let mut trusted = load(&path)?;
    trusted.version = 1;
    trusted.directories.insert(directory.to_string_lossy().into_owned(), sha256(text));
    let json = serde_json::to_vec_pretty(&trusted).map_err(|error| EngineError::failed(error.to_message()))?;
    replace_private(&path, &json).map_err(unwritable)
}

/// Waits for the lock of the trust file.
fn lock(path: &Path) -> std::io::Result<File> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let file = lock_file(&path.with_extension("lock"))?;
    file.lock()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn simultaneous_calls_lose_nothing_and_the_file_is_private() {
        let home = tempfile::tempdir().unwrap();
        let environment = Environment::of([("XDG_CONFIG_HOME", home.path().to_string_lossy().into_owned())]);
        let path = file(&environment).unwrap();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, r#"{"version": 1, "directories": {}}"#).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        std::thread::scope(|scope| {
            for number in 0..20 {
                let environment = &environment;
                scope.spawn(move || trust(environment, Path::new(&number.to_string()), b"a").unwrap());
            }
        });
        assert_eq!(load(&path).unwrap().directories.len(), 20);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn trust_ends_when_the_file_changes() {
        let home = tempfile::tempdir().unwrap();
        let environment = Environment::of([("XDG_CONFIG_HOME", home.path().to_string_lossy().into_owned())]);
        let project = Path::new("somewhere");
        assert!(!is_trusted(&environment, project, b"a").unwrap());
        trust(&environment, project, b"a").unwrap();
        assert!(is_trusted(&environment, project, b"a").unwrap());
        assert!(!is_trusted(&environment, project, b"b").unwrap());
        assert!(!is_trusted(&environment, Path::new("elsewhere"), b"a").unwrap());
    }
}
