//! Writes what a call gave into the journal.

use serde_json::Value;

use crate::actions::tools::result::ToolResult;
use crate::program::event::Event;
use crate::program::tool_called::ToolCalled;
use crate::program::turn::Turn;
use bcc_lang::value::exact::ExactValue;
use bcc_store::rows::TextRow;

/// The maximum size of arguments and of a result in an event, in bytes. What is longer is a text of its own.
const MAX_EVENT_BYTES: usize = 64 * 1024;

/// Emits the event about a call. `hides_result`: the result must not be stored.
pub(crate) fn report(turn: &Turn<'_>, result: &ToolResult, ms: u64, hides_result: bool) {
    let ToolResult { tool, arguments, status, value, error, by, comment, is_truncated, is_cached, .. } = result;
    let (arguments, arguments_sha256) = stored(turn, Value::Object(arguments.clone()).into());
    let arguments = arguments.map(ExactValue::into_value);
    let has_value = status.has_value();
    let result_bytes = has_value.then(|| value.to_string().len());
    let (result, result_sha256) = match has_value && !hides_result {
        true => stored(turn, value.clone()),
        false => (None, None),
    };
    turn.emit(Event::ToolCalled(Box::new(ToolCalled {
        tool: tool.clone(),
        arguments,
        arguments_sha256,
        status: status.name(),
        result,
        result_bytes,
        result_sha256,
        truncated: *is_truncated,
        cached: *is_cached,
        error: error.clone(),
        by: by.clone(),
        comment: comment.clone(),
        ms,
    })));
}

/// The value for an event, or the digest of its text if it is too long.
fn stored(turn: &Turn<'_>, mut value: ExactValue) -> (Option<ExactValue>, Option<String>) {
    if value.to_string().len() <= MAX_EVENT_BYTES {
        return (Some(value), None);
    }
    value.change(|value| turn.masker.data(value));
    let row = TextRow::new(value.to_string());
    let digest = row.sha256.clone();
    turn.work().texts.push(row);
    (None, Some(digest))
}
