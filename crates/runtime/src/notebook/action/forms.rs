//! The forms of an action: with `action` or `type`, plain or wrapped, with its current name or a legacy one.

use bcc_lang::message::message::Message;
use serde_json::{Map, Value};

use crate::notebook::action::NAMES;
use crate::notebook::action::fields::snake;
use crate::notebook::error::ActionFieldError;
use crate::notebook::error::field_error;
use crate::notebook::workflow::is_id;

/// The maximum number of wrappers around an action.
const MAX_WRAPPERS: usize = 4;

/// Legacy names of actions (docs/protocol.md) with their current names. `new_step` has no other name.
const LEGACY_NAMES: [(&str, &str); 11] = [
    ("add_content", "add"),
    ("add_section", "add_section"),
    ("add_text", "add"),
    // It moves the current effects to the history, as every action does.
    ("comment_result", "add"),
    ("execute_code", "exec"),
    ("new_step", "new_step"),
    ("update_last_text", "update_last_text"),
    ("set_effect_as_thinking", "set_effect_as_thinking"),
    ("mark_step_complete", "end_phase"),
    ("mark_stage_complete", "mark_stage_complete"),
    ("complete_reflection", "complete_reflection"),
];

/// The action that a name refers to: one of [`NAMES`], or one that only models and servers send; `None` for an unknown name.
pub(crate) fn known_action(name: &str) -> Option<&'static str> {
    let name = plain_name(name);
    let legacy = LEGACY_NAMES.iter().find(|(legacy, _)| *legacy == name).map(|(_, now)| *now);
    legacy.or_else(|| NAMES.into_iter().find(|known| *known == name))
}

/// A name in snake_case: older servers write `add-text`.
pub(crate) fn plain_name(name: &str) -> String {
    snake(name.trim()).replace('-', "_")
}

/// Removes the wrappers and returns the name of the action and its fields as sent.
pub(crate) fn unwrap_action(value: &Value) -> Result<(String, Map<String, Value>), ActionFieldError> {
    let mut value = value;
    for _ in 0..MAX_WRAPPERS {
        let Some(fields) = value.as_object() else { break };
        let key = match (fields.get("action"), fields.get("type")) {
            (Some(inner @ Value::Object(_)), _) => {
                value = inner;
                continue;
            }
            (Some(Value::String(_)), _) => "action",
            (None | Some(Value::Null), Some(Value::String(_))) => "type",
            _ => break,
        };
        let mut fields = fields.clone();
        let name = match fields.shift_remove(key) {
            Some(Value::String(name)) if is_id(&name) => name.trim().to_owned(),
            _ => {
                return Err(field_error(
                    "action",
                    Message::word("the name of an action is empty, too long, or more than one line"),
                ));
            }
        };
        return Ok((name, fields));
    }
    Err(field_error("action", Message::word("an action must be an object that names its kind in `action`")))
}
