//! Finds dates that are ordered by comparing them with texts that are no dates.

use bcc_lang::message::msg;
use std::ops::Range;

use crate::typing::finding::{TypeFinding, TypeMistake};
use crate::typing::type_set::TypeSet;
use bcc_lang::expr::operators::Operator;
use bcc_lang::expr::tree::{ExprKind, ExprNode};
use bcc_lang::script::fields::shortened;
use bcc_lang::value::declared::DeclaredType;

/// The finding for an ordering comparison in which one side is declared as a date, and the other is a text that is no date.
pub(super) fn not_a_date(
    operator: Operator,
    left: (&ExprNode, &TypeSet),
    right: (&ExprNode, &TypeSet),
    range: &Range<usize>,
) -> Option<TypeFinding> {
    let other = [(left, right), (right, left)]
        .into_iter()
        .find_map(|((_, date), (other, _))| (date.declared == Some(DeclaredType::Date)).then_some(other))?;
    let ExprKind::Constant(value) = &other.kind else { return None };
    let text = value.as_str().filter(|text| !is_start_of_date(text))?;
    let (symbol, text) = (operator.symbol(), shortened(text));
    let message =
        msg!("`{symbol}` compares texts, and `{text}` is not a date, so the result says nothing about the time");
    let help = msg!("write the date as `'2026-01-31'`, in quotes: year, month, day");
    Some(TypeFinding { mistake: TypeMistake::NotADate, range: range.clone(), message, help, repair: None })
}

/// Whether the order of texts is that in time: for the start of an ISO date such as `2026-01`, or more than one; also for an empty text,
/// which is before all dates.
fn is_start_of_date(text: &str) -> bool {
    text.chars().take(10).enumerate().all(|(at, c)| match at {
        4 | 7 => c == '-',
        _ => c.is_ascii_digit(),
    })
}
