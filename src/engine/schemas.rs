//! The JSON Schemas that editors use, by name: of documents, and of the `config` of each registered kind.

use serde_json::Value;

use crate::actions::KINDS;
use crate::check::checker::LATER_KINDS;
use crate::schema::assemble::{Document, Kinds, assemble};
use crate::schema::embedded::{CONFIG, PROTOCOL};

/// The name of the schema of `bcc-script.toml`.
const CONFIG_NAME: &str = "config";

/// The schema of `document`, with every registered kind in it.
pub fn document(document: Document) -> Value {
    let registered: Vec<(&str, &str)> = KINDS.iter().map(|kind| (kind.name(), kind.schema())).collect();
    assemble(document, Kinds { registered: &registered, later: &LATER_KINDS })
}

/// The text of the schema called `name`, as it lies in `schemas/`; `None` when there is none of this name.
pub fn text(name: &str) -> Option<String> {
    if let Some(found) = Document::ALL.into_iter().find(|document| document.name() == name) {
        return serde_json::to_string_pretty(&document(found)).ok().map(|text| text + "\n");
    }
    if name == CONFIG_NAME {
        return Some(CONFIG.to_owned());
    }
    if let Some((_, text)) = PROTOCOL.iter().find(|(of, _)| *of == name) {
        return Some((*text).to_owned());
    }
    KINDS.iter().find(|kind| kind.name() == name).map(|kind| kind.schema().to_owned())
}

/// The names that [`text`] knows: documents first, then the configuration, then the protocol, then kinds, each with what its schema says of itself.
pub fn list() -> Vec<(&'static str, String)> {
    let documents = Document::ALL.into_iter().map(|found| (found.name(), document(found)));
    let config = [(CONFIG_NAME, serde_json::from_str(CONFIG).unwrap_or_default())];
    let protocol = PROTOCOL.iter().map(|(name, text)| (*name, serde_json::from_str(text).unwrap_or_default()));
    let kinds = KINDS.iter().map(|kind| (kind.name(), serde_json::from_str(kind.schema()).unwrap_or_default()));
    let description = |schema: &Value| schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    documents.chain(config).chain(protocol).chain(kinds).map(|(name, schema)| (name, description(&schema))).collect()
}
