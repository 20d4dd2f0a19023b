//! `init`: a project that runs, validates and tests at once. Nothing that is there is touched.

use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::path::{Path, PathBuf};

use crate::scaffold::draft::{FileDraft, in_the_way, write_all};
use crate::scaffold::target_directory::{place, project_above};
use crate::scaffold::texts::project;
use crate::templates::scheme::may_be_made;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::files::read_bounded;
use bcc_engine::project::CONFIG_FILE;
use bcc_engine::trust::trust;
use bcc_lang::message::language::Language;

/// What the scheme of a new project is called when nobody says otherwise.
pub const USUAL_SCHEME: &str = "own";

/// More files in the way than these are counted, not named.
const MOST_NAMED: usize = 10;

/// What a directory often has before it is a project, and what can be as it is.
const KEPT: [&str; 2] = ["README.md", ".gitignore"];

#[derive(Clone, Copy, Debug)]
pub struct InitRequest<'r> {
    /// Where. It is made where it is not there.
    pub directory: &'r Path,
    pub language: Language,
    /// What the scheme to edit is called; `None` for [`USUAL_SCHEME`].
    pub scheme: Option<&'r str>,
    pub nested: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedProject {
    /// Its directory, from the root.
    pub directory: PathBuf,
    /// The files that were written, in it; also those that an earlier beginning wrote.
    pub written: Vec<String>,
    /// The files that were there before, and stay as they are.
    pub kept: Vec<String>,
    pub scheme: String,
    /// Why it could not be trusted, when it could not: what needs trust in its configuration does not count then.
    pub untrusted: Option<String>,
}

/// Begins a project, and trusts the configuration that it wrote (docs/configuration.md). Either every file is added
/// beside what is there, or nothing is written at all; but a `README.md` and a `.gitignore` that are there stay as they are, and
/// a file that is there already as it would be written is taken for written.
/// Errors: `Usage` when the place or the scheme's name will not do, when another file has the name of one of the project, or when the place
/// lies inside of another project and `nested` does not say that it may; `Failed` when something cannot be written.
pub fn init(request: &InitRequest<'_>, environment: &Environment) -> Result<CreatedProject, EngineError> {
    begin(request, environment, |_| {})
}

/// The same; `written` is called when the files are there and nothing is trusted yet.
fn begin(
    request: &InitRequest<'_>,
    environment: &Environment,
    written: impl FnOnce(&Path),
) -> Result<CreatedProject, EngineError> {
    let scheme = request.scheme.unwrap_or(USUAL_SCHEME);
    may_be_made(scheme)?;
    let directory = place(request.directory)?;
    let shown = request.directory.display();
    let drafts = project(request.language, &title(&directory), scheme);
    let found = in_the_way(&directory, &drafts)
        .map_err(|error| EngineError::failed(msg!("{shown} cannot be accessed: {error}")))?;
    if found.iter().any(|path| path == CONFIG_FILE) {
        return Err(EngineError::usage(msg!("{shown} already contains a project: it has a {CONFIG_FILE}"))
            .with_help("`bcc-script new script NAME` adds a script to it; create a new project in another directory"));
    }
    let same = |path: &String| drafts.iter().any(|draft| draft.path == *path && is_written(&directory, draft));
    let (kept, found): (Vec<String>, Vec<String>) =
        found.into_iter().filter(|path| !same(path)).partition(|path| KEPT.contains(&path.as_str()));
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
        .filter(|draft| !kept.contains(&draft.path) && !is_written(&directory, draft))
        .cloned()
        .partition(|draft| draft.path == CONFIG_FILE);
    // The last file makes it a project: until it is there, `init` can be said again.
    write_all(&directory, &[others, config.clone()].concat())?;
    written(&directory);
    // What was written, not what stands there now: somebody else may have written since.
    let trusted = config.iter().try_for_each(|draft| trust(environment, &directory, draft.text.as_bytes()));
    let untrusted = trusted.err().map(|error| error.to_string());
    let written = drafts.into_iter().map(|draft| draft.path).filter(|path| !kept.contains(path)).collect();
    Ok(CreatedProject { directory, written, kept, scheme: scheme.to_owned(), untrusted })
}

/// Whether a file is there, and is what it is to be: `init` was stopped before it came to its end.
fn is_written(directory: &Path, draft: &FileDraft) -> bool {
    let path = directory.join(&draft.path);
    let is_file = path.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
    is_file && read_bounded(&path, draft.text.len() as u64).is_ok_and(|bytes| bytes == draft.text.as_bytes())
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
    let named = Message::list(Joint::Item, found.iter().take(MOST_NAMED).map(Message::text));
    match found.len().saturating_sub(MOST_NAMED) {
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
    fn what_was_written_is_trusted_and_not_what_stands_there_by_then() {
        let home = tempfile::tempdir().unwrap();
        let environment = Environment::of([("XDG_CONFIG_HOME", home.path().join("own").display().to_string())]);
        let at = home.path().join("p");
        let request = InitRequest { directory: &at, language: Language::English, scheme: None, nested: false };
        let begun = begin(&request, &environment, |directory| {
            fs::write(directory.join(CONFIG_FILE), "[project]\nallow = [\"exec\"]\n").unwrap();
        });
        assert_eq!(begun.unwrap().untrusted, None);
        assert!(!Project::in_directory(absolute(&at), false, &environment).unwrap().trusted);
        fs::remove_dir_all(&at).unwrap();
        begin(&request, &environment, |_| {}).unwrap();
        assert!(Project::in_directory(absolute(&at), false, &environment).unwrap().trusted);
    }
}
