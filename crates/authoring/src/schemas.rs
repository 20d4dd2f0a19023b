//! The JSON Schemas for editors, by name: of documents, and of the `config` of each action type.

use std::collections::BTreeMap;

use serde_json::Value;

use bcc_lang::schema::assemble::{Kinds, SchemaDocument, assemble};
use bcc_lang::schema::embedded::{CONFIG, PROTOCOL};
use bcc_runtime::actions::{KINDS, PROJECT_SCHEMA};
use bcc_runtime::program::custom::CustomKind;

const CONFIG_NAME: &str = "config";

/// The action types that a project defines.
pub type OwnKinds = BTreeMap<String, CustomKind>;

/// The schema of `document`, with all built-in action types.
pub fn document(document: SchemaDocument) -> Value {
    document_in(document, &OwnKinds::new())
}

/// The schema of `document` for a project with its own action types.
fn document_in(document: SchemaDocument, own: &OwnKinds) -> Value {
    let own: Vec<(&str, String)> = own.values().map(|kind| (kind.name.as_str(), schema_of(kind))).collect();
    let registered = KINDS.iter().map(|kind| (kind.name(), kind.schema()));
    let registered: Vec<(&str, &str)> =
        registered.chain(own.iter().map(|(name, text)| (*name, text.as_str()))).collect();
    assemble(document, Kinds { registered: &registered })
}

/// The schema of a project's action type, with its description.
fn schema_of(kind: &CustomKind) -> String {
    let text = PROJECT_SCHEMA;
    let Some(description) = &kind.description else { return text.to_owned() };
    let Ok(mut schema) = serde_json::from_str::<Value>(text) else { return text.to_owned() };
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("description".to_owned(), description.as_str().into());
    }
    schema.to_string()
}

/// The text of the schema `name`, as in `schemas/`; `None` if there is no such schema.
pub fn text(name: &str) -> Option<String> {
    text_in(name, &OwnKinds::new())
}

/// The text of the schema `name` for a project with its own action types.
///
/// `None` if there is no such schema.
pub fn text_in(name: &str, own: &OwnKinds) -> Option<String> {
    if let Some(found) = SchemaDocument::ALL.into_iter().find(|document| document.name() == name) {
        return serde_json::to_string_pretty(&document_in(found, own)).ok().map(|text| text + "\n");
    }
    if name == CONFIG_NAME {
        return Some(CONFIG.to_owned());
    }
    if let Some((_, text)) = PROTOCOL.iter().find(|(of, _)| *of == name) {
        return Some((*text).to_owned());
    }
    let own = || own.get(name).map(schema_of);
    KINDS.iter().find(|kind| kind.name() == name).map(|kind| kind.schema().to_owned()).or_else(own)
}

/// The names that [`text`] knows, with descriptions: documents, the configuration, the protocol, then action types.
pub fn list() -> Vec<(&'static str, String)> {
    let documents = SchemaDocument::ALL.into_iter().map(|found| (found.name(), document(found)));
    let config = [(CONFIG_NAME, serde_json::from_str(CONFIG).unwrap_or_default())];
    let protocol = PROTOCOL.iter().map(|(name, text)| (*name, serde_json::from_str(text).unwrap_or_default()));
    let kinds = KINDS.iter().map(|kind| (kind.name(), serde_json::from_str(kind.schema()).unwrap_or_default()));
    let description = |schema: &Value| schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    documents.chain(config).chain(protocol).chain(kinds).map(|(name, schema)| (name, description(&schema))).collect()
}
