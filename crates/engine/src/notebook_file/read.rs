//! Reads the cells of a Jupyter notebook (nbformat 4), with which a session begins (docs/notebook.md, "Beginning with a notebook").

use std::collections::HashSet;
use std::path::Path;

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::value::depth::{MAX_LEVELS, is_deeper_than};
use serde_json::Value;

use crate::error::EngineError;
use crate::files::read_bounded;
use crate::notebook_file::write::RunningOutput;
use bcc_runtime::actions::notebook::perform::ActionOrigin;
use bcc_runtime::notebook::action::reader::is_cell_id;
use bcc_runtime::notebook::cell::{Cell, CellEnd, CellKind, Metadata};
use bcc_runtime::notebook::export::output::stored as stored_output;

/// The maximum size of a notebook, in bytes.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

const MAX_CELLS: usize = 10_000;

/// The maximum size of the content of a cell, in bytes; also of cells that actions add.
const MAX_CONTENT_BYTES: usize = 1024 * 1024;

/// The bytes with which some editors begin a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How many cells a message names.
const MAX_NAMED: usize = 5;

/// What was read of a notebook.
#[derive(Clone, Debug, Default)]
pub struct NotebookCells {
    /// Numbered from 1, with ids that are unique.
    pub cells: Vec<Cell>,
    /// The numbers of those with pictures beside their text, which are not taken over.
    attached: Vec<usize>,
}

impl NotebookCells {
    /// What of the notebook was left out. None if it is complete.
    pub fn left_out(&self) -> Option<Message> {
        let more = if self.attached.len() > MAX_NAMED { ", …" } else { "" };
        let named: Vec<String> = self.attached.iter().take(MAX_NAMED).map(usize::to_string).collect();
        let cells = named.join(", ") + more;
        (!self.attached.is_empty())
            .then(|| msg!("pictures that are attached to text cells of the notebook are left out; the cells: {cells}"))
    }
}

/// Reads the notebook at `path`.
///
/// # Errors
/// `Usage`: it cannot be read, is no notebook of nbformat 4, or is too large. The message names the cell.
pub fn read_cells(path: &Path) -> Result<NotebookCells, EngineError> {
    let shown = path.display();
    let bytes =
        read_bounded(path, MAX_BYTES).map_err(|error| EngineError::usage(msg!("{shown} cannot be read: {error}")))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(EngineError::usage(msg!("{shown} has more than {MAX_BYTES} bytes")));
    }
    let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
    let notebook: Value = serde_json::from_slice(text).map_err(|error| {
        EngineError::usage(msg!("{shown} is not a notebook: {error}"))
            .with_help("give a Jupyter notebook, a file that ends in .ipynb")
    })?;
    match notebook.get("nbformat").and_then(Value::as_u64) {
        Some(4) => {}
        Some(version) => {
            return Err(EngineError::usage(msg!(
                "{shown} is a notebook of version {version}, and only version 4 can be read"
            ))
            .with_help("convert it: `jupyter nbconvert --to notebook --inplace FILE`"));
        }
        None => return Err(EngineError::usage(msg!("{shown} is not a notebook: it has no `nbformat`"))),
    }
    let Some(written) = notebook.get("cells").and_then(Value::as_array) else {
        return Err(EngineError::usage(msg!("{shown} is not a notebook: it has no list of `cells`")));
    };
    if written.len() > MAX_CELLS {
        return Err(EngineError::usage(msg!("{shown} has more than {MAX_CELLS} cells")));
    }
    let mut ids = HashSet::new();
    let mut read = NotebookCells { cells: Vec::with_capacity(written.len()), attached: vec![] };
    for (index, cell) in written.iter().enumerate() {
        let number = index + 1;
        if cell.get("attachments").and_then(Value::as_object).is_some_and(|attached| !attached.is_empty()) {
            read.attached.push(number);
        }
        let mut cell = read_cell(cell, number as u64)
            .map_err(|reason| EngineError::usage(msg!("{shown}: cell {number}: {reason}")))?;
        if cell.content.len() > MAX_CONTENT_BYTES {
            return Err(EngineError::usage(msg!("{shown}: cell {number} has more than {MAX_CONTENT_BYTES} bytes")));
        }
        // An id that cannot be used, or is there twice, is replaced by that of a new cell.
        if is_ahead(&cell.id, written.len()) {
            cell.id = format!("given-{}", cell.id);
        }
        if !is_cell_id(&cell.id) || !ids.insert(cell.id.clone()) {
            cell.id = free_id(number, &ids);
            ids.insert(cell.id.clone());
        }
        read.cells.push(cell);
    }
    Ok(read)
}

/// What the cell had printed that ran when the process of a session ended, according to the notebook file of the session; none if the file
/// does not say.
pub fn earlier_output(path: &Path) -> Option<RunningOutput> {
    let bytes = read_bounded(path, MAX_BYTES).ok().filter(|bytes| bytes.len() as u64 <= MAX_BYTES)?;
    let notebook: Value = serde_json::from_slice(&bytes).ok()?;
    let is_cut_off = |cell: &&Value| {
        let has_ended = cell.pointer("/metadata/bcc/ended").is_some();
        let is_counted = cell.get("execution_count").is_some_and(Value::is_u64);
        cell.get("cell_type").and_then(Value::as_str) == Some("code") && !has_ended && !is_counted
    };
    let cells = notebook.get("cells").and_then(Value::as_array)?;
    cells.iter().rev().filter(is_cut_off).find_map(|cell| {
        let outputs = cell.get("outputs").and_then(Value::as_array).filter(|outputs| !outputs.is_empty())?;
        let outputs = outputs.iter().filter(|output| !is_deeper_than(output, MAX_LEVELS)).map(stored_output).collect();
        // An id that is none of nbformat is kept beside the one in the file.
        let id = cell.pointer("/metadata/bcc/id").or_else(|| cell.get("id")).and_then(Value::as_str)?;
        Some(RunningOutput { cell_id: id.to_owned(), outputs, is_earlier: true })
    })
}

/// Whether the id is that of a cell which the session adds later.
fn is_ahead(id: &str, cells: usize) -> bool {
    id.strip_prefix("cell-").and_then(|number| number.parse().ok()).is_some_and(|number: u64| number > cells as u64)
}

/// The id of a new cell with this number.
pub(crate) fn free_id(number: usize, ids: &HashSet<String>) -> String {
    let mut id = format!("cell-{number}");
    while ids.contains(&id) {
        id.insert(0, 'x');
    }
    id
}

/// Reads a cell of nbformat.
/// Errors: what of it is none.
fn read_cell(cell: &Value, number: u64) -> Result<Cell, Message> {
    let ours = cell.pointer("/metadata/bcc").cloned().unwrap_or_default();
    let kind = match cell.get("cell_type").and_then(Value::as_str) {
        Some("code") => CellKind::Code,
        Some("markdown" | "raw") => match ours.get("type").and_then(Value::as_str) {
            Some(kind) if kind == CellKind::Thinking.name() => CellKind::Thinking,
            _ => CellKind::Markdown,
        },
        _ => return Err(Message::word("`cell_type` must be `code`, `markdown` or `raw`")),
    };
    // What another program has written there, and is no metadata of ours, is left out.
    let metadata: Metadata = match is_deeper_than(&ours, MAX_LEVELS) {
        false => serde_json::from_value(ours.clone()).unwrap_or_default(),
        true => Metadata::default(),
    };
    let content = match (kind, &metadata.thinking_text) {
        (CellKind::Thinking, Some(thought)) => thought.clone(),
        _ => cell
            .get("source")
            .and_then(text)
            .ok_or_else(|| Message::word("`source` must be a text, or a list of texts"))?,
    };
    let id = cell.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut read = Cell { number, id, kind, content, metadata, ..Cell::default() };
    if kind == CellKind::Code {
        let writer = ours.get("written_by").and_then(Value::as_str);
        let is_of_others = [ActionOrigin::Model, ActionOrigin::Server].iter().any(|by| Some(by.name()) == writer);
        read.written_by = writer.filter(|_| is_of_others).map(str::to_owned);
        let outputs = cell.get("outputs").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        read.outputs = outputs.iter().filter(|output| !is_deeper_than(output, MAX_LEVELS)).map(stored_output).collect();
        read.execution_count = cell.get("execution_count").and_then(Value::as_u64);
        let ended = ours.get("ended").and_then(|ended| serde_json::from_value(ended.clone()).ok());
        let has_error = read.outputs.iter().any(|output| output.get("ename").is_some());
        let by_outputs = if has_error { CellEnd::Error } else { CellEnd::Ok };
        read.ended = ended.or_else(|| read.execution_count.map(|_| by_outputs));
    }
    Ok(read)
}

/// A text of nbformat, which may be a list of lines.
fn text(source: &Value) -> Option<String> {
    match source {
        Value::String(text) => Some(text.clone()),
        Value::Array(lines) => lines.iter().map(Value::as_str).collect::<Option<String>>(),
        _ => None,
    }
}
