//! Calls that only minijinja can make (`loop()`, `super()`, methods) as operands that are evaluated only if they are needed: a recursive
//! loop ends with such a call.

use crate::message::message::Message;
use crate::message::msg;
use std::ops::Range;

use crate::expr::operators::Operator;
use crate::expr::tree::{ExprKind, ExprNode};
use crate::template::limits::RejectedSyntax;

/// Whether a native call is an operand that is not always evaluated.
pub(crate) fn calls_if_needed(node: &ExprNode) -> bool {
    match node.kind {
        ExprKind::And(..) | ExprKind::Or(..) | ExprKind::Choice { .. } | ExprKind::Chain(..) => has_call(node),
        _ => any_part(node, calls_if_needed),
    }
}

/// Whether minijinja would calculate, without bounds, an operator whose operands contain such a call.
pub(crate) fn has_unbounded_operator(node: &ExprNode) -> bool {
    use Operator::{Add, Concatenate, Multiply, Power};
    let is_unbounded = matches!(node.kind, ExprKind::Operation(Add | Concatenate | Multiply | Power, ..));
    (is_unbounded && calls_if_needed(node)) || any_part(node, has_unbounded_operator)
}

/// The error for an expression with such an operator.
pub(crate) fn rejected(range: Range<usize>) -> RejectedSyntax {
    let message = msg!("`~`, `+`, `*` and `**` cannot be combined with a call in brackets that is not always made");
    let help = Some(Message::word("put the part in brackets into a variable first, as in `{% set part = … %}`"));
    RejectedSyntax { message, range, help, instead: None, unknown: None }
}

fn has_call(node: &ExprNode) -> bool {
    matches!(node.kind, ExprKind::NativeCall(_)) || any_part(node, has_call)
}

fn any_part(node: &ExprNode, holds: fn(&ExprNode) -> bool) -> bool {
    let mut found = false;
    node.each_part(&mut |part| found |= holds(part));
    found
}

#[cfg(test)]
mod tests {
    use crate::template::rewrite::rejected_expressions;

    #[test]
    fn an_operator_that_minijinja_would_calculate_is_rejected() {
        for (source, is_rejected) in [
            ("{{ (loop(x) if x else '') ~ 'x' * 20000000000 }}", true),
            ("{% set y = (x or super()) + 'x' %}", true),
            ("{{ loop(x) ~ 'x' if x else 'y' ~ 'z' }}{{ super() ~ 'x' }}{{ x or super() }}", false),
            ("{{ (loop(x) if x else '') | upper }}", false),
        ] {
            assert_eq!(!rejected_expressions(source).is_empty(), is_rejected, "{source}");
        }
    }
}
