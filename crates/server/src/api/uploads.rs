//! Stores scripts that clients send: checked first, and replaced as a whole.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bcc_engine::engine::RunRequest;
use bcc_engine::error::EngineError;
use bcc_engine::files::script;
use bcc_engine::files::within::{replace_within, resolve_within};
use bcc_engine::loaded::LoadedProgram;
use bcc_engine::pin::sha256;
use bcc_engine::project::Project;
use bcc_engine::session_ids::secret_id;
use bcc_lang::message::msg;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::text::SourceFile;

use crate::problem::{Problem, ProblemKind};

/// A file that is removed when it is no longer needed.
struct Draft<'p>(&'p Path);

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(self.0) {
            tracing::warn!(path = %self.0.display(), %error, "the draft of a script was not removed");
        }
    }
}

/// The path of a new script in the project: `given` is its name in the folder of the scripts, or its path in the project.
///
/// # Errors
/// `InvalidRequest` for everything that is not a plain path of a script in that folder.
pub(crate) fn new_script(project: &Path, folder: &Path, given: &str) -> Result<PathBuf, Problem> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    let is_name = |name: &str| !name.is_empty() && !name.starts_with('.') && name.chars().all(is_plain);
    if !given.split('/').all(is_name) || !(given.ends_with(".yaml") || given.ends_with(".yml")) {
        let why = msg!("the name of a script consists of letters, digits, `.`, `-` and `_`, and ends with `.yaml`");
        return Err(Problem::invalid(why));
    }
    if !given.contains('/') {
        return Ok(folder.join(given));
    }
    let path = project.join(given);
    // Without a folder of scripts, other folders of the project are not for new ones.
    if folder == project || !path.starts_with(folder) {
        let why = msg!("a new script must be in the folder of the scripts");
        return Err(Problem::invalid(why).with_help("`GET /v1/scripts` lists the scripts"));
    }
    Ok(path)
}

/// Refuses what clients send to run in a project that lets scripts run code or commands or that has servers of tools: somebody has to
/// look at what it does.
///
/// # Errors
/// `Forbidden`.
pub(crate) fn refuse_unseen(project: &Project) -> Result<(), Problem> {
    if project.config.project.allow.is_empty() && project.config.mcp_servers.is_empty() {
        return Ok(());
    }
    let why =
        msg!("scripts of this project may run code, commands or tools, so they are not accepted over the network");
    Err(Problem::new(ProblemKind::Forbidden, why)
        .with_help("change the file on the machine, and run `bcc-script trust`"))
}

/// A script that a client sends.
pub(crate) struct ScriptUpload<'u> {
    pub(crate) path: &'u Path,
    pub(crate) text: &'u [u8],
    /// The version that it is to replace (`If-Match`); any one if not set.
    pub(crate) expected: Option<&'u str>,
}

/// A script that was stored.
pub(crate) struct StoredScript {
    /// Its path in the project.
    pub(crate) path: String,
    /// Whether a file was replaced.
    pub(crate) replaced: bool,
    pub(crate) version: String,
}

/// The version of a script, as an entity tag.
pub(crate) fn script_version(text: &str) -> String {
    // The mark is no part of the text that is sent.
    format!("\"{}\"", sha256(text.trim_start_matches('\u{feff}').as_bytes()))
}

/// Stores a script in `folder`, the folder of the scripts; none if the one in its place is not that which it is to replace. No link leads
/// out of the folder, and no folders are made. `replacing` is held while the file is compared and replaced.
///
/// # Errors
/// `Invalid` with the diagnostics if it has errors; `Usage` if it is no text or not in the folder; `Failed` if it cannot be written. The
/// file is unchanged then.
pub(crate) fn store_script(
    project: &Project,
    folder: &Path,
    upload: &ScriptUpload<'_>,
    replacing: &Mutex<()>,
) -> Result<Option<StoredScript>, EngineError> {
    let ScriptUpload { path, text, expected } = *upload;
    let shown = path.strip_prefix(&project.directory).unwrap_or(path).display().to_string();
    let failed = |error: std::io::Error| EngineError::failed(msg!("`{shown}` cannot be written: {error}"));
    let text = std::str::from_utf8(text).map_err(|_| EngineError::usage(msg!("the script is not UTF-8")))?;
    let parent = path.parent().unwrap_or(folder);
    for place in [parent, path] {
        match resolve_within(folder, place) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                let why = msg!("`{shown}` is a link, or in one, that leads out of the folder of the scripts");
                return Err(EngineError::usage(why));
            }
            Err(error) if error.kind() == ErrorKind::NotFound && place == path => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(EngineError::usage(msg!("the folder of `{shown}` does not exist")));
            }
            Err(error) => return Err(failed(error)),
        }
    }
    // In the same folder, so that the paths in it lead to the same files; hidden, so that nobody starts it.
    let draft = parent.join(format!(".{}.yaml", secret_id("upload")));
    replace_within(folder, &draft, text.as_bytes()).map_err(failed)?;
    let written = Draft(&draft);
    let named_from = Some(project.directory.clone());
    let request = RunRequest { file: draft.clone(), named_from, ..RunRequest::default() };
    let checked = LoadedProgram::of(project, &request).map(drop);
    drop(written);
    match checked {
        Ok(()) => {}
        Err(EngineError::Invalid(found)) => return Err(EngineError::Invalid(named(found, &draft, &shown, text))),
        Err(error) => return Err(error),
    }
    let _alone = replacing.lock().unwrap_or_else(PoisonError::into_inner);
    let replaced = path.exists();
    if let Some(expected) = expected {
        // The error of reading it would tell where the project is on the machine.
        let unreadable = |_| EngineError::failed(msg!("`{shown}` cannot be read, so it cannot be compared"));
        if !replaced || !is_version(expected, script(path).map_err(unreadable)?.text()) {
            return Ok(None);
        }
    }
    replace_within(folder, path, text.as_bytes()).map_err(failed)?;
    Ok(Some(StoredScript { path: shown, replaced, version: script_version(text) }))
}

/// Whether `If-Match` with the value `expected` permits to replace `text`.
fn is_version(expected: &str, text: &str) -> bool {
    let version = script_version(text);
    // A proxy that compresses makes weak tags of them.
    expected.split(',').map(str::trim).any(|named| named == "*" || named.trim_start_matches("W/") == version)
}

/// The diagnostics of the draft, as those of the file that it was to become.
fn named(found: Vec<Diagnostic>, draft: &Path, shown: &str, text: &str) -> Vec<Diagnostic> {
    let own = Arc::new(SourceFile::new(shown, text));
    let draft_name = draft.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let of_draft = |file: &SourceFile| file.name().ends_with(&draft_name);
    let rename = |mut diagnostic: Diagnostic| {
        if of_draft(&diagnostic.file) {
            diagnostic.file = Arc::clone(&own);
        }
        diagnostic
    };
    found.into_iter().map(rename).collect()
}
