//! `/prompt`: the last prompt that was sent to the model.

use serde_json::Value;

use crate::cli::language::translated;

/// The messages that were sent in the turn of `outcome`.
pub fn prompt(outcome: &Value) -> String {
    let messages = outcome.pointer("/debug_info/llm_prompt").and_then(Value::as_array);
    let Some(messages) = messages else { return translated("the last turn did not call a model").into_owned() };
    let shown = messages.iter().map(|message| {
        let field = |name: &str| message.get(name).and_then(Value::as_str).unwrap_or_default();
        format!("[{}]\n{}", field("role"), field("content"))
    });
    shown.collect::<Vec<_>>().join("\n\n")
}
