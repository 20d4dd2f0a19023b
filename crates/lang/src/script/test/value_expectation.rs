//! How a value must be: the value itself, or `{ greater: 3 }`, `{ contains: 爸爸 }`, `{ is: list }` and the like.

use crate::message::message::Joint;
use crate::message::msg;
use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::Value;

use crate::message::message::Message;
use crate::script::fields::{Fields, is_null};
use crate::script::test::pattern::{TextPattern, pattern};
use crate::source::near::near_miss;
use crate::source::span::{Span, Spanned};
use crate::source::yaml::{NodeKind, YamlEntry, YamlNode};

/// What a mapping may hold to be a test of a value, and not a value.
const TESTS: [&str; 13] = [
    "equals",
    "not",
    "one_of",
    "contains",
    "not_contains",
    "matches",
    "is",
    "is_not",
    "greater",
    "at_least",
    "less",
    "at_most",
    "length",
];

/// What `is` takes.
const SORTS: [&str; 7] = ["null", "text", "number", "boolean", "list", "object", "empty"];

/// How a value must be. All of the tests must hold.
#[derive(Clone, Debug)]
pub struct ValueExpectation {
    pub span: Span,
    pub tests: Vec<ValueTest>,
}

#[derive(Clone, Debug)]
pub enum ValueTest {
    /// It is this. Numbers are compared as numbers: 5 is 5.0.
    Equals(Value),
    /// It is anything else.
    Not(Value),
    /// It is one of these.
    OneOf(Vec<Value>),
    /// These stand in the text, or are elements of the list, or keys of the object.
    Contains(Vec<Value>),
    /// None of these does.
    NotContains(Vec<Value>),
    Matches(TextPattern),
    Is(&'static str),
    /// It is not of this sort.
    IsNot(&'static str),
    /// It stands to this as one of these orders say: numbers, or texts.
    Compared(&'static str, Value),
    /// The text has so many characters, the list or object so many elements.
    Length(Box<ValueExpectation>),
}

impl ValueExpectation {
    pub fn exactly(value: Value, span: Span) -> Self {
        Self { span, tests: vec![ValueTest::Equals(value)] }
    }

    /// Whether `value` is as it must be.
    pub fn fits(&self, value: &Value) -> bool {
        self.tests.iter().all(|test| test.holds(value))
    }

    /// Whether a value that may not be there at all is as it must be. What is not there is as wanted only where one of the
    /// tests is about nothing: `~`, `is: null`, `is: empty`, or `~` in `one_of`.
    pub fn fits_there(&self, value: Option<&Value>) -> bool {
        match value {
            Some(value) => self.fits(value),
            None => self.fits(&Value::Null) && self.tests.iter().any(ValueTest::is_about_nothing),
        }
    }

    /// What is wanted, in words.
    pub fn told(&self) -> Message {
        Message::list(Joint::Comma, self.tests.iter().map(ValueTest::told))
    }

    /// The value that is wanted, where that is all that is wanted.
    pub fn exact_value(&self) -> Option<&Value> {
        match self.tests.as_slice() {
            [ValueTest::Equals(value)] => Some(value),
            _ => None,
        }
    }

    /// The text that is wanted word for word, where that is all that is wanted.
    pub fn exact_text(&self) -> Option<&str> {
        match self.tests.as_slice() {
            [ValueTest::Equals(Value::String(text))] => Some(text),
            _ => None,
        }
    }
}

impl ValueTest {
    fn is_about_nothing(&self) -> bool {
        match self {
            Self::Equals(value) => value.is_null(),
            Self::OneOf(values) => values.iter().any(Value::is_null),
            Self::Is(sort) => matches!(*sort, "null" | "empty"),
            _ => false,
        }
    }

    fn holds(&self, value: &Value) -> bool {
        match self {
            Self::Equals(other) => same(value, other),
            Self::Not(other) => !same(value, other),
            Self::OneOf(others) => others.iter().any(|other| same(value, other)),
            Self::Contains(parts) => parts.iter().all(|part| has(value, part)),
            // In nothing, a number or a boolean nothing can stand: that it does not shows nothing.
            Self::NotContains(parts) => length(value).is_some() && !parts.iter().any(|part| has(value, part)),
            Self::Matches(pattern) => match value {
                Value::String(text) => pattern.regex.is_match(text),
                Value::Null | Value::Array(_) | Value::Object(_) => false,
                other => pattern.regex.is_match(&other.to_string()),
            },
            Self::Is(sort) => is(value, sort),
            Self::IsNot(sort) => !is(value, sort),
            Self::Compared(how, other) => compare(value, other).is_some_and(|order| match *how {
                "greater" => order == Ordering::Greater,
                "at_least" => order != Ordering::Less,
                "less" => order == Ordering::Less,
                _ => order != Ordering::Greater,
            }),
            Self::Length(wanted) => length(value).is_some_and(|length| wanted.fits(&Value::from(length))),
        }
    }

    fn told(&self) -> Message {
        let all = |values: &[Value], joint: Joint| Message::list(joint, values.iter().map(shown));
        match self {
            Self::Equals(value) => shown(value),
            Self::Not(value) => msg!("anything but {}", shown(value)),
            Self::OneOf(values) => msg!("one of {}", all(values, Joint::Comma)),
            Self::Contains(parts) => msg!("containing {}", all(parts, Joint::And)),
            Self::NotContains(parts) => msg!("not containing {}", all(parts, Joint::And)),
            Self::Matches(pattern) => msg!("matching {}", pattern.source.clone()),
            Self::Is(sort) => Message::word(sort),
            Self::IsNot(sort) => msg!("not {sort}", sort = Message::word(sort)),
            Self::Compared(how, value) => match *how {
                "greater" => msg!("greater than {}", shown(value)),
                "at_least" => msg!("at least {}", shown(value)),
                "less" => msg!("less than {}", shown(value)),
                _ => msg!("at most {}", shown(value)),
            },
            Self::Length(wanted) => msg!("of length {}", wanted.told()),
        }
    }
}

/// A value as a report shows it.
pub fn shown(value: &Value) -> Message {
    match value {
        Value::Null => Message::word("null (no value)"),
        other => Message::text(other.to_string()),
    }
}

/// Whether two values are the same, numbers as numbers.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

fn has(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
        (Value::String(text), part) => text.contains(&part.to_string()),
        (Value::Array(items), part) => items.iter().any(|item| same(item, part)),
        (Value::Object(fields), Value::String(key)) => fields.contains_key(key),
        _ => false,
    }
}

fn is(value: &Value, sort: &str) -> bool {
    match sort {
        "null" => value.is_null(),
        "text" => value.is_string(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "list" => value.is_array(),
        "object" => value.is_object(),
        _ => value.is_null() || length(value) == Some(0),
    }
}

fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64()?.partial_cmp(&b.as_f64()?),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

fn length(value: &Value) -> Option<usize> {
    match value {
        Value::String(text) => Some(text.chars().count()),
        Value::Array(items) => Some(items.len()),
        Value::Object(fields) => Some(fields.len()),
        _ => None,
    }
}

/// Reads how a value must be. A mapping of which every key is a test is one; any other is the value itself.
pub(crate) fn wanted(node: &Arc<YamlNode>, fields: &Fields<'_>) -> Option<ValueExpectation> {
    let entries = match &node.kind {
        NodeKind::Mapping(entries) if !entries.is_empty() => entries,
        _ => return Some(ValueExpectation::exactly(node.to_json(), node.span)),
    };
    let test = |entry: &YamlEntry| TESTS.contains(&entry.key.value.as_str());
    if !entries.iter().any(test) {
        return Some(ValueExpectation::exactly(node.to_json(), node.span));
    }
    let mut tests = Vec::new();
    for entry in entries {
        let key = entry.key.value.as_str();
        let Some(key) = TESTS.iter().copied().find(|test| *test == key) else {
            let message = msg!("`{key}` is not a value test, although `{}` next to it is one", first_test(entries));
            let help = match near_miss(key, TESTS) {
                Some(near) => msg!("did you mean `{near}`?"),
                None => {
                    msg!("valid tests are {}; to compare with a mapping, write `{{ equals: … }}`", TESTS.join(", "))
                }
            };
            fields.error("unknown-key", message, entry.key.span, help);
            continue;
        };
        tests.extend(one(key, &entry.value, fields));
    }
    Some(ValueExpectation { span: node.span, tests })
}

fn first_test(entries: &[YamlEntry]) -> &str {
    let keys = entries.iter().map(|entry| entry.key.value.as_str());
    keys.into_iter().find(|key| TESTS.contains(key)).unwrap_or_default()
}

fn one(key: &'static str, node: &Arc<YamlNode>, fields: &Fields<'_>) -> Option<ValueTest> {
    let list = || match &node.kind {
        NodeKind::Sequence(items) => items.iter().map(|item| item.to_json()).collect(),
        _ => vec![node.to_json()],
    };
    let wrong = |expected: &'static str, help: &'static str| {
        fields.wrong(key, expected, node, help);
        None
    };
    Some(match key {
        "equals" => ValueTest::Equals(node.to_json()),
        "not" => ValueTest::Not(node.to_json()),
        "one_of" => ValueTest::OneOf(list()),
        "contains" => ValueTest::Contains(list()),
        "not_contains" => ValueTest::NotContains(list()),
        "matches" => match node.as_scalar().filter(|_| !is_null(node)) {
            Some(scalar) => {
                ValueTest::Matches(pattern(Spanned { value: scalar.text.clone(), span: node.span }, fields)?)
            }
            None => return wrong("text", "write a regular expression"),
        },
        "is" => ValueTest::Is(sort(node, fields)?),
        "is_not" => ValueTest::IsNot(sort(node, fields)?),
        "length" => ValueTest::Length(Box::new(wanted(node, fields)?)),
        _ => match node.to_json() {
            value @ (Value::Number(_) | Value::String(_)) => ValueTest::Compared(key, value),
            _ => return wrong("a number or a string", "write the value to compare with, as in `greater: 3`"),
        },
    })
}

fn sort(node: &YamlNode, fields: &Fields<'_>) -> Option<&'static str> {
    let text = node.as_scalar().map(|scalar| scalar.text.as_str()).filter(|text| !text.is_empty()).unwrap_or("null");
    let known = SORTS.iter().copied().find(|sort| *sort == text || (*sort == "null" && text == "~"));
    if known.is_none() {
        fields.not_a_choice("is", text, &SORTS, node.span, "write one of these words");
    }
    known
}
