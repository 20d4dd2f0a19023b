//! The schema of a reply as a model's server receives it: the rules without annotations, and closed where all fields are listed.

use serde_json::{Map, Value, json};

use crate::reply::shape::OutputField;

/// Keywords that describe a schema and constrain nothing.
const ANNOTATIONS: [&str; 5] = ["$schema", "$comment", "title", "default", "examples"];

/// The keywords that servers accept in a strict schema.
const STRICT_KEYWORDS: [&str; 16] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "description",
    "anyOf",
    "format",
    "pattern",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minLength",
];

/// The order in which the fields of a conversation are best decided: the words last, apart from the metrics, which nothing depends on.
/// The outputs follow `BRIEF`.
const FIELDS_IN_ORDER: [&str; 7] =
    ["BRIEF", "EXIT", "progress_suggestion", "metadata", "safety_risk", "content", "metrics"];

/// The field that ends an action. Other words for yes and no are read as well.
const EXIT: &str = "EXIT";

/// The text that is sent to the person. An empty one is useless.
const CONTENT: &str = "content";

/// The schema to send instead of `schema`, which contains the outputs `wanted`. `explained`: whether the prompt says what the outputs
/// mean, so that the schema need not.
pub(crate) fn request_schema(schema: &Value, wanted: &[OutputField], explained: bool) -> Value {
    let mut schema = schema.clone();
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return schema };
    for output in wanted {
        if let Some(Value::Object(rules)) = properties.get_mut(&output.name) {
            if explained {
                rules.remove("description");
            }
            add_type(rules);
        }
    }
    if let Some(Value::Object(content)) = properties.get_mut(CONTENT)
        && content.get("type").is_some_and(|named| named == "string")
    {
        content.entry("minLength").or_insert(json!(1));
    }
    if let Some(exit) = properties.get_mut(EXIT).filter(|exit| exit.get("enum").is_none()) {
        *exit = json!({ "type": "string", "enum": ["YES", "NO"] });
    }
    *properties = in_order(std::mem::take(properties), wanted);
    tidy(&mut schema);
    schema
}

/// Whether a server can enforce the schema in its strict mode: every object lists all of its fields, and every value has a type.
pub(crate) fn is_strict(schema: &Value) -> bool {
    let Some(rules) = schema.as_object() else { return false };
    let is_known = rules.keys().all(|keyword| STRICT_KEYWORDS.contains(&keyword.as_str()));
    let has_type = rules.contains_key("type") || rules.contains_key("anyOf");
    let may_be = |name: &str| match rules.get("type") {
        Some(Value::Array(names)) => names.iter().any(|named| named == name),
        Some(named) => named == name,
        None => false,
    };
    let properties = rules.get("properties").and_then(Value::as_object);
    let required = rules.get("required").and_then(Value::as_array);
    let lists_all = |properties: &Map<String, Value>| {
        properties.keys().all(|name| required.is_some_and(|required| required.iter().any(|listed| listed == name)))
    };
    let is_closed = !may_be("object")
        || (rules.get("additionalProperties") == Some(&Value::Bool(false)) && properties.is_some_and(lists_all));
    let inner = properties.into_iter().flat_map(Map::values);
    let inner = inner.chain(rules.get("anyOf").and_then(Value::as_array).into_iter().flatten());
    is_known
        && has_type
        && is_closed
        && inner.chain(rules.get("items")).all(is_strict)
        && (!may_be("array") || rules.contains_key("items"))
}

/// `schema` without `minLength`, which some servers reject.
pub(crate) fn without_min_length(schema: &Value) -> Value {
    let mut schema = schema.clone();
    for_each_schema(&mut schema, &mut |rules| _ = rules.remove("minLength"));
    schema
}

/// The properties in the order of [`FIELDS_IN_ORDER`], then the others; outputs after `BRIEF`, or last without it.
fn in_order(properties: Map<String, Value>, wanted: &[OutputField]) -> Map<String, Value> {
    let is_output = |name: &str| wanted.iter().any(|output| output.name == name);
    let (outputs, mut own): (Vec<_>, Vec<_>) = properties.into_iter().partition(|(name, _)| is_output(name));
    let position = |name: &str| FIELDS_IN_ORDER.iter().position(|field| *field == name);
    own.sort_by_key(|(name, _)| position(name).unwrap_or(FIELDS_IN_ORDER.len()));
    let at = if own.first().is_some_and(|(name, _)| name == "BRIEF") { 1 } else { own.len() };
    let rest = own.split_off(at);
    own.into_iter().chain(outputs).chain(rest).collect()
}

/// A strict schema needs the type of a value. Without a declared one, that of the choices, or any scalar.
fn add_type(rules: &mut Map<String, Value>) {
    if rules.contains_key("type") {
        return;
    }
    let names = match rules.get("enum").and_then(Value::as_array) {
        None => vec!["string", "number", "boolean", "null"],
        Some(choices) => {
            let mut names: Vec<&str> = Vec::new();
            for name in choices.iter().map(type_name) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            names
        }
    };
    rules.insert("type".to_owned(), json!(names));
}

const fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Removes annotations, and closes the objects that list all of their fields.
fn tidy(schema: &mut Value) {
    for_each_schema(schema, &mut |rules| {
        for annotation in ANNOTATIONS {
            rules.remove(annotation);
        }
        close(rules);
    });
}

/// Requires every field that may be null, and excludes other fields if all are required then.
fn close(rules: &mut Map<String, Value>) {
    if rules.contains_key("additionalProperties") {
        return;
    }
    let Some(properties) = rules.get("properties").and_then(Value::as_object) else { return };
    let listed = rules.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let is_nullable = |field: &Value| match field.get("type") {
        Some(Value::Array(names)) => names.iter().any(|named| named == "null"),
        named => named.is_some_and(|named| named == "null"),
    };
    let required: Vec<Value> = properties
        .iter()
        .filter(|(name, field)| listed.iter().any(|listed| listed == *name) || is_nullable(field))
        .map(|(name, _)| Value::from(name.as_str()))
        .collect();
    let lists_all = required.len() == properties.len();
    rules.insert("required".to_owned(), Value::Array(required));
    if lists_all {
        rules.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
}

/// Calls `change` for `schema` and every schema in it, the inner ones first.
fn for_each_schema(schema: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    let Some(rules) = schema.as_object_mut() else { return };
    for (keyword, inner) in rules.iter_mut() {
        match (keyword.as_str(), inner) {
            ("properties" | "$defs" | "definitions", Value::Object(named)) => {
                named.values_mut().for_each(|inner| for_each_schema(inner, change));
            }
            ("anyOf" | "oneOf" | "allOf", Value::Array(alternatives)) => {
                alternatives.iter_mut().for_each(|inner| for_each_schema(inner, change));
            }
            ("items" | "additionalProperties", inner) => for_each_schema(inner, change),
            _ => {}
        }
    }
    change(rules);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::shape::ReplyShape;
    use bcc_lang::schema::embedded;
    use bcc_lang::value::declared::DeclaredType;

    fn shape(kind: &str, wanted: &[OutputField]) -> ReplyShape {
        ReplyShape::new(&embedded::reply_rules(kind).unwrap(), wanted).unwrap()
    }

    fn output(name: &str, declared: Option<DeclaredType>, choices: Value) -> OutputField {
        let choices = choices.as_array().unwrap().clone();
        OutputField { name: name.into(), declared, choices, define: Some("what it means".into()), optional: false }
    }

    #[test]
    fn every_built_in_schema_is_strict_and_has_no_annotations() {
        for kind in embedded::replies() {
            let wanted = [output("年龄", Some(DeclaredType::Integer), json!([])), output("any", None, json!([]))];
            let sent = shape(kind, if kind.ends_with("monitor") { &[] } else { &wanted }).request_schema(true);
            assert!(is_strict(&sent), "{kind}: {sent:#}");
            let text = sent.to_string();
            for annotation in ["\"default\"", "\"title\"", "description", "$schema"] {
                assert!(!text.contains(annotation), "{kind}: {annotation} in {text}");
            }
        }
    }

    #[test]
    fn the_fields_are_in_the_order_in_which_they_are_best_decided() {
        let sent = shape("ai_ask", &[output("mood", None, json!(["好", 1]))]).request_schema(true);
        let names: Vec<&String> = sent["properties"].as_object().unwrap().keys().collect();
        let expected =
            ["BRIEF", "mood", "EXIT", "progress_suggestion", "metadata", "safety_risk", "content", "metrics"];
        assert_eq!(names, expected);
        assert_eq!(sent["required"], json!(expected));
        assert_eq!(
            sent["properties"]["mood"],
            json!({ "enum": ["好", 1, null], "type": ["string", "number", "null"] })
        );
        assert_eq!(sent["properties"]["content"], json!({ "type": "string", "minLength": 1 }));
        assert_eq!(without_min_length(&sent)["properties"]["content"], json!({ "type": "string" }));
        assert_eq!(
            sent["properties"]["safety_risk"]["required"],
            json!(["detected", "risk_type", "confidence", "reason"])
        );
    }

    #[test]
    fn what_a_prompt_does_not_explain_is_in_the_schema() {
        let shape = shape("ai_think", &[output("summary", Some(DeclaredType::String), json!([]))]);
        assert_eq!(shape.request_schema(false)["properties"]["summary"]["description"], "what it means");
        assert_eq!(shape.request_schema(true)["properties"]["summary"], json!({ "type": ["string", "null"] }));
    }

    #[test]
    fn a_schema_that_leaves_something_open_is_not_strict() {
        let list = shape("ai_think", &[output("list", Some(DeclaredType::List), json!([]))]);
        assert!(!is_strict(&list.request_schema(true)));
        let open = json!({ "type": "object", "properties": {
            "title": { "type": "string", "title": "T", "default": "" }, "note": { "type": "string" } },
            "required": ["title"] });
        let sent = request_schema(&open, &[], true);
        assert_eq!(sent["properties"]["title"], json!({ "type": "string" }), "a field named like an annotation stays");
        assert!(sent.get("additionalProperties").is_none() && !is_strict(&sent));
    }
}
