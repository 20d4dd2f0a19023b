//! `sessions export --format md`: a session as a document for people.

use std::fmt::Write;

use serde_json::Value;

use crate::engine::used::told;

/// The document of an export.
pub fn markdown(export: &Value) -> String {
    let text = |pointer: &str| export.pointer(pointer).map(shown).unwrap_or_default();
    let mut document = String::new();
    let name = match export.pointer("/session/script_name") {
        Some(Value::String(name)) => name.clone(),
        _ => text("/session/script"),
    };
    let _ = writeln!(document, "# {name}\n");
    let _ = writeln!(document, "- session: {} ({})", text("/session/id"), text("/session/status"));
    let place: Vec<String> = ["phase_id", "topic_id", "action_id"]
        .iter()
        .map(|part| text(&format!("/session/location/{part}")))
        .filter(|part| !part.is_empty())
        .collect();
    if !place.is_empty() {
        let _ = writeln!(document, "- at: {}", place.join(" › "));
    }
    let _ = writeln!(document, "- user: {}", text("/session/user"));
    let _ = writeln!(document, "- used: {}", export.get("session").map(told).unwrap_or_default());
    let _ = writeln!(document, "- from {} to {}\n", text("/session/started_at"), text("/session/updated_at"));
    let _ = writeln!(document, "## Conversation\n");
    for message in export.pointer("/transcript").and_then(Value::as_array).into_iter().flatten() {
        let field = |name: &str| message.get(name).map(shown).unwrap_or_default();
        let words = field("text").replace('\n', "\n  ");
        let _ = writeln!(document, "- **{}** {words}", field("role"));
    }
    let _ = writeln!(document, "\n## Variables\n");
    for (scope, values) in export.pointer("/variables").and_then(Value::as_object).into_iter().flatten() {
        let nested = matches!(scope.as_str(), "phase" | "topic");
        for (name, value) in values.as_object().into_iter().flatten() {
            if !nested {
                line(&mut document, scope, name, value);
                continue;
            }
            for (inner, value) in value.as_object().into_iter().flatten() {
                line(&mut document, &format!("{scope} {name}"), inner, value);
            }
        }
    }
    document.trim_end().to_owned()
}

fn line(document: &mut String, scope: &str, name: &str, variable: &Value) {
    let value = variable.get("value").map(shown).unwrap_or_default().replace('\n', " ");
    let source = variable.get("source").map(shown).unwrap_or_default();
    let _ = writeln!(document, "- {scope}: `{name}` = {value} (set by {source})");
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
