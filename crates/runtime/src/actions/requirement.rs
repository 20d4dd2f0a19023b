//! `requires`: an expression that must hold before something is done outside the session.

use bcc_lang::expr::parse::Expr;
use bcc_lang::expr::truth::Truth;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::template::names::TemplateNames;

use crate::program::evaluation::null_condition;
use crate::program::turn::Turn;

/// Why `requires` forbids it: it does not hold, or it cannot be evaluated.
pub(crate) fn requirement_error(turn: &Turn<'_>, requires: &Expr, names: &TemplateNames) -> Option<Message> {
    let truth = requires.truth(names);
    turn.report_warnings(names);
    match truth {
        Ok(truth) if truth.holds() => None,
        Ok(truth) => {
            if let Truth::Null(part) = &truth {
                turn.emit(null_condition(requires.source(), part));
            }
            Some(msg!("`requires` is not true: `{}`", requires.source()))
        }
        Err(error) => Some(msg!("`requires` cannot be evaluated: `{}`: {}", requires.source(), error.message)),
    }
}
