//! Where the walk begins: what was named, else the usual folders of the project.

use std::path::{Path, PathBuf};

use crate::engine::error::EngineError;
use crate::engine::project::{absolute, nearest};
use crate::engine::validate::request::ValidateRequest;

/// What of a project is checked when nothing is named.
pub const USUAL_FOLDERS: [&str; 4] = ["scripts", "skills", "tests", "_system"];

/// The current directory.
///
/// # Errors
/// When it was removed.
pub fn here() -> Result<PathBuf, EngineError> {
    std::env::current_dir().map_err(|error| EngineError::failed(format!("there is no current directory: {error}")))
}

/// What is to be walked: what was named, else the usual folders of the project.
///
/// # Errors
/// When nothing was named and there is none of them.
pub fn roots(request: &ValidateRequest, given: Option<&Path>, here: &Path) -> Result<Vec<PathBuf>, EngineError> {
    if !request.paths.is_empty() {
        return Ok(request.paths.clone());
    }
    let project = given.map_or_else(|| nearest(&absolute(here)), Path::to_path_buf);
    let mut roots: Vec<PathBuf> = USUAL_FOLDERS.iter().map(|name| project.join(name)).collect();
    roots.retain(|root| root.is_dir());
    if roots.is_empty() {
        let folders = USUAL_FOLDERS.map(|name| format!("{name}/")).join(", ");
        let message = format!("there is nothing to check: {} has none of the folders {folders}", project.display());
        return Err(
            EngineError::usage(message).with_help("name the files or folders, as in `bcc-script validate my.yaml`")
        );
    }
    Ok(roots)
}
