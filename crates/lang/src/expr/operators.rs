//! The operators on two values: operand checks ([`check_operands`]) and results. Null makes every result null, except that of `==` and
//! `!=`. Overflow is always an error.

use crate::message::ToMessage;
use minijinja::value::{Value, ValueKind};

use crate::template::exact_number::{is_exact_number, plain};
use crate::template::missing::is_unknown;
use crate::template::names::MAX_VALUE_BYTES;
use crate::value::compare::{ComparisonError, Family, ValueShape, check_operands};

/// The maximum number of items in the sum of two lists.
const MAX_LIST_ITEMS: usize = 100_000;

/// An operator between two values. `and`, `or` and `not` are not included, because they do not always evaluate both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
    Add,
    Subtract,
    Multiply,
    /// `/`: always a number with a fraction.
    Divide,
    /// `//`: rounded down.
    FloorDivide,
    /// `%`: has the sign of the right side, as in Python.
    Remainder,
    Power,
    /// `~`
    Concatenate,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ToMessage)]
pub enum OperatorError {
    /// The operands are incompatible.
    #[error(transparent)]
    Mismatch(#[from] ComparisonError),
    /// `/`, `//`, `%` by zero, or zero to a negative power.
    #[error("`{0}` divides by zero")]
    DivisionByZero(&'static str),
    /// The result is not a finite number, or an integer of more than 64 bits.
    #[error("the result of `{0}` is too large")]
    TooLarge(&'static str),
    /// The text or list would exceed a limit.
    #[error("the result of `{0}` is longer than {MAX_VALUE_BYTES} bytes or {MAX_LIST_ITEMS} items")]
    TooLong(&'static str),
    /// A list that could not be read completely (a filter in it failed).
    #[error("`{0}` received a list that cannot be read")]
    Unreadable(&'static str),
}

impl Operator {
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::Unequal => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::In => "in",
            Self::NotIn => "not in",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::FloorDivide => "//",
            Self::Remainder => "%",
            Self::Power => "**",
            Self::Concatenate => "~",
        }
    }

    pub const fn family(self) -> Family {
        match self {
            Self::Equal | Self::Unequal => Family::Equality,
            Self::Less | Self::LessOrEqual | Self::Greater | Self::GreaterOrEqual => Family::Order,
            Self::In | Self::NotIn => Family::Membership,
            Self::Add => Family::Add,
            Self::Subtract | Self::Multiply | Self::Divide | Self::FloorDivide | Self::Remainder | Self::Power => {
                Family::Arithmetic
            }
            Self::Concatenate => Family::Concatenation,
        }
    }
}

/// The type of a value for the comparison rules. The substitute for an unknown name counts as null.
pub fn shape(value: &Value) -> ValueShape {
    match value.kind() {
        ValueKind::Iterable if is_unknown(value) => ValueShape::Null,
        ValueKind::Undefined | ValueKind::None => ValueShape::Null,
        ValueKind::Bool => ValueShape::Boolean,
        ValueKind::Number => ValueShape::Number,
        ValueKind::Plain if is_exact_number(value) => ValueShape::Number,
        ValueKind::String => ValueShape::String,
        ValueKind::Seq | ValueKind::Iterable => ValueShape::List,
        ValueKind::Map => ValueShape::Object,
        _ => ValueShape::Other,
    }
}

/// Whether the result of an operator is null because an operand is.
pub(crate) fn is_null_for(operator: Operator, left: &Value, right: &Value) -> bool {
    operator.family() != Family::Equality && (shape(left) == ValueShape::Null || shape(right) == ValueShape::Null)
}

/// Evaluates `left operator right` for the operators with a boolean result; `None` is null.
/// Errors: [`OperatorError`]; an arithmetic operator is a mismatch.
pub fn compare(operator: Operator, left: &Value, right: &Value) -> Result<Option<bool>, OperatorError> {
    if is_null_for(operator, left, right) {
        return Ok(None);
    }
    check_operands(operator.family(), operator.symbol(), shape(left), shape(right))?;
    Ok(Some(match operator {
        Operator::Equal => equal(left, right),
        Operator::Unequal => !equal(left, right),
        Operator::Less => order(left, right).is_some_and(std::cmp::Ordering::is_lt),
        Operator::LessOrEqual => order(left, right).is_some_and(std::cmp::Ordering::is_le),
        Operator::Greater => order(left, right).is_some_and(std::cmp::Ordering::is_gt),
        Operator::GreaterOrEqual => order(left, right).is_some_and(std::cmp::Ordering::is_ge),
        Operator::In => contains(right, left)?,
        Operator::NotIn => !contains(right, left)?,
        _ => {
            let (left, right) = (shape(left), shape(right));
            return Err(ComparisonError { operator: operator.symbol(), left, right }.into());
        }
    }))
}

/// Evaluates `left operator right`.
/// Errors: [`OperatorError`].
pub fn apply(operator: Operator, left: &Value, right: &Value) -> Result<Value, OperatorError> {
    let symbol = operator.symbol();
    if is_null_for(operator, left, right) {
        return Ok(Value::from(()));
    }
    match operator.family() {
        Family::Equality | Family::Order | Family::Membership => compare(operator, left, right).map(Value::from),
        family => {
            check_operands(family, symbol, shape(left), shape(right))?;
            match (operator, shape(left)) {
                (Operator::Concatenate, _) | (Operator::Add, ValueShape::String) => join(symbol, left, right),
                (Operator::Add, ValueShape::List) => {
                    let mut items = list_items(symbol, left)?;
                    items.append(&mut list_items(symbol, right)?);
                    if items.len() > MAX_LIST_ITEMS {
                        return Err(OperatorError::TooLong(symbol));
                    }
                    Ok(Value::from(items))
                }
                _ => calculate(operator, left, right),
            }
        }
    }
}

/// Evaluates `-value`.
/// Errors: A mismatch if it is neither a number nor null; too large if the result exceeds 64 bits.
pub(crate) fn negate(value: &Value) -> Result<Value, OperatorError> {
    if shape(value) == ValueShape::Null {
        return Ok(Value::from(()));
    }
    match number(value) {
        Some(Number::Integer(integer)) => integer_value("-", integer.checked_neg()),
        Some(Number::Float(float)) => Ok(Value::from(-float)),
        None => Err(ComparisonError { operator: "-", left: ValueShape::Number, right: shape(value) }.into()),
    }
}

/// Whether two values are equal: numbers by numeric value, texts, lists and objects by content. Values of different types are never
/// equal.
pub fn equal(left: &Value, right: &Value) -> bool {
    match (shape(left), shape(right)) {
        (ValueShape::Null, ValueShape::Null) => true,
        (ValueShape::Boolean, ValueShape::Boolean) => left.is_true() == right.is_true(),
        (ValueShape::Number, ValueShape::Number) => order(left, right).is_some_and(std::cmp::Ordering::is_eq),
        (ValueShape::String, ValueShape::String) => left.as_str() == right.as_str(),
        (ValueShape::List, ValueShape::List) => match (left.try_iter(), right.try_iter()) {
            (Ok(left), Ok(right)) => {
                let (left, right): (Vec<Value>, Vec<Value>) = (left.collect(), right.collect());
                left.len() == right.len() && left.iter().zip(&right).all(|(left, right)| equal(left, right))
            }
            _ => false,
        },
        (ValueShape::Object, ValueShape::Object) => {
            left.len() == right.len()
                && left.try_iter().is_ok_and(|mut keys| {
                    keys.all(|key| match (left.get_item(&key), right.get_item(&key)) {
                        (Ok(left), Ok(right)) => !right.is_undefined() && equal(&left, &right),
                        _ => false,
                    })
                })
        }
        _ => false,
    }
}

fn contains(container: &Value, needle: &Value) -> Result<bool, OperatorError> {
    Ok(match shape(container) {
        ValueShape::String => {
            let (text, needle) = (container.as_str().unwrap_or_default(), needle.as_str().unwrap_or_default());
            text.contains(needle)
        }
        ValueShape::Object => container.get_item(needle).is_ok_and(|item| !item.is_undefined()),
        _ => list_items("in", container)?.iter().any(|item| equal(item, needle)),
    })
}

fn list_items(symbol: &'static str, list: &Value) -> Result<Vec<Value>, OperatorError> {
    let items: Vec<Value> = list.try_iter().map_err(|_| OperatorError::Unreadable(symbol))?.collect();
    if items.iter().any(|item| item.kind() == ValueKind::Invalid) {
        return Err(OperatorError::Unreadable(symbol));
    }
    Ok(items)
}

fn join(symbol: &'static str, left: &Value, right: &Value) -> Result<Value, OperatorError> {
    let (mut text, right) = (to_text(left), to_text(right));
    if text.len().saturating_add(right.len()) > MAX_VALUE_BYTES {
        return Err(OperatorError::TooLong(symbol));
    }
    text.push_str(&right);
    Ok(Value::from(text))
}

fn to_text(value: &Value) -> String {
    match value.kind() {
        ValueKind::Bool => (if value.is_true() { "true" } else { "false" }).to_owned(),
        _ => value.to_string(),
    }
}

/// A number; integers are exact.
#[derive(Clone, Copy, Debug)]
enum Number {
    Integer(i128),
    Float(f64),
}

impl Number {
    // Only used if one operand is a float or the result has a fraction; the loss of precision is accepted.
    #[allow(clippy::cast_precision_loss)]
    fn float(self) -> f64 {
        match self {
            Self::Integer(integer) => integer as f64,
            Self::Float(float) => float,
        }
    }
}

fn number(value: &Value) -> Option<Number> {
    match value.kind() {
        ValueKind::Number => {}
        ValueKind::Plain if is_exact_number(value) => return number(&plain(value)),
        _ => return None,
    }
    if value.is_integer() {
        return i128::try_from(value.clone()).ok().map(Number::Integer);
    }
    f64::try_from(value.clone()).ok().map(Number::Float)
}

fn order(left: &Value, right: &Value) -> Option<std::cmp::Ordering> {
    if let (Some(left), Some(right)) = (left.as_str(), right.as_str()) {
        return Some(left.cmp(right));
    }
    match (number(left)?, number(right)?) {
        (Number::Integer(left), Number::Integer(right)) => Some(left.cmp(&right)),
        (left, right) => left.float().partial_cmp(&right.float()),
    }
}

fn calculate(operator: Operator, left: &Value, right: &Value) -> Result<Value, OperatorError> {
    let symbol = operator.symbol();
    let (Some(left), Some(right)) = (number(left), number(right)) else {
        return Err(OperatorError::TooLarge(symbol));
    };
    let by_zero = match right {
        Number::Integer(integer) => integer == 0,
        Number::Float(float) => float == 0.0,
    };
    if by_zero && matches!(operator, Operator::Divide | Operator::FloorDivide | Operator::Remainder) {
        return Err(OperatorError::DivisionByZero(symbol));
    }
    if let (Number::Integer(left), Number::Integer(right)) = (left, right) {
        let result = match operator {
            Operator::Add => Some(left.checked_add(right)),
            Operator::Subtract => Some(left.checked_sub(right)),
            Operator::Multiply => Some(left.checked_mul(right)),
            Operator::FloorDivide => Some(floor_divide(left, right)),
            Operator::Remainder => Some(left.checked_rem_euclid(right).and_then(|remainder| {
                // The sign of the right side, as in Python.
                if right < 0 && remainder != 0 { remainder.checked_add(right) } else { Some(remainder) }
            })),
            Operator::Power if right >= 0 => {
                Some(u32::try_from(right).ok().and_then(|exponent| left.checked_pow(exponent)))
            }
            _ => None,
        };
        if let Some(result) = result {
            return integer_value(symbol, result);
        }
    }
    let (left, right) = (left.float(), right.float());
    let result = match operator {
        Operator::Add => left + right,
        Operator::Subtract => left - right,
        Operator::Multiply => left * right,
        Operator::Divide => left / right,
        Operator::FloorDivide => (left / right).floor(),
        Operator::Remainder => left - right * (left / right).floor(),
        _ if left == 0.0 && right < 0.0 => return Err(OperatorError::DivisionByZero(symbol)),
        _ => left.powf(right),
    };
    if result.is_finite() { Ok(Value::from(result)) } else { Err(OperatorError::TooLarge(symbol)) }
}

fn floor_divide(left: i128, right: i128) -> Option<i128> {
    let quotient = left.checked_div(right)?;
    let remainder = left.checked_rem(right)?;
    if remainder != 0 && (remainder < 0) != (right < 0) { quotient.checked_sub(1) } else { Some(quotient) }
}

/// Converts an integer of 64 bits, signed or unsigned, to a value.
fn integer_value(symbol: &'static str, integer: Option<i128>) -> Result<Value, OperatorError> {
    let integer = integer.ok_or(OperatorError::TooLarge(symbol))?;
    if let Ok(small) = i64::try_from(integer) {
        return Ok(Value::from(small));
    }
    u64::try_from(integer).map(Value::from).map_err(|_| OperatorError::TooLarge(symbol))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floor_division_and_remainder_agree_with_python() {
        for (left, right, quotient, remainder) in
            [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1), (6, -3, -2, 0)]
        {
            let value = |operator| apply(operator, &Value::from(left), &Value::from(right)).unwrap().as_i64();
            assert_eq!(value(Operator::FloorDivide), Some(quotient), "{left} // {right}");
            assert_eq!(value(Operator::Remainder), Some(remainder), "{left} % {right}");
            let float = |operator| {
                f64::try_from(apply(operator, &Value::from(f64::from(left)), &Value::from(right)).unwrap()).unwrap()
            };
            assert_eq!(float(Operator::FloorDivide), f64::from(i32::try_from(quotient).unwrap()));
            assert_eq!(float(Operator::Remainder), f64::from(i32::try_from(remainder).unwrap()));
        }
    }

    #[test]
    fn large_integers_are_exact_or_an_error() {
        let max = Value::from(u64::MAX);
        assert!(equal(&apply(Operator::Subtract, &max, &Value::from(1)).unwrap(), &Value::from(u64::MAX - 1)));
        assert_eq!(apply(Operator::Add, &max, &Value::from(1)), Err(OperatorError::TooLarge("+")));
        assert_eq!(negate(&max).unwrap_err(), OperatorError::TooLarge("-"));
        assert_eq!(compare(Operator::Greater, &max, &Value::from(u64::MAX - 1)), Ok(Some(true)));
    }

    #[test]
    fn null_makes_every_result_null_except_that_of_equality() {
        let operators = ["<", "<=", ">", ">=", "in", "not in", "+", "-", "*", "/", "//", "%", "**", "~"];
        let all = [
            Operator::Less,
            Operator::LessOrEqual,
            Operator::Greater,
            Operator::GreaterOrEqual,
            Operator::In,
            Operator::NotIn,
            Operator::Add,
            Operator::Subtract,
            Operator::Multiply,
            Operator::Divide,
            Operator::FloorDivide,
            Operator::Remainder,
            Operator::Power,
            Operator::Concatenate,
        ];
        let null = Value::from(());
        for (symbol, operator) in operators.into_iter().zip(all) {
            assert_eq!(operator.symbol(), symbol);
            for other in [Value::from(()), Value::from(0), Value::from("a"), Value::from(vec![1]), Value::from(true)] {
                assert!(apply(operator, &null, &other).unwrap().is_none(), "null {symbol} {other}");
                assert!(apply(operator, &other, &null).unwrap().is_none(), "{other} {symbol} null");
            }
        }
        assert!(negate(&null).unwrap().is_none());
        assert!(apply(Operator::Equal, &null, &null).unwrap().is_true());
        assert!(apply(Operator::Unequal, &null, &Value::from(3)).unwrap().is_true());
    }

    #[test]
    fn sums_of_lists_are_limited() {
        let half = Value::from(vec![0; MAX_LIST_ITEMS / 2 + 1]);
        assert_eq!(apply(Operator::Add, &half, &half), Err(OperatorError::TooLong("+")));
    }
}
