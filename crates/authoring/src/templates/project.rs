//! The project whose templates are used, and the scheme that it names.

use std::path::{Path, PathBuf};

use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::project::{Project, absolute, given_directory, nearest};

/// The directory of the project: the given one, or the nearest ancestor of the current directory that is a project.
/// Errors: `Usage` if there is no such directory.
pub fn directory(given: Option<&Path>, environment: &Environment) -> Result<PathBuf, EngineError> {
    Ok(match given_directory(given, environment)? {
        Some(given) => given,
        None => nearest(&absolute(Path::new("."))),
    })
}

/// The scheme that `bcc-script.toml` names.
/// Errors: `Usage` if the file cannot be read.
pub fn scheme_of_project(directory: &Path, environment: &Environment) -> Result<Option<String>, EngineError> {
    let project = Project::in_directory(directory.to_path_buf(), false, environment)?;
    Ok(project.config.project.scheme)
}
