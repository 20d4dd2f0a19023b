//! Caches the findings of earlier checks for `--watch`: an unchanged script in a project whose dependencies did not
//! change is not checked again.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::validate::services::NeededServices;
use bcc_engine::discovery::names::PathNames;
use bcc_engine::discovery::skills;
use bcc_engine::discovery::walk::walk;
use bcc_engine::files::reply_schema_files;
use bcc_engine::files::within::read_within;
use bcc_engine::project::CONFIG_FILE;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::text::{MAX_FILE_BYTES, SourceFile};

/// The folders of a project that its scripts depend on completely, besides that of its skills.
const PROJECT_FOLDERS: [&str; 1] = ["_system"];

#[derive(Debug, Default)]
pub struct CheckCache {
    scripts: Mutex<HashMap<PathBuf, CacheEntry>>,
    /// The files that the documents of the last check named by path.
    named: Mutex<BTreeSet<PathBuf>>,
}

#[derive(Debug)]
struct CacheEntry {
    file: Arc<SourceFile>,
    stamp: u64,
    check: CachedCheck,
}

#[derive(Clone, Debug)]
pub struct CachedCheck {
    pub findings: Vec<Diagnostic>,
    pub scheme: Option<String>,
    /// The names that it assigns; `None` if not all of it could be read.
    pub names: Option<Arc<BTreeSet<String>>>,
    /// The files that it names by path and that its findings depend on, whether or not they exist: the script of a
    /// test, the skills of a script.
    pub named: Vec<PathBuf>,
    /// What runs elsewhere and it needs.
    pub services: Option<NeededServices>,
}

impl CheckCache {
    /// The result for the file at `real`, if its text and the stamp of the project are unchanged.
    pub(crate) fn recall(&self, real: &Path, file: &SourceFile, stamp: u64) -> Option<CachedCheck> {
        let scripts = self.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        let known = scripts.get(real).filter(|known| known.stamp == stamp && known.file.name() == file.name())?;
        (known.file.text() == file.text()).then(|| known.check.clone())
    }

    pub fn is_empty(&self) -> bool {
        self.scripts.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Takes the files that documents have named since the last call.
    pub fn take_named(&self) -> BTreeSet<PathBuf> {
        std::mem::take(&mut *self.named.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Stores a result. Only scripts are stored: skills and tests depend on each other and on scripts, and are few.
    pub fn store(&self, real: &Path, file: &Arc<SourceFile>, stamp: u64, check: &CachedCheck) {
        self.named.lock().unwrap_or_else(PoisonError::into_inner).extend(check.named.iter().cloned());
        // The stamp does not cover files that a document names by path.
        if !check.named.is_empty() || !is_session(file.text()) {
            return;
        }
        let entry = CacheEntry { file: Arc::clone(file), stamp, check: check.clone() };
        self.scripts.lock().unwrap_or_else(PoisonError::into_inner).insert(real.to_path_buf(), entry);
    }
}

/// Whether a text is a script whose check depends only on itself and its project.
fn is_session(text: &str) -> bool {
    // A script that names skills by path depends on files that the stamp does not cover.
    !text.contains("skills")
        && text.lines().any(|line| line.trim_start_matches(['\u{feff}', '"', '\'']).starts_with("session"))
}

/// A hash of everything that scripts of a project depend on besides their own texts: configuration, templates, schemas,
/// skills. Further inputs of the check must be added here.
pub fn stamp(project: &Path, names: &PathNames) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut add = |path: &Path, bytes: io::Result<Vec<u8>>| {
        path.hash(&mut hasher);
        // An unreadable file is a state of its own.
        bytes.ok().hash(&mut hasher);
    };
    let of_project = |path: &Path| read_within(project, path, MAX_FILE_BYTES as u64);
    let configuration = project.join(CONFIG_FILE);
    add(&configuration, of_project(&configuration));
    reply_schema_files(project).iter().for_each(|(path, ..)| add(path, of_project(path)));
    let folders = PROJECT_FOLDERS.iter().map(|name| project.join(name)).filter(|folder| folder.is_dir());
    let folders: Vec<PathBuf> = folders.chain(skills::folder(project)).collect();
    walk(&folders, names).found.iter().for_each(|found| add(&found.path, found.read(MAX_FILE_BYTES as u64)));
    hasher.finish()
}
