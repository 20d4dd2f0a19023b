//! Which values an operator may bring together (docs/language.md "Texts"): `==` and `!=` take anything, the others only
//! operands that fit; null never fits. A misfit is an error, never a silent answer.

use crate::message::ToMessage;
use crate::message::message::Message;
use std::fmt;

/// What a value is, as far as operators are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueShape {
    /// Null, or a name that holds nothing.
    Null,
    Boolean,
    Number,
    /// Text, dates included: ISO 8601 dates order as text.
    String,
    List,
    Object,
    /// Something only the engine has (a function, a loop variable).
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

/// A family of operators that asks the same of its operands.
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
    /// `in`, `not in`: the right side holds things.
    Membership,
    /// `~`: texts, numbers and booleans.
    Concatenation,
}

/// Two operands that an operator cannot bring together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ToMessage)]
#[error("`{operator}` cannot be applied to {left} and {right}")]
pub struct ComparisonError {
    /// The operator as the author wrote it.
    pub operator: &'static str,
    pub left: ValueShape,
    pub right: ValueShape,
}

/// Says whether `operator` (of `family`) may take these operands.
/// Errors: [`ComparisonError`] names the operator and both shapes.
pub fn fit(family: Family, operator: &'static str, left: ValueShape, right: ValueShape) -> Result<(), ComparisonError> {
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
    fn null_fits_nothing_but_equality() {
        let families = [Family::Order, Family::Add, Family::Arithmetic, Family::Membership, Family::Concatenation];
        for shape in SHAPES {
            for family in families {
                assert!(fit(family, "op", ValueShape::Null, shape).is_err(), "null {family:?} {shape}");
                assert!(fit(family, "op", shape, ValueShape::Null).is_err(), "{shape} {family:?} null");
            }
            assert!(fit(Family::Equality, "==", ValueShape::Null, shape).is_ok());
        }
    }

    #[test]
    fn order_takes_two_numbers_or_two_texts_only() {
        for left in SHAPES {
            for right in SHAPES {
                let fits = fit(Family::Order, "<", left, right).is_ok();
                let expected = left == right && matches!(left, ValueShape::Number | ValueShape::String);
                assert_eq!(fits, expected, "{left} < {right}");
            }
        }
    }

    #[test]
    fn a_misfit_names_operator_and_operands() {
        let misfit = fit(Family::Order, ">=", ValueShape::String, ValueShape::Number).unwrap_err();
        assert_eq!(misfit.to_string(), "`>=` cannot be applied to text and a number");
    }
}
