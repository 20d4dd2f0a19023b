//! Whether a file may become the notebook of a session: where nothing is yet, in an empty file, or where the notebook of this
//! very session is. Nothing else of a person's is ever written over.

use bcc_lang::message::msg;
use std::fs::{File, Metadata};
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;

use serde::Deserialize;

use crate::error::EngineError;
use bcc_runtime::notebook::export::form::ExportForm;
use bcc_runtime::notebook::export::html::page::SESSION;
use bcc_runtime::notebook::export::markdown::MARK;

/// The largest file that is looked at, in bytes.
const MOST_BYTES: u64 = 1024 * 1024 * 1024;

/// How much of a markdown file or a page is looked at: both say at their beginning whose they are.
const MOST_BEGINNING: u64 = 4 * 1024;

/// An `.ipynb` without its cells, which are read over.
#[derive(Deserialize)]
struct Outline {
    metadata: Translate,
}

#[derive(Deserialize)]
struct Translate {
    bcc: Ours,
}

#[derive(Deserialize)]
struct Ours {
    session: String,
}

/// The form of a notebook's file, by its ending.
pub fn form_of(path: &Path) -> Result<ExportForm, EngineError> {
    ExportForm::of_path(path).ok_or_else(|| {
        EngineError::usage(msg!(
            "{path} cannot be a notebook: its extension does not indicate a format",
            path = path.display()
        ))
        .with_help("use a file name that ends in .ipynb, .md or .html")
    })
}

/// Asks whether `path` may become the notebook of the session `id`; without an id, of a session that is not there yet.
pub fn may_become(path: &Path, form: ExportForm, id: Option<&str>) -> Result<(), EngineError> {
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
    let owner = owner(path, form, &metadata);
    match (&owner, id) {
        (Some(owner), Some(id)) if owner == id => Ok(()),
        (Some(owner), _) => Err(EngineError::usage(msg!("{shown} is the notebook of session `{owner}`"))
            .with_help("choose another name, or move that file elsewhere")),
        (None, _) => Err(EngineError::usage(msg!("{shown} already exists and is not a notebook of this session"))
            .with_help("choose another name, or move that file elsewhere")),
    }
}

/// The session that a file says it is the notebook of.
fn owner(path: &Path, form: ExportForm, metadata: &Metadata) -> Option<String> {
    if metadata.len() > MOST_BYTES {
        return None;
    }
    let file = File::open(path).ok()?;
    if form == ExportForm::Ipynb {
        let outline: Outline = serde_json::from_reader(BufReader::new(file)).ok()?;
        return Some(outline.metadata.bcc.session);
    }
    let mut beginning = Vec::new();
    file.take(MOST_BEGINNING).read_to_end(&mut beginning).ok()?;
    let beginning = String::from_utf8_lossy(&beginning);
    let (before, after) = match form {
        ExportForm::Markdown => (MARK.to_owned(), " -->"),
        _ => (format!("<meta name=\"{SESSION}\" content=\""), "\">"),
    };
    let (head, rest) = beginning.split_once(&before)?;
    // In markdown nothing stands before it.
    (form == ExportForm::Html || head.is_empty()).then(|| rest.split_once(after).map(|(id, _)| id.to_owned())).flatten()
}
