//! The projects of the checked files, each loaded once and shared between files and threads.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::validate::cache::stamp;
use crate::validate::checked_project::CheckedProject;
use bcc_engine::discovery::names::PathNames;
use bcc_engine::project::nearest;

#[derive(Debug)]
pub(crate) struct CheckedProjects {
    /// The project of all files, if it was given.
    given: Option<PathBuf>,
    names: PathNames,
    rules: Vec<(String, String)>,
    stamped: bool,
    loaded: Mutex<Loaded>,
}

#[derive(Debug, Default)]
struct Loaded {
    /// By the folder of a file.
    folders: HashMap<PathBuf, Arc<CheckedProject>>,
    /// By their own directories.
    projects: HashMap<PathBuf, Arc<CheckedProject>>,
}

impl CheckedProjects {
    /// No projects yet. All files belong to `given`, if it is set; `rules` apply to each project.
    pub(crate) fn new(given: Option<PathBuf>, names: PathNames, rules: Vec<(String, String)>) -> Self {
        Self { given, names, rules, stamped: false, loaded: Mutex::default() }
    }

    /// Sets whether projects get a stamp ([`CheckedProject::stamp`]).
    pub(crate) fn stamped(self, stamped: bool) -> Self {
        Self { stamped, ..self }
    }

    pub(crate) fn names(&self) -> &PathNames {
        &self.names
    }

    /// The project of a file, whose path is absolute.
    pub(crate) fn of_file(&self, real: &Path) -> Arc<CheckedProject> {
        let folder = real.parent().unwrap_or(real);
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(project) = loaded.folders.get(folder) {
            return Arc::clone(project);
        }
        let directory = self.given.clone().unwrap_or_else(|| nearest(folder));
        let project = self.load(&mut loaded, directory);
        loaded.folders.insert(folder.to_path_buf(), Arc::clone(&project));
        project
    }

    pub(crate) fn of_directory(&self, directory: &Path) -> Arc<CheckedProject> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        self.load(&mut loaded, directory.to_path_buf())
    }

    /// All loaded projects, by directory.
    pub(crate) fn all(&self) -> Vec<Arc<CheckedProject>> {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let mut projects: Vec<Arc<CheckedProject>> = loaded.projects.values().map(Arc::clone).collect();
        projects.sort_by(|a, b| a.directory.cmp(&b.directory));
        projects
    }

    fn load(&self, loaded: &mut Loaded, directory: PathBuf) -> Arc<CheckedProject> {
        let made = loaded.projects.entry(directory).or_insert_with_key(|directory| {
            // Computed before reading: a change in between results in another stamp the next time.
            let stamp = self.stamped.then(|| stamp(directory, &self.names));
            Arc::new(CheckedProject::of(directory.clone(), &self.names, &self.rules, stamp))
        });
        Arc::clone(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_has_the_stamp_from_before_it_was_read() {
        let project = tempfile::tempdir().unwrap();
        let names = PathNames::relative_to(project.path().to_path_buf());
        let projects = CheckedProjects::new(None, names.clone(), vec![]);
        assert_eq!(projects.of_directory(project.path()).stamp(), None, "nobody needs one");
        let before = stamp(project.path(), &names);
        let checked = CheckedProjects::new(None, names.clone(), vec![]).stamped(true).of_directory(project.path());
        std::fs::write(project.path().join("bcc-script.toml"), "[project]\n").unwrap();
        assert_eq!(checked.stamp(), Some(before));
        assert_ne!(before, stamp(project.path(), &names));
    }
}
