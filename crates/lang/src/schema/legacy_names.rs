//! Older spellings in a schema: each stands beside today's name, marked as deprecated and not to be offered, so that an editor
//! strikes it through or says what to write instead of refusing it (docs/language.md "Texts").

use serde_json::{Map, Value, json};

/// Fields that had another name, with today's.
pub const RENAMED: [(&str, &str); 6] = [
    ("content_template", "content"),
    ("question_template", "content"),
    ("prompt_template", "content"),
    ("exit_criteria", "exit"),
    ("think_goal", "goal"),
    ("say_goal", "goal"),
];

/// Two fields that together make one item of `output` today.
const OUTPUTS: [(&str, &str); 2] = [
    ("target_variable", "An older spelling: write `output:` with an item `- get: …`."),
    ("extraction_prompt", "An older spelling: write `output:` with an item that has `define: …`."),
];

/// Adds older spellings to the mapping of fields that `schema` describes.
/// Only mappings of fields have them: those that take an author's own `x-` keys and no others.
pub fn add_older_spellings(schema: &mut Map<String, Value>) {
    let takes_own = schema.get("patternProperties").is_some_and(|patterns| patterns.get("^x-").is_some());
    if !takes_own || schema.get("additionalProperties") != Some(&Value::Bool(false)) {
        return;
    }
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    let names: Vec<String> = properties.keys().cloned().collect();
    let mut added: Vec<(String, String)> = Vec::new();
    for name in &names {
        let renamed = RENAMED.iter().filter(|(_, today)| today == name).map(|(older, _)| (*older).to_owned());
        for older in renamed.chain([name.clone()]) {
            let camel = camel_case(&older);
            added.extend([older, camel].into_iter().map(|older| (older, name.clone())));
        }
    }
    let added: Vec<(String, String)> =
        added.into_iter().filter(|(older, _)| !names.contains(older)).fold(Vec::new(), |mut kept, pair| {
            if !kept.contains(&pair) {
                kept.push(pair);
            }
            kept
        });
    for (older, today) in &added {
        if let Some(twin) = properties.get(today).and_then(|property| twin(property, today)) {
            properties.insert(older.clone(), twin);
        }
    }
    // Only what asks a model extracts.
    if ["content", "output"].iter().all(|field| names.iter().any(|name| name == field)) {
        for (older, description) in OUTPUTS {
            let twin = json!({
                "description": description,
                "type": ["string", "number", "boolean"],
                "deprecated": true,
                "doNotSuggest": true,
            });
            properties.insert(camel_case(older), twin.clone());
            properties.insert(older.to_owned(), twin);
        }
    }
    let renamed: Vec<&(String, String)> =
        added.iter().filter(|(_, today)| RENAMED.iter().any(|(_, renamed)| renamed == today)).collect();
    require_one_spelling(schema, &renamed);
}

/// What an older spelling takes: as today's property, without what is said of it.
fn twin(property: &Value, today: &str) -> Option<Value> {
    let mut twin = property.as_object()?.clone();
    for said in ["title", "description", "examples", "default", "defaultSnippets"] {
        twin.remove(said);
    }
    if let Some(reference) = twin.remove("$ref") {
        // What stands beside a reference is not looked at by every editor.
        twin.insert("allOf".to_owned(), json!([{ "$ref": reference }]));
    }
    twin.insert("description".to_owned(), Value::from(format!("An older spelling: write `{today}`.")));
    twin.insert("deprecated".to_owned(), Value::Bool(true));
    twin.insert("doNotSuggest".to_owned(), Value::Bool(true));
    Some(Value::Object(twin))
}

/// Takes out of `required` what may stand there under an older name, and asks for it only when no such name is there. A field
/// whose older name is only its camelCase stays required: an editor offers required fields together, which is worth more.
fn require_one_spelling(schema: &mut Map<String, Value>, renamed: &[&(String, String)]) {
    let Some(Value::Array(required)) = schema.get_mut("required") else { return };
    let mut conditions = Vec::new();
    required.retain(|name| {
        let older: Vec<Value> = renamed
            .iter()
            .filter(|(_, today)| name == today)
            .map(|(older, _)| json!({ "required": [older] }))
            .collect();
        if older.is_empty() {
            return true;
        }
        conditions.push(json!({ "if": { "anyOf": older }, "else": { "required": [name] } }));
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

/// `max_rounds` as `maxRounds`; a name without `_` as it is.
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
        add_older_spellings(schema.as_object_mut().unwrap());
        schema.as_object().unwrap().clone()
    }

    #[test]
    fn every_older_spelling_stands_beside_todays_and_says_what_to_write() {
        let schema = described();
        let older: Vec<(&str, &str)> = schema["properties"]
            .as_object()
            .unwrap()
            .iter()
            .filter(|(_, property)| property["deprecated"] == true)
            .map(|(name, property)| (name.as_str(), property["description"].as_str().unwrap()))
            .collect();
        let names: Vec<&str> = older.iter().map(|(name, _)| *name).collect();
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
        assert!(older[0].1.contains("`content`") && older[6].1.contains("`max_rounds`"));
        assert_eq!(schema["properties"]["maxRounds"]["maximum"], 5);
        assert_eq!(schema["properties"]["maxRounds"].get("default"), None);
    }

    #[test]
    fn a_renamed_field_is_required_only_while_no_older_name_is_there() {
        let schema = described();
        assert_eq!(schema["required"], json!(["max_rounds"]));
        assert_eq!(schema["allOf"][0]["else"], json!({ "required": ["content"] }));
        assert_eq!(schema["allOf"][0]["if"]["anyOf"][0], json!({ "required": ["content_template"] }));
    }

    #[test]
    fn a_mapping_that_takes_any_key_or_no_own_ones_is_left_alone() {
        for closed in [json!(true), json!(false)] {
            let before = json!({ "properties": { "max_rounds": {} }, "additionalProperties": closed });
            let mut schema = before.clone();
            add_older_spellings(schema.as_object_mut().unwrap());
            assert_eq!(schema, before);
        }
    }
}
