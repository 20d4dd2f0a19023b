//! `sessions export --format md`: a session as a document for people.

use std::fmt::Write;

use serde_json::Value;

use crate::engine::calls::whole;
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
    if let Some(place) = export.pointer("/session/location").map(place).filter(|place| !place.is_empty()) {
        let round = export.pointer("/session/location/round").and_then(Value::as_u64);
        let round = round.map(|round| format!(", round {round}")).unwrap_or_default();
        let _ = writeln!(document, "- at: {}{round}", place.join(" › "));
    }
    let _ = writeln!(document, "- user: {}", text("/session/user"));
    let _ = writeln!(document, "- used: {}", export.get("session").map(told).unwrap_or_default());
    let calls = export.get("model_calls").and_then(Value::as_array);
    let cost = calls.map(|calls| whole(calls).cost_told()).filter(|cost| !cost.is_empty());
    if let Some(cost) = cost {
        let _ = writeln!(document, "- cost: {cost}");
    }
    let _ = writeln!(document, "- from {} to {}\n", text("/session/started_at"), text("/session/updated_at"));
    let _ = writeln!(document, "## Conversation\n");
    let mut shown_place = Vec::new();
    for message in list(export, "transcript") {
        let field = |name: &str| message.get(name).map(shown).unwrap_or_default();
        let mut place = place(message);
        // The action itself is not worth a heading.
        place.pop();
        if place != shown_place && !place.is_empty() {
            let _ = writeln!(document, "{}### {}\n", if shown_place.is_empty() { "" } else { "\n" }, place.join(" › "));
            shown_place = place;
        }
        let words = field("text").replace('\n', "\n  ");
        let _ = writeln!(document, "- **{}** {words}", field("role"));
    }
    advice(&mut document, export);
    plans(&mut document, export);
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

/// The whole way to a place: the phase, the topic with its element, what was inserted, the action.
fn place(location: &Value) -> Vec<String> {
    let part = |name: &str| location.get(name).and_then(Value::as_str).filter(|part| !part.is_empty());
    let phase = part("phase_id").into_iter().map(str::to_owned);
    let way = match part("path") {
        Some(path) => path.split('/').map(str::to_owned).collect(),
        None => ["topic_id", "action_id"].into_iter().filter_map(part).map(str::to_owned).collect::<Vec<_>>(),
    };
    phase.chain(way).collect()
}

/// What monitors advised.
fn advice(document: &mut String, export: &Value) {
    let advice = |row: &&Value| row.pointer("/analysis/feedback_for_action").is_some_and(Value::is_string);
    for (number, row) in list(export, "monitor_feedback").filter(advice).enumerate() {
        if number == 0 {
            let _ = writeln!(document, "\n## What monitors advised\n");
        }
        let field = |pointer: &str| row.pointer(pointer).map(shown).unwrap_or_default().replace('\n', " ");
        let used = if row.get("used") == Some(&Value::Bool(true)) { "used" } else { "not used" };
        let (action, round) = (field("/action_id"), field("/round"));
        let _ = writeln!(document, "- {action}, round {round} ({used}): {}", field("/analysis/feedback_for_action"));
    }
}

/// What plans changed.
fn plans(document: &mut String, export: &Value) {
    for (number, row) in list(export, "plans").enumerate() {
        if number == 0 {
            let _ = writeln!(document, "\n## Plans\n");
        }
        let field = |name: &str| row.get(name).map(shown).unwrap_or_default().replace('\n', " ");
        let accepted = if row.get("accepted") == Some(&Value::Bool(true)) { "accepted" } else { "refused" };
        let _ = writeln!(document, "- {} {accepted}: {}", field("change"), field("why"));
    }
}

fn list<'e>(export: &'e Value, name: &str) -> impl Iterator<Item = &'e Value> {
    export.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn line(document: &mut String, scope: &str, name: &str, variable: &Value) {
    let value = variable.get("value").map(shown).unwrap_or_default().replace('\n', " ");
    let source = variable.get("source").map(shown).unwrap_or_default();
    let _ = writeln!(document, "- {scope}: `{name}` = {value} (set by {source})");
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
