//! Finds files: those that are named, and those below the folders that are named. Each file is found once.

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::script::project_path::is_yaml;
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::discovery::names::PathNames;
use crate::discovery::skills::possible_projects;
use crate::error::EngineError;
use crate::files::read_bounded;
use crate::files::within::{read_within, resolve_within};
use crate::project::{CONFIG_FILE, absolute, is_marked, nearest};
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::layers::{is_own_scheme, is_template_name};

/// The folders of a project that are checked by default.
pub const USUAL_FOLDERS: [&str; 4] = ["scripts", "skills", "tests", "_system"];

/// The depth to which folders are searched.
pub(crate) const MAX_WALK_DEPTH: usize = 64;

/// The number of directory entries that one walk visits.
pub(crate) const MAX_WALK_ENTRIES: usize = 200_000;

/// Folders of generated files, which are skipped, like hidden folders.
pub(crate) const GENERATED_FOLDERS: [&str; 2] = ["target", "node_modules"];

/// The role of a file, according to its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileRole {
    /// A document of the language, or possibly one.
    Document,
    /// A prompt template of this project and scheme.
    Template {
        /// The project directory, absolute.
        project: PathBuf,
        /// The scheme; `None` for the default one.
        scheme: Option<String>,
    },
    /// A `bcc-script.toml`, checked with its project.
    Configuration,
}

/// A file to check.
#[derive(Clone, Debug)]
pub struct FoundFile {
    /// The path to open it.
    pub path: PathBuf,
    /// The absolute path, with links resolved as far as it exists.
    pub resolved: PathBuf,
    /// Its name in reports.
    pub shown: String,
    /// Whether the file itself was named, not only a folder above it.
    pub named: bool,
    /// The folder that no link may lead out of, if the file was found below a folder: the project, or the searched folder.
    pub boundary: PathBuf,
    pub role: FileRole,
}

impl FoundFile {
    /// Reads it. A file that was named may be a link to any file.
    ///
    /// # Errors
    /// As [`read_bounded`] and [`read_within`].
    pub fn read(&self, max_bytes: u64) -> io::Result<Vec<u8>> {
        match self.named {
            true => read_bounded(&self.path, max_bytes),
            false => read_within(&self.boundary, &self.path, max_bytes),
        }
    }
}

/// The result of a walk.
#[derive(Debug, Default)]
pub struct DiscoveredFiles {
    pub found: Vec<FoundFile>,
    pub folders: BTreeSet<PathBuf>,
    /// Folders that could not be searched.
    pub diagnostics: Vec<Diagnostic>,
}

/// Searches `roots`. A root that is not a folder is a file, whether or not it exists.
pub fn walk(roots: &[PathBuf], names: &PathNames) -> DiscoveredFiles {
    walk_limited(roots, names, MAX_WALK_ENTRIES)
}

fn walk_limited(roots: &[PathBuf], names: &PathNames, max_entries: usize) -> DiscoveredFiles {
    let walk = DiscoveredFiles::default();
    let mut walker = Walker { names, walk, seen: HashMap::new(), entries: 0, max_entries, full: false };
    for root in roots {
        if root.is_dir() {
            walker.below(root);
        } else {
            walker.file(root.clone(), absolute(root), None);
        }
    }
    let mut walk = walker.walk;
    walk.found.sort_by(|a, b| a.shown.cmp(&b.shown));
    walk
}

struct Walker<'n> {
    names: &'n PathNames,
    walk: DiscoveredFiles,
    /// The indexes in `walk.found` by real path.
    seen: HashMap<PathBuf, usize>,
    entries: usize,
    max_entries: usize,
    full: bool,
}

impl Walker<'_> {
    /// Searches a folder, without recursion: a tree of links may be deeper than the stack.
    fn below(&mut self, root: &Path) {
        let mut pending = vec![(root.to_path_buf(), absolute(root), 0)];
        let boundary = boundary(&absolute(root));
        while let Some((folder, real, depth)) = pending.pop() {
            // A visited folder is part of a loop of links, or was named twice.
            if self.full || !self.walk.folders.insert(real.clone()) {
                continue;
            }
            if depth > MAX_WALK_DEPTH {
                let reason = msg!(
                    "it is nested more than {MAX_WALK_DEPTH} folders deep; specify it by name to check its contents"
                );
                self.report_unsearched(&folder, reason);
                continue;
            }
            let mut entries = match self.entries_of(&folder) {
                Ok(entries) => entries,
                Err(error) => {
                    self.report_unsearched(&folder, error.to_message());
                    continue;
                }
            };
            entries.sort();
            for path in entries {
                self.entry(path, (&real, &boundary), depth, &mut pending);
            }
        }
    }

    fn entries_of(&mut self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            self.entries += 1;
            if self.entries > self.max_entries {
                self.full = true;
                let reason = msg!("there are more than {} files; the rest were skipped", self.max_entries);
                self.report_unsearched(folder, reason);
                break;
            }
            paths.push(entry?.path());
        }
        Ok(paths)
    }

    fn entry(
        &mut self,
        path: PathBuf,
        (folder, boundary): (&Path, &Path),
        depth: usize,
        pending: &mut Vec<(PathBuf, PathBuf, usize)>,
    ) {
        let Some(name) = path.file_name() else { return };
        if name.as_encoded_bytes().starts_with(b".") {
            return;
        }
        let link = path.is_symlink();
        let real = if link { absolute(&path) } else { folder.join(name) };
        if path.is_dir() {
            if GENERATED_FOLDERS.iter().any(|generated| name == *generated) {
                return;
            }
            match resolve_within(boundary, &path) {
                Ok(_) => pending.push((path, real, depth + 1)),
                Err(error) => self.report_unsearched(&path, error.to_message()),
            }
        } else if is_yaml(&path) || template_place(&real).is_some() {
            self.file(path, real, Some(boundary));
        }
    }

    /// Adds a file that was found below a folder, or one without a boundary, which was named.
    fn file(&mut self, path: PathBuf, real: PathBuf, boundary: Option<&Path>) {
        let named = boundary.is_none();
        if let Some(found) = self.seen.get(&real).and_then(|index| self.walk.found.get_mut(*index)) {
            found.named |= named;
            return;
        }
        let role = match template_place(&real) {
            Some((project, scheme)) => FileRole::Template { project, scheme },
            None if path.file_name().is_some_and(|name| name == CONFIG_FILE) => FileRole::Configuration,
            None => FileRole::Document,
        };
        self.seen.insert(real.clone(), self.walk.found.len());
        let boundary = boundary.map(Path::to_path_buf).unwrap_or_default();
        let shown = self.names.display_name(&path);
        self.walk.found.push(FoundFile { shown, path, resolved: real, named, boundary, role });
    }

    fn report_unsearched(&mut self, path: &Path, reason: Message) {
        let shown = self.names.display_name(path);
        let message = msg!("the folder {shown} was not searched: {reason}");
        self.walk.diagnostics.push(unreadable(&shown, message));
    }
}

/// The folder that links below `folder`, an absolute path, must not lead out of: the directory of its project, or the folder itself.
pub fn boundary(folder: &Path) -> PathBuf {
    let project = nearest(folder);
    let boundary = if is_marked(&project) { &project } else { possible_projects(folder).next().unwrap_or(folder) };
    boundary.to_path_buf()
}

pub fn current_directory() -> Result<PathBuf, EngineError> {
    std::env::current_dir()
        .map_err(|error| EngineError::failed(msg!("cannot determine the current directory: {error}")))
}

/// The project and the scheme of a prompt template; `None` for any other file. `path` is absolute.
pub(crate) fn template_place(path: &Path) -> Option<(PathBuf, Option<String>)> {
    let folder = path.parent().filter(|_| path.file_name().and_then(OsStr::to_str).is_some_and(is_template_name))?;
    let (config, scheme) = if folder.file_name() == Some(OsStr::new("default")) {
        (folder.parent()?, None)
    } else {
        let scheme = folder.file_name()?.to_str().filter(|scheme| is_own_scheme(scheme))?;
        let custom = folder.parent().filter(|custom| custom.file_name() == Some(OsStr::new("custom")))?;
        (custom.parent()?, Some(scheme.to_owned()))
    };
    let system = config.parent().filter(|_| config.file_name() == Some(OsStr::new("config")))?;
    let project = system.parent().filter(|_| system.file_name() == Some(OsStr::new("_system")))?;
    Some((project.to_path_buf(), scheme))
}

/// The diagnostic for a file or a folder that cannot be read.
pub fn unreadable(shown: &str, message: impl Into<Message>) -> Diagnostic {
    let file = Arc::new(SourceFile::new(shown, ""));
    Diagnostic::error("unreadable-file", message, &file, Span::default())
        .with_help("check that it exists, that it is a file, and that you have permission to read it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_too_many_files_is_searched_in_part_and_reported() {
        let root = tempfile::tempdir().unwrap();
        for number in 0..20 {
            std::fs::write(root.path().join(format!("{number}.yaml")), "").unwrap();
        }
        let names = PathNames::relative_to(root.path().to_path_buf());
        let roots = [root.path().to_path_buf()];
        let all = walk_limited(&roots, &names, 20);
        assert_eq!((all.found.len(), all.diagnostics.len()), (20, 0));
        let part = walk_limited(&roots, &names, 15);
        assert_eq!((part.found.len(), part.diagnostics.len()), (15, 1));
        assert!(
            part.diagnostics[0].message.to_string().contains("more than 15 files"),
            "{}",
            part.diagnostics[0].message
        );
    }

    #[test]
    fn templates_are_recognized_by_their_folders() {
        let of = |path: &str| template_place(Path::new(path));
        assert_eq!(of("/p/_system/config/default/ai_ask_v1.md"), Some(("/p".into(), None)));
        assert_eq!(of("/p/_system/config/custom/焦虑/a.md"), Some(("/p".into(), Some("焦虑".to_owned()))));
        for other in [
            "/p/_system/README.md",
            "/p/_system/config/default/deep/a.md",
            "/p/_system/config/default/a.txt",
            "/p/_system/config/custom/a.md",
            "/p/_system/config/custom/default/a.md",
            "/p/config/default/a.md",
            "/p/_system/config/custom/a b/a.md",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
