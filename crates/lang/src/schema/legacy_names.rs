//! Legacy spellings in a schema. Each is a deprecated property next to the current one and is not suggested, so that an editor strikes
//! it through or shows the current name instead of rejecting it (docs/language.md "Texts").

use serde_json::{Map, Value, json};

/// Renamed fields: the legacy name and the current name.
pub const RENAMED: [(&str, &str); 7] = [
    ("content_template", "content"),
    ("question_template", "content"),
    ("prompt_template", "content"),
    ("exit_criteria", "exit"),
    ("exit_condition", "exit"),
    ("think_goal", "goal"),
    ("say_goal", "goal"),
];

/// Two legacy fields that are now one item of `output`.
const OUTPUTS: [(&str, &str); 2] = [
    ("target_variable", "An older spelling: write `output:` with an item `- get: …`."),
    ("extraction_prompt", "An older spelling: write `output:` with an item that has `define: …`."),
];

/// Adds legacy spellings to the mapping of fields that `schema` describes.
/// Only mappings of fields have them: those that allow custom `x-` keys and no other additional keys.
pub(crate) fn add_legacy_spellings(schema: &mut Map<String, Value>) {
    let takes_custom_keys = schema.get("patternProperties").is_some_and(|patterns| patterns.get("^x-").is_some());
    if !takes_custom_keys || schema.get("additionalProperties") != Some(&Value::Bool(false)) {
        return;
    }
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    let names: Vec<String> = properties.keys().cloned().collect();
    let mut added: Vec<(String, String)> = Vec::new();
    for name in &names {
        let renamed = RENAMED.iter().filter(|(_, current)| current == name).map(|(legacy, _)| (*legacy).to_owned());
        for legacy in renamed.chain([name.clone()]) {
            let camel = camel_case(&legacy);
            added.extend([legacy, camel].into_iter().map(|legacy| (legacy, name.clone())));
        }
    }
    let added: Vec<(String, String)> =
        added.into_iter().filter(|(legacy, _)| !names.contains(legacy)).fold(Vec::new(), |mut unique, pair| {
            if !unique.contains(&pair) {
                unique.push(pair);
            }
            unique
        });
    for (legacy, current) in &added {
        if let Some(legacy_property) = properties.get(current).and_then(|property| legacy_property(property, current)) {
            properties.insert(legacy.clone(), legacy_property);
        }
    }
    // Only actions that call a model extract variables.
    if ["content", "output"].iter().all(|field| names.iter().any(|name| name == field)) {
        for (legacy, description) in OUTPUTS {
            let legacy_property = json!({
                "description": description,
                "type": ["string", "number", "boolean"],
                "deprecated": true,
                "doNotSuggest": true,
            });
            properties.insert(camel_case(legacy), legacy_property.clone());
            properties.insert(legacy.to_owned(), legacy_property);
        }
    }
    let renamed: Vec<&(String, String)> =
        added.iter().filter(|(_, current)| RENAMED.iter().any(|(_, renamed)| renamed == current)).collect();
    require_one_spelling(schema, &renamed);
}

/// The schema of a legacy spelling: that of the current property without its annotations.
fn legacy_property(property: &Value, current: &str) -> Option<Value> {
    let mut legacy_property = property.as_object()?.clone();
    for keyword in ["title", "description", "examples", "default", "defaultSnippets"] {
        legacy_property.remove(keyword);
    }
    if let Some(reference) = legacy_property.remove("$ref") {
        // Some editors ignore keywords next to a reference.
        legacy_property.insert("allOf".to_owned(), json!([{ "$ref": reference }]));
    }
    legacy_property.insert("description".to_owned(), Value::from(format!("An older spelling: write `{current}`.")));
    legacy_property.insert("deprecated".to_owned(), Value::Bool(true));
    legacy_property.insert("doNotSuggest".to_owned(), Value::Bool(true));
    Some(Value::Object(legacy_property))
}

/// Removes renamed fields from `required`, and requires them only if no legacy name is present. A field whose only legacy name is its
/// camelCase form stays required, because editors suggest all required fields together, which is more useful.
fn require_one_spelling(schema: &mut Map<String, Value>, renamed: &[&(String, String)]) {
    let Some(Value::Array(required)) = schema.get_mut("required") else { return };
    let mut conditions = Vec::new();
    required.retain(|name| {
        let legacy: Vec<Value> = renamed
            .iter()
            .filter(|(_, current)| name == current)
            .map(|(legacy, _)| json!({ "required": [legacy] }))
            .collect();
        if legacy.is_empty() {
            return true;
        }
        conditions.push(json!({ "if": { "anyOf": legacy }, "else": { "required": [name] } }));
        false
    });
    if required.is_empty() {
        schema.remove("required");
    }
    if conditions.is_empty() {
        return;
    }
    match schema.get_mut("allOf") {
        Some(Value::Array(all)) => all.extend(conditions),
        _ => {
            schema.insert("allOf".to_owned(), Value::Array(conditions));
        }
    }
}

/// Converts `max_rounds` to `maxRounds`; a name without `_` is unchanged.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |mut camel, word| {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
        camel
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described() -> Map<String, Value> {
        let mut schema = json!({
            "required": ["content", "max_rounds"],
            "properties": { "content": {}, "max_rounds": { "maximum": 5, "default": 3 }, "output": {}, "tone": {} },
            "patternProperties": { "^x-": true },
            "additionalProperties": false,
        });
        add_legacy_spellings(schema.as_object_mut().unwrap());
        schema.as_object().unwrap().clone()
    }

    #[test]
    fn every_legacy_spelling_is_deprecated_and_shows_the_current_name() {
        let schema = described();
        let legacy: Vec<(&str, &str)> = schema["properties"]
            .as_object()
            .unwrap()
            .iter()
            .filter(|(_, property)| property["deprecated"] == true)
            .map(|(name, property)| (name.as_str(), property["description"].as_str().unwrap()))
            .collect();
        let names: Vec<&str> = legacy.iter().map(|(name, _)| *name).collect();
        assert_eq!(
            names,
            [
                "content_template",
                "contentTemplate",
                "question_template",
                "questionTemplate",
                "prompt_template",
                "promptTemplate",
                "maxRounds",
                "targetVariable",
                "target_variable",
                "extractionPrompt",
                "extraction_prompt"
            ]
        );
        assert!(legacy[0].1.contains("`content`") && legacy[6].1.contains("`max_rounds`"));
        assert_eq!(schema["properties"]["maxRounds"]["maximum"], 5);
        assert_eq!(schema["properties"]["maxRounds"].get("default"), None);
    }

    #[test]
    fn a_renamed_field_is_required_only_without_a_legacy_name() {
        let schema = described();
        assert_eq!(schema["required"], json!(["max_rounds"]));
        assert_eq!(schema["allOf"][0]["else"], json!({ "required": ["content"] }));
        assert_eq!(schema["allOf"][0]["if"]["anyOf"][0], json!({ "required": ["content_template"] }));
    }

    #[test]
    fn a_mapping_without_custom_keys_is_unchanged() {
        for closed in [json!(true), json!(false)] {
            let before = json!({ "properties": { "max_rounds": {} }, "additionalProperties": closed });
            let mut schema = before.clone();
            add_legacy_spellings(schema.as_object_mut().unwrap());
            assert_eq!(schema, before);
        }
    }
}
