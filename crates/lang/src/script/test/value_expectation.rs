//! Expectations of values: the value itself, or tests such as `{ greater: 3 }`, `{ contains: 爸爸 }`, `{ is: list }`.

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
use crate::value::exact::ExactValue;

/// The keys of a mapping that is a test of a value, and not itself a value.
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

/// The kinds that `is` accepts.
const KINDS: [&str; 7] = ["null", "text", "number", "boolean", "list", "object", "empty"];

/// The expectation of a value. All tests must hold.
#[derive(Clone, Debug)]
pub struct ValueExpectation {
    pub span: Span,
    pub tests: Vec<ValueTest>,
}

#[derive(Clone, Debug)]
pub enum ValueTest {
    /// The value equals this. Numbers are compared as numbers: 5 is 5.0.
    Equals(Value),
    /// The value is anything else.
    Not(Value),
    /// The value is one of these.
    OneOf(Vec<Value>),
    /// All of these are parts of the text, elements of the list, or keys of the object.
    Contains(Vec<Value>),
    /// None of these is.
    NotContains(Vec<Value>),
    Matches(TextPattern),
    Is(&'static str),
    /// The value is not of this kind.
    IsNot(&'static str),
    /// The value compares to this one as the operator says: numbers, or texts.
    Compared(&'static str, Value),
    /// The number of characters of the text, or of elements of the list or object.
    Length(Box<ValueExpectation>),
}

impl ValueExpectation {
    pub fn exactly(value: Value, span: Span) -> Self {
        Self { span, tests: vec![ValueTest::Equals(value)] }
    }

    /// Whether `value` matches.
    pub fn matches(&self, value: &Value) -> bool {
        self.tests.iter().all(|test| test.holds(value))
    }

    /// Like [`Self::matches`], for a value that may be absent. An absent value matches only if one of the tests is about null:
    /// `~`, `is: null`, `is: empty`, or `~` in `one_of`.
    pub fn matches_optional(&self, value: Option<&Value>) -> bool {
        match value {
            Some(value) => self.matches(value),
            None => self.matches(&Value::Null) && self.tests.iter().any(ValueTest::matches_null),
        }
    }

    /// Describes the expectation in a message.
    pub fn describe(&self) -> Message {
        Message::list(Joint::Comma, self.tests.iter().map(ValueTest::describe))
    }

    /// The exact value that is expected, if nothing else is.
    pub(crate) fn exact_value(&self) -> Option<&Value> {
        match self.tests.as_slice() {
            [ValueTest::Equals(value)] => Some(value),
            _ => None,
        }
    }

    /// The exact text that is expected, if nothing else is.
    pub fn exact_text(&self) -> Option<&str> {
        match self.tests.as_slice() {
            [ValueTest::Equals(Value::String(text))] => Some(text),
            _ => None,
        }
    }
}

impl ValueTest {
    fn matches_null(&self) -> bool {
        match self {
            Self::Equals(value) => value.is_null(),
            Self::OneOf(values) => values.iter().any(Value::is_null),
            Self::Is(kind) => matches!(*kind, "null" | "empty"),
            _ => false,
        }
    }

    fn holds(&self, value: &Value) -> bool {
        match self {
            Self::Equals(other) => same(value, other),
            Self::Not(other) => !same(value, other),
            Self::OneOf(others) => others.iter().any(|other| same(value, other)),
            Self::Contains(parts) => parts.iter().all(|part| has(value, part)),
            // Null, a number or a boolean contains nothing, so this test does not hold for them.
            Self::NotContains(parts) => length(value).is_some() && !parts.iter().any(|part| has(value, part)),
            Self::Matches(pattern) => match value {
                Value::String(text) => pattern.regex.is_match(text),
                Value::Null | Value::Array(_) | Value::Object(_) => false,
                other => pattern.regex.is_match(&other.to_string()),
            },
            Self::Is(kind) => is(value, kind),
            Self::IsNot(kind) => !is(value, kind),
            Self::Compared(operator, other) => compare(value, other).is_some_and(|order| match *operator {
                "greater" => order == Ordering::Greater,
                "at_least" => order != Ordering::Less,
                "less" => order == Ordering::Less,
                _ => order != Ordering::Greater,
            }),
            Self::Length(expected) => length(value).is_some_and(|length| expected.matches(&Value::from(length))),
        }
    }

    fn describe(&self) -> Message {
        let all = |values: &[Value], joint: Joint| Message::list(joint, values.iter().map(display_value));
        match self {
            Self::Equals(value) => display_value(value),
            Self::Not(value) => msg!("anything but {}", display_value(value)),
            Self::OneOf(values) => msg!("one of {}", all(values, Joint::Comma)),
            Self::Contains(parts) => msg!("containing {}", all(parts, Joint::And)),
            Self::NotContains(parts) => msg!("not containing {}", all(parts, Joint::And)),
            Self::Matches(pattern) => msg!("matching {}", pattern.source.clone()),
            Self::Is(kind) => Message::word(kind),
            Self::IsNot(kind) => msg!("not {sort}", sort = Message::word(kind)),
            Self::Compared(operator, value) => match *operator {
                "greater" => msg!("greater than {}", display_value(value)),
                "at_least" => msg!("at least {}", display_value(value)),
                "less" => msg!("less than {}", display_value(value)),
                _ => msg!("at most {}", display_value(value)),
            },
            Self::Length(expected) => msg!("of length {}", expected.describe()),
        }
    }
}

/// A value as YAML can have it: there, an integer beyond 64 bits is a text.
pub fn as_in_yaml(value: &ExactValue) -> Value {
    match &**value {
        Value::Array(_) => value.items().map(|item| as_in_yaml(&item)).collect(),
        Value::Object(_) => {
            Value::Object(value.fields().map(|(key, field)| (key.to_owned(), as_in_yaml(&field))).collect())
        }
        other => {
            let is_integer = |text: &&str| text.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
            value.number_text().filter(is_integer).map_or_else(|| other.clone(), Value::from)
        }
    }
}

/// A value as reports show it.
pub fn display_value(value: &Value) -> Message {
    match value {
        Value::Null => Message::word("null (no value)"),
        other => Message::text(other.to_string()),
    }
}

/// Whether two values are equal; numbers are compared as numbers.
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

fn is(value: &Value, kind: &str) -> bool {
    match kind {
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

/// Reads the expectation of a value. A mapping with a key that is a test contains tests; any other is the value itself.
pub(crate) fn wanted(node: &Arc<YamlNode>, fields: &Fields<'_>) -> Option<ValueExpectation> {
    let entries = match &node.kind {
        NodeKind::Mapping(entries) if !entries.is_empty() => entries,
        _ => return Some(ValueExpectation::exactly(node.to_json(), node.span)),
    };
    let is_test = |entry: &YamlEntry| TESTS.contains(&entry.key.value.as_str());
    if !entries.iter().any(is_test) {
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
        tests.extend(read_test(key, &entry.value, fields));
    }
    Some(ValueExpectation { span: node.span, tests })
}

fn first_test(entries: &[YamlEntry]) -> &str {
    let keys = entries.iter().map(|entry| entry.key.value.as_str());
    keys.into_iter().find(|key| TESTS.contains(key)).unwrap_or_default()
}

fn read_test(key: &'static str, node: &Arc<YamlNode>, fields: &Fields<'_>) -> Option<ValueTest> {
    let list = || match &node.kind {
        NodeKind::Sequence(items) => items.iter().map(|item| item.to_json()).collect(),
        _ => vec![node.to_json()],
    };
    let wrong_type = |expected: &'static str, help: &'static str| {
        fields.report_wrong_type(key, expected, node, help);
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
            None => return wrong_type("text", "write a regular expression"),
        },
        "is" => ValueTest::Is(kind(node, fields)?),
        "is_not" => ValueTest::IsNot(kind(node, fields)?),
        "length" => ValueTest::Length(Box::new(wanted(node, fields)?)),
        _ => match node.to_json() {
            value @ (Value::Number(_) | Value::String(_)) => ValueTest::Compared(key, value),
            _ => return wrong_type("a number or a string", "write the value to compare with, as in `greater: 3`"),
        },
    })
}

fn kind(node: &YamlNode, fields: &Fields<'_>) -> Option<&'static str> {
    let text = node.as_scalar().map(|scalar| scalar.text.as_str()).filter(|text| !text.is_empty()).unwrap_or("null");
    let known = KINDS.iter().copied().find(|kind| *kind == text || (*kind == "null" && text == "~"));
    if known.is_none() {
        fields.not_a_choice("is", text, &KINDS, node.span, "write one of these words");
    }
    known
}
