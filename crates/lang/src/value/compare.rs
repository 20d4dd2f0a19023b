//! The operand types that an operator accepts (docs/language.md "Texts"): `==` and `!=` accept any values, the others only
//! compatible operands. A mismatch is an error, never a silent result. Null is decided before: it makes the result null.

use crate::message::ToMessage;
use crate::message::message::Message;
use std::fmt;

/// The type of a value for operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueShape {
    /// Null, or a name without a value.
    Null,
    Boolean,
    Number,
    /// Text, including dates: ISO 8601 dates sort as text.
    String,
    List,
    Object,
    /// A value that only the engine creates (a function, a loop variable).
    Other,
}

impl ToMessage for ValueShape {
    fn to_message(&self) -> Message {
        Message::word(match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::String => "text",
            Self::List => "a list",
            Self::Object => "an object",
            Self::Other => "a value that cannot be compared",
        })
    }
}

impl fmt::Display for ValueShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_message().fmt(f)
    }
}

/// Operators with the same requirements for their operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// `==`, `!=`.
    Equality,
    /// `<`, `<=`, `>`, `>=`.
    Order,
    /// `+`: two numbers, two texts or two lists.
    Add,
    /// `-`, `*`, `/`, `//`, `%`, `**`.
    Arithmetic,
    /// `in`, `not in`: the right side is a container.
    Membership,
    /// `~`: texts, numbers and booleans.
    Concatenation,
}

/// Two operands that an operator does not accept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ToMessage)]
#[error("`{operator}` cannot be applied to {left} and {right}")]
pub struct ComparisonError {
    /// The operator as the author wrote it.
    pub operator: &'static str,
    pub left: ValueShape,
    pub right: ValueShape,
}

/// Checks that `operator` (of `family`) accepts these operands.
/// Errors: [`ComparisonError`] with the operator and both types.
pub fn check_operands(
    family: Family,
    operator: &'static str,
    left: ValueShape,
    right: ValueShape,
) -> Result<(), ComparisonError> {
    use ValueShape::{Boolean, List, Number, Object, String};
    let fits = match family {
        Family::Equality => true,
        Family::Order => matches!((left, right), (Number, Number) | (String, String)),
        Family::Add => matches!((left, right), (Number, Number) | (String, String) | (List, List)),
        Family::Arithmetic => matches!((left, right), (Number, Number)),
        Family::Membership => {
            matches!((left, right), (String, String | Object) | (Boolean | Number | String | List | Object, List))
        }
        Family::Concatenation => {
            matches!(left, String | Number | Boolean) && matches!(right, String | Number | Boolean)
        }
    };
    if fits { Ok(()) } else { Err(ComparisonError { operator, left, right }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPES: [ValueShape; 6] = [
        ValueShape::Null,
        ValueShape::Boolean,
        ValueShape::Number,
        ValueShape::String,
        ValueShape::List,
        ValueShape::Object,
    ];

    #[test]
    fn null_is_accepted_only_by_equality() {
        let families = [Family::Order, Family::Add, Family::Arithmetic, Family::Membership, Family::Concatenation];
        for shape in SHAPES {
            for family in families {
                assert!(check_operands(family, "op", ValueShape::Null, shape).is_err(), "null {family:?} {shape}");
                assert!(check_operands(family, "op", shape, ValueShape::Null).is_err(), "{shape} {family:?} null");
            }
            assert!(check_operands(Family::Equality, "==", ValueShape::Null, shape).is_ok());
        }
    }

    #[test]
    fn order_accepts_only_two_numbers_or_two_texts() {
        for left in SHAPES {
            for right in SHAPES {
                let fits = check_operands(Family::Order, "<", left, right).is_ok();
                let expected = left == right && matches!(left, ValueShape::Number | ValueShape::String);
                assert_eq!(fits, expected, "{left} < {right}");
            }
        }
    }

    #[test]
    fn a_mismatch_names_operator_and_operands() {
        let error = check_operands(Family::Order, ">=", ValueShape::String, ValueShape::Number).unwrap_err();
        assert_eq!(error.to_string(), "`>=` cannot be applied to text and a number");
    }
}
