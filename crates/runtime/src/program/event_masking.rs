//! Masks sensitive values in the JSON lines of stored events, which readers of the journal show.

use serde_json::Value;

use crate::program::event_redaction::OWN_FIELDS;
use bcc_lang::value::mask::Masker;

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
    for text in texts {
        if let Some(value) = event.pointer_mut(text) {
            masker.value(value, &OWN_FIELDS);
        }
    }
}

/// Masks sensitive values in what a call of a tool was given and gave, with fields of any name.
fn mask_tool_call(event: &mut Value, masker: &Masker) {
    for part in ["arguments", "result", "by", "comment", "error", "_messages"] {
        if let Some(value) = event.get_mut(part) {
            masker.value(value, &[]);
        }
    }
}

/// Masks sensitive values in a cell, as events and exports contain it. Its number, id and counts stay.
pub fn mask_cell(cell: &mut Value, masker: &Masker) {
    for part in ["content", "metadata", "outputs"] {
        if let Some(value) = cell.get_mut(part) {
            masker.value(value, &["output_type", "execution_count"]);
        }
    }
}
