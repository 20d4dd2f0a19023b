//! What is reported about expressions: those that cannot be evaluated, and those that are null.

use crate::program::event::Event;
use bcc_lang::expr::parse::{Expr, ExprError};
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::template::names::TemplateNames;

/// The code of a condition, a list or another expression that could not be evaluated.
const EXPRESSION_FAILED: &str = "expression-failed";

/// The code of such an expression that certainly cannot be evaluated, so that `validate` reports it as an error.
pub(crate) const MISTAKEN_EXPRESSION: &str = "mistaken-expression";

/// The code of a warning about a condition that is null and therefore counts as false.
pub(crate) const NULL_CONDITION: &str = "null-condition";

/// The code of a warning about an operation in a text, a template or a value that is null or failed.
pub const NULL_VALUE: &str = "null-value";

/// The code and the help of the error of an expression that could not be evaluated, in a script with these
/// [mistaken expressions](crate::program::program::Program::mistaken_expressions).
pub(crate) fn evaluation_failure(
    mistaken: &[Expr],
    expression: &Expr,
    error: &ExprError,
) -> (&'static str, Option<Message>) {
    if !mistaken.iter().any(|mistake| mistake.is(expression)) {
        return (EXPRESSION_FAILED, error.help.clone());
    }
    let validate =
        Message::word("`bcc-script validate` shows where it is in the script, and why it can never be evaluated");
    (MISTAKEN_EXPRESSION, error.help.clone().or(Some(validate)))
}

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
