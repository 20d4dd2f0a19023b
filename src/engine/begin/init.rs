//! `init`: a project that runs, validates and tests at once. Nothing that is there is touched.

use std::path::{Path, PathBuf};

use crate::engine::begin::draft::{in_the_way, write_all};
use crate::engine::begin::place::{place, project_above};
use crate::engine::begin::texts::project;
use crate::engine::environment::Environment;
use crate::engine::error::EngineError;
use crate::engine::project::{CONFIG_FILE, config_bytes};
use crate::engine::templates::scheme::may_be_made;
use crate::engine::trust::trust;
use crate::words::language::Language;

/// What the scheme of a new project is called when nobody says otherwise.
pub const USUAL_SCHEME: &str = "own";

/// More files in the way than these are counted, not named.
const MOST_NAMED: usize = 10;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct InitRequest<'r> {
    /// Where. It is made where it is not there.
    pub directory: &'r Path,
    /// The language of what is written.
    pub language: Language,
    /// What the scheme to edit is called; `None` for [`USUAL_SCHEME`].
    pub scheme: Option<&'r str>,
    /// Whether it may lie inside of another project.
    pub nested: bool,
}

/// A project that was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Its directory, from the root.
    pub directory: PathBuf,
    /// The files that were written, in it.
    pub written: Vec<String>,
    /// The name of its scheme.
    pub scheme: String,
    /// Why it could not be trusted, when it could not: what needs trust in its configuration does not count then.
    pub untrusted: Option<String>,
}

/// Begins a project, and trusts its configuration (INTERFACES.md, "Configuration"). Either every file is new and is added
/// beside what is there, or nothing is written at all.
///
/// # Errors
/// `Usage` when the place or the scheme's name will not do, when a file of the new project is there already, or when the place
/// lies inside of another project and `nested` does not say that it may; `Failed` when something cannot be written.
pub fn init(request: &InitRequest<'_>, environment: &Environment) -> Result<Begun, EngineError> {
    let scheme = request.scheme.unwrap_or(USUAL_SCHEME);
    may_be_made(scheme)?;
    let directory = place(request.directory)?;
    let shown = request.directory.display();
    let drafts = project(request.language, &title(&directory), scheme);
    let found = in_the_way(&directory, &drafts)
        .map_err(|error| EngineError::failed(format!("{shown} cannot be looked at: {error}")))?;
    if found.iter().any(|path| path == CONFIG_FILE) {
        return Err(EngineError::usage(format!("{shown} holds a project already: it has a {CONFIG_FILE}"))
            .with_help("`bcc-script new script NAME` adds a script to it; a new project begins in another directory"));
    }
    if !found.is_empty() {
        let message = format!("nothing was written, because {shown} already has {}", listed(&found));
        return Err(EngineError::usage(message).with_help("move them away, or begin in another directory"));
    }
    if let Some(above) = project_above(&directory).filter(|_| !request.nested) {
        let message = format!("{shown} lies inside of the project {path}", path = above.display());
        return Err(EngineError::usage(message).with_help(
            "`bcc-script new script NAME` adds a script to that one; `--nested` begins another one inside of it",
        ));
    }
    write_all(&directory, &drafts)?;
    let trusted = match config_bytes(&directory)? {
        Some(bytes) => trust(environment, &directory, &bytes),
        None => Err(EngineError::failed(format!("{CONFIG_FILE} is gone"))),
    };
    let written = drafts.into_iter().map(|draft| draft.path).collect();
    let untrusted = trusted.err().map(|error| error.to_string());
    Ok(Begun { directory, written, scheme: scheme.to_owned(), untrusted })
}

/// What a project is called in its own README.
fn title(directory: &Path) -> String {
    let name = directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let plain: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match plain.trim() {
        "" => "bcc-script".to_owned(),
        plain => plain.to_owned(),
    }
}

fn listed(found: &[String]) -> String {
    let named: Vec<&str> = found.iter().take(MOST_NAMED).map(String::as_str).collect();
    match found.len().saturating_sub(MOST_NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}
