//! What an earlier check found, for `--watch`: a script that did not change, in a project in which nothing changed that it
//! depends on, needs no second check.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bcc_engine::discovery::names::PathNames;
use bcc_engine::discovery::skills;
use bcc_engine::discovery::walk::walk;
use bcc_engine::files::{read_bounded, reply_schema_files};
use bcc_engine::project::CONFIG_FILE;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::text::{MAX_FILE_BYTES, SourceFile};

/// The folders of a project that its scripts depend on, as wholes, besides that of its skills.
const DEPENDED_ON: [&str; 1] = ["_system"];

#[derive(Debug, Default)]
pub struct CheckCache {
    scripts: Mutex<HashMap<PathBuf, Remembered>>,
    /// What the documents of the last check named by their paths.
    named: Mutex<BTreeSet<PathBuf>>,
}

#[derive(Debug)]
struct Remembered {
    file: Arc<SourceFile>,
    stamp: u64,
    checking: CachedCheck,
}

#[derive(Clone, Debug)]
pub struct CachedCheck {
    pub findings: Vec<Diagnostic>,
    pub scheme: Option<String>,
    /// The names that it gives values to; none when not all of it could be read.
    pub names: Option<Arc<BTreeSet<String>>>,
    /// The files that it names by their paths and that its findings depend on, whether or not they exist: a test its script,
    /// a script its skills.
    pub named: Vec<PathBuf>,
}

impl CheckCache {
    /// What came of a file at `real`, when it held the same text in a project of the same stamp.
    pub fn recall(&self, real: &Path, file: &SourceFile, stamp: u64) -> Option<CachedCheck> {
        let scripts = self.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        let known = scripts.get(real).filter(|known| known.stamp == stamp && known.file.name() == file.name())?;
        (known.file.text() == file.text()).then(|| known.checking.clone())
    }

    pub fn is_empty(&self) -> bool {
        self.scripts.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// The files that documents have named since this was asked last.
    pub fn take_named(&self) -> BTreeSet<PathBuf> {
        std::mem::take(&mut *self.named.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps what was found. Only scripts are worth it: skills and tests depend on each other and on scripts, and are few.
    pub fn keep(&self, real: &Path, file: &Arc<SourceFile>, stamp: u64, checking: &CachedCheck) {
        self.named.lock().unwrap_or_else(PoisonError::into_inner).extend(checking.named.iter().cloned());
        // No stamp covers what a document names by its path.
        if !checking.named.is_empty() || !is_session(file.text()) {
            return;
        }
        let remembered = Remembered { file: Arc::clone(file), stamp, checking: checking.clone() };
        self.scripts.lock().unwrap_or_else(PoisonError::into_inner).insert(real.to_path_buf(), remembered);
    }
}

/// Whether a text is that of a script whose check depends on nothing but itself and its project.
fn is_session(text: &str) -> bool {
    // One that names skills by their paths depends on files that no stamp covers.
    !text.contains("skills")
        && text.lines().any(|line| line.trim_start_matches(['\u{feff}', '"', '\'']).starts_with("session"))
}

/// A number for all that scripts of a project depend on besides their own texts: configuration, templates, schemas, skills.
/// Whatever the check of a script comes to read more must be part of it.
pub fn stamp(project: &Path, names: &PathNames) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut add = |path: &Path| {
        path.hash(&mut hasher);
        // What cannot be read now is another state than what can.
        read_bounded(path, MAX_FILE_BYTES as u64).ok().hash(&mut hasher);
    };
    add(&project.join(CONFIG_FILE));
    reply_schema_files(project).iter().for_each(|(path, ..)| add(path));
    let folders = DEPENDED_ON.iter().map(|name| project.join(name)).filter(|folder| folder.is_dir());
    let folders: Vec<PathBuf> = folders.chain(skills::folder(project)).collect();
    walk(&folders, names).found.iter().for_each(|found| add(&found.path));
    hasher.finish()
}
