//! The project whose templates are looked at, and the scheme that it names.

use std::path::{Path, PathBuf};

use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::project::{Project, absolute, given_directory, nearest};

/// The directory of the project: the given one, else the nearest at or above the current one that looks like a project.
/// Errors: `Usage` when there is no such directory.
pub fn directory(given: Option<&Path>, environment: &Environment) -> Result<PathBuf, EngineError> {
    Ok(match given_directory(given, environment)? {
        Some(given) => given,
        None => nearest(&absolute(Path::new("."))),
    })
}

/// The scheme that `bcc-script.toml` names, if it does.
/// Errors: `Usage` when the file cannot be read.
pub fn scheme_of_project(directory: &Path, environment: &Environment) -> Result<Option<String>, EngineError> {
    let project = Project::in_directory(directory.to_path_buf(), false, environment)?;
    Ok(project.config.project.scheme)
}
