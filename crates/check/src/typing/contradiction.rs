//! Finds comparisons of one name with constants that together are never or always true: `mood == 'a' and mood == 'b'`,
//! `age < 18 and age > 65`, `mood != 'a' or mood != 'b'`.

use std::cmp::Ordering;

use minijinja::value::Value;

use bcc_lang::expr::operators::{Operator, compare, equal};
use bcc_lang::expr::tree::{ExprKind, ExprNode};

/// The operator that joins conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinedComparisons {
    And,
    Or,
}

impl JoinedComparisons {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::And => "`and`",
            Self::Or => "`or`",
        }
    }
}

/// The maximum number of comparisons of a chain that are checked: the check compares each pair.
const MAX_PARTS: usize = 40;

/// `name operator constant`.
struct Comparison<'a> {
    name: &'a str,
    operator: Operator,
    constant: &'a Value,
}

/// Whether two parts of an `and` chain are never true together, or one of two parts of an `or` chain is always true. For null, only `!=`
/// is true.
pub(crate) fn exclude_one_another(node: &ExprNode, how: JoinedComparisons) -> bool {
    let mut parts = Vec::new();
    comparisons(node, how, &mut parts);
    let compared: Vec<Comparison<'_>> = parts
        .into_iter()
        .take(MAX_PARTS)
        .map(|part| match how {
            JoinedComparisons::And => part,
            // One of two comparisons is always true if their opposites are never true together.
            JoinedComparisons::Or => Comparison { operator: opposite(part.operator), ..part },
        })
        .collect();
    compared.iter().enumerate().any(|(index, one)| {
        compared.iter().skip(index + 1).any(|other| {
            let decides_null =
                how == JoinedComparisons::And || [one.operator, other.operator].contains(&opposite(Operator::Unequal));
            one.name == other.name && decides_null && exclude(one, other)
        })
    })
}

fn comparisons<'a>(node: &'a ExprNode, how: JoinedComparisons, parts: &mut Vec<Comparison<'a>>) {
    match (&node.kind, how) {
        (ExprKind::And(left, right), JoinedComparisons::And) | (ExprKind::Or(left, right), JoinedComparisons::Or) => {
            comparisons(left, how, parts);
            comparisons(right, how, parts);
        }
        (ExprKind::Operation(operator, left, right), _) => parts.extend(comparison(*operator, left, right)),
        (ExprKind::Chain(left, rest), _) => {
            if let [(operator, right)] = rest.as_slice() {
                parts.extend(comparison(*operator, left, right));
            }
        }
        _ => {}
    }
}

fn comparison<'a>(operator: Operator, left: &'a ExprNode, right: &'a ExprNode) -> Option<Comparison<'a>> {
    match (&left.kind, &right.kind) {
        (ExprKind::Name(name), ExprKind::Constant(constant)) => comparable(name, operator, constant),
        (ExprKind::Constant(constant), ExprKind::Name(name)) => comparable(name, mirrored(operator), constant),
        _ => None,
    }
}

fn comparable<'a>(name: &'a str, operator: Operator, constant: &'a Value) -> Option<Comparison<'a>> {
    use Operator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, Unequal};
    let is_comparison = matches!(operator, Equal | Unequal | Less | LessOrEqual | Greater | GreaterOrEqual);
    (is_comparison && !constant.is_none()).then_some(Comparison { name, operator, constant })
}

const fn mirrored(operator: Operator) -> Operator {
    match operator {
        Operator::Less => Operator::Greater,
        Operator::LessOrEqual => Operator::GreaterOrEqual,
        Operator::Greater => Operator::Less,
        Operator::GreaterOrEqual => Operator::LessOrEqual,
        other => other,
    }
}

const fn opposite(operator: Operator) -> Operator {
    match operator {
        Operator::Equal => Operator::Unequal,
        Operator::Unequal => Operator::Equal,
        Operator::Less => Operator::GreaterOrEqual,
        Operator::LessOrEqual => Operator::Greater,
        Operator::Greater => Operator::LessOrEqual,
        Operator::GreaterOrEqual => Operator::Less,
        other => other,
    }
}

/// Whether no value satisfies both.
fn exclude(one: &Comparison<'_>, other: &Comparison<'_>) -> bool {
    use Operator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, Unequal};
    let order = |left: &Value, right: &Value| {
        if equal(left, right) {
            return Some(Ordering::Equal);
        }
        compare(Less, left, right).ok().flatten().map(|less| if less { Ordering::Less } else { Ordering::Greater })
    };
    match (one.operator, other.operator) {
        (Equal, Equal) => !equal(one.constant, other.constant),
        (Equal, Unequal) | (Unequal, Equal) => equal(one.constant, other.constant),
        (Equal, _) => compare(other.operator, one.constant, other.constant) == Ok(Some(false)),
        (_, Equal) => compare(one.operator, other.constant, one.constant) == Ok(Some(false)),
        (Less | LessOrEqual, Greater | GreaterOrEqual) => match order(one.constant, other.constant) {
            Some(Ordering::Less) => true,
            Some(Ordering::Equal) => one.operator == Less || other.operator == Greater,
            _ => false,
        },
        (Greater | GreaterOrEqual, Less | LessOrEqual) => exclude(other, one),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bcc_lang::expr::parse::Expr;

    #[test]
    fn contradictions_and_tautologies_are_found() {
        let table = [
            ("m == 'a' and m == 'b'", JoinedComparisons::And, true),
            ("m == 'a' and x and 'b' == m", JoinedComparisons::And, true),
            ("m == 'a' and m != 'a'", JoinedComparisons::And, true),
            ("m == 'a' and n == 'b'", JoinedComparisons::And, false),
            ("a < 18 and a > 65", JoinedComparisons::And, true),
            ("18 > a and a >= 18", JoinedComparisons::And, true),
            ("a <= 18 and a >= 18", JoinedComparisons::And, false),
            ("a > 18 and a < 65", JoinedComparisons::And, false),
            ("a == 5 and a > 7", JoinedComparisons::And, true),
            ("m != 'a' or m != 'b'", JoinedComparisons::Or, true),
            ("m == 'a' or m == 'b'", JoinedComparisons::Or, false),
            ("m == 'a' or m != 'a'", JoinedComparisons::Or, true),
            ("a > 18 or a < 65", JoinedComparisons::Or, false),
            ("a < 18 or a > 65", JoinedComparisons::Or, false),
            ("a < 18 or a >= 18", JoinedComparisons::Or, false),
            ("a != 18 or a > 5", JoinedComparisons::Or, true),
            ("a < 18 and a > 'x'", JoinedComparisons::And, false),
        ];
        for (source, how, expected) in table {
            assert_eq!(exclude_one_another(Expr::parse(source).unwrap().root(), how), expected, "{source}");
        }
    }
}
