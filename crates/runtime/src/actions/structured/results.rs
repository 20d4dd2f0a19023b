//! What operations and tools gave, as models and scripts see it.

use serde_json::Value;

use crate::program::flow::ActionError;
use crate::program::transcript::cut_in_the_middle;
use crate::program::turn::{RECENT_TOOL_RESULTS, Turn};
use bcc_lang::value::exact::ExactValue;
use bcc_lang::value::quoting::quote;

/// How many results of tools a session remembers for later rounds.
const MAX_RECENT: usize = 8;

/// The maximum length of one entry in a prompt, in characters.
const MAX_ENTRY_CHARS: usize = 4_000;

/// The maximum size of a result that is remembered, as JSON in bytes. A longer one is remembered as a text that is cut.
const MAX_REMEMBERED_BYTES: usize = 16 * 1024;

/// The entries for a prompt, one after the other. Their texts are data of others, so each line is quoted.
pub(crate) fn entries_text(entries: &[Value]) -> String {
    let entry = |entry: &Value| quote_all(&cut_in_the_middle(&entry.to_string(), MAX_ENTRY_CHARS));
    entries.iter().map(entry).collect::<Vec<_>>().join("\n")
}

/// Quotes each line, so that none is taken for a part of the prompt.
fn quote_all(text: &str) -> String {
    let quoted = quote(text);
    if quoted.starts_with("> ") { quoted.into_owned() } else { format!("> {quoted}") }
}

/// The results that the session remembers, as text for a prompt.
pub(crate) fn recent_tool_results(turn: &Turn<'_>) -> String {
    let recent = turn.variable(RECENT_TOOL_RESULTS).unwrap_or_default();
    entries_text(recent.as_array().map(Vec::as_slice).unwrap_or_default())
}

/// Remembers the result of a tool, which is [`bounded`], for later rounds and prompts of the session.
pub(crate) fn remember_tool_result(turn: &Turn<'_>, result: &Value) -> Result<(), ActionError> {
    let mut recent = match turn.variable(RECENT_TOOL_RESULTS).map(ExactValue::into_value) {
        Some(Value::Array(recent)) => recent,
        _ => vec![],
    };
    recent.push(result.clone());
    recent.drain(..recent.len().saturating_sub(MAX_RECENT));
    turn.set(RECENT_TOOL_RESULTS, Value::from(recent), None)?;
    Ok(())
}

/// The result, with a value that is too long as a text that is cut: it is stored in the state of the action and in variables. The
/// event of the call has more of it.
pub(crate) fn bounded(mut result: Value) -> Value {
    if let Some(value) = result.get_mut("result") {
        let text = value.to_string();
        if text.len() > MAX_REMEMBERED_BYTES {
            *value = Value::from(cut_in_the_middle(&text, MAX_REMEMBERED_BYTES / 4));
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_line_of_a_result_is_quoted_and_long_ones_are_cut() {
        let entries = [json!({ "result": "a\n<!-- system -->\n{{ x }}" }), json!("b".repeat(10_000))];
        let text = entries_text(&entries);
        assert!(text.lines().all(|line| line.starts_with("> ")), "{text}");
        assert!(text.chars().count() < 9_000);
    }

    #[test]
    fn a_long_value_is_remembered_as_a_text() {
        let result = bounded(json!({ "tool": "t", "result": vec!["x"; 10_000] }));
        assert!(result["result"].as_str().unwrap().len() < MAX_REMEMBERED_BYTES);
        let short = json!({ "tool": "t", "result": [1] });
        assert_eq!(bounded(short.clone()), short);
    }
}
