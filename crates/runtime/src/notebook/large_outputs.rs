//! Large parts of outputs, such as pictures. A session stores each once, by its content, and its cells refer to it: changing a cell, and
//! reading the last cells for a prompt, costs the same however large its outputs are. [`restore`] puts them back for people and exports.
//!
//! An output with such parts has a field `kept`, which is never exported: for each type of its data, or for its `text`, the hash and
//! the size.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::notebook::cell::Cell;
use crate::notebook::export::scripts::library;
use crate::notebook::json_size::json_size;
use crate::notebook::kernel::limits::OutputLimits;
use bcc_store::contract::Store;
use bcc_store::error::StoreError;
use bcc_store::rows::TextRow;

/// A part of an output that is larger than this is stored on its own, in bytes.
pub(crate) const MIN_KEPT_BYTES: usize = 64 * 1024;

/// The maximum size of the outputs that stay in a cell, in bytes. Of a cell with more, smaller parts are stored on their own as well.
pub(crate) const MAX_INLINE_BYTES: usize = 1024 * 1024;

/// A part of such a cell that is larger than this is stored on its own, in bytes.
pub(crate) const MIN_KEPT_BYTES_OF_MANY: usize = 1024;

/// The start of a text that stays in its cell, in bytes: prompts and effects quote it.
const START_BYTES: usize = 8 * 1024;

/// The same for a text that is not large.
const SHORT_START_BYTES: usize = 256;

/// The field of an output with its large parts.
pub(crate) const KEPT: &str = "kept";

const TEXT: &str = "text";

const PLAIN: &str = "text/plain";

/// Where the text of a large part is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct KeptPart {
    sha256: String,
    bytes: u64,
    /// Whether the text is JSON.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    json: bool,
}

/// A large part of an output, found in a cell.
pub(crate) struct LargePart {
    output: usize,
    /// Its type, or `text`.
    name: String,
    json: bool,
    pub(crate) row: TextRow,
}

/// The size of outputs as JSON, in bytes.
pub(crate) fn size(outputs: &[Value]) -> usize {
    outputs.iter().map(json_size).sum()
}

/// Takes the outputs that are libraries for charts out of those of a cell.
pub fn take_libraries(outputs: &mut Vec<Value>) -> Vec<TextRow> {
    let libraries: Vec<TextRow> =
        outputs.iter().filter_map(library).map(|html| TextRow::new(html.to_owned())).collect();
    if !libraries.is_empty() {
        outputs.retain(|output| library(output).is_none());
    }
    libraries
}

/// The parts of outputs that are larger than `min_bytes`.
pub(crate) fn large_parts(outputs: &[Value], min_bytes: usize) -> Vec<LargePart> {
    let mut parts = vec![];
    for (number, output) in outputs.iter().enumerate() {
        let of_stream = output.get(TEXT).map(|text| (TEXT, text));
        let data = output.get("data").and_then(Value::as_object);
        for (name, value) in
            of_stream.into_iter().chain(data.into_iter().flatten().map(|(mime, value)| (mime.as_str(), value)))
        {
            let text = match value {
                Value::String(text) if text.len() > min_bytes => text.clone(),
                Value::Array(_) | Value::Object(_) => {
                    let text = value.to_string();
                    if text.len() <= min_bytes {
                        continue;
                    }
                    text
                }
                _ => continue,
            };
            let (name, json) = (name.to_owned(), !value.is_string());
            parts.push(LargePart { output: number, name, json, row: TextRow::new(text) });
        }
    }
    parts
}

/// Replaces a large part by a reference to its text. The start of a text stays.
pub(crate) fn refer(outputs: &mut [Value], part: &LargePart) {
    let start = match part.name.as_str() {
        TEXT | PLAIN if !part.json => Some(start_of(&part.row.text)),
        _ => None,
    };
    replace(outputs, part, start);
    let kept = KeptPart { sha256: part.row.sha256.clone(), bytes: part.row.text.len() as u64, json: part.json };
    let Some(output) = outputs.get_mut(part.output).and_then(Value::as_object_mut) else { return };
    let kept_parts = output.entry(KEPT).or_insert_with(|| Value::Object(Map::new()));
    if let (Value::Object(parts), Ok(kept)) = (kept_parts, serde_json::to_value(kept)) {
        parts.insert(part.name.clone(), kept);
    }
}

/// Leaves out a part, because the session already keeps as much as it may, and says so in its place.
pub(crate) fn leave_out(outputs: &mut [Value], part: &LargePart) {
    let is_text = matches!(part.name.as_str(), TEXT | PLAIN);
    let what = if is_text { "text" } else { part.name.as_str() };
    let before = OutputLimits::bytes_before_text_note(&part.row.text).filter(|_| is_text && !part.json);
    let note = match before {
        Some(bytes) => format!(
            "[bcc-script left out {what}, {bytes} bytes: `max_text` and `max_session` of `[kernel]` in bcc-script.toml set the limits]"
        ),
        None => OutputLimits::note(what, part.row.text.len() as u64, "max_session"),
    };
    match is_text {
        true => replace(outputs, part, Some(format!("{}\n{note}\n", start_of(&part.row.text)))),
        false => {
            replace(outputs, part, None);
            let data = outputs.get_mut(part.output).and_then(|output| output.get_mut("data"));
            if let Some(data) = data.and_then(Value::as_object_mut) {
                let before =
                    data.get(PLAIN).and_then(Value::as_str).map(|text| format!("{text}\n")).unwrap_or_default();
                data.insert(PLAIN.to_owned(), Value::String(format!("{before}{note}")));
            }
        }
    }
}

fn start_of(text: &str) -> String {
    let bytes = if text.len() > MIN_KEPT_BYTES { START_BYTES } else { SHORT_START_BYTES };
    text.get(..text.floor_char_boundary(bytes)).unwrap_or_default().to_owned()
}

/// Puts `value` in the place of a part; nothing if it is none.
fn replace(outputs: &mut [Value], part: &LargePart, value: Option<String>) {
    let Some(output) = outputs.get_mut(part.output).and_then(Value::as_object_mut) else { return };
    let place = if part.name == TEXT && !output.contains_key("data") {
        Some(output)
    } else {
        output.get_mut("data").and_then(Value::as_object_mut)
    };
    let Some(place) = place else { return };
    match value {
        Some(text) => {
            place.insert(part.name.clone(), Value::String(text));
        }
        None => {
            place.shift_remove(&part.name);
        }
    }
}

/// The types of the large parts of an output that are not in its data, with their sizes in bytes.
pub(crate) fn missing_types(output: &Value) -> Vec<(String, u64)> {
    let data = output.get("data").and_then(Value::as_object);
    let parts = kept_parts(output).into_iter();
    parts
        .filter(|(name, _)| name != TEXT && data.is_none_or(|data| !data.contains_key(name)))
        .map(|(name, part)| (name, part.bytes))
        .collect()
}

fn kept_parts(output: &Value) -> BTreeMap<String, KeptPart> {
    // Only this module writes the field, so it can be read; a damaged row is reported when its text is restored.
    output.get(KEPT).and_then(|kept| BTreeMap::deserialize(kept).ok()).unwrap_or_default()
}

/// The hashes of the texts that a cell refers to.
pub fn references(cell: &Cell) -> HashSet<String> {
    cell.outputs.iter().flat_map(|output| kept_parts(output).into_values().map(|part| part.sha256)).collect()
}

/// The type of the large part with this hash to which a cell, as JSON, refers.
pub fn referred_type(cell: &Value, sha256: &str) -> Option<String> {
    let outputs = cell.get("outputs").and_then(Value::as_array)?;
    let (name, _) = outputs.iter().flat_map(kept_parts).find(|(_, part)| part.sha256 == sha256)?;
    Some(if name == TEXT { PLAIN.to_owned() } else { name })
}

/// A large part that was left out of the outputs of a cell, as JSON.
pub struct LeftOutPart {
    output: usize,
    name: String,
    sha256: String,
    bytes: u64,
}

/// Takes the references to large data out of a cell, as JSON. Those to texts stay.
pub fn take_data(cell: &mut Value) -> Vec<LeftOutPart> {
    let mut taken = vec![];
    let outputs = cell.get_mut("outputs").and_then(Value::as_array_mut);
    for (output, fields) in outputs.into_iter().flatten().enumerate() {
        for (name, KeptPart { sha256, bytes, .. }) in kept_parts(fields) {
            if name == TEXT || name == PLAIN {
                continue;
            }
            if let Some(kept) = fields.get_mut(KEPT).and_then(Value::as_object_mut) {
                kept.shift_remove(&name);
            }
            taken.push(LeftOutPart { output, name, sha256, bytes });
        }
    }
    taken
}

/// Says in the outputs of a cell where parts are that were left out: `links` with their types, addresses and sizes.
pub fn link(cell: &mut Value, parts: &[LeftOutPart], address: impl Fn(&str) -> String) {
    let Some(outputs) = cell.get_mut("outputs").and_then(Value::as_array_mut) else { return };
    for part in parts {
        let Some(output) = outputs.get_mut(part.output).and_then(Value::as_object_mut) else { continue };
        let links = output.entry("links").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(links) = links {
            links.insert(part.name.clone(), json!({ "href": address(&part.sha256), "bytes": part.bytes }));
        }
    }
}

/// Puts the large parts back into the outputs of a cell of the session `id`. What the store no longer has is said in its place.
///
/// # Errors
/// Those of the store.
pub async fn restore(store: &dyn Store, id: &str, cell: &mut Cell) -> Result<(), StoreError> {
    for output in &mut cell.outputs {
        restore_output(store, id, output).await?;
    }
    Ok(())
}

/// As [`restore`], for a cell as JSON.
///
/// # Errors
/// Those of the store.
pub async fn restore_value(store: &dyn Store, id: &str, cell: &mut Value) -> Result<(), StoreError> {
    for output in cell.get_mut("outputs").and_then(Value::as_array_mut).into_iter().flatten() {
        restore_output(store, id, output).await?;
    }
    Ok(())
}

async fn restore_output(store: &dyn Store, id: &str, output: &mut Value) -> Result<(), StoreError> {
    for (name, part) in kept_parts(output) {
        let text = store.text(id, &part.sha256).await?;
        let (name, value) = match text {
            Some(text) if part.json => (name, serde_json::from_str(&text).unwrap_or(Value::String(text))),
            Some(text) => (name, Value::String(text)),
            None => {
                let note = format!("[bcc-script: {} bytes of {name} are missing in the store]", part.bytes);
                let name = if name == TEXT { TEXT } else { PLAIN };
                (name.to_owned(), Value::String(note))
            }
        };
        let place = match name.as_str() {
            TEXT if output.get("data").is_none() => Some(&mut *output),
            _ => output.get_mut("data"),
        };
        if let Some(place) = place.and_then(Value::as_object_mut) {
            place.insert(name, value);
        }
    }
    if let Some(fields) = output.as_object_mut() {
        fields.shift_remove(KEPT);
    }
    Ok(())
}
