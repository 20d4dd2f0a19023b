//! The paths that `--watch` watches: all places whose changes may affect a report.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::validate::request::ValidateRequest;
use crate::validate::roots::roots;
use bcc_engine::discovery::names::PathNames;
use bcc_engine::discovery::walk::{current_directory, walk};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::project::{CONFIG_FILE, given_directory, nearest};

/// The folders of a project that its checks depend on.
const FOLDERS_OF_A_PROJECT: [&str; 3] = ["_system", "skills", "schemas"];

/// The extensions of files that a check reads.
const ENDINGS: [&str; 5] = ["yaml", "yml", "md", "json", "toml"];

/// Folders, without their subfolders, and individually named files.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WatchedPaths {
    /// The folders, absolute.
    pub folders: BTreeSet<PathBuf>,
    files: BTreeSet<PathBuf>,
}

impl WatchedPaths {
    /// Whether a change of `path` may change the report. Temporary files of editors do not matter.
    pub fn matters(&self, path: &Path) -> bool {
        if self.files.contains(path) || self.folders.contains(path) {
            return true;
        }
        let name = path.file_name().unwrap_or_default();
        if name == OsStr::new(CONFIG_FILE) {
            return true;
        }
        let hidden = name.as_encoded_bytes().starts_with(b".");
        match path.extension() {
            Some(extension) => !hidden && ENDINGS.iter().any(|ending| extension.eq_ignore_ascii_case(ending)),
            // A folder that was created or removed.
            None => !hidden && (path.is_dir() || !path.exists()),
        }
    }
}

impl WatchedPaths {
    /// Adds files that documents name by absolute path. Returns whether any path is new.
    pub fn add_files(&mut self, files: BTreeSet<PathBuf>) -> bool {
        let mut new = false;
        for file in files {
            // For a file that does not exist yet, watch the nearest existing folder.
            let folder = file.ancestors().skip(1).find(|folder| folder.is_dir());
            // A folder that cannot be read cannot be watched either.
            let folder = folder.filter(|folder| std::fs::read_dir(folder).is_ok()).map(Path::to_path_buf);
            new |= folder.is_some_and(|folder| self.folders.insert(folder));
            new |= self.files.insert(file);
        }
        new
    }
}

/// The paths that the report for `request` currently depends on.
pub fn places(request: &ValidateRequest, environment: &Environment) -> Result<WatchedPaths, EngineError> {
    let here = current_directory()?;
    let names = PathNames::relative_to(here.clone());
    let given = given_directory(request.project.as_deref(), environment)?;
    let walked = walk(&roots(request, given.as_deref(), &here)?, &names);
    let mut places = WatchedPaths { folders: walked.folders, ..WatchedPaths::default() };
    let mut projects: BTreeSet<PathBuf> = given.iter().cloned().collect();
    let mut visited_folders = BTreeSet::new();
    for found in walked.found {
        let Some(folder) = found.resolved.parent() else { continue };
        if given.is_none() && visited_folders.insert(folder.to_path_buf()) {
            projects.insert(nearest(folder));
        }
        places.folders.insert(folder.to_path_buf());
        if let Some(folder) = found.path.parent().and_then(|folder| std::path::absolute(folder).ok()) {
            // For a link, both ends may change.
            places.files.extend(found.path.file_name().map(|name| folder.join(name)));
            places.folders.insert(folder);
        }
        places.files.insert(found.resolved);
    }
    if given.is_none() && request.paths.is_empty() {
        projects.insert(nearest(&here));
    }
    for project in projects {
        let folders: Vec<PathBuf> =
            FOLDERS_OF_A_PROJECT.iter().map(|name| project.join(name)).filter(|folder| folder.is_dir()).collect();
        places.folders.extend(walk(&folders, &names).folders);
        places.folders.insert(project);
    }
    places.folders.retain(|folder| folder.is_dir());
    Ok(places)
}
