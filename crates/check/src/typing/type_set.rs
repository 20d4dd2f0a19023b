//! What is known of a value before it is there: which shapes it may have, and which values where these are few.

use minijinja::value::Value;

use crate::collected::DeclaredAs;
use bcc_lang::expr::operators::{same, shape};
use bcc_lang::template::names::convert;
use bcc_lang::value::compare::{Family, ValueShape, fit};
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
    /// All values that it may have besides null, where they are known.
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

    /// This value.
    pub fn exactly(value: &Value) -> Self {
        let values = (!value.is_none()).then(|| vec![value.clone()]);
        Self { values, ..Self::of(&[shape(value)]) }
    }

    /// True or false; which, where it is certain.
    pub fn truth_of(truth: Option<bool>) -> Self {
        Self { values: truth.map(|truth| vec![Value::from(truth)]), ..Self::of(&[ValueShape::Boolean]) }
    }

    /// A variable that is declared so. It may be null until it is set.
    pub fn declared_as((declared, choices): &DeclaredAs) -> Self {
        let shape_of = |declared: DeclaredType| match declared {
            DeclaredType::String | DeclaredType::Date => ValueShape::String,
            DeclaredType::Number | DeclaredType::Integer => ValueShape::Number,
            DeclaredType::Boolean => ValueShape::Boolean,
            DeclaredType::List => ValueShape::List,
            DeclaredType::Object => ValueShape::Object,
        };
        // A choice may be written as another type, as `"5"` for a number: what is stored is of the declared type.
        let coerced =
            |choice: &serde_json::Value| declared.map_or(Some(choice.clone()), |declared| declared.coerce(choice));
        let values: Option<Vec<Value>> = choices
            .iter()
            .filter(|choice| !choice.is_null())
            .map(|choice| coerced(choice).map(|choice| convert(&choice)))
            .collect::<Option<Vec<_>>>()
            .filter(|values| !values.is_empty());
        let mut sort = match (declared, &values) {
            (Some(declared), _) => Self::of(&[shape_of(*declared), ValueShape::Null]),
            (None, Some(values)) => {
                let shapes: Vec<ValueShape> = values.iter().map(shape).chain([ValueShape::Null]).collect();
                Self::of(&shapes)
            }
            (None, None) => Self::unknown(),
        };
        (sort.values, sort.declared) = (values, *declared);
        sort
    }

    pub fn may_be(&self, shape: ValueShape) -> bool {
        self.shapes & bit(shape) != 0
    }

    /// The shapes that it may have besides null; null where it can be nothing else.
    pub fn shapes(&self) -> impl Iterator<Item = ValueShape> + use<'_> {
        let only_null = self.shapes == bit(ValueShape::Null);
        ALL.into_iter().filter(move |shape| self.may_be(*shape) && (only_null || *shape != ValueShape::Null))
    }

    /// Whether it is null and nothing else.
    pub fn is_null(&self) -> bool {
        self.shapes == bit(ValueShape::Null)
    }

    /// Whether, when it is not null, it is surely none of these shapes.
    pub fn is_none_of(&self, wanted: &[ValueShape]) -> bool {
        !self.is_null() && !self.shapes().any(|shape| shape == ValueShape::Other || wanted.contains(&shape))
    }

    /// Its one shape besides null.
    pub fn only(&self) -> Option<ValueShape> {
        let mut shapes = self.shapes();
        let first = shapes.next();
        first.filter(|_| shapes.next().is_none())
    }

    /// The values that it may have besides null, where they are known.
    pub fn values(&self) -> Option<&[Value]> {
        self.values.as_deref()
    }

    /// Whether it holds as a condition: null counts as no.
    pub fn truth(&self) -> Option<bool> {
        if self.is_null() {
            return Some(false);
        }
        match (self.only(), self.values()) {
            (Some(ValueShape::Boolean), Some([only])) if !self.may_be(ValueShape::Null) => Some(only.is_true()),
            _ => None,
        }
    }

    pub fn or(&self, other: &Self) -> Self {
        Self { shapes: self.shapes | other.shapes, values: None, declared: None }
    }

    /// The same without null, as `| default(…)` leaves it.
    pub fn without_null(&self) -> Self {
        Self { shapes: self.shapes & !bit(ValueShape::Null), values: None, declared: None }
    }

    /// Whether no two values of these sorts could be brought together by an operator.
    pub fn never_fits(&self, family: Family, other: &Self) -> bool {
        let fits = |left: ValueShape, right: ValueShape| {
            left == ValueShape::Other || right == ValueShape::Other || fit(family, "", left, right).is_ok()
        };
        !self.shapes().any(|left| other.shapes().any(|right| fits(left, right)))
    }

    /// Whether no value of the one is ever equal to one of the other, both being null left aside.
    pub fn never_equals(&self, other: &Self) -> bool {
        if self.is_null() || other.is_null() {
            return false;
        }
        if !self.shapes().any(|shape| other.may_be(shape)) {
            return true;
        }
        let equal = |left: &Value| other.values().is_none_or(|values| values.iter().any(|right| same(left, right)));
        let outside = |of: &Self, values: &[Value]| match of.declared {
            Some(DeclaredType::Integer) => {
                values.iter().all(|value| f64::try_from(value.clone()).is_ok_and(|n| n.fract() != 0.0))
            }
            Some(DeclaredType::Date) => values.iter().all(|value| value.as_str().is_some_and(|text| !is_date(text))),
            _ => false,
        };
        match (self.values(), other.values()) {
            (Some(values), Some(_)) => !values.iter().any(equal),
            (Some(values), None) => outside(other, values),
            (None, Some(values)) => outside(self, values),
            (None, None) => false,
        }
    }
}
