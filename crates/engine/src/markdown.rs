//! `sessions export --format md`: a session as a Markdown document.

use bcc_runtime::program::stored_event::message_at;
use std::fmt::Write;

use serde_json::Value;

use crate::calls::total;
use crate::usage::usage_summary;
use bcc_lang::message::language::Language;

/// The document of an export. Its fixed texts are in `language`; names, values and messages are not translated.
pub fn markdown(export: &Value, language: Language) -> String {
    let filled = |literal: &str, values: &[(&str, &str)]| language.format(literal, values);
    let text = |pointer: &str| export.pointer(pointer).map(shown).unwrap_or_default();
    let mut document = String::new();
    let name = match export.pointer("/session/script_name") {
        Some(Value::String(name)) => name.clone(),
        _ => text("/session/script"),
    };
    let _ = writeln!(document, "# {name}\n");
    let status = text("/session/status");
    let values = [("id", &*text("/session/id")), ("status", &*language.translate(&status))];
    let _ = writeln!(document, "{}", filled("- session: {id} ({status})", &values));
    if let Some(place) = export.pointer("/session/location").map(place).filter(|place| !place.is_empty()) {
        let round = export.pointer("/session/location/round").and_then(Value::as_u64);
        let round = round.map(|round| filled(", round {round}", &[("round", &round.to_string())])).unwrap_or_default();
        let place = format!("{}{round}", place.join(" › "));
        let _ = writeln!(document, "{}", filled("- at: {place}", &[("place", &place)]));
    }
    let _ = writeln!(document, "{}", filled("- user: {user}", &[("user", &text("/session/user"))]));
    notebook(&mut document, export, language);
    for effect in export.pointer("/session/open_effects").and_then(Value::as_array).into_iter().flatten() {
        let field = |name: &str| effect.get(name).map(shown).unwrap_or_default();
        let (kind, summary) = (field("kind"), message_at(effect, "/summary").render(language));
        let values = [("kind", &*kind), ("summary", &*summary)];
        let _ = writeln!(
            document,
            "{}",
            filled("- open effect: {summary} ({kind}), announced but not known to have ended", &values)
        );
    }
    for taken_back in list(export, "taken_back") {
        let at = taken_back.get("at").map(shown).unwrap_or_default();
        let _ = writeln!(document, "{}", filled("- an answer was taken back at {at}", &[("at", &at)]));
    }
    let used = export.get("session").map(usage_summary).unwrap_or_default();
    let _ = writeln!(document, "{}", filled("- used: {used}", &[("used", &used.render(language))]));
    let calls = export.get("model_calls").and_then(Value::as_array);
    let cost = calls.map(|calls| total(calls).cost_text()).filter(|cost| !cost.is_empty());
    if let Some(cost) = cost {
        let _ = writeln!(document, "{}", filled("- cost: {cost}", &[("cost", &cost)]));
    }
    let (from, to) = (text("/session/started_at"), text("/session/updated_at"));
    let _ = writeln!(document, "{}\n", filled("- from {from} to {to}", &[("from", &from), ("to", &to)]));
    let _ = writeln!(document, "## {}\n", language.translate("Conversation"));
    let mut last_place = Vec::new();
    for message in list(export, "transcript") {
        let field = |name: &str| message.get(name).map(shown).unwrap_or_default();
        let mut place = place(message);
        // The action does not get a heading.
        place.pop();
        if place != last_place && !place.is_empty() {
            let _ = writeln!(document, "{}### {}\n", if last_place.is_empty() { "" } else { "\n" }, place.join(" › "));
            last_place = place;
        }
        let content = field("text").replace('\n', "\n  ");
        let _ = writeln!(document, "- **{}** {content}", field("role"));
    }
    advice(&mut document, export, language);
    plans(&mut document, export, language);
    let _ = writeln!(document, "\n## {}\n", language.translate("Variables"));
    for (scope, values) in export.pointer("/variables").and_then(Value::as_object).into_iter().flatten() {
        let nested = matches!(scope.as_str(), "phase" | "topic");
        for (name, value) in values.as_object().into_iter().flatten() {
            if !nested {
                line(&mut document, scope, name, value, language);
                continue;
            }
            for (inner, value) in value.as_object().into_iter().flatten() {
                line(&mut document, &format!("{scope} {name}"), inner, value, language);
            }
        }
    }
    document.trim_end().to_owned()
}

/// The parts of a location: the phase, the topic with its element, inserted skills, and the action.
fn place(location: &Value) -> Vec<String> {
    let part = |name: &str| location.get(name).and_then(Value::as_str).filter(|part| !part.is_empty());
    let phase = part("phase_id").into_iter().map(str::to_owned);
    let names = match part("path") {
        Some(path) => path.split('/').map(str::to_owned).collect(),
        None => ["topic_id", "action_id"].into_iter().filter_map(part).map(str::to_owned).collect::<Vec<_>>(),
    };
    phase.chain(names).collect()
}

/// The number of cells of the notebook, and how its code ended. The cells are in `--format ipynb` and in the JSON export.
fn notebook(document: &mut String, export: &Value, language: Language) {
    let Some(notebook) = export.get("notebook") else { return };
    let cells = || list(notebook, "cells");
    let counted = |is: fn(&Value) -> bool| cells().filter(|cell| is(cell)).count().to_string();
    let code = counted(|cell| cell.get("type") == Some(&Value::from("code")));
    let ran = counted(|cell| cell.get("ended").is_some_and(Value::is_string));
    let failed = counted(|cell| cell.get("ended").and_then(Value::as_str).is_some_and(|ended| ended != "ok"));
    let title = notebook.get("title").and_then(Value::as_str).map(|title| format!(" “{title}”")).unwrap_or_default();
    let cells = counted(|_| true);
    let values = [("title", &*title), ("cells", &*cells), ("code", &*code), ("ran", &*ran), ("failed", &*failed)];
    let literal = "- notebook{title}: {cells} cells, {code} of which are code; {ran} ran, {failed} of which failed";
    let _ = writeln!(document, "{}", language.format(literal, &values));
}

fn advice(document: &mut String, export: &Value, language: Language) {
    let advice = |row: &&Value| row.pointer("/analysis/feedback_for_action").is_some_and(Value::is_string);
    for (number, row) in list(export, "monitor_feedback").filter(advice).enumerate() {
        if number == 0 {
            let _ = writeln!(document, "\n## {}\n", language.translate("Monitor advice"));
        }
        let field = |pointer: &str| row.pointer(pointer).map(shown).unwrap_or_default().replace('\n', " ");
        let used = if row.get("used") == Some(&Value::Bool(true)) { "used" } else { "not used" };
        let (action, round) = (field("/action_id"), field("/round"));
        let advice = field("/analysis/feedback_for_action");
        let used = language.translate(used);
        let values = [("action", &*action), ("round", &*round), ("used", &*used), ("advice", &*advice)];
        let _ = writeln!(document, "{}", language.format("- {action}, round {round} ({used}): {advice}", &values));
    }
}

fn plans(document: &mut String, export: &Value, language: Language) {
    for (number, row) in list(export, "plans").enumerate() {
        if number == 0 {
            let _ = writeln!(document, "\n## {}\n", language.translate("Plans"));
        }
        let field = |name: &str| row.get(name).map(shown).unwrap_or_default().replace('\n', " ");
        let accepted = if row.get("accepted") == Some(&Value::Bool(true)) { "accepted" } else { "refused" };
        let reason = message_at(row, "/why").render(language).replace('\n', " ");
        let _ = writeln!(document, "- {} {}: {reason}", field("change"), language.translate(accepted));
    }
}

fn list<'e>(export: &'e Value, name: &str) -> impl Iterator<Item = &'e Value> {
    export.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn line(document: &mut String, scope: &str, name: &str, variable: &Value, language: Language) {
    let value = variable.get("value").map(shown).unwrap_or_default().replace('\n', " ");
    let source = variable.get("source").map(shown).unwrap_or_default();
    let set_by = language.format("(set by {source})", &[("source", &source)]);
    let _ = writeln!(document, "- {scope}: `{name}` = {value} {set_by}");
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
