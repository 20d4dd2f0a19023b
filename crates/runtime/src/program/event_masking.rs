//! Masks sensitive values in the JSON lines of stored events, which readers of the journal show.

use serde_json::{Map, Value};

use crate::program::event_redaction::OWN_FIELDS;
use crate::run::frames::ELEMENT;
use bcc_lang::value::mask::Masker;

/// Media types of outputs, which are never sensitive values.
pub const MEDIA_TYPES: [&str; 12] = [
    "text/plain",
    "text/html",
    "text/markdown",
    "text/latex",
    "application/json",
    "application/javascript",
    "application/pdf",
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/svg+xml",
    "image/webp",
];

/// Fields of the metadata of an outcome that the engine sets, never a model or a program.
const METADATA_FIELDS: [&str; 5] = ["exit_reason", "current_round", "max_rounds", "parse_retry_count", "attempts"];

/// Names of the engine in the plan of a topic.
pub(crate) const PLAN_FIELDS: [&str; 3] = ["action_id", "action_type", "type"];

/// Masks sensitive values in the JSON line of an event.
pub fn mask(event: &mut Value, masker: &Masker) {
    // In events that contain the engine's own numbers, only these fields may contain text of the conversation.
    let texts: &[&str] = match event.get("type").and_then(Value::as_str) {
        Some("model_call") => &["/debug_info", "/error", "/passed_over", "/_messages"],
        Some("warning" | "error") => &["/message", "/help", "/_messages"],
        Some("session_completed" | "session_failed" | "session_stopped" | "session_cancelled") => {
            &["/summary/reason", "/_messages"]
        }
        Some("request_opened") => &["/prompt", "/approvers"],
        Some("request_answered") => &["/by", "/comment", "/values"],
        Some("effect_started" | "effect_finished") => &["/summary", "/_messages"],
        Some("tool_called") => return mask_tool_call(event, masker),
        Some("notebook_action") => &["/action", "/error", "/effects", "/_messages"],
        Some("behavior") => &["/target", "/feedback", "/why", "/_messages"],
        Some("cell") => return mask_cell(event, masker),
        Some("plan_changed") => &["/name"],
        Some("variable_set") => {
            event.get_mut("value").into_iter().for_each(|set| masker.data(set));
            return;
        }
        _ => return mask_row(event, masker),
    };
    for text in texts {
        if let Some(value) = event.pointer_mut(text) {
            mask_field(text.trim_start_matches('/'), value, masker);
        }
    }
}

/// Masks sensitive values in an object whose fields are those of events, as exports contain it: an outcome, a message, the row of a history.
pub fn mask_row(row: &mut Value, masker: &Masker) {
    let Some(fields) = row.as_object_mut() else { return masker.value(row, &[]) };
    for (name, value) in fields.iter_mut().filter(|(name, _)| !OWN_FIELDS.contains(&name.as_str())) {
        mask_field(name, value, masker);
    }
}

/// Masks sensitive values in a field of an event. Names that the engine uses in events, such as `name` and `type`, can be those of anything
/// in the data of a model or a program.
fn mask_field(name: &str, value: &mut Value, masker: &Masker) {
    match (name, value.as_object_mut()) {
        ("metadata", Some(fields)) => mask_outcome_metadata(fields, masker),
        ("debug_info", Some(fields)) => mask_debug_info(fields, masker),
        ("metrics" | "extracted_variables" | "values", Some(_)) => mask_fields(value, masker),
        ("plan", _) => masker.value(value, &PLAN_FIELDS),
        ("passed_over", _) => masker.value(value, &["model"]),
        ("_messages", _) => masker.value(value, &OWN_FIELDS),
        ("path", _) => mask_path(value, masker),
        _ => masker.value(value, &[]),
    }
}

/// Masks sensitive values in the metadata of an outcome.
pub(crate) fn mask_outcome_metadata(metadata: &mut Map<String, Value>, masker: &Masker) {
    let of_others = metadata.iter_mut().filter(|(name, _)| !METADATA_FIELDS.contains(&name.as_str()));
    of_others.for_each(|(_, value)| masker.data(value));
}

/// Masks sensitive values in the prompt, the reply and the errors of a call.
pub(crate) fn mask_debug_info(debug_info: &mut Map<String, Value>, masker: &Masker) {
    for (name, value) in debug_info {
        match name.as_str() {
            "tokens_in" | "tokens_out" | "ms" => {}
            "llm_prompt" => masker.value(value, &["role"]),
            "parse_error" => masker.value(value, &["retry_count", "strategies"]),
            _ => masker.value(value, &[]),
        }
    }
}

/// Masks sensitive values in an instance path.
pub fn mask_path(path: &mut Value, masker: &Masker) {
    if let Value::String(text) = path {
        *text = masked_path(text, masker);
    }
}

/// An instance path with every sensitive value masked in the names of the elements that topics run for: what is sensitive may become known
/// only after such a topic has begun. Everything else in a path is from the script.
pub fn masked_path(path: &str, masker: &Masker) -> String {
    if masker.is_empty() || !path.contains(ELEMENT) {
        return path.to_owned();
    }
    let masked = |component: &str| match component.split_once(ELEMENT) {
        Some((topic, named)) => match named.split_once('#') {
            Some((element, visit)) => format!("{topic}{ELEMENT}{}#{visit}", masker.text(element)),
            None => format!("{topic}{ELEMENT}{}", masker.text(named)),
        },
        None => component.to_owned(),
    };
    path.split('/').map(masked).collect::<Vec<_>>().join("/")
}

/// Masks sensitive values in what a call of a tool was given and gave, with fields of any name.
fn mask_tool_call(event: &mut Value, masker: &Masker) {
    for part in ["by", "comment", "error", "_messages"] {
        if let Some(value) = event.get_mut(part) {
            masker.value(value, &[]);
        }
    }
    event.get_mut("arguments").into_iter().for_each(|arguments| mask_fields(arguments, masker));
    event.get_mut("result").into_iter().for_each(|result| masker.data(result));
}

/// Masks sensitive values in the values of an object whose own keys are names that a script or a tool declares.
pub fn mask_fields(fields: &mut Value, masker: &Masker) {
    match fields.as_object_mut() {
        Some(fields) => fields.values_mut().for_each(|field| masker.data(field)),
        None => masker.data(fields),
    }
}

/// Masks sensitive values in a cell, as events and exports contain it. Its number, id and counts stay.
pub fn mask_cell(cell: &mut Value, masker: &Masker) {
    cell.get_mut("content").into_iter().for_each(|content| masker.value(content, &[]));
    cell.get_mut("metadata").into_iter().for_each(|metadata| mask_metadata(metadata, masker));
    cell.get_mut("outputs").into_iter().for_each(|outputs| mask_outputs(outputs, masker));
}

/// Masks sensitive values in the metadata of a cell.
pub fn mask_metadata(metadata: &mut Value, masker: &Masker) {
    metadata.get_mut("extra").into_iter().for_each(|extra| masker.data(extra));
    masker.value(metadata, &["output_type", "execution_count"]);
}

/// Masks sensitive values in the outputs of a cell.
pub fn mask_outputs(outputs: &mut Value, masker: &Masker) {
    match outputs {
        Value::Array(outputs) => outputs.iter_mut().for_each(|output| mask_output(output, masker)),
        other => masker.value(other, &[]),
    }
}

fn mask_output(output: &mut Value, masker: &Masker) {
    let Some(parts) = output.as_object_mut() else { return masker.value(output, &[]) };
    for (name, part) in parts {
        match (name.as_str(), part.as_object_mut()) {
            ("output_type" | "execution_count", _) => {}
            ("data", Some(data)) => {
                data.values_mut().for_each(|value| masker.data(value));
                masker.keys(data, &MEDIA_TYPES);
            }
            _ => masker.data(part),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_names_of_elements_are_masked_in_a_path() {
        let masker = Masker::new(&["张三", "ask"].map(|text| json!(text).into()));
        let path = masked_path("each@张三的家#2/ask_1/+ask@张三", &masker);
        assert_eq!(path, "each@***的家#2/ask_1/+ask@***");
    }

    #[test]
    fn names_of_the_engine_are_masked_inside_data_and_stay_in_events() {
        let masker = Masker::new(&["hunter2", "exit_criteria_met", "user", "ai_ask"].map(|text| json!(text).into()));
        let mut event = json!({
            "type": "outcome", "action_type": "ai_ask", "exit_reason": "exit_criteria_met",
            "metadata": { "exit_reason": "exit_criteria_met", "name": "hunter2", "result": { "tasks": [{ "name": "hunter2" }] } },
            "metrics": { "model": "hunter2" },
            "debug_info": { "llm_prompt": [{ "role": "user", "content": "hunter2" }] },
        });
        mask(&mut event, &masker);
        let expected = json!({
            "type": "outcome", "action_type": "ai_ask", "exit_reason": "exit_criteria_met",
            "metadata": { "exit_reason": "exit_criteria_met", "name": "***", "result": { "tasks": [{ "name": "***" }] } },
            "metrics": { "model": "***" },
            "debug_info": { "llm_prompt": [{ "role": "user", "content": "***" }] },
        });
        assert_eq!(event, expected);
    }

    #[test]
    fn keys_of_data_are_masked_and_those_of_cells_and_events_stay() {
        let masker = Masker::new(&["hunter2", "text", "value", "plain"].map(|text| json!(text).into()));
        let mut cell = json!({
            "metadata": { "custom_text": "hunter2", "extra": { "hunter2": 1 } },
            "outputs": [
                { "output_type": "stream", "name": "stdout", "text": "hunter2" },
                { "output_type": "display_data", "data": { "text/plain": "x", "application/json": { "hunter2": { "text": 1 } } }, "metadata": { "hunter2": 1 } },
            ],
        });
        mask_cell(&mut cell, &masker);
        let expected = json!({
            "metadata": { "custom_text": "***", "extra": { "***": 1 } },
            "outputs": [
                { "output_type": "stream", "name": "stdout", "text": "***" },
                { "output_type": "display_data", "data": { "text/plain": "x", "application/json": { "***": { "***": 1 } } }, "metadata": { "***": 1 } },
            ],
        });
        assert_eq!(cell, expected);
        let mut event = json!({ "type": "variable_set", "name": "value", "value": { "value": 1 } });
        mask(&mut event, &masker);
        assert_eq!(event, json!({ "type": "variable_set", "name": "value", "value": { "***": 1 } }));
        let mut event =
            json!({ "type": "tool_called", "arguments": { "text": { "a hunter2": 1 } }, "result": { "hunter2": 1 } });
        mask(&mut event, &masker);
        assert_eq!(
            event,
            json!({ "type": "tool_called", "arguments": { "text": { "a ***": 1 } }, "result": { "***": 1 } })
        );
    }
}
