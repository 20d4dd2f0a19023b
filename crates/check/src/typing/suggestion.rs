//! Suggestions for the findings of the type analysis: a help text, and a repair if there is only one.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::ops::Range;

use minijinja::value::Value;

use crate::typing::analysis::Analysis;
use crate::typing::contradiction::{JoinedComparisons, exclude_one_another};
use crate::typing::type_set::TypeSet;
use bcc_lang::expr::operators::Operator;
use bcc_lang::expr::parse::Expr;
use bcc_lang::expr::tree::{ExprKind, ExprNode};
use bcc_lang::script::fields::shortened;
use bcc_lang::source::near::near_miss;
use bcc_lang::template::unknown::SourceRepair;
use bcc_lang::value::compare::{Family, ValueShape};
use bcc_lang::value::declared::DeclaredType;

/// A help text and, if possible, the change.
pub(crate) type Suggestion = (Message, Option<SourceRepair>);

/// Describes the type of a part: "`age` is a number (declared as `integer`)".
pub fn is(analysis: &Analysis<'_>, node: &ExprNode, types: &TypeSet) -> Message {
    let text = shortened(analysis.text(node));
    let what = match types.only() {
        Some(ValueShape::Null) => msg!("null"),
        Some(shape) => shape.to_message(),
        None => Message::list(Joint::Or, types.shapes().map(|shape| shape.to_message())),
    };
    match (&node.kind, types.declared) {
        (ExprKind::Name(_), Some(declared)) if what != declared.name() => {
            msg!("`{text}` is {what} (declared as `{}`)", declared.name())
        }
        _ => msg!("`{text}` is {what}"),
    }
}

fn replace_with(text: &str, range: &Range<usize>) -> Option<SourceRepair> {
    Some(SourceRepair::one(msg!("write `{text}`"), range.clone(), text))
}

/// The number in a quoted text, as it is written.
fn number_in(node: &ExprNode) -> Option<&str> {
    let ExprKind::Constant(value) = &node.kind else { return None };
    let text = value.as_str()?.trim();
    (!text.is_empty()
        && text.parse::<f64>().is_ok_and(f64::is_finite)
        && text.starts_with(|c: char| c.is_ascii_digit()))
    .then_some(text)
}

/// `text` in the kind of quotes that the author uses at `like`, else in single quotes.
fn in_quotes(analysis: &Analysis<'_>, like: &ExprNode, text: &str) -> Option<String> {
    let quote = if analysis.text(like).starts_with('"') { '"' } else { '\'' };
    (!text.contains([quote, '\\', '\n'])).then(|| format!("{quote}{text}{quote}"))
}

/// The suggestion for operands whose types do not fit.
pub fn mismatch(
    analysis: &Analysis<'_>,
    operator: Operator,
    left: (&ExprNode, &TypeSet),
    right: (&ExprNode, &TypeSet),
) -> Suggestion {
    let ((left_node, left_types), (right_node, right_types)) = (left, right);
    let family = operator.family();
    let numeric = |types: &TypeSet| types.only() == Some(ValueShape::Number);
    let textual = |types: &TypeSet| types.only() == Some(ValueShape::String);
    if left_types.is_null() || right_types.is_null() {
        return (msg!("to check for null, use `is none` or `is not none`"), None);
    }
    for ((_, other), (node, _)) in [(left, right), (right, left)] {
        if let (true, true, Some(number)) = (family != Family::Membership, numeric(other), number_in(node)) {
            return (msg!("write the number without quotes: `{number}`"), replace_with(number, &node.range));
        }
    }
    let date = [left_types, right_types].iter().any(|types| types.declared == Some(DeclaredType::Date));
    if let Some(suggestion) = list_with_item(analysis, family, left, right) {
        return suggestion;
    }
    let help = match family {
        Family::Add if (textual(left_types) || textual(right_types)) && !date => {
            let between = left_node.range.end..right_node.range.start;
            let plus =
                analysis.source.get(between.clone()).and_then(|text| text.find('+')).map(|at| between.start + at);
            let repair = plus.map(|at| SourceRepair::one("write `~`", at..at + 1, "~"));
            return (msg!("to join text with something else, write `~` instead of `+`"), repair);
        }
        Family::Membership if textual(right_types) => {
            msg!("only text can be searched for in text: put the value to look for in quotes")
        }
        Family::Membership => {
            msg!("the right side of `in` must be a list, as in `x in ['…', '…']`, text or an object")
        }
        _ if date => msg!("a date is text such as `'2026-01-31'`: compare it with a date in quotes"),
        Family::Order if textual(left_types) || textual(right_types) => {
            let (node, _) = if textual(left_types) { left } else { right };
            let text = analysis.text(node);
            let type_of = if matches!(node.kind, ExprKind::Name(_)) {
                msg!(", or declare `{text}` with `type: number` if it should be a number")
            } else {
                Message::default()
            };
            msg!("for the length of the text, write `{text} | length`{type_of}")
        }
        _ if [left_types, right_types].iter().any(|types| types.only() == Some(ValueShape::List)) => {
            msg!("for the number of items in a list, write `x | length`")
        }
        _ if [left_types, right_types].iter().any(|types| types.only() == Some(ValueShape::Boolean)) => {
            msg!("true and false are used directly (`x`, `not x`); they cannot be ordered or added")
        }
        _ => msg!("change one of the two sides, or the `type` in its declaration"),
    };
    (help, None)
}

/// The suggestion for a list and something else joined with `+` or `~`: what is to be added must be a list too, and a list in a text is
/// joined first.
fn list_with_item(
    analysis: &Analysis<'_>,
    family: Family,
    (left, left_types): (&ExprNode, &TypeSet),
    (right, right_types): (&ExprNode, &TypeSet),
) -> Option<Suggestion> {
    if !matches!(family, Family::Add | Family::Concatenation) {
        return None;
    }
    let lists = [left_types, right_types].map(|types| types.only() == Some(ValueShape::List));
    let texts = [left, right].map(|node| analysis.source.get(analysis.balanced(&node.range)).unwrap_or_default());
    let (list, other, list_text) = match (lists, texts) {
        ([true, false], [list, _]) => (left, right_types, list),
        ([false, true], [_, list]) => (right, left_types, list),
        _ => return None,
    };
    let is_closed = matches!(
        list.kind,
        ExprKind::Name(_)
            | ExprKind::Constant(_)
            | ExprKind::List(_)
            | ExprKind::Attribute(..)
            | ExprKind::Item(..)
            | ExprKind::Slice { .. }
            | ExprKind::Call(..)
            | ExprKind::NativeCall(_)
            | ExprKind::Filter(..)
    );
    // The range of other parts is without the parentheses around them.
    let list_text = shortened(list_text);
    let list_text = if is_closed { list_text } else { format!("({list_text})") };
    let joined = msg!("to write the items of a list in a text, write `{} | join(', ')`", list_text);
    // Only after a list, something is added to it: `'Family: ' + family` is a text.
    if list.range != left.range {
        return Some((joined, None));
    }
    let item = analysis.balanced(&right.range);
    let added = format!("{list_text} + [{}]", shortened(analysis.source.get(item.clone())?));
    let help = msg!("to add an item to a list, write `{added}`");
    if family == Family::Concatenation {
        let textual = other.only() == Some(ValueShape::String);
        return Some((if textual { msg!("{help}; {joined}") } else { help }, None));
    }
    if other.only() == Some(ValueShape::Number) {
        return Some((msg!("{help}; {}", msg!("for the number of items in a list, write `x | length`")), None));
    }
    let edits = vec![(item.start..item.start, "[".to_owned()), (item.end..item.end, "]".to_owned())];
    Some((help, Some(SourceRepair { title: msg!("write `{}`", added), edits, sure: false })))
}

pub fn attribute(
    analysis: &Analysis<'_>,
    of: &ExprNode,
    name: &str,
    types: &TypeSet,
    range: &Range<usize>,
) -> Suggestion {
    if matches!(name, "length" | "size" | "len" | "count") && !types.is_none_of(&[ValueShape::String, ValueShape::List])
    {
        let text = format!("{} | length", analysis.text(of));
        return (msg!("write `{text}`"), replace_with(&text, range));
    }
    (msg!("only an object has fields: remove the `.` and what follows it, or declare it with `type: object`"), None)
}

pub(crate) fn out_of_range(
    analysis: &Analysis<'_>,
    left: (&ExprNode, &TypeSet),
    right: (&ExprNode, &TypeSet),
) -> Message {
    let (name, constant) = if matches!(right.0.kind, ExprKind::Constant(_)) { (left, right) } else { (right, left) };
    let (of, text) = (shortened(analysis.text(name.0)), shortened(analysis.text(constant.0)));
    match name.1.declared {
        _ if name.1.values().is_some() => msg!("`{of}` is never `{text}`: this value is not in its `enum`"),
        Some(DeclaredType::Date) => msg!("`{of}` is never `{text}`: it is declared as a date, and this is not a date"),
        Some(DeclaredType::Integer) => msg!("`{of}` is never `{text}`: it is declared as a whole number"),
        _ => msg!("`{of}` is never `{text}`"),
    }
}

/// The suggestion for two operands that are never equal.
pub(crate) fn never_equal(
    analysis: &Analysis<'_>,
    left: (&ExprNode, &TypeSet),
    right: (&ExprNode, &TypeSet),
) -> Suggestion {
    let (name, constant) = if matches!(right.0.kind, ExprKind::Constant(_)) { (left, right) } else { (right, left) };
    let ExprKind::Constant(value) = &constant.0.kind else {
        return (msg!("declare both with the same `type`, or compare something else"), None);
    };
    let range = &constant.0.range;
    let written = analysis.text(constant.0);
    let choices: Vec<&str> = name.1.values().unwrap_or_default().iter().filter_map(Value::as_str).collect();
    if !choices.is_empty() {
        let wanted = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if let Some(near) = near_miss(&wanted, choices.iter().copied()) {
            let quoted = in_quotes(analysis, constant.0, near);
            return (msg!("did you mean `{near}`?"), quoted.and_then(|quoted| replace_with(&quoted, range)));
        }
        let shown: Vec<String> = choices.iter().take(12).map(|choice| format!("`{}`", shortened(choice))).collect();
        return (
            msg!("its possible values are {}", Message::list(Joint::Item, shown.into_iter().map(Message::text))),
            None,
        );
    }
    match name.1.only() {
        Some(ValueShape::Number) => match number_in(constant.0) {
            Some(number) => (msg!("write the number without quotes: `{number}`"), replace_with(number, range)),
            None if name.1.declared == Some(DeclaredType::Integer) && value.is_number() => {
                (msg!("compare it with a whole number, or declare it with `type: number`"), None)
            }
            None => (msg!("compare it with a number, or change the `type` of its declaration"), None),
        },
        Some(ValueShape::String) if name.1.declared == Some(DeclaredType::Date) => {
            (msg!("write the date as `'2026-01-31'`, in quotes: year, month, day"), None)
        }
        Some(ValueShape::String) => match in_quotes(analysis, constant.0, written) {
            Some(quoted) => (msg!("put it in quotes: `{quoted}`"), replace_with(&quoted, range)),
            None => (msg!("compare it with text in quotes"), None),
        },
        Some(ValueShape::Boolean) => match truth_in(value) {
            Some(truth) => (msg!("write `{truth}`, without quotes"), replace_with(truth, range)),
            None => (msg!("compare it with `true` or `false`, or use it directly: `x`, `not x`"), None),
        },
        Some(ValueShape::List) => (msg!("to check whether a list contains something, write `'…' in x`"), None),
        _ => (msg!("change one of the two sides, or the `type` in its declaration"), None),
    }
}

/// The boolean that a text or number probably stands for.
fn truth_in(value: &Value) -> Option<&'static str> {
    if let Some(text) = value.as_str() {
        return match text.trim().to_lowercase().as_str() {
            "true" | "yes" | "on" | "1" | "是" => Some("true"),
            "false" | "no" | "off" | "0" | "否" => Some("false"),
            _ => None,
        };
    }
    match value.as_i64() {
        Some(1) => Some("true"),
        Some(0) => Some("false"),
        _ => None,
    }
}

/// The suggestion for a condition that is not a boolean. `after` is the operand to its left in `and` or `or`.
pub(crate) fn not_boolean(
    analysis: &Analysis<'_>,
    node: &ExprNode,
    types: &TypeSet,
    who: &'static str,
    after: Option<&ExprNode>,
) -> Suggestion {
    let text = analysis.text(node);
    let range = &node.range;
    if let (ExprKind::Constant(_), Some((operator, compared))) = (&node.kind, after.and_then(compared)) {
        let whole = format!("{} {} {text}", analysis.text(compared), operator.symbol());
        let help = msg!("each side needs a comparison of its own: `{whole}`");
        return (help, replace_with(&whole, range));
    }
    if let ExprKind::Constant(value) = &node.kind {
        if let Some(truth) = truth_in(value) {
            return (msg!("write `{truth}`, without quotes"), replace_with(truth, range));
        }
        // A complete condition inside additional quotes.
        let inner = value.as_str().filter(|inner| inner.contains([' ', '<', '>', '=']) && Expr::parse(inner).is_ok());
        if let Some(inner) = inner {
            return (
                msg!("remove the inner quotes: what is inside them is text, not a condition"),
                replace_with(inner, range),
            );
        }
        return (msg!("compare something with it, as in `x == {text}`"), None);
    }
    let parenthesized = |text: String| if who == "a condition" || who == "`and`" { text } else { format!("({text})") };
    let asked = match types.only() {
        Some(ValueShape::String) => format!("{text} is not none and {text} != ''"),
        Some(ValueShape::Number) if matches!(&node.kind, ExprKind::Filter(name, ..) if name == "length" || name == "count") =>
        {
            format!("{text} > 0")
        }
        Some(ValueShape::Number) => {
            return (msg!("compare it: `{text} > 0` for more than zero, `{text} is not none` for any number"), None);
        }
        Some(ValueShape::List) => format!("{text} is not none and {text} | length > 0"),
        Some(ValueShape::Object) => format!("{text} is not none"),
        _ => return (msg!("compare it with something, as in `x == '…'`"), None),
    };
    if matches!(node.kind, ExprKind::Name(_) | ExprKind::Filter(..)) {
        let help = msg!("to check whether it has content, write `{asked}`");
        return (help, replace_with(&parenthesized(asked), range));
    }
    (msg!("compare it with something, as in `x == '…'`"), None)
}

/// The suggestion for `x or '…'`, which gives a default value in other languages.
pub(crate) fn or_as_default(
    analysis: &Analysis<'_>,
    left: &ExprNode,
    right: &ExprNode,
    range: &Range<usize>,
) -> Suggestion {
    let text = format!("{} | default({})", analysis.text(left), analysis.text(right));
    if matches!(left.kind, ExprKind::Name(_) | ExprKind::Attribute(..) | ExprKind::Item(..)) {
        return (msg!("to use another value if it is missing, write `{text}`"), replace_with(&text, range));
    }
    (msg!("compare each side with something, as in `x == '…' or y == '…'`"), None)
}

/// The comparison with a constant at the left end of a chain, such as `mood == 'a'` in `mood == 'a' or 'b' or 'c'`.
fn compared(node: &ExprNode) -> Option<(Operator, &ExprNode)> {
    let mut node = node;
    while let ExprKind::Or(left, _) | ExprKind::And(left, _) = &node.kind {
        node = left;
    }
    let (operator, left, right) = match &node.kind {
        ExprKind::Operation(operator, left, right) => (*operator, left, right.as_ref()),
        ExprKind::Chain(left, rest) => match rest.as_slice() {
            [(operator, right)] => (*operator, left, right),
            _ => return None,
        },
        _ => return None,
    };
    let compares = matches!(operator.family(), Family::Equality) && matches!(right.kind, ExprKind::Constant(_));
    compares.then_some((operator, left))
}

/// The reason why a condition is constant, as `: …`; empty if it is unknown.
pub(crate) fn why_constant(analysis: &Analysis<'_>, node: &ExprNode) -> Message {
    match tested_name(node) {
        Some((name, _)) => msg!(": `{name}` is declared, so it is defined even before it has a value"),
        None => match &node.kind {
            ExprKind::Operation(_, left, right) if analysis.text(left) == analysis.text(right) => {
                msg!(": both sides are the same")
            }
            ExprKind::And(..) if exclude_one_another(node, JoinedComparisons::And) => {
                msg!(": its parts exclude one another")
            }
            ExprKind::Or(..) if exclude_one_another(node, JoinedComparisons::Or) => {
                msg!(": one of its parts holds whatever the value is")
            }
            ExprKind::And(..) | ExprKind::Or(..) => msg!(": one of its parts alone decides the result"),
            _ => Message::default(),
        },
    }
}

/// The name that a part tests with `is defined` or similar, and whether the test expects it to be defined.
fn tested_name(node: &ExprNode) -> Option<(&str, bool)> {
    match &node.kind {
        ExprKind::Not(of) => tested_name(of).map(|(name, defined)| (name, !defined)),
        ExprKind::Test(test, on, _) if test == "defined" || test == "undefined" => match &on.kind {
            ExprKind::Name(name) => Some((name, test == "defined")),
            _ => None,
        },
        _ => None,
    }
}

pub fn constant(analysis: &Analysis<'_>, node: &ExprNode, truth: bool, who: &'static str) -> Suggestion {
    if let Some((name, defined)) = tested_name(node) {
        let asked = format!("{name} is {}none", if defined { "not " } else { "" });
        return (
            msg!("to check whether it has a value, write `{asked}`"),
            replace_with(&asked, &analysis.balanced(&node.range)),
        );
    }
    let help = match (&node.kind, truth) {
        (ExprKind::And(..), false) if exclude_one_another(node, JoinedComparisons::And) => {
            "no value satisfies both; did you mean `or`?"
        }
        (ExprKind::Or(..), true) if exclude_one_another(node, JoinedComparisons::Or) => "did you mean `and`?",
        (ExprKind::Operation(_, left, right), _) if analysis.text(left) == analysis.text(right) => {
            "compare it with something else"
        }
        (ExprKind::And(..) | ExprKind::Or(..), _) => {
            "remove the part that decides the result, or write the condition that must be true there"
        }
        (_, true) if who == "a condition" => "remove it, or write the condition that must be true",
        (_, false) if who == "a condition" => {
            "write the condition that must be true, or remove the part that it belongs to; if it is disabled on purpose, add a comment: `# bcc: allow(constant-condition)`"
        }
        _ => "remove this part, or write the condition that must be true",
    };
    (Message::word(help), None)
}
