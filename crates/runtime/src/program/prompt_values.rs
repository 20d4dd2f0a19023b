//! The values of the wanted outputs in a prompt: which are known, and which required ones are missing (docs/templates.md, "Names").

use serde_json::{Value, json};

use crate::program::output::OutputVariable;
use crate::program::transcript::cut_in_the_middle;
use crate::program::turn::Turn;
use bcc_lang::value::exact::ExactValue;

/// The maximum number of shown characters of a known value, so that a prompt does not grow with a list.
const MAX_VALUE_CHARS: usize = 100;

/// The maximum number of shown elements of a sensitive list: the last ones.
const MAX_SENSITIVE_ITEMS: usize = 3;

/// The outputs that have a value, as a list of `get` and `value`: JSON on one line, which no text in it can leave.
pub(crate) fn known(turn: &Turn<'_>, outputs: &[OutputVariable]) -> Value {
    let known = |output: &OutputVariable| {
        let value = turn.variable(&output.get).filter(|value| !value.is_null())?;
        Some(json!({ "get": output.get, "value": shortened(&value, turn.is_sensitive(&output.get)) }))
    };
    outputs.iter().filter_map(known).collect()
}

/// A value as JSON, shortened. Of a sensitive one, only elements of a list are left out: part of a text could no longer be masked in
/// what is stored, and a replay, which has masks instead of the texts, must send the same prompt.
pub(crate) fn shortened(value: &ExactValue, is_sensitive: bool) -> String {
    match &**value {
        _ if !is_sensitive => cut_in_the_middle(&value.to_string(), MAX_VALUE_CHARS),
        Value::Array(items) if items.len() > MAX_SENSITIVE_ITEMS => {
            let last = value.items().skip(items.len() - MAX_SENSITIVE_ITEMS).map(|item| item.to_string());
            format!("[…,{}]", last.collect::<Vec<_>>().join(","))
        }
        _ => value.to_string(),
    }
}

/// The names of required outputs that are still null.
pub(crate) fn missing(turn: &Turn<'_>, outputs: &[OutputVariable]) -> Vec<String> {
    outputs
        .iter()
        .filter(|output| output.required)
        .filter(|output| turn.variable(&output.get).is_none_or(|value| value.is_null()))
        .map(|output| output.get.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_a_sensitive_value_is_cut() {
        let text = "一".repeat(MAX_VALUE_CHARS);
        assert!(shortened(&json!(text).into(), false).contains("[…]"));
        assert_eq!(shortened(&json!(text).into(), true), format!("\"{text}\""));
        assert_eq!(shortened(&json!([1, 2, text]).into(), true), format!("[1,2,\"{text}\"]"));
        assert_eq!(shortened(&json!(["a", "b", "c", text]).into(), true), format!("[…,\"b\",\"c\",\"{text}\"]"));
    }
}
