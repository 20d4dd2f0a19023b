//! `init`: creates a project that can be run, validated and tested. Existing files are not changed.

use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::path::{Path, PathBuf};

use crate::scaffold::draft::{FileDraft, conflicts, write_all};
use crate::scaffold::target_directory::{project_above, project_directory};
use crate::scaffold::texts::project;
use crate::templates::scheme::check_new_name;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::files::within::read_within;
use bcc_engine::project::CONFIG_FILE;
use bcc_engine::trust::trust;
use bcc_lang::message::language::Language;

/// The default name of the scheme of a new project.
pub(crate) const USUAL_SCHEME: &str = "own";

/// At most this number of conflicting files are listed; the others are counted.
const MAX_LISTED: usize = 10;

/// Files that a directory often has before it becomes a project, and that can stay.
const PRESERVED_FILES: [&str; 2] = ["README.md", ".gitignore"];

#[derive(Clone, Copy, Debug)]
pub struct InitRequest<'r> {
    /// The directory of the project. It is created if it does not exist.
    pub directory: &'r Path,
    pub language: Language,
    /// The name of the editable scheme; `None` for `USUAL_SCHEME`.
    pub scheme: Option<&'r str>,
    pub nested: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedProject {
    /// The absolute path of its directory.
    pub directory: PathBuf,
    /// The files that were written, also by an earlier interrupted run.
    pub written: Vec<String>,
    /// The existing files that were not changed.
    pub existing: Vec<String>,
    pub scheme: String,
    /// Why the configuration could not be trusted, if that failed: settings that need trust have no effect then.
    pub untrusted: Option<String>,
}

/// Creates a project, and trusts the configuration that it wrote (docs/configuration.md). Either all files are added,
/// or nothing is written. An existing `README.md` or `.gitignore` is kept, and an existing file with the expected
/// contents counts as written.
/// Errors: `Usage` if the directory or the name of the scheme is not suitable, if another file is in the way, or if the
/// directory is inside another project and `nested` is not set; `Failed` if something cannot be written.
pub fn init(request: &InitRequest<'_>, environment: &Environment) -> Result<CreatedProject, EngineError> {
    create_project(request, environment, |_| {})
}

/// Implements [`init`]; `written` is called after the files were written and before anything is trusted.
fn create_project(
    request: &InitRequest<'_>,
    environment: &Environment,
    written: impl FnOnce(&Path),
) -> Result<CreatedProject, EngineError> {
    let scheme = request.scheme.unwrap_or(USUAL_SCHEME);
    check_new_name(scheme)?;
    let directory = project_directory(request.directory)?;
    let shown = request.directory.display();
    let drafts = project(request.language, &title(&directory), scheme);
    let found = conflicts(&directory, &drafts)
        .map_err(|error| EngineError::failed(msg!("{shown} cannot be accessed: {error}")))?;
    if found.iter().any(|path| path == CONFIG_FILE) {
        return Err(EngineError::usage(msg!("{shown} already contains a project: it has a {CONFIG_FILE}"))
            .with_help("`bcc-script new script NAME` adds a script to it; create a new project in another directory"));
    }
    let same = |path: &String| drafts.iter().any(|draft| draft.path == *path && is_written(&directory, draft));
    let (preserved, found): (Vec<String>, Vec<String>) =
        found.into_iter().filter(|path| !same(path)).partition(|path| PRESERVED_FILES.contains(&path.as_str()));
    if !found.is_empty() {
        let message = msg!("nothing was written, because {shown} already has {}", listed(&found));
        return Err(EngineError::usage(message).with_help("move them elsewhere, or use another directory"));
    }
    if let Some(above) = project_above(&directory).filter(|_| !request.nested) {
        let message = msg!("{shown} is inside the project {path}", path = above.display());
        return Err(EngineError::usage(message).with_help(
            "`bcc-script new script NAME` adds a script to that project; `--nested` creates another project inside it",
        ));
    }
    let (config, others): (Vec<FileDraft>, Vec<FileDraft>) = drafts
        .iter()
        .filter(|draft| !preserved.contains(&draft.path) && !is_written(&directory, draft))
        .cloned()
        .partition(|draft| draft.path == CONFIG_FILE);
    // This file makes the directory a project, so it is written last: until then, `init` can be repeated.
    write_all(&directory, &[others, config.clone()].concat())?;
    written(&directory);
    // Trust the text that was written, not the current file: another process may have changed it. It allows neither code nor
    // commands, so nothing else has to be trusted.
    let trusted = config.iter().try_for_each(|draft| trust(environment, &directory, draft.text.as_bytes(), None));
    let untrusted = trusted.err().map(|error| error.to_string());
    let written = drafts.into_iter().map(|draft| draft.path).filter(|path| !preserved.contains(path)).collect();
    Ok(CreatedProject { directory, written, existing: preserved, scheme: scheme.to_owned(), untrusted })
}

/// Whether a file already has the expected contents, because an earlier `init` was interrupted.
fn is_written(directory: &Path, draft: &FileDraft) -> bool {
    let path = directory.join(&draft.path);
    let is_file = path.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
    let written = read_within(directory, &path, draft.text.len() as u64);
    is_file && written.is_ok_and(|bytes| bytes == draft.text.as_bytes())
}

fn title(directory: &Path) -> String {
    let name = directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let plain: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match plain.trim() {
        "" => "bcc-script".to_owned(),
        plain => plain.to_owned(),
    }
}

fn listed(found: &[String]) -> Message {
    let named = Message::list(Joint::Item, found.iter().take(MAX_LISTED).map(Message::text));
    match found.len().saturating_sub(MAX_LISTED) {
        0 => named,
        more => msg!("{} and {more} more", named),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bcc_engine::project::{Project, absolute};
    use std::fs;

    #[test]
    fn only_the_written_configuration_is_trusted() {
        let home = tempfile::tempdir().unwrap();
        let environment = Environment::of([("XDG_CONFIG_HOME", home.path().join("own").display().to_string())]);
        let at = home.path().join("p");
        let request = InitRequest { directory: &at, language: Language::English, scheme: None, nested: false };
        let created = create_project(&request, &environment, |directory| {
            fs::write(directory.join(CONFIG_FILE), "[project]\nallow = [\"exec\"]\n").unwrap();
        });
        assert_eq!(created.unwrap().untrusted, None);
        assert!(!Project::in_directory(absolute(&at), false, &environment).unwrap().trusted);
        fs::remove_dir_all(&at).unwrap();
        create_project(&request, &environment, |_| {}).unwrap();
        assert!(Project::in_directory(absolute(&at), false, &environment).unwrap().trusted);
    }
}
