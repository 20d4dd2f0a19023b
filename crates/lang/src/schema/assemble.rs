//! Assembles the schemas for editors from `schemas/parts/` and the `config` schemas of the kinds of actions.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::schema::legacy_names::add_legacy_spellings;
use crate::schema::parts::parts;

/// The dialect of all schemas.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaDocument {
    Script,
    /// A skill: `skill:`, or the legacy `technique_id:` with `topic:`.
    Skill,
    Test,
    /// A workflow state file.
    Workflow,
    /// Any of them, distinguished by the key at the root.
    Any,
    /// The front matter of a prompt template.
    Template,
}

impl SchemaDocument {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Self; 6] = [Self::Script, Self::Skill, Self::Test, Self::Workflow, Self::Any, Self::Template];

    /// The argument of `bcc-script schema`, and the name of the file `schemas/<name>.schema.json`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Script => "script",
            Self::Skill => "skill",
            Self::Test => "test",
            Self::Workflow => "workflow",
            Self::Any => "document",
            Self::Template => "template",
        }
    }

    const fn root(self) -> &'static str {
        match self {
            Self::Script => "script_document",
            Self::Skill => "skill_file",
            Self::Test => "test_document",
            Self::Workflow => "workflow_document",
            Self::Any => "document",
            Self::Template => "template_front",
        }
    }
}

/// The kinds of actions and their schemas.
#[derive(Clone, Copy, Debug)]
pub struct Kinds<'a> {
    /// The registered kinds: name, and the JSON Schema of the `config` as text.
    pub registered: &'a [(&'a str, &'a str)],
}

/// The schema of `document`. It is self-contained: all references are local.
///
/// A kind whose own schema has `$defs/action` contains actions; that definition is replaced by the one of any action.
pub fn assemble(document: SchemaDocument, kinds: Kinds<'_>) -> Value {
    let mut definitions = parts();
    if let Some(Value::Object(action)) = definitions.get_mut("action") {
        dispatch(action, kinds);
    }
    for (name, schema) in kinds.registered {
        if let Some(config) = config(name, schema) {
            definitions.insert(config_name(name), config);
        }
    }
    definitions.values_mut().for_each(finish);
    let mut schema = Map::new();
    let comment = format!(
        "Written by `bcc-script schema {}`: change schemas/parts/ or schemas/actions/, not this.",
        document.name()
    );
    schema.insert("$schema".to_owned(), Value::from(DIALECT));
    schema.insert("$comment".to_owned(), Value::from(comment));
    let root = definitions.get(document.root()).cloned().unwrap_or_default();
    let mut used = BTreeSet::new();
    collect_references(&root, &definitions, &mut used);
    if let Value::Object(root) = root {
        schema.extend(root);
    }
    definitions.retain(|name, _| used.contains(name));
    if !definitions.is_empty() {
        schema.insert("$defs".to_owned(), Value::Object(definitions));
    }
    Value::Object(schema)
}

fn config_name(kind: &str) -> String {
    // A reference is part of a URI, which allows only ASCII letters.
    let plain =
        |c: char| if c.is_ascii_alphanumeric() || c == '_' { c.to_string() } else { format!("-{:x}", c as u32) };
    format!("config_{}", kind.chars().map(plain).collect::<String>())
}

/// Adds the values of `action_type`, and the `config` schema for each.
fn dispatch(action: &mut Map<String, Value>, kinds: Kinds<'_>) {
    let described: Vec<(&str, Value)> = kinds
        .registered
        .iter()
        .map(|(name, schema)| (*name, serde_json::from_str(schema).unwrap_or(Value::Null)))
        .collect();
    let description = |schema: &Value| schema.get("description").cloned().unwrap_or_else(|| Value::from(""));
    if let Some(Value::Object(action_type)) = action.get_mut("properties").and_then(|all| all.get_mut("action_type")) {
        // Editors suggest the values of an `enum` and show them in errors.
        let names: Vec<&str> = described.iter().map(|(name, _)| *name).collect();
        let descriptions: Vec<Value> = described.iter().map(|(_, schema)| description(schema)).collect();
        let listed = json!([{ "enum": names, "markdownEnumDescriptions": descriptions }]);
        action_type.insert("anyOf".to_owned(), listed);
    }
    let branch = |(name, schema): &(&str, Value)| {
        let mut config = json!({ "allOf": [{ "$ref": format!("#/$defs/{}", config_name(name)) }] });
        if let (Some(snippet), Some(config)) = (snippet(name, schema), config.as_object_mut()) {
            config.insert("defaultSnippets".to_owned(), json!([snippet]));
        }
        let mut then = json!({ "properties": { "config": config } });
        let has_required =
            schema.get("required").and_then(Value::as_array).is_some_and(|required| !required.is_empty());
        if let (true, Some(then)) = (has_required, then.as_object_mut()) {
            then.insert("required".to_owned(), json!(["config"]));
        }
        json!({
            "if": { "type": "object", "required": ["action_type"], "properties": { "action_type": { "const": name } } },
            "then": then,
        })
    };
    action.insert("allOf".to_owned(), described.iter().map(branch).collect());
}

/// The schema of a kind's `config` as a definition, with its references adjusted to the new position.
fn config(kind: &str, schema: &str) -> Option<Value> {
    let Ok(Value::Object(mut schema)) = serde_json::from_str(schema) else { return None };
    schema.remove("$schema");
    if let Some(Value::Object(own)) = schema.get_mut("$defs")
        && let Some(action) = own.get_mut("action")
    {
        *action = json!({ "$ref": "#/$defs/action" });
    }
    let mut schema = Value::Object(schema);
    let prefix = format!("#/$defs/{}/", config_name(kind));
    each_reference(&mut schema, &mut |reference| {
        if let Some(own) = reference.strip_prefix("#/").filter(|_| reference.as_str() != "#/$defs/action") {
            *reference = format!("{prefix}{own}");
        }
    });
    Some(schema)
}

/// The snippet that an editor inserts for `config`: the required fields, with the values of the kind's first example. Without it,
/// editors insert every field that has a default.
fn snippet(kind: &str, schema: &Value) -> Option<Value> {
    let example = schema.get("examples")?.get(0)?.as_object()?;
    let required = schema.get("required")?.as_array()?.iter().filter_map(Value::as_str);
    let mut body = Map::new();
    for (number, name) in (1..).zip(required) {
        let value = match example.get(name)? {
            Value::String(text) => Value::from(format!("${{{number}:{text}}}")),
            other => other.clone(),
        };
        body.insert(name.to_owned(), value);
    }
    let label = format!("what every {kind} needs");
    (!body.is_empty()).then(|| json!({ "label": label, "body": body }))
}

/// Keywords that contain subschemas by name.
const NAMED_SUBSCHEMAS: [&str; 3] = ["properties", "patternProperties", "$defs"];

/// Keywords that contain one subschema, or a list of them.
const DIRECT_SUBSCHEMAS: [&str; 10] =
    ["items", "additionalProperties", "propertyNames", "if", "then", "else", "not", "allOf", "anyOf", "oneOf"];

/// The direct subschemas of a schema with their relative paths. Examples that look like schemas are not included.
pub fn subschemas(schema: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    let Some(schema) = schema.as_object() else { return found };
    for keyword in NAMED_SUBSCHEMAS {
        for (name, inner) in schema.get(keyword).and_then(Value::as_object).into_iter().flatten() {
            found.push((format!("{keyword}/{}", name.replace('~', "~0").replace('/', "~1")), inner));
        }
    }
    for keyword in DIRECT_SUBSCHEMAS {
        match schema.get(keyword) {
            Some(Value::Array(all)) => {
                found.extend(all.iter().enumerate().map(|(index, inner)| (format!("{keyword}/{index}"), inner)));
            }
            Some(inner) => found.push((keyword.to_owned(), inner)),
            None => {}
        }
    }
    found
}

fn each_subschema_mut(schema: &mut Value, callback: &mut impl FnMut(&mut Value)) {
    let paths: Vec<String> = subschemas(schema).into_iter().map(|(path, _)| path).collect();
    for path in paths {
        if let Some(inner) = schema.pointer_mut(&format!("/{path}")) {
            callback(inner);
        }
    }
}

fn each_reference(schema: &mut Value, callback: &mut impl FnMut(&mut String)) {
    if let Some(Value::String(reference)) = schema.get_mut("$ref") {
        callback(reference);
    }
    each_subschema_mut(schema, &mut |inner| each_reference(inner, callback));
}

/// Adds legacy spellings to every mapping, and the default to every description, because editors show only the description.
fn finish(schema: &mut Value) {
    if let Value::Object(schema) = schema {
        add_legacy_spellings(schema);
    }
    each_subschema_mut(schema, &mut finish);
    let Value::Object(schema) = schema else { return };
    let Some(description) = schema.get("description").and_then(Value::as_str) else { return };
    let mut text = description.to_owned();
    if let Some(default) = schema.get("default") {
        let default = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
        text.push_str(&format!("\n\nDefault: `{default}`"));
    }
    if text.contains('`') || schema.contains_key("$ref") {
        // Editors show `description` as plain text. They prefer `markdownDescription`, which they render. A schema with a reference
        // needs its own, because it would otherwise get that of its target.
        schema.insert("markdownDescription".to_owned(), Value::from(text));
    }
}

/// Collects the names of the definitions that `schema` refers to, directly or indirectly.
fn collect_references(schema: &Value, definitions: &Map<String, Value>, used: &mut BTreeSet<String>) {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let name = reference.strip_prefix("#/$defs/").and_then(|rest| rest.split('/').next()).unwrap_or_default();
        if let Some(definition) = definitions.get(name)
            && used.insert(name.to_owned())
        {
            collect_references(definition, definitions, used);
        }
    }
    subschemas(schema).iter().for_each(|(_, inner)| collect_references(inner, definitions, used));
}
