//! Names of files in commands that contain variables, so that only a part of them is known before the command runs.

use std::path::{Path, PathBuf};

/// Whether a word of a script contains variables, so that it is not known.
pub(crate) fn has_variables(word: &str) -> bool {
    word.contains("{{") || word.contains("{%")
}

/// The name of a file with variables in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilePattern {
    start: String,
    end: String,
    folders: Vec<PathBuf>,
}

impl FilePattern {
    /// The pattern of a word of a command whose paths may start at these folders.
    pub(crate) fn of(word: &str, folders: &[PathBuf]) -> Self {
        let start = word.split("{{").next().and_then(|part| part.split("{%").next()).unwrap_or_default();
        let end = word.rsplit("}}").next().and_then(|part| part.rsplit("%}").next()).unwrap_or_default();
        let plain = |part: &str| part.trim_start_matches("./").to_owned();
        // What cannot be compared matches everything.
        let start = if start.contains("..") { String::new() } else { plain(start) };
        Self { start, end: plain(end), folders: folders.to_vec() }
    }

    /// Whether it may be the name of the file at this path.
    pub(crate) fn may_be(&self, path: &Path) -> bool {
        let fits = |path: &Path| {
            let path = path.to_string_lossy();
            path.starts_with(&self.start) && path.ends_with(&self.end)
        };
        fits(path) || self.folders.iter().any(|folder| path.strip_prefix(folder).is_ok_and(fits))
    }
}
