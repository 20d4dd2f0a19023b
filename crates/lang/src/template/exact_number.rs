//! Numbers in texts, templates and expressions that are shown with the digits with which they were written.
//!
//! minijinja has no hook for how a number is shown, so such a number is an object of its own. `expr/operators.rs` computes with it as
//! with any number; filters ([`for_filter`]) and tests of minijinja that need a number get it [`plain`].

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use minijinja::Error;
use minijinja::filters;
use minijinja::value::{DynObject, Kwargs, Object, ObjectRepr, Value, ValueKind};
use serde::ser::{Error as _, SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

use crate::template::missing::is_unknown;
use crate::value::digits::Digits;
use crate::value::exact::{ExactValue, raw_number};

/// The maximum depth at which numbers with digits are searched for. Values from a script or a model are less deep.
const MAX_DEPTH: usize = 200;

/// The filters that compare the elements of a list. minijinja compares objects only with each other.
const COMPARING_FILTERS: [&str; 6] = ["sort", "unique", "min", "max", "groupby", "dictsort"];

/// The filters of one number.
const NUMBER_FILTERS: [&str; 5] = ["abs", "round", "int", "float", "filesizeformat"];

/// The filters whose arguments are counts or lengths.
const COUNTING_FILTERS: [&str; 4] = ["batch", "slice", "indent", "round"];

/// A number, and its written form.
pub(crate) struct ExactNumber {
    number: Value,
    text: Box<str>,
}

impl ExactNumber {
    pub(crate) fn value(number: Value, text: &str) -> Value {
        Value::from_object(Self { number, text: text.into() })
    }

    fn of(value: &Value) -> Option<&Self> {
        // Most values are no objects, and the type of an object is compared only for this kind.
        if value.kind() == ValueKind::Plain { value.downcast_object_ref() } else { None }
    }
}

impl fmt::Debug for ExactNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Object for ExactNumber {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn is_true(self: &Arc<Self>) -> bool {
        self.number.is_true()
    }

    fn custom_cmp(self: &Arc<Self>, other: &DynObject) -> Option<Ordering> {
        other.downcast_ref::<Self>().map(|other| self.number.cmp(&other.number))
    }
}

/// Whether a value is a number with digits.
pub(crate) fn is_exact_number(value: &Value) -> bool {
    ExactNumber::of(value).is_some()
}

/// The written form of a number with digits.
pub(crate) fn digits(value: &Value) -> Option<&str> {
    ExactNumber::of(value).map(|exact| exact.text.as_ref())
}

/// The value itself, or of a number with digits the number.
pub(crate) fn plain(value: &Value) -> Value {
    ExactNumber::of(value).map_or_else(|| value.clone(), |exact| exact.number.clone())
}

/// As [`plain`], also inside lists and objects.
fn plain_deep(value: &Value) -> Value {
    if contains_exact(value, MAX_DEPTH) { with_numbers(value, &plain, MAX_DEPTH) } else { value.clone() }
}

/// The arguments of a filter, the first of which is the value before the `|`, in a form that the filter can use.
pub(crate) fn for_filter(name: &str, arguments: &mut [Value]) {
    if COMPARING_FILTERS.contains(&name) {
        // Numbers with and without digits can be compared if all are objects.
        let lifted = |number: &Value| match f64::try_from(number.clone()) {
            Ok(float) if float.is_finite() && number.kind() == ValueKind::Number => {
                ExactNumber::value(number.clone(), &number.to_string())
            }
            _ => number.clone(),
        };
        if let Some(list) = arguments.first_mut().filter(|list| contains_exact(list, MAX_DEPTH)) {
            *list = with_numbers(list, &lifted, MAX_DEPTH);
        }
    }
    if let Some(value) = arguments.first_mut() {
        if NUMBER_FILTERS.contains(&name) {
            *value = plain(value);
        } else if name == "sum" {
            *value = plain_deep(value);
        }
    }
    if COUNTING_FILTERS.contains(&name) || name == "sum" {
        arguments.iter_mut().skip(1).for_each(|argument| *argument = plain(argument));
    }
    if name == "format"
        && let Some((format, formatted)) = arguments.split_first_mut()
    {
        let conversions = conversions(format.as_str().unwrap_or_default());
        let of = |position: usize| conversions.get(position);
        let numbers = formatted.iter_mut().enumerate().filter(|(position, _)| of(*position) != Some(&'s'));
        numbers.for_each(|(_, argument)| *argument = plain(argument));
    }
}

/// The letters of the conversions in a format: of `%s costs %.2f`, `s` and `f`.
fn conversions(format: &str) -> Vec<char> {
    let mut characters = format.chars();
    let mut letters = Vec::new();
    while characters.any(|character| character == '%') {
        letters.extend(characters.find(|character| character.is_alphabetic() || *character == '%'));
    }
    letters.retain(|letter| *letter != '%');
    letters
}

fn contains_exact(value: &Value, depth: usize) -> bool {
    match value.kind() {
        _ if depth == 0 => false,
        ValueKind::Plain => is_exact_number(value),
        ValueKind::Seq | ValueKind::Iterable => {
            value.try_iter().is_ok_and(|mut items| items.any(|item| contains_exact(&item, depth - 1)))
        }
        ValueKind::Map => fields(value).any(|(_, field)| contains_exact(&field, depth - 1)),
        _ => false,
    }
}

/// The value with all numbers in it replaced.
fn with_numbers(value: &Value, replaced: &impl Fn(&Value) -> Value, depth: usize) -> Value {
    match value.kind() {
        ValueKind::Plain | ValueKind::Number => replaced(value),
        ValueKind::Seq | ValueKind::Iterable if depth > 0 && !is_unknown(value) => {
            let items = value.try_iter().into_iter().flatten();
            items.map(|item| with_numbers(&item, replaced, depth - 1)).collect()
        }
        ValueKind::Map if depth > 0 => {
            Value::from_pairs(fields(value).map(|(key, field)| (key, with_numbers(&field, replaced, depth - 1))))
        }
        _ => value.clone(),
    }
}

fn fields(object: &Value) -> impl Iterator<Item = (Value, Value)> {
    object.as_object().and_then(|object| object.try_iter_pairs()).into_iter().flatten()
}

/// A value of minijinja that is serialized with its digits.
pub(crate) struct WithDigits(pub Value);

impl Serialize for WithDigits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.kind() {
            ValueKind::Plain if let Some(exact) = ExactNumber::of(&self.0) => raw_number(&exact.text, serializer),
            ValueKind::Seq | ValueKind::Iterable if !is_unknown(&self.0) => {
                let mut list = serializer.serialize_seq(self.0.len())?;
                for item in self.0.try_iter().map_err(S::Error::custom)? {
                    list.serialize_element(&Self(valid(item)?))?;
                }
                list.end()
            }
            ValueKind::Map => {
                let mut object = serializer.serialize_map(None)?;
                for (key, field) in fields(&self.0) {
                    object.serialize_entry(&valid(key)?, &Self(valid(field)?))?;
                }
                object.end()
            }
            _ => self.0.serialize(serializer),
        }
    }
}

/// The item of a list or object, unless it contains an error.
fn valid<E: serde::ser::Error>(item: Value) -> Result<Value, E> {
    if item.kind() == ValueKind::Invalid { Err(E::custom(&item)) } else { Ok(item) }
}

/// The result of an expression as JSON.
///
/// # Errors
/// The value has no form in JSON.
pub(crate) fn to_exact(value: &Value) -> serde_json::Result<ExactValue> {
    let json = serde_json::to_value(WithDigits(value.clone()))?;
    Ok(ExactValue::new(json, digits_of(value, MAX_DEPTH)))
}

fn digits_of(value: &Value, depth: usize) -> Option<Digits> {
    match value.kind() {
        _ if depth == 0 => None,
        ValueKind::Plain => ExactNumber::of(value).map(|exact| Digits::Number(exact.text.clone())),
        ValueKind::Seq | ValueKind::Iterable => {
            Digits::of_items(value.try_iter().ok()?.map(|item| digits_of(&item, depth - 1)))
        }
        ValueKind::Map => {
            let digits = |(key, field): (Value, Value)| Some((key.as_str()?.to_owned(), digits_of(&field, depth - 1)));
            Digits::of_fields(fields(value).filter_map(digits))
        }
        _ => None,
    }
}

/// Like `tojson` of minijinja, with the digits of numbers.
pub(crate) fn to_json(value: &Value, indent: Option<Value>, named: Kwargs) -> Result<Value, Error> {
    let indent = indent.map(|indent| plain(&indent));
    if !contains_exact(value, MAX_DEPTH) {
        return filters::tojson(value, indent, named);
    }
    // minijinja writes the numbers as strings. A mark that appears nowhere else shows where their quotes are.
    let shown = value.to_string();
    let mut mark = String::from('\u{fdd0}');
    while shown.contains(&mark) {
        mark.push('\u{fdd0}');
    }
    let marked = |number: &Value| match ExactNumber::of(number) {
        Some(exact) => Value::from(format!("{mark}{}{mark}", exact.text)),
        None => number.clone(),
    };
    let json = filters::tojson(&with_numbers(value, &marked, MAX_DEPTH), indent, named)?;
    let text = json.as_str().unwrap_or_default();
    Ok(Value::from_safe_string(text.replace(&format!("\"{mark}"), "").replace(&format!("{mark}\""), "")))
}

#[cfg(test)]
mod own_tests {
    use super::*;
    use crate::expr::parse::Expr;
    use crate::template::names::{TemplateNames, session_names};
    use crate::template::text::AuthorTexts;

    fn names() -> TemplateNames {
        let values = r#"{
            "price": 1.10, "free": 0.00, "three": 3.0, "order": 20241018220014123456789012, "plain": 1.5,
            "prices": [2, 1.10, 0.50], "item": { "cost": 2.50, "n": 3, "name": "tea", "<": 1.0 },
            "items": [{ "cost": 2.50 }, { "cost": 0.5 }], "ratio": 0.12345678901234567890
        }"#;
        session_names(ExactValue::parse(values).unwrap())
    }

    #[test]
    fn a_number_is_shown_with_its_digits_and_counts_as_a_number() {
        let table = [
            (
                "{{ price }} {{ order }} {{ ratio }} {{ free }}",
                "1.10 20241018220014123456789012 0.12345678901234567890 0.00",
            ),
            ("{{ item.cost }} {{ item['cost'] }} {{ prices[1] }} {{ prices | last }}", "2.50 2.50 1.10 0.50"),
            ("{{ item }} {{ prices }}", r#"{"cost":2.50,"n":3,"name":"tea","<":1.0} [2,1.10,0.50]"#),
            ("{% for p in prices %}{{ p }};{% endfor %}", "2;1.10;0.50;"),
            ("{{ [price, order] }} {{ {'a': price} }}", r#"[1.10,20241018220014123456789012] {"a":1.10}"#),
            ("{{ prices | join('、') }} {{ price ~ '元' }} {{ price | string }}", "2、1.10、0.50 1.10元 1.10"),
            ("{{ price | tojson }} {{ prices | tojson }}", "1.10 [2, 1.10, 0.50]"),
            ("{{ item | tojson }}", r#"{"cost": 2.50, "n": 3, "name": "tea", "\u003c": 1.0}"#),
            ("{{ price + 1 }} {{ price * 2 }} {{ -price }} {{ price - 0.1 }}", "2.1 2.2 -1.1 1.0"),
            (
                "{{ price == 1.1 }} {{ price > 1 }} {{ price in [1.1] }} {{ 1.1 in prices }} {{ order > 1 }}",
                "true true true true true",
            ),
            (
                "{{ prices == [2, 1.1, 0.5] }} {{ item.cost is eq(2.5) }} {{ prices | select('gt', 1) }}",
                "true true [2,1.10]",
            ),
            (
                "{{ prices | sort }} {{ prices | max }} {{ prices | min }} {{ [price, 1.1, 2] | unique }}",
                "[0.50,1.10,2] 2 0.50 [1.10,2]",
            ),
            ("{{ items | sort(attribute='cost') | map(attribute='cost') | join(' ') }}", "0.5 2.50"),
            (
                "{{ prices | sum }} {{ items | sum(attribute='cost') }} {{ price | round }} {{ price | round(1) }}",
                "3.6 3.0 1.0 1.1",
            ),
            (
                "{{ price | int }} {{ price | float }} {{ free | abs }} {{ prices | map('round') }}",
                "1 1.1 0.0 [2,1.0,0.0]",
            ),
            ("{{ '%.1f %s 5%% %.2f' | format(price, price, three) }}", "1.1 1.10 5% 3.00"),
            (
                "{{ price is number }} {{ price is float }} {{ price is integer }} {{ price is string }}",
                "true true false false",
            ),
            ("{{ three is odd }} {{ three is divisibleby 3 }} {{ prices | select('number') | length }}", "true true 3"),
            ("{% for i in range(three) %}{{ i }}{% endfor %} {{ [1, 2, 3, 4] | batch(three) | length }}", "012 2"),
            ("{% if price %}some{% endif %}{% if not free %}none{% endif %}{{ free or 'free' }}", "somenonefree"),
            ("{{ price | default('x') }} {{ prices | reverse | first }} {{ prices | length }}", "1.10 0.50 3"),
            ("{% macro m(p) %}{{ p }}/{{ p + 1 }}{% endmacro %}{{ m(price) }}", "1.10/2.1"),
            ("{{ order == 20241018220014123456789012.0 }} {{ plain }} {{ 1.50 }}", "true 1.5 1.5"),
        ];
        let mut texts = AuthorTexts::new();
        for (source, expected) in table {
            let text = texts.add(source).unwrap();
            assert_eq!(texts.render(&text, &names()).unwrap(), expected, "{source}");
        }
    }

    #[test]
    fn an_expression_that_is_a_name_or_a_path_keeps_the_digits_of_its_value() {
        let table = [
            ("price", "1.10"),
            ("item", r#"{"cost":2.50,"n":3,"name":"tea","<":1.0}"#),
            ("item.cost", "2.50"),
            ("prices[1:]", "[1.10,0.50]"),
            ("prices + [price]", "[2,1.10,0.50,1.10]"),
            ("{'a': [price, 2]}", r#"{"a":[1.10,2]}"#),
            ("price if price > 1 else 0", "1.10"),
            ("prices | sort | first", "0.50"),
            ("price * 1", "1.1"),
            ("price | string", r#""1.10""#),
            ("order", "20241018220014123456789012"),
            ("dict(a=price)", r#"{"a":1.10}"#),
        ];
        for (source, expected) in table {
            let value = Expr::parse(source).unwrap().eval(&names()).unwrap();
            assert_eq!(value.to_string(), expected, "{source}");
        }
    }

    #[test]
    fn the_quotes_of_texts_that_look_like_a_mark_stay() {
        let values = "{\"v\":[\"\u{fdd0}1.10\u{fdd0}\",\"\u{fdd0}\",1.10]}";
        let mut texts = AuthorTexts::new();
        let text = texts.add("{{ v | tojson }}").unwrap();
        let shown = texts.render(&text, &session_names(ExactValue::parse(values).unwrap())).unwrap();
        assert_eq!(shown, "[\"\u{fdd0}1.10\u{fdd0}\", \"\u{fdd0}\", 1.10]");
    }
}
