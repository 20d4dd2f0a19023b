//! Snapshots whose test was deleted or renamed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::test_runner::snapshots::compare::{HEAD, MAX_BYTES};
use bcc_engine::files::within::{read_within, resolve_within};
use bcc_lang::script::project_path::is_yaml;

/// A folder of snapshots that was found below a folder of tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotFolder {
    /// Its absolute path.
    pub real: PathBuf,
    /// Its path in messages.
    pub shown: PathBuf,
    /// The folder that no link may lead out of.
    pub boundary: PathBuf,
}

/// The snapshots in this folder whose test does not exist, as messages name them. Files that this program has not written are ignored.
pub fn orphaned(folder: &SnapshotFolder) -> Vec<String> {
    let Some(tests) = folder.real.parent() else { return vec![] };
    // A test that has another extension than `.yaml` keeps it in the name of its snapshot.
    let has_test = |name: &str| tests.join(format!("{name}.yaml")).exists() || tests.join(name).exists();
    let mut found = Vec::new();
    for path in entries(&folder.boundary, &folder.real) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if path.is_dir() {
            if !has_test(name) {
                found.extend(entries(&folder.boundary, &path));
            }
        } else if name.strip_suffix(".yaml").is_some_and(|name| !has_test(name)) {
            found.push(path);
        }
    }
    found.retain(|path| is_snapshot(&folder.boundary, path));
    let shown = |path: &PathBuf| {
        let shown = path.strip_prefix(&folder.real).map_or_else(|_| path.clone(), |end| folder.shown.join(end));
        shown.to_string_lossy().replace('\\', "/")
    };
    found.iter().map(shown).collect()
}

fn entries(boundary: &Path, folder: &Path) -> Vec<PathBuf> {
    let entries = resolve_within(boundary, folder).and_then(fs::read_dir).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(folder.join(entry.ok()?.file_name()))).collect();
    paths.sort();
    paths
}

/// Whether a file starts with the line of this program. Version control may have changed its end.
fn is_snapshot(boundary: &Path, path: &Path) -> bool {
    let starts = |text: &str| text.trim_start_matches('\u{feff}').starts_with(HEAD.trim_end());
    path.is_file()
        && is_yaml(path)
        && read_within(boundary, path, MAX_BYTES).is_ok_and(|bytes| starts(&String::from_utf8_lossy(&bytes)))
}
