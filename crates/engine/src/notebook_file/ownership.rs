//! Checks whether a notebook may be written to a file: a new file, an empty one, or the notebook of the same session. Other files
//! are never overwritten.

use bcc_lang::message::msg;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;

use serde::Deserialize;

use crate::error::EngineError;
use crate::files::open_named;
use bcc_runtime::notebook::export::form::ExportForm;
use bcc_runtime::notebook::export::html::page::SESSION;
use bcc_runtime::notebook::export::markdown::SESSION_COMMENT_START;

/// The limit on the size of a file that is read, in bytes.
const MAX_BYTES: u64 = 1024 * 1024 * 1024;

/// The number of bytes that are read of a Markdown file or an HTML page: both contain the session id at their start.
const MAX_START_BYTES: u64 = 4 * 1024;

/// An `.ipynb` without its cells, which are skipped.
#[derive(Deserialize)]
struct Outline {
    metadata: OutlineMetadata,
}

#[derive(Deserialize)]
struct OutlineMetadata {
    bcc: BccMetadata,
}

#[derive(Deserialize)]
struct BccMetadata {
    session: String,
}

/// The format of a notebook file, by its extension.
pub fn form_of(path: &Path) -> Result<ExportForm, EngineError> {
    ExportForm::of_path(path).ok_or_else(|| {
        EngineError::usage(msg!(
            "{path} cannot be a notebook: its extension does not indicate a format",
            path = path.display()
        ))
        .with_help("use a file name that ends in .ipynb, .md or .html")
    })
}

/// Checks whether the notebook of the session `id` may be written to `path`. Without an id, the session is new.
pub fn check_target(path: &Path, form: ExportForm, id: Option<&str>) -> Result<(), EngineError> {
    let shown = path.display();
    let metadata = match std::fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(EngineError::usage(msg!("{shown} cannot be read: {error}"))),
        Ok(metadata) => metadata,
    };
    if !metadata.is_file() {
        return Err(EngineError::usage(msg!("{shown} is not a regular file, and a notebook is rewritten repeatedly")));
    }
    if metadata.len() == 0 {
        return Ok(());
    }
    let owner = session_of(path, form);
    match (&owner, id) {
        (Some(owner), Some(id)) if owner == id => Ok(()),
        (Some(owner), _) => Err(EngineError::usage(msg!("{shown} is the notebook of session `{owner}`"))
            .with_help("choose another name, or move that file elsewhere")),
        (None, _) => Err(EngineError::usage(msg!("{shown} already exists and is not a notebook of this session"))
            .with_help("choose another name, or move that file elsewhere")),
    }
}

/// The session of a notebook file, according to its contents.
pub fn session_of(path: &Path, form: ExportForm) -> Option<String> {
    let file = open_named(path).ok()?;
    if file.metadata().ok()?.len() > MAX_BYTES {
        return None;
    }
    if form == ExportForm::Ipynb {
        let outline: Outline = serde_json::from_reader(BufReader::new(file)).ok()?;
        return Some(outline.metadata.bcc.session);
    }
    let mut start = Vec::new();
    file.take(MAX_START_BYTES).read_to_end(&mut start).ok()?;
    let start = String::from_utf8_lossy(&start);
    let (before, after) = match form {
        ExportForm::Markdown => (SESSION_COMMENT_START.to_owned(), " -->"),
        _ => (format!("<meta name=\"{SESSION}\" content=\""), "\">"),
    };
    let (head, rest) = start.split_once(&before)?;
    // In Markdown, the mark must be at the start.
    (form == ExportForm::Html || head.is_empty()).then(|| rest.split_once(after).map(|(id, _)| id.to_owned())).flatten()
}
