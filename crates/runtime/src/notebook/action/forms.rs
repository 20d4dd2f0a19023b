//! The forms in which an action is written: with `action` or `type`, plain or wrapped, under its own name or an older one.

use bcc_lang::message::message::Message;
use serde_json::{Map, Value};

use crate::notebook::action::NAMES;
use crate::notebook::action::fields::snake;
use crate::notebook::error::ActionFieldError;
use crate::notebook::error::fault;
use crate::notebook::workflow::is_id;

/// How many wrappers may lie around an action.
const MOST_WRAPPERS: usize = 4;

/// Older names of actions (docs/protocol.md), and what they are now. `new_step` has no other name.
const OLDER: [(&str, &str); 4] =
    [("add_content", "add"), ("add_section", "add_section"), ("execute_code", "exec"), ("new_step", "new_step")];

/// The kind that a name stands for: one of [`NAMES`], `add_section` or `new_step`; none when it is no name of ours.
pub(crate) fn known(name: &str) -> Option<&'static str> {
    let name = snake(name.trim());
    let older = OLDER.iter().find(|(older, _)| *older == name).map(|(_, now)| *now);
    older.or_else(|| NAMES.into_iter().find(|known| *known == name))
}

/// Takes the wrappers off: the name that the action gives, and its fields as they were sent.
pub(crate) fn unwrapped(value: &Value) -> Result<(String, Map<String, Value>), ActionFieldError> {
    let mut value = value;
    for _ in 0..MOST_WRAPPERS {
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
                return Err(fault(
                    "action",
                    Message::word("the name of an action is empty, too long, or more than one line"),
                ));
            }
        };
        return Ok((name, fields));
    }
    Err(fault("action", Message::word("an action must be an object that names its kind in `action`")))
}
