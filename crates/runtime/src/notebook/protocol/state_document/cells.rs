//! The cells of a state document.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use bcc_lang::message::msg;
use bcc_lang::source::yaml::YamlNode;
use serde_json::{Map, Value, json};

use crate::notebook::action::fields::MAX_CONTENT_BYTES;
use crate::notebook::action::reader::is_cell_id;
use crate::notebook::cell::{Cell, CellEnd, CellKind, Metadata};
use crate::notebook::export::output::stored;
use crate::notebook::protocol::names::{PayloadObject, current_names};
use crate::notebook::protocol::state_document::fields::{StateFindings, StateObject};

/// The maximum number of cells of a document.
pub(crate) const MAX_CELLS: usize = 10_000;

/// The names of metadata that a cell has fields for.
const METADATA: [&str; 14] = [
    "is_step",
    "is_chapter",
    "is_section",
    "chapter_id",
    "section_id",
    "chapter_number",
    "section_number",
    "belongs_to_chapter",
    "belongs_to_section",
    "shot_type",
    "finished_thinking",
    "thinking_text",
    "agent_name",
    "custom_text",
];

/// Reads `cells` of a notebook, numbered from 1. What is wrong with one is reported.
pub(crate) fn read_cells(notebook: &StateObject<'_>) -> Vec<Cell> {
    let (items, place) = (notebook.list("cells").unwrap_or_default(), notebook.place_of("cells"));
    if items.len() > MAX_CELLS {
        let message = msg!("`{place}` has more than {MAX_CELLS} cells");
        notebook.report().error("out-of-range", message, notebook.span);
        return vec![];
    }
    let mut cells: Vec<Cell> = Vec::with_capacity(items.len());
    let mut ids = HashSet::new();
    for (index, node) in items.iter().enumerate() {
        let place = format!("{place}[{index}]");
        let report = notebook.report();
        let Some(object) = StateObject::of(report, place.clone(), node, Some(PayloadObject::Action)) else { continue };
        let Some(cell) = read_cell(object, index as u64 + 1) else { continue };
        if !is_cell_id(&cell.id) && !is_generated(&cell.id) {
            let message = msg!(
                "the id of `{place}` is not that of a cell: 1 to 64 letters, digits, `-` and `_`, first a letter or a digit"
            );
            report.error("invalid-id", message, node.span);
        } else if !ids.insert(cell.id.clone()) {
            report.error("duplicate-id", msg!("the id of `{place}` is that of an earlier cell"), node.span);
        }
        cells.push(cell);
    }
    cells
}

/// Ids that sessions give to cells themselves, `_cell-{number}`.
fn is_generated(id: &str) -> bool {
    id.strip_prefix("_cell-").is_some_and(|number| number.parse::<u64>().is_ok())
}

/// The numbers of later cells whose ids are given already.
pub(crate) fn ids_ahead(cells: &[Cell]) -> BTreeSet<u64> {
    let number = |cell: &Cell| cell.id.strip_prefix("cell-")?.parse::<u64>().ok();
    cells.iter().filter_map(number).filter(|number| *number > cells.len() as u64).collect()
}

fn read_cell(object: StateObject<'_>, number: u64) -> Option<Cell> {
    let report = object.report();
    let missing = |name: &str| {
        let place = &object.place;
        report.error("missing-key", msg!("`{place}` has no `{name}`"), object.span);
    };
    let kind = match object.take_first(&["type", "cell_type"]).map(|node| (node, node.to_json())) {
        None => {
            missing("type");
            return None;
        }
        Some((node, kind)) => match kind.as_str() {
            Some("code") => CellKind::Code,
            Some("markdown" | "text" | "raw") => CellKind::Markdown,
            Some("thinking") => CellKind::Thinking,
            _ => {
                let place = object.place_of("type");
                report.error("not-a-choice", msg!("`{place}` must be `markdown`, `code` or `thinking`"), node.span);
                return None;
            }
        },
    };
    let Some(content) = object.take_first(&["content", "source"]) else {
        missing("content");
        return None;
    };
    let Some(text) = content_text(&content.to_json()) else {
        let place = object.place_of("content");
        report.error(
            "wrong-type",
            msg!("`{place}` must be a string, but this is {}", content.describe()),
            content.span,
        );
        return None;
    };
    if text.len() > MAX_CONTENT_BYTES {
        let place = object.place_of("content");
        report.error("out-of-range", msg!("`{place}` has more than {MAX_CONTENT_BYTES} bytes"), content.span);
    }
    let mut cell = Cell {
        number,
        id: object.text("id").unwrap_or_else(|| format!("cell-{number}")),
        kind,
        content: text,
        metadata: metadata(&object),
        execution_count: object.count("execution_count"),
        ..Cell::default()
    };
    cell.written_by = choice(&object, "written_by", &["model", "server"]).map(str::to_owned);
    let outputs = outputs(&object);
    let ended = choice(&object, "ended", &["ok", "error", "timed_out", "died", "interrupted"]);
    if kind == CellKind::Code {
        let failed = outputs.iter().any(|output| output.get("ename").is_some());
        let has_run = cell.execution_count.is_some() || !outputs.is_empty();
        let by_outputs = has_run.then_some(if failed { CellEnd::Error } else { CellEnd::Ok });
        cell.ended = ended.and_then(|ended| serde_json::from_value(json!(ended)).ok()).or(by_outputs);
        cell.outputs = outputs;
    } else if !outputs.is_empty() || ended.is_some() {
        let place = &object.place;
        let message = msg!("the outputs of `{place}` are not taken over: only code has outputs");
        report.warn("unknown-key", message, object.span);
    }
    // What a person approved elsewhere is not approved here.
    object.ignore(&["number", "approved"]);
    object.finish();
    Some(cell)
}

fn choice(object: &StateObject<'_>, name: &str, choices: &[&'static str]) -> Option<&'static str> {
    let node = object.take(name)?;
    let written = node.to_json();
    let found = choices.iter().copied().find(|choice| written.as_str() == Some(choice));
    if found.is_none() {
        let (place, listed) = (object.place_of(name), choices.join(", "));
        object.report().error("not-a-choice", msg!("`{place}` must be one of these: {listed}"), node.span);
    }
    found
}

/// A text, which may be a list of lines.
fn content_text(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(lines) => lines.iter().map(Value::as_str).collect(),
        _ => None,
    }
}

/// The metadata of a cell; what it has no field for goes to `extra`.
fn metadata(object: &StateObject<'_>) -> Metadata {
    let Some(node) = object.take("metadata") else { return Metadata::default() };
    let Value::Object(written) = node.to_json() else {
        let place = object.place_of("metadata");
        let message = msg!("`{place}` must be an object, but this is {}", node.describe());
        object.report().error("wrong-type", message, node.span);
        return Metadata::default();
    };
    let (mut fields, mut extra) = (Map::new(), Map::new());
    for (name, value) in current_names(PayloadObject::Action, &written, &mut vec![]) {
        match name.as_str() {
            _ if value.is_null() => {}
            "extra" if value.is_object() => extra.extend(value.as_object().cloned().unwrap_or_default()),
            "content_type" => drop(fields.entry("shot_type").or_insert(value)),
            "text_array" => drop(fields.insert(name, value)),
            known if METADATA.contains(&known) => drop(fields.insert(name, value)),
            _ => drop(extra.insert(name, value)),
        }
    }
    match serde_json::from_value::<Metadata>(Value::Object(fields)) {
        Ok(metadata) => Metadata { extra, ..metadata },
        Err(_) => {
            let place = object.place_of("metadata");
            let message = msg!("`{place}` has a field of the wrong type");
            object.report().error("wrong-type", message, node.span);
            Metadata::default()
        }
    }
}

fn outputs(object: &StateObject<'_>) -> Vec<Value> {
    let place = object.place_of("outputs");
    let items = object.list("outputs").unwrap_or_default();
    let read =
        |(index, node): (usize, &Arc<YamlNode>)| read_output(object.report(), &format!("{place}[{index}]"), node);
    items.iter().enumerate().filter_map(read).collect()
}

/// An output of nbformat, or one as the kernels of a server give it (docs/protocol.md): `{"type", "content"}`.
fn read_output(report: StateFindings<'_>, place: &str, node: &YamlNode) -> Option<Value> {
    const TYPES: [&str; 5] = ["stream", "execute_result", "display_data", "update_display_data", "error"];
    let written = node.to_json();
    let is_broken = written.get("data").is_some_and(|data| !data.is_object());
    if !is_broken && written.get("output_type").and_then(Value::as_str).is_some_and(|kind| TYPES.contains(&kind)) {
        return Some(stored(&written));
    }
    let content = written.get("content").and_then(Value::as_str);
    let image = || {
        let (kind, data) = content?.strip_prefix("data:")?.split_once(";base64,")?;
        Some(json!({ "output_type": "display_data", "data": { kind: data } }))
    };
    let converted = match (written.get("type").and_then(Value::as_str), content) {
        (Some("text"), Some(text)) => Some(json!({ "output_type": "stream", "text": text })),
        (Some("html"), Some(html)) => Some(json!({ "output_type": "display_data", "data": { "text/html": html } })),
        (Some("error"), Some(text)) => Some(json!({ "output_type": "error", "ename": "Error", "evalue": text })),
        (Some("image"), Some(_)) => image(),
        _ => None,
    };
    if converted.is_none() {
        report.error(
            "wrong-type",
            msg!("`{place}` is no output of code: it needs an `output_type` of nbformat"),
            node.span,
        );
    }
    converted.as_ref().map(stored)
}
