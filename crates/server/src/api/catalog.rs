//! The scripts of the project: each with the name under which clients start its sessions.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use bcc_engine::discovery::names::PathNames;
use bcc_engine::discovery::walk::{FileRole, walk};
use bcc_engine::files::script;
use bcc_lang::message::msg;
use bcc_lang::source::compose::parse;
use bcc_lang::source::yaml::YamlNode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::problem::{Problem, ProblemKind};

/// The folder of scripts in a project. Without it, the project itself.
const FOLDER: &str = "scripts";

/// A script of the project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct ScriptEntry {
    /// Its `session_id`: the name by which sessions of it are started. Its path if that cannot be read because of an error.
    pub(crate) session_id: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// Its path in the project.
    pub(crate) path: String,
    #[serde(skip)]
    pub(crate) file: PathBuf,
}

/// What changes when a file is written.
type Stamp = (SystemTime, u64);

/// A file as it was last read. None if it is no script.
type Cached = (Stamp, Option<ScriptEntry>);

/// Finds the scripts of a project. A file is read again only after a change.
pub(crate) struct ScriptCatalog {
    project: PathBuf,
    cached: Mutex<BTreeMap<PathBuf, Cached>>,
    /// Held while a script is replaced.
    pub(crate) replacing: Mutex<()>,
}

impl ScriptCatalog {
    pub(crate) fn new(project: PathBuf) -> Self {
        Self { project, cached: Mutex::default(), replacing: Mutex::default() }
    }

    /// All scripts, sorted by path.
    pub(crate) async fn list(self: &Arc<Self>) -> Result<Vec<ScriptEntry>, Problem> {
        let catalog = Arc::clone(self);
        let listed = tokio::task::spawn_blocking(move || catalog.read()).await;
        listed.map_err(|error| Problem::failure(&msg!("the scripts cannot be listed: {error}")))
    }

    /// The script with this `session_id` or path.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` if several scripts have the same `session_id`.
    pub(crate) async fn find(self: &Arc<Self>, name: &str) -> Result<ScriptEntry, Problem> {
        let mut all = self.list().await?;
        if let Some(index) = all.iter().position(|script| script.path == name) {
            return Ok(all.swap_remove(index));
        }
        all.retain(|script| script.session_id == name);
        match (all.pop(), all.is_empty()) {
            (Some(script), true) => Ok(script),
            (Some(_), false) => {
                let problem =
                    Problem::new(ProblemKind::Conflict, msg!("several scripts have the `session_id` `{name}`"));
                Err(problem.with_help("name the script by its path"))
            }
            (None, _) => Err(Problem::not_found(msg!("the project has no script `{name}`"))
                .with_help("`GET /v1/scripts` lists the scripts")),
        }
    }

    /// The folder of the scripts.
    pub(crate) fn folder(&self) -> PathBuf {
        let folder = self.project.join(FOLDER);
        if folder.is_dir() { folder } else { self.project.clone() }
    }

    fn read(&self) -> Vec<ScriptEntry> {
        let found = walk(&[self.folder()], &PathNames::relative_to(self.project.clone())).found;
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *cached);
        let mut scripts = Vec::new();
        for file in found.into_iter().filter(|file| file.role == FileRole::Document) {
            let Ok(stamp) = stamp(&file.path) else { continue };
            let entry = match before.remove(&file.path) {
                Some((known, entry)) if known == stamp => entry,
                _ => entry(&file.path, &file.shown),
            };
            scripts.extend(entry.clone());
            cached.insert(file.path, (stamp, entry));
        }
        scripts
    }
}

fn stamp(path: &Path) -> io::Result<Stamp> {
    let metadata = std::fs::metadata(path)?;
    Ok((metadata.modified()?, metadata.len()))
}

/// What a file is called, if it is a script. A script with errors is listed too: starting it tells what is wrong.
fn entry(path: &Path, shown: &str) -> Option<ScriptEntry> {
    let source = script(path).ok()?;
    let root = parse(&source).root;
    let session = match &root {
        Some(root) => Some(field(root, "session")?),
        // Nothing can be read of a file that is not YAML, for example while somebody writes it.
        None if source.text().lines().any(|line| line.starts_with("session:")) => None,
        None => return None,
    };
    let text = |name: &str| field(session?, name)?.as_scalar().map(|scalar| scalar.text.clone());
    Some(ScriptEntry {
        session_id: text("session_id").unwrap_or_else(|| shown.to_owned()),
        name: text("session_name"),
        path: shown.to_owned(),
        file: path.to_path_buf(),
    })
}

fn field<'n>(node: &'n YamlNode, name: &str) -> Option<&'n YamlNode> {
    let entry = node.as_mapping()?.iter().find(|entry| entry.key.value == name)?;
    Some(&entry.value)
}
