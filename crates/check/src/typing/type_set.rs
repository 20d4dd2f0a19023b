//! The set of shapes that a value may have, and its possible values if they are known.

use minijinja::value::Value;

use crate::collected::DeclaredAs;
use bcc_lang::expr::operators::{equal, shape};
use bcc_lang::template::names::convert;
use bcc_lang::value::compare::{Family, ValueShape, check_operands};
use bcc_lang::value::declared::{DeclaredType, is_date};

const ALL: [ValueShape; 7] = [
    ValueShape::Null,
    ValueShape::Boolean,
    ValueShape::Number,
    ValueShape::String,
    ValueShape::List,
    ValueShape::Object,
    ValueShape::Other,
];

#[derive(Clone, Debug)]
pub struct TypeSet {
    shapes: u8,
    /// All values that it may have besides null, if they are known.
    values: Option<Vec<Value>>,
    pub declared: Option<DeclaredType>,
}

const fn bit(shape: ValueShape) -> u8 {
    1 << shape as u8
}

impl TypeSet {
    pub fn unknown() -> Self {
        Self::of(&ALL)
    }

    /// Any value of these shapes.
    pub fn of(shapes: &[ValueShape]) -> Self {
        Self { shapes: shapes.iter().fold(0, |all, shape| all | bit(*shape)), values: None, declared: None }
    }

    /// Exactly this value.
    pub fn exactly(value: &Value) -> Self {
        let values = (!value.is_none()).then(|| vec![value.clone()]);
        Self { values, ..Self::of(&[shape(value)]) }
    }

    /// A boolean; `truth` is its value if it is certain.
    pub(crate) fn truth_of(truth: Option<bool>) -> Self {
        Self { values: truth.map(|truth| vec![Value::from(truth)]), ..Self::of(&[ValueShape::Boolean]) }
    }

    /// A truth value; `truth` is its value if it is certain. With `nullable`, it may also be null.
    pub(crate) fn truth_or_null(truth: Option<bool>, nullable: bool) -> Self {
        let certain = Self::truth_of(truth);
        if nullable { certain.nullable() } else { certain }
    }

    /// The same set with null.
    pub(crate) fn nullable(self) -> Self {
        Self { shapes: self.shapes | bit(ValueShape::Null), ..self }
    }

    /// The opposite of a condition.
    pub(crate) fn negated(&self) -> Self {
        if self.is_null() {
            return self.clone();
        }
        let truth = match (self.only(), self.values()) {
            (Some(ValueShape::Boolean), Some([only])) => Some(!only.is_true()),
            _ => None,
        };
        Self::truth_or_null(truth, self.may_be(ValueShape::Null))
    }

    /// A variable with this declaration. It may be null until it is set.
    pub(crate) fn declared_as((declared, choices): &DeclaredAs) -> Self {
        let shape_of = |declared: DeclaredType| match declared {
            DeclaredType::String | DeclaredType::Date => ValueShape::String,
            DeclaredType::Number | DeclaredType::Integer => ValueShape::Number,
            DeclaredType::Boolean => ValueShape::Boolean,
            DeclaredType::List => ValueShape::List,
            DeclaredType::Object => ValueShape::Object,
        };
        // A choice may be written as another type, such as `"5"` for a number; the stored value has the declared type.
        let coerce =
            |choice: &serde_json::Value| declared.map_or(Some(choice.clone()), |declared| declared.coerce(choice));
        let values: Option<Vec<Value>> = choices
            .iter()
            .filter(|choice| !choice.is_null())
            .map(|choice| coerce(choice).map(|choice| convert(&choice)))
            .collect::<Option<Vec<_>>>()
            .filter(|values| !values.is_empty());
        let mut types = match (declared, &values) {
            (Some(declared), _) => Self::of(&[shape_of(*declared), ValueShape::Null]),
            (None, Some(values)) => {
                let shapes: Vec<ValueShape> = values.iter().map(shape).chain([ValueShape::Null]).collect();
                Self::of(&shapes)
            }
            (None, None) => Self::unknown(),
        };
        (types.values, types.declared) = (values, *declared);
        types
    }

    pub(crate) fn may_be(&self, shape: ValueShape) -> bool {
        self.shapes & bit(shape) != 0
    }

    /// The shapes that it may have besides null; only null if it can be nothing else.
    pub fn shapes(&self) -> impl Iterator<Item = ValueShape> + use<'_> {
        let only_null = self.shapes == bit(ValueShape::Null);
        ALL.into_iter().filter(move |shape| self.may_be(*shape) && (only_null || *shape != ValueShape::Null))
    }

    /// Whether it can only be null.
    pub fn is_null(&self) -> bool {
        self.shapes == bit(ValueShape::Null)
    }

    /// Whether it certainly has none of these shapes if it is not null.
    pub(crate) fn is_none_of(&self, wanted: &[ValueShape]) -> bool {
        !self.is_null() && !self.shapes().any(|shape| shape == ValueShape::Other || wanted.contains(&shape))
    }

    /// Its only shape besides null, if there is exactly one.
    pub fn only(&self) -> Option<ValueShape> {
        let mut shapes = self.shapes();
        let first = shapes.next();
        first.filter(|_| shapes.next().is_none())
    }

    /// The values that it may have besides null, if they are known.
    pub fn values(&self) -> Option<&[Value]> {
        self.values.as_deref()
    }

    /// Its truth as a condition, if it is certain; null counts as false.
    pub fn truth(&self) -> Option<bool> {
        if self.is_null() {
            return Some(false);
        }
        match (self.only(), self.values()) {
            // False or null is never true; true or null may be either.
            (Some(ValueShape::Boolean), Some([only])) if !only.is_true() || !self.may_be(ValueShape::Null) => {
                Some(only.is_true())
            }
            _ => None,
        }
    }

    pub fn or(&self, other: &Self) -> Self {
        Self { shapes: self.shapes | other.shapes, values: None, declared: None }
    }

    /// The same set without null, as after `| default(…)`.
    pub(crate) fn without_null(&self) -> Self {
        Self { shapes: self.shapes & !bit(ValueShape::Null), values: None, declared: None }
    }

    /// Whether an operator of this family can combine no two values of these sets.
    pub(crate) fn never_fits(&self, family: Family, other: &Self) -> bool {
        let fits = |left: ValueShape, right: ValueShape| {
            left == ValueShape::Other || right == ValueShape::Other || check_operands(family, "", left, right).is_ok()
        };
        !self.shapes().any(|left| other.shapes().any(|right| fits(left, right)))
    }

    /// Whether no value of this set equals a value of the other, except that both may be null.
    pub(crate) fn never_equals(&self, other: &Self) -> bool {
        if self.is_null() || other.is_null() {
            return false;
        }
        if !self.shapes().any(|shape| other.may_be(shape)) {
            return true;
        }
        let equal = |left: &Value| other.values().is_none_or(|values| values.iter().any(|right| equal(left, right)));
        let out_of_range = |set: &Self, values: &[Value]| match set.declared {
            Some(DeclaredType::Integer) => {
                values.iter().all(|value| f64::try_from(value.clone()).is_ok_and(|n| n.fract() != 0.0))
            }
            Some(DeclaredType::Date) => values.iter().all(|value| value.as_str().is_some_and(|text| !is_date(text))),
            _ => false,
        };
        match (self.values(), other.values()) {
            (Some(values), Some(_)) => !values.iter().any(equal),
            (Some(values), None) => out_of_range(other, values),
            (None, Some(values)) => out_of_range(self, values),
            (None, None) => false,
        }
    }
}
