//! Comparisons of one name with constants that together leave nothing, or everything: `mood == 'a' and mood == 'b'`,
//! `age < 18 and age > 65`, `mood != 'a' or mood != 'b'`.

use std::cmp::Ordering;

use minijinja::value::Value;

use bcc_lang::expr::operators::{Operator, compare, same};
use bcc_lang::expr::tree::{Kind, Node};

/// How conditions are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    And,
    Or,
}

impl Joined {
    pub const fn word(self) -> &'static str {
        match self {
            Self::And => "`and`",
            Self::Or => "`or`",
        }
    }
}

/// The longest chain that is looked at: every two of its comparisons are held against one another.
const MOST_PARTS: usize = 40;

/// `name operator constant`.
struct Comparison<'a> {
    name: &'a str,
    operator: Operator,
    constant: &'a Value,
}

/// Whether two parts of a chain of `and` can never hold together, or of two parts of a chain of `or` one always holds (null
/// left aside, with which most comparisons are an error).
pub fn clash(node: &Node, how: Joined) -> bool {
    let mut parts = Vec::new();
    comparisons(node, how, &mut parts);
    let compared: Vec<Comparison<'_>> = parts
        .into_iter()
        .take(MOST_PARTS)
        .map(|part| match how {
            Joined::And => part,
            // One of two always holds where their opposites never hold together.
            Joined::Or => Comparison { operator: opposite(part.operator), ..part },
        })
        .collect();
    compared
        .iter()
        .enumerate()
        .any(|(index, one)| compared.iter().skip(index + 1).any(|other| one.name == other.name && exclude(one, other)))
}

fn comparisons<'a>(node: &'a Node, how: Joined, parts: &mut Vec<Comparison<'a>>) {
    match (&node.kind, how) {
        (Kind::And(left, right), Joined::And) | (Kind::Or(left, right), Joined::Or) => {
            comparisons(left, how, parts);
            comparisons(right, how, parts);
        }
        (Kind::Operation(operator, left, right), _) => parts.extend(comparison(*operator, left, right)),
        (Kind::Chain(left, rest), _) => {
            if let [(operator, right)] = rest.as_slice() {
                parts.extend(comparison(*operator, left, right));
            }
        }
        _ => {}
    }
}

fn comparison<'a>(operator: Operator, left: &'a Node, right: &'a Node) -> Option<Comparison<'a>> {
    match (&left.kind, &right.kind) {
        (Kind::Name(name), Kind::Constant(constant)) => known(name, operator, constant),
        (Kind::Constant(constant), Kind::Name(name)) => known(name, turned(operator), constant),
        _ => None,
    }
}

fn known<'a>(name: &'a str, operator: Operator, constant: &'a Value) -> Option<Comparison<'a>> {
    use Operator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, Unequal};
    let says = matches!(operator, Equal | Unequal | Less | LessOrEqual | Greater | GreaterOrEqual);
    (says && !constant.is_none()).then_some(Comparison { name, operator, constant })
}

const fn turned(operator: Operator) -> Operator {
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
        if same(left, right) {
            return Some(Ordering::Equal);
        }
        compare(Less, left, right).ok().map(|less| if less { Ordering::Less } else { Ordering::Greater })
    };
    match (one.operator, other.operator) {
        (Equal, Equal) => !same(one.constant, other.constant),
        (Equal, Unequal) | (Unequal, Equal) => same(one.constant, other.constant),
        (Equal, _) => compare(other.operator, one.constant, other.constant).is_ok_and(|holds| !holds),
        (_, Equal) => compare(one.operator, other.constant, one.constant).is_ok_and(|holds| !holds),
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
    fn what_leaves_nothing_or_everything_is_recognised() {
        let table = [
            ("m == 'a' and m == 'b'", Joined::And, true),
            ("m == 'a' and x and 'b' == m", Joined::And, true),
            ("m == 'a' and m != 'a'", Joined::And, true),
            ("m == 'a' and n == 'b'", Joined::And, false),
            ("a < 18 and a > 65", Joined::And, true),
            ("18 > a and a >= 18", Joined::And, true),
            ("a <= 18 and a >= 18", Joined::And, false),
            ("a > 18 and a < 65", Joined::And, false),
            ("a == 5 and a > 7", Joined::And, true),
            ("m != 'a' or m != 'b'", Joined::Or, true),
            ("m == 'a' or m == 'b'", Joined::Or, false),
            ("m == 'a' or m != 'a'", Joined::Or, true),
            ("a > 18 or a < 65", Joined::Or, true),
            ("a < 18 or a > 65", Joined::Or, false),
            ("a < 18 or a >= 18", Joined::Or, true),
            ("a < 18 and a > 'x'", Joined::And, false),
        ];
        for (source, how, expected) in table {
            assert_eq!(clash(Expr::parse(source).unwrap().root(), how), expected, "{source}");
        }
    }
}
