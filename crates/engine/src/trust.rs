//! Stores what the user trusts (docs/configuration.md, "Trust"): by directory, the hash of its `bcc-script.toml` and, if that
//! allows code or commands, of every file that may run, in the user's configuration directory.

pub(crate) mod command_arguments;
pub mod covered;
pub(crate) mod document_hash;
pub(crate) mod file_pattern;
mod named_files;
pub mod own_sessions;
pub mod state;

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

/// The limit on the size of the trust file, in bytes: the files of many projects, of about 150 bytes each.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The hashes of files by their path, relative to the project directory.
pub type FileHashes = BTreeMap<String, String>;

#[derive(Debug, Default, Serialize, Deserialize)]
struct TrustFile {
    /// 2, or 1 before `files` was added. A release that writes version 1 drops `files`, so that trust is asked for again.
    version: u32,
    /// The hash of the configuration, by directory.
    directories: BTreeMap<String, String>,
    /// The files of the directories whose configuration allows code or commands.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    files: BTreeMap<String, FileHashes>,
}

/// What is stored about a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustEntry {
    /// The hash of the configuration.
    pub config: String,
    /// The files that may run; `None` if the configuration allowed nothing, or if an earlier release stored the entry.
    pub files: Option<FileHashes>,
}

impl TrustEntry {
    /// One hash over the configuration and all files.
    pub fn hash(&self) -> String {
        let Some(files) = &self.files else { return self.config.clone() };
        let mut text = self.config.clone();
        for (path, hash) in files {
            // A path contains no NUL, so that two lists never give the same text.
            text.push_str(&format!("\0{path}\0{hash}"));
        }
        sha256(text.as_bytes())
    }
}

fn file(environment: &Environment) -> Result<PathBuf, EngineError> {
    environment.config_directory().map(|directory| directory.join("trust.json")).ok_or_else(|| {
        EngineError::failed("the location of your configuration cannot be determined")
            .with_help("set HOME or XDG_CONFIG_HOME")
    })
}

fn load(path: &Path) -> Result<TrustFile, EngineError> {
    let bytes = match read_bounded(path, MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(TrustFile::default()),
        Err(error) => {
            return Err(EngineError::failed(msg!("{path} cannot be read: {error}", path = path.display())));
        }
    };
    serde_json::from_slice(&bytes).map_err(|error| {
        EngineError::failed(msg!("{path} is damaged: {error}", path = path.display()))
            .with_help("remove it, then trust your projects again")
    })
}

fn key(directory: &Path) -> String {
    directory.to_string_lossy().into_owned()
}

/// What is stored about `directory`.
pub(crate) fn entry(environment: &Environment, directory: &Path) -> Result<Option<TrustEntry>, EngineError> {
    let Ok(path) = file(environment) else { return Ok(None) };
    let mut trusted = load(&path)?;
    let key = key(directory);
    let config = trusted.directories.remove(&key);
    Ok(config.map(|config| TrustEntry { config, files: trusted.files.remove(&key) }))
}

/// Everything that the user trusts, by directory.
///
/// # Errors
/// When the trust file cannot be read.
pub fn entries(environment: &Environment) -> Result<BTreeMap<PathBuf, TrustEntry>, EngineError> {
    let mut trusted = load(&file(environment)?)?;
    let with_files = |(directory, config): (String, String)| {
        let files = trusted.files.remove(&directory);
        (PathBuf::from(directory), TrustEntry { config, files })
    };
    Ok(trusted.directories.into_iter().map(with_files).collect())
}

/// Stores that the user trusts the configuration `text` of the project `directory` and, if it allows code or commands, these
/// files.
pub fn trust(
    environment: &Environment,
    directory: &Path,
    text: &[u8],
    files: Option<FileHashes>,
) -> Result<(), EngineError> {
    let path = file(environment)?;
    let unwritable =
        |error: std::io::Error| EngineError::failed(msg!("{path} cannot be written: {error}", path = path.display()));
    // Held until the file is replaced: otherwise one of two processes that trust something at the same time would lose.
    let _lock = lock(&path).map_err(unwritable)?;
    let mut trusted = load(&path)?;
    trusted.version = 2;
    trusted.directories.insert(key(directory), sha256(text));
    match files {
        Some(files) => _ = trusted.files.insert(key(directory), files),
        None => _ = trusted.files.remove(&key(directory)),
    }
    let json = serde_json::to_vec_pretty(&trusted).map_err(|error| EngineError::failed(error.to_message()))?;
    if json.len() as u64 > MAX_BYTES {
        return Err(EngineError::failed(msg!("{path} would be larger than {MAX_BYTES} bytes", path = path.display()))
            .with_help("remove it, then trust your projects again"));
    }
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
                scope.spawn(move || trust(environment, Path::new(&number.to_string()), b"a", None).unwrap());
            }
        });
        assert_eq!(load(&path).unwrap().directories.len(), 20);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
