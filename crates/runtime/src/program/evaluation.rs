//! What is reported about expressions: those that cannot be evaluated, and those that are null.

use crate::program::event::Event;
use bcc_lang::message::msg;
use bcc_lang::template::names::TemplateNames;

/// The code of a condition, a list or another expression that could not be evaluated.
pub(crate) const EXPRESSION_FAILED: &str = "expression-failed";

/// The code of a warning about a condition that is null and therefore counts as false.
pub(crate) const NULL_CONDITION: &str = "null-condition";

/// The code of a warning about an operation in a text, a template or a value that is null or failed.
pub const NULL_VALUE: &str = "null-value";

/// The warning about a condition that is null, because `part` is.
pub(crate) fn null_condition(source: &str, part: &str) -> Event {
    let message = msg!("the condition `{source}` counts as false, because `{part}` is null");
    Event::Warning { code: NULL_CONDITION, message, help: None }
}

/// Logs the warnings of a prompt that no turn sends. They contain no values.
pub(crate) fn log_warnings(names: &TemplateNames) {
    for warning in names.take_warnings() {
        tracing::warn!("{warning}");
    }
}
