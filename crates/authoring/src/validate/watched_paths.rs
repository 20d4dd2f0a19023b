//! Where something may happen that changes a report: what `--watch` watches.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::validate::request::ValidateRequest;
use crate::validate::roots::roots;
use bcc_engine::discovery::names::PathNames;
use bcc_engine::discovery::walk::{here, walk};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::project::{CONFIG_FILE, given_directory, nearest};

/// What of a project the check of its files depends on.
const FOLDERS_OF_A_PROJECT: [&str; 3] = ["_system", "skills", "schemas"];

/// The endings of the names of files that a check reads.
const ENDINGS: [&str; 5] = ["yaml", "yml", "md", "json", "toml"];

/// Folders, each without what lies deeper, and files that have names of their own.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WatchedPaths {
    /// The folders, absolute.
    pub folders: BTreeSet<PathBuf>,
    files: BTreeSet<PathBuf>,
}

impl WatchedPaths {
    /// Whether a change of `path` may change the report. What editors put beside a file while they save it does not.
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
            // A folder that came, or went.
            None => !hidden && (path.is_dir() || !path.exists()),
        }
    }
}

impl WatchedPaths {
    /// Adds files that documents name by their paths, absolute. Says whether there is a place among theirs that was not known.
    pub fn name(&mut self, files: BTreeSet<PathBuf>) -> bool {
        let mut new = false;
        for file in files {
            // Of what does not exist yet, the nearest folder that does tells when it comes.
            let folder = file.ancestors().skip(1).find(|folder| folder.is_dir());
            // One that nobody may look into cannot be watched either.
            let folder = folder.filter(|folder| std::fs::read_dir(folder).is_ok()).map(Path::to_path_buf);
            new |= folder.is_some_and(|folder| self.folders.insert(folder));
            new |= self.files.insert(file);
        }
        new
    }
}

/// The places that the report for `request` depends on, as they are now.
pub fn places(request: &ValidateRequest, environment: &Environment) -> Result<WatchedPaths, EngineError> {
    let here = here()?;
    let names = PathNames::seen_from(here.clone());
    let given = given_directory(request.project.as_deref(), environment)?;
    let walked = walk(&roots(request, given.as_deref(), &here)?, &names);
    let mut places = WatchedPaths { folders: walked.folders, ..WatchedPaths::default() };
    let mut projects: BTreeSet<PathBuf> = given.iter().cloned().collect();
    let mut looked_at = BTreeSet::new();
    for found in walked.found {
        let Some(folder) = found.real.parent() else { continue };
        if given.is_none() && looked_at.insert(folder.to_path_buf()) {
            projects.insert(nearest(folder));
        }
        places.folders.insert(folder.to_path_buf());
        if let Some(folder) = found.path.parent().and_then(|folder| std::path::absolute(folder).ok()) {
            // Of a link, both ends may change.
            places.files.extend(found.path.file_name().map(|name| folder.join(name)));
            places.folders.insert(folder);
        }
        places.files.insert(found.real);
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
