//! The project of a script: its directory, its configuration, whether it is trusted, and its store.

use bcc_lang::message::msg;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::config::{Config, parse};
use crate::environment::Environment;
use crate::error::EngineError;
use crate::files::within::read_within;
use crate::trust::state::TrustState;

pub const CONFIG_FILE: &str = bcc_lang::script::project_path::CONFIG_FILE;

const MAX_CONFIG_BYTES: u64 = 1024 * 1024;

#[derive(Clone, Debug)]
pub struct Project {
    /// Absolute.
    pub directory: PathBuf,
    /// The default configuration if there is no file.
    pub config: Config,
    /// Whether the settings that need trust apply.
    pub trusted: bool,
    /// What the user trusts, or what was changed since; `Untrusted` if every configuration is trusted in this run.
    pub trust: Arc<TrustState>,
    /// Whether every configuration is trusted in this run.
    pub trust_all: bool,
    pub has_config: bool,
}

impl Project {
    /// The project of a script: `given` (`--project`) or `BCC_PROJECT`; otherwise the nearest directory above the script with a
    /// `bcc-script.toml`, a `_system/` or a `.bcc/`; otherwise the directory of the script.
    pub fn of(
        start: &Path,
        given: Option<&Path>,
        trust_all: bool,
        environment: &Environment,
    ) -> Result<Self, EngineError> {
        let directory = match given_directory(given, environment)? {
            Some(given) => given,
            None => nearest(&absolute(start)),
        };
        Self::in_directory(directory, trust_all, environment)
    }

    /// The project in this directory.
    pub fn in_directory(directory: PathBuf, trust_all: bool, environment: &Environment) -> Result<Self, EngineError> {
        let trust_all = trust_all || environment.is_on("BCC_TRUST");
        let Some(bytes) = config_bytes(&directory)? else {
            return Ok(Self { trusted: trust_all, trust_all, ..Self::unconfigured(directory) });
        };
        let shown = directory.join(CONFIG_FILE).display().to_string();
        let text = std::str::from_utf8(&bytes).map_err(|_| EngineError::usage(msg!("{shown} is not UTF-8 text")))?;
        let config = parse(&shown, text)?;
        let trust = match trust_all {
            true => TrustState::Untrusted,
            false => TrustState::of(environment, &directory, &bytes, &config)?,
        };
        let trusted = trust_all || trust.is_trusted();
        Ok(Self { directory, config, trusted, trust: Arc::new(trust), trust_all, has_config: true })
    }

    /// The project in a directory without a configuration, which is not trusted.
    pub fn unconfigured(directory: PathBuf) -> Self {
        let (config, trust) = Default::default();
        Self { directory, config, trusted: false, trust, trust_all: false, has_config: false }
    }

    /// Refuses to run anything of a project that may run code or commands and was changed since it was trusted.
    ///
    /// # Errors
    /// `Usage`, which names what was changed and how to trust it.
    pub fn refuse_changes(&self) -> Result<(), EngineError> {
        self.trust.refuse_changes(&self.directory)
    }

    /// The default path of the store.
    pub fn store(&self) -> PathBuf {
        self.directory.join(".bcc").join("sessions.db")
    }
}

/// The requested project directory: `given` (`--project`), otherwise `BCC_PROJECT`.
pub fn given_directory(given: Option<&Path>, environment: &Environment) -> Result<Option<PathBuf>, EngineError> {
    let given = given.map(Path::to_path_buf).or_else(|| environment.get("BCC_PROJECT").map(PathBuf::from));
    match given {
        Some(given) if given.is_dir() => Ok(Some(absolute(&given))),
        Some(given) => {
            Err(EngineError::usage(msg!("the project directory {path} does not exist", path = given.display())))
        }
        None => Ok(None),
    }
}

/// The bytes of the configuration file of a directory; none if there is no file.
pub fn config_bytes(directory: &Path) -> Result<Option<Vec<u8>>, EngineError> {
    let path = directory.join(CONFIG_FILE);
    match read_within(directory, &path, MAX_CONFIG_BYTES) {
        Ok(bytes) if bytes.len() as u64 > MAX_CONFIG_BYTES => {
            Err(EngineError::usage(msg!("{path} is larger than {MAX_CONFIG_BYTES} bytes", path = path.display())))
        }
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(EngineError::usage(msg!("{path} cannot be read: {error}", path = path.display()))),
    }
}

/// The absolute path, with links resolved if it exists.
pub fn absolute(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_path_buf())
}

/// The nearest directory at or above `start` that is marked as a project; otherwise the directory of `start`.
pub fn nearest(start: &Path) -> PathBuf {
    let directory = if start.is_dir() { start } else { start.parent().unwrap_or(start) };
    directory.ancestors().find(|ancestor| is_marked(ancestor)).unwrap_or(directory).to_path_buf()
}

/// Whether a directory contains a file or folder that marks it as a project.
pub fn is_marked(directory: &Path) -> bool {
    [CONFIG_FILE, "_system", ".bcc"].iter().any(|name| directory.join(name).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_is_the_nearest_marked_directory() {
        let root = tempfile::tempdir().unwrap();
        let root = absolute(root.path());
        std::fs::create_dir_all(root.join("project/_system")).unwrap();
        std::fs::create_dir_all(root.join("project/scripts/deep")).unwrap();
        std::fs::create_dir_all(root.join("lonely")).unwrap();
        let environment = Environment::default();
        let of = |path: &str| Project::of(&root.join(path), None, false, &environment).unwrap().directory;
        assert_eq!(of("project/scripts/deep/a.yaml"), root.join("project"));
        assert_eq!(of("lonely/a.yaml"), root.join("lonely"));
        let given = Project::of(&root.join("lonely/a.yaml"), Some(&root), false, &environment).unwrap();
        assert_eq!(given.directory, root);
    }
}
