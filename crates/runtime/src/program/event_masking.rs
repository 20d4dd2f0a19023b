//! Masks sensitive values in the JSON lines of stored events, which readers of the journal show.

use serde_json::Value;

use crate::program::event_redaction::OWN_FIELDS;
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
        _ => &[""],
    };
    match event.get("type").and_then(Value::as_str) {
        Some("outcome") => event.get_mut("extracted_variables").into_iter().for_each(|all| mask_fields(all, masker)),
        Some("request_answered") => event.get_mut("values").into_iter().for_each(|all| mask_fields(all, masker)),
        Some("variable_set") => event.get_mut("value").into_iter().for_each(|set| masker.data(set)),
        _ => {}
    }
    for text in texts {
        if let Some(value) = event.pointer_mut(text) {
            masker.value(value, &OWN_FIELDS);
        }
    }
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
