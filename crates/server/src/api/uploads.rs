//! Stores scripts that clients send: checked first, and replaced as a whole.

use std::path::Path;
use std::sync::Arc;

use bcc_engine::engine::RunRequest;
use bcc_engine::error::EngineError;
use bcc_engine::files::within::replace_within;
use bcc_engine::loaded::LoadedProgram;
use bcc_engine::project::Project;
use bcc_engine::session_ids::secret_id;
use bcc_lang::message::msg;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::text::SourceFile;

/// A file that is removed when it is no longer needed.
struct Draft<'p>(&'p Path);

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(self.0) {
            tracing::warn!(path = %self.0.display(), %error, "the draft of a script was not removed");
        }
    }
}

/// Stores the script `text` as `name` in `folder`, a folder of the project. Returns its path in the project, and whether it replaced a file.
///
/// # Errors
/// `Invalid` with the diagnostics if it has errors; `Usage` if it is no text; `Failed` if it cannot be written. The file is unchanged then.
pub(crate) fn store_script(
    project: &Project,
    folder: &Path,
    name: &str,
    text: &[u8],
) -> Result<(String, bool), EngineError> {
    let failed = |error: std::io::Error| EngineError::failed(msg!("`{name}` cannot be written: {error}"));
    let text = std::str::from_utf8(text).map_err(|_| EngineError::usage(msg!("the script is not UTF-8")))?;
    let path = folder.join(name);
    let shown = path.strip_prefix(&project.directory).unwrap_or(&path).display().to_string();
    // In the same folder, so that the paths in it lead to the same files; hidden, so that nobody starts it.
    let draft = folder.join(format!(".{}-{name}", secret_id("upload")));
    replace_within(&project.directory, &draft, text.as_bytes()).map_err(failed)?;
    let written = Draft(&draft);
    let request = RunRequest { file: draft.clone(), ..RunRequest::default() };
    let checked = LoadedProgram::of(project, &request).map(drop);
    drop(written);
    match checked {
        Ok(()) => {}
        Err(EngineError::Invalid(found)) => return Err(EngineError::Invalid(named(found, &draft, &shown, text))),
        Err(error) => return Err(error),
    }
    let replaced = path.exists();
    replace_within(&project.directory, &path, text.as_bytes()).map_err(failed)?;
    Ok((shown, replaced))
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
