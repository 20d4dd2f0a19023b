//! The embedded files of the `schemas/` folder.

use serde_json::Value;

/// The JSON Schema text of the reply of the kind or monitor `name` (`ai_ask`, `ai_ask_monitor`) from `schemas/replies/`; `None` for
/// a kind without a schema.
pub fn reply(name: &str) -> Option<&'static str> {
    REPLIES.iter().chain(&OTHER_REPLIES).find(|(kind, _)| *kind == name).map(|(_, text)| *text)
}

/// The rules of such a schema, without descriptions: the prompts explain the fields.
pub fn reply_rules(name: &str) -> Option<Value> {
    let mut schema = serde_json::from_str(reply(name)?).ok()?;
    remove_descriptions(&mut schema);
    Some(schema)
}

/// Removes the descriptions of `schema` and of its properties. A property may have the same name; its value is no text.
fn remove_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(rules) => {
            rules.retain(|keyword, rule| keyword != "description" || !rule.is_string());
            rules.values_mut().for_each(remove_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_descriptions),
        _ => {}
    }
}

/// The kinds and monitors whose replies have a schema, in the order of docs/replies.md.
pub fn replies() -> impl Iterator<Item = &'static str> {
    REPLIES.iter().map(|(kind, _)| *kind)
}

/// The JSON Schema text of `bcc-script.toml`.
pub const CONFIG: &str = include_str!("../../../../schemas/config.schema.json");

/// The schemas of the protocol of behavior servers (docs/protocol.md), by their names in the `schema` command.
pub const PROTOCOL: [(&str, &str); 4] = [
    ("protocol-request", include_str!("../../../../schemas/protocol/request.schema.json")),
    ("protocol-response", include_str!("../../../../schemas/protocol/response.schema.json")),
    ("protocol-reflection", include_str!("../../../../schemas/protocol/reflection.schema.json")),
    ("protocol-action", include_str!("../../../../schemas/protocol/action.schema.json")),
];

const REPLIES: [(&str, &str); 7] = [
    ("ai_ask", include_str!("../../../../schemas/replies/ai_ask.json")),
    ("collect", include_str!("../../../../schemas/replies/collect.json")),
    ("ai_say", include_str!("../../../../schemas/replies/ai_say.json")),
    ("ai_think", include_str!("../../../../schemas/replies/ai_think.json")),
    ("exec", include_str!("../../../../schemas/replies/exec.json")),
    ("ai_ask_monitor", include_str!("../../../../schemas/replies/ai_ask_monitor.json")),
    ("ai_say_monitor", include_str!("../../../../schemas/replies/ai_say_monitor.json")),
];

/// Replies that are not named after a kind.
const OTHER_REPLIES: [(&str, &str); 8] = [
    ("topic_orchestrator", include_str!("../../../../schemas/replies/topic_orchestrator.json")),
    ("behavior", include_str!("../../../../schemas/replies/behavior.json")),
    ("reflection", include_str!("../../../../schemas/replies/reflection.json")),
    ("structured_actions", include_str!("../../../../schemas/replies/structured_actions.json")),
    ("plan_create", include_str!("../../../../schemas/replies/plan_create.json")),
    ("plan_decompose", include_str!("../../../../schemas/replies/plan_decompose.json")),
    ("plan_task", include_str!("../../../../schemas/replies/plan_task.json")),
    ("workflow_plan", include_str!("../../../../schemas/replies/workflow_plan.json")),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::compiled::Compiled;

    /// Calls `callback` with the path and the schema of every property, nested ones included.
    fn each_property(path: &str, schema: &Value, callback: &mut impl FnMut(&str, &Value)) {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
        for (name, property) in properties {
            let path = format!("{path}/{name}");
            callback(&path, property);
            each_property(&path, property, callback);
        }
    }

    #[test]
    fn every_embedded_schema_is_documented_and_its_defaults_are_valid() {
        for name in replies() {
            let schema: Value = serde_json::from_str(reply(name).unwrap()).unwrap();
            Compiled::new(&schema).unwrap();
            assert!(schema["title"].is_string() && schema["description"].is_string(), "{name}");
            each_property("", &schema, &mut |path, property| {
                for keyword in ["title", "description"] {
                    assert!(property[keyword].is_string(), "{name}{path}: no {keyword}");
                }
                let default = property.get("default").unwrap_or_else(|| panic!("{name}{path}: no default"));
                assert!(Compiled::new(property).unwrap().is_valid(default), "{name}{path}: {default}");
            });
        }
    }

    #[test]
    fn the_default_of_an_object_consists_of_the_defaults_of_its_required_properties() {
        for name in replies() {
            let schema: Value = serde_json::from_str(reply(name).unwrap()).unwrap();
            each_property("", &schema, &mut |path, property| {
                let Some(required) = property.get("required").and_then(Value::as_array) else { return };
                let expected: serde_json::Map<String, Value> = required
                    .iter()
                    .map(|key| key.as_str().unwrap())
                    .map(|key| (key.to_owned(), property["properties"][key]["default"].clone()))
                    .collect();
                assert_eq!(property["default"], Value::Object(expected), "{name}{path}");
            });
        }
    }

    #[test]
    fn the_safety_risk_is_the_first_field_of_a_conversation_reply() {
        for name in ["ai_ask", "ai_say"] {
            let schema: Value = serde_json::from_str(reply(name).unwrap()).unwrap();
            let fields: Vec<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(
                fields,
                ["safety_risk", "content", "EXIT", "BRIEF", "metrics", "progress_suggestion", "metadata"],
                "{name}"
            );
        }
    }

    #[test]
    fn a_kind_without_a_reply_has_no_schema() {
        assert_eq!(reply("set"), None);
    }
}
