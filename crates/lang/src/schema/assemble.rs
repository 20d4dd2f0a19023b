//! The schemas that editors use, put together from `schemas/parts/` and from what each kind of action says of its `config`.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::schema::legacy_names::add_older_spellings;
use crate::schema::parts::parts;

/// The dialect of every schema here.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaDocument {
    Script,
    /// A skill: `skill:`, or the older `technique_id:` with `topic:`.
    Skill,
    Test,
    /// Any of them, told apart by the key at the root.
    Any,
    /// The front matter of a prompt template.
    Template,
}

impl SchemaDocument {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Self; 5] = [Self::Script, Self::Skill, Self::Test, Self::Any, Self::Template];

    /// The name: of the argument of `bcc-script schema`, and of the file `schemas/<name>.schema.json`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Script => "script",
            Self::Skill => "skill",
            Self::Test => "test",
            Self::Any => "document",
            Self::Template => "template",
        }
    }

    const fn root(self) -> &'static str {
        match self {
            Self::Script => "script_document",
            Self::Skill => "skill_file",
            Self::Test => "test_document",
            Self::Any => "document",
            Self::Template => "template_front",
        }
    }
}

/// The kinds of actions, as far as schemas are concerned.
#[derive(Clone, Copy, Debug)]
pub struct Kinds<'a> {
    /// The registered ones: name, and the JSON Schema of the `config` as text.
    pub registered: &'a [(&'a str, &'a str)],
    /// Names of the language that come with later releases. An `action_type` may be one; its `config` is not described.
    pub later: &'a [&'a str],
}

/// The schema of `document`. It stands alone: every reference leads into the schema itself.
///
/// A kind whose own schema has `$defs/action` holds actions: in its place stands the description of any action.
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
    let update = format!(
        "Written by `bcc-script schema {}`: change schemas/parts/ or schemas/actions/, not this.",
        document.name()
    );
    schema.insert("$schema".to_owned(), Value::from(DIALECT));
    schema.insert("$comment".to_owned(), Value::from(update));
    let root = definitions.get(document.root()).cloned().unwrap_or_default();
    let mut used = BTreeSet::new();
    reach(&root, &definitions, &mut used);
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
    // A reference is a part of an address, which has no letters of other scripts.
    let plain =
        |c: char| if c.is_ascii_alphanumeric() || c == '_' { c.to_string() } else { format!("-{:x}", c as u32) };
    format!("config_{}", kind.chars().map(plain).collect::<String>())
}

/// Fills in the choices of `action_type`, and that each takes its own `config`.
fn dispatch(action: &mut Map<String, Value>, kinds: Kinds<'_>) {
    let described: Vec<(&str, Value)> = kinds
        .registered
        .iter()
        .map(|(name, schema)| (*name, serde_json::from_str(schema).unwrap_or(Value::Null)))
        .collect();
    let description = |schema: &Value| schema.get("description").cloned().unwrap_or_else(|| Value::from(""));
    if let Some(Value::Object(action_type)) = action.get_mut("properties").and_then(|all| all.get_mut("action_type")) {
        // An editor shows and offers what stands in an `enum`, and names it where nothing of it is written; so what cannot be
        // run yet is taken without being listed.
        action_type.insert(
            "anyOf".to_owned(),
            json!([
                {
                    "enum": described.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
                    "markdownEnumDescriptions": described.iter().map(|(_, schema)| description(schema)).collect::<Vec<_>>(),
                },
                { "pattern": format!("^({})$", kinds.later.join("|")) },
            ]),
        );
    }
    let branch = |(name, schema): &(&str, Value)| {
        let mut config = json!({ "allOf": [{ "$ref": format!("#/$defs/{}", config_name(name)) }] });
        if let (Some(snippet), Some(config)) = (snippet(name, schema), config.as_object_mut()) {
            config.insert("defaultSnippets".to_owned(), json!([snippet]));
        }
        let mut then = json!({ "properties": { "config": config } });
        let needs = schema.get("required").and_then(Value::as_array).is_some_and(|required| !required.is_empty());
        if let (true, Some(then)) = (needs, then.as_object_mut()) {
            then.insert("required".to_owned(), json!(["config"]));
        }
        json!({
            "if": { "type": "object", "required": ["action_type"], "properties": { "action_type": { "const": name } } },
            "then": then,
        })
    };
    action.insert("allOf".to_owned(), described.iter().map(branch).collect());
}

/// The schema of a kind's `config` as one definition among others: its references lead to where it stands now.
fn config(kind: &str, schema: &str) -> Option<Value> {
    let Ok(Value::Object(mut schema)) = serde_json::from_str(schema) else { return None };
    schema.remove("$schema");
    if let Some(Value::Object(own)) = schema.get_mut("$defs")
        && let Some(action) = own.get_mut("action")
    {
        *action = json!({ "$ref": "#/$defs/action" });
    }
    let mut schema = Value::Object(schema);
    let place = format!("#/$defs/{}/", config_name(kind));
    each_reference(&mut schema, &mut |reference| {
        if let Some(own) = reference.strip_prefix("#/").filter(|_| reference.as_str() != "#/$defs/action") {
            *reference = format!("{place}{own}");
        }
    });
    Some(schema)
}

/// What an editor writes when `config` is chosen: the required fields, as the kind's first example has them. By itself it
/// would write every field that has a default.
fn snippet(kind: &str, schema: &Value) -> Option<Value> {
    let example = schema.get("examples")?.get(0)?.as_object()?;
    let required = schema.get("required")?.as_array()?.iter().filter_map(Value::as_str);
    let mut body = Map::new();
    for (place, name) in (1..).zip(required) {
        let value = match example.get(name)? {
            Value::String(text) => Value::from(format!("${{{place}:{text}}}")),
            other => other.clone(),
        };
        body.insert(name.to_owned(), value);
    }
    let label = format!("what every {kind} needs");
    (!body.is_empty()).then(|| json!({ "label": label, "body": body }))
}

/// Keywords that hold subschemas by name.
const BY_NAME: [&str; 3] = ["properties", "patternProperties", "$defs"];

/// Keywords that hold one subschema, or a list of them.
const DIRECTLY: [&str; 10] =
    ["items", "additionalProperties", "propertyNames", "if", "then", "else", "not", "allOf", "anyOf", "oneOf"];

/// The subschemas of a schema, each with its path below it; what only looks like one, in an example, is none.
pub fn subschemas(schema: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    let Some(schema) = schema.as_object() else { return found };
    for keyword in BY_NAME {
        for (name, inner) in schema.get(keyword).and_then(Value::as_object).into_iter().flatten() {
            found.push((format!("{keyword}/{}", name.replace('~', "~0").replace('/', "~1")), inner));
        }
    }
    for keyword in DIRECTLY {
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

fn each_subschema_mut(schema: &mut Value, see: &mut impl FnMut(&mut Value)) {
    let paths: Vec<String> = subschemas(schema).into_iter().map(|(path, _)| path).collect();
    for path in paths {
        if let Some(inner) = schema.pointer_mut(&format!("/{path}")) {
            see(inner);
        }
    }
}

fn each_reference(schema: &mut Value, see: &mut impl FnMut(&mut String)) {
    if let Some(Value::String(reference)) = schema.get_mut("$ref") {
        see(reference);
    }
    each_subschema_mut(schema, &mut |inner| each_reference(inner, see));
}

/// What holds for every mapping and every description alike: older spellings, and the default in the text, as editors show the
/// text alone.
fn finish(schema: &mut Value) {
    if let Value::Object(schema) = schema {
        add_older_spellings(schema);
    }
    each_subschema_mut(schema, &mut finish);
    let Value::Object(schema) = schema else { return };
    let Some(description) = schema.get("description").and_then(Value::as_str) else { return };
    let mut shown = description.to_owned();
    if let Some(default) = schema.get("default") {
        let default = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
        shown.push_str(&format!("\n\nDefault: `{default}`"));
    }
    if shown.contains('`') || schema.contains_key("$ref") {
        // `description` is shown as it stands; only this one is read as markdown, and before it. A reference would bring the
        // one of what it refers to.
        schema.insert("markdownDescription".to_owned(), Value::from(shown));
    }
}

/// Adds the names of the definitions that `schema` refers to, through others too.
fn reach(schema: &Value, definitions: &Map<String, Value>, used: &mut BTreeSet<String>) {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let name = reference.strip_prefix("#/$defs/").and_then(|rest| rest.split('/').next()).unwrap_or_default();
        if let Some(definition) = definitions.get(name)
            && used.insert(name.to_owned())
        {
            reach(definition, definitions, used);
        }
    }
    subschemas(schema).iter().for_each(|(_, inner)| reach(inner, definitions, used));
}
