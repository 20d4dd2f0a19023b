//! The types that an author may declare, and their lossless coercions (docs/language.md and docs/replies.md).

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value, json};

use crate::value::digits::is_whole;
use crate::value::exact::ExactValue;

/// A type that `declare` and `output` may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeclaredType {
    String,
    Number,
    /// A number without a fraction.
    Integer,
    Boolean,
    List,
    Object,
    /// An ISO 8601 calendar date (`2026-11-21`), or a date and time (`2026-11-21T20:00`), as text. Dates are compared as texts.
    Date,
}

impl DeclaredType {
    pub const ALL: [Self; 7] =
        [Self::String, Self::Number, Self::Integer, Self::Boolean, Self::List, Self::Object, Self::Date];

    /// Parses the name that an author writes.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|declared| declared.name() == name)
    }

    /// The name that an author writes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::List => "list",
            Self::Object => "object",
            Self::Date => "date",
        }
    }

    /// Whether `value` already has this type. Null has no type.
    pub fn fits(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Number => value.is_number(),
            Self::Integer => value.as_number().is_some_and(is_integral),
            Self::Boolean => value.is_boolean(),
            Self::List => value.is_array(),
            Self::Object => value.is_object(),
            Self::Date => value.as_str().is_some_and(is_date),
        }
    }

    /// Converts `value` to this type without loss: `"5"` becomes 5, `"true"` becomes true, 5 becomes `"5"`.
    ///
    /// Returns a clone of a value that already has the type, and `None` if there is no lossless conversion.
    pub fn coerce(self, value: &Value) -> Option<Value> {
        if self.fits(value) {
            // `5.0` and `5` are the same integer; use the form without a fraction so that later readers see an integer.
            return Some(match self {
                Self::Integer => integer_spelling(value),
                _ => value.clone(),
            });
        }
        match (self, value) {
            (Self::Number, Value::String(text)) => number_in(text).map(Value::Number),
            (Self::Integer, Value::String(text)) => {
                number_in(text).filter(is_integral).map(|number| integer_spelling(&Value::Number(number)))
            }
            (Self::Boolean, Value::String(text)) => match text.trim() {
                text if text.eq_ignore_ascii_case("true") => Some(Value::Bool(true)),
                text if text.eq_ignore_ascii_case("false") => Some(Value::Bool(false)),
                _ => None,
            },
            (Self::String, Value::Number(number)) => Some(Value::String(number.to_string())),
            (Self::String, Value::Bool(truth)) => Some(Value::String(truth.to_string())),
            (Self::Date, Value::String(text)) => usual_date(text.trim()).map(Value::String),
            _ => None,
        }
    }

    /// As [`coerce`](Self::coerce); numbers keep their digits, also as text and from text, so that a number of any length has a
    /// lossless conversion.
    pub fn coerce_exact(self, value: &ExactValue) -> Option<ExactValue> {
        match (self, value.number_text(), &**value) {
            (Self::String, Some(text), _) => Some(Value::from(text).into()),
            (Self::Integer, Some(text), Value::Number(_)) if !is_whole(text) && !is_exact(text) => None,
            (Self::Number | Self::Integer, _, Value::String(text)) => {
                let read = ExactValue::parse(text.trim()).ok().filter(|read| self.fits(read))?;
                self.coerce_exact(&read)
            }
            _ => Some(ExactValue::new(self.coerce(value)?, value.digits().cloned())),
        }
    }

    /// The JSON Schema (draft 2020-12) of a value of this type; it does not allow null.
    pub fn json_schema(self) -> Value {
        match self {
            Self::List => json!({ "type": "array" }),
            Self::Date => json!({ "type": "string", "format": "date" }),
            other => json!({ "type": other.name() }),
        }
    }
}

/// Parses the complete text as a JSON number, with optional surrounding white space. Returns `None` for a number with more digits
/// than a float can represent.
fn number_in(text: &str) -> Option<Number> {
    match serde_json::from_str(text.trim()) {
        Ok(Value::Number(number)) => (!number.is_f64() || is_exact(text)).then_some(number),
        _ => None,
    }
}

/// Whether a float represents a number with these digits.
fn is_exact(text: &str) -> bool {
    const EXACT_DIGITS: usize = 15;
    text.bytes().filter(u8::is_ascii_digit).count() <= EXACT_DIGITS
}

/// The limit of floats that are safely converted to an integer.
const MAX_EXACT: f64 = 9e15;

/// A float beyond the limit has no fraction: it is an integer that is too long for 64 bits.
fn is_integral(number: &Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|float| float.fract() == 0.0)
}

fn integer_spelling(value: &Value) -> Value {
    match value.as_number() {
        Some(number) if !number.is_i64() && !number.is_u64() => match number.as_f64() {
            #[allow(clippy::cast_possible_truncation)] // Exact within the limit.
            Some(float) if float.abs() < MAX_EXACT => json!(float as i64),
            _ => value.clone(),
        },
        _ => value.clone(),
    }
}

/// Whether `text` is an ISO 8601 date (`2026-11-21`), or a date and time with `T` (`2026-11-21T20:00`, with seconds, and with `Z` or an
/// offset such as `+08:00`, if they are known). Other forms that ISO 8601 permits would be in another order as texts.
pub fn is_date(text: &str) -> bool {
    let (day, time) = text.split_at_checked(DAY.len()).unwrap_or((text, ""));
    let exists = || text.parse::<DateTime>().is_ok() || text.parse::<Timestamp>().is_ok();
    has_form(day, DAY) && is_time(time) && exists()
}

const DAY: &str = "0000-00-00";

/// Whether `text` has the form of `example`: a digit for each digit, and the other characters as they are.
fn has_form(text: &str, example: &str) -> bool {
    let same = |(c, example): (u8, u8)| if example == b'0' { c.is_ascii_digit() } else { c == example };
    text.len() == example.len() && text.bytes().zip(example.bytes()).all(same)
}

/// Whether `text` is the time after a day, or empty. The ranges of its numbers are not checked.
fn is_time(text: &str) -> bool {
    if text.is_empty() {
        return true;
    }
    let zone = text.find(['Z', '+', '-']).unwrap_or(text.len());
    let (time, zone) = text.split_at(zone);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let has_seconds = has_form(time, "T00:00:00");
    let is_fraction = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    (has_seconds || (has_form(time, "T00:00") && fraction == "0"))
        && is_fraction
        && (zone.is_empty() || zone == "Z" || has_form(zone, "+00:00") || has_form(zone, "-00:00"))
}

/// `text` in the form of [`is_date`], if it is plainly a date: `20261121`, `+002026-11-21`, `2026-11-21 20:00:00+08:00`.
fn usual_date(text: &str) -> Option<String> {
    if is_date(text) {
        return Some(text.to_owned());
    }
    let (day, time) = text.split_once(['T', 't', ' ']).map_or((text, None), |(day, time)| (day, Some(time)));
    let day = day.parse::<Date>().ok()?.to_string();
    let usual = time.map_or_else(|| day.clone(), |time| format!("{day}T{}", time.to_ascii_uppercase()));
    is_date(&usual).then_some(usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coercion_is_lossless() {
        let table = [
            (DeclaredType::Number, json!("5"), Some(json!(5))),
            (DeclaredType::Number, json!(" 2.5 "), Some(json!(2.5))),
            (DeclaredType::Number, json!("5 years"), None),
            (DeclaredType::Number, json!("NaN"), None),
            (DeclaredType::Number, json!("12345678901234567890123"), None),
            (DeclaredType::Integer, json!("9007199254740993"), Some(json!(9_007_199_254_740_993_i64))),
            (DeclaredType::Number, json!(true), None),
            (DeclaredType::Integer, json!("5"), Some(json!(5))),
            (DeclaredType::Integer, json!(5.0), Some(json!(5))),
            (DeclaredType::Integer, json!(5.5), None),
            (DeclaredType::Integer, json!("5.5"), None),
            (DeclaredType::Boolean, json!("TRUE"), Some(json!(true))),
            (DeclaredType::Boolean, json!("yes"), None),
            (DeclaredType::Boolean, json!(1), None),
            (DeclaredType::String, json!(5), Some(json!("5"))),
            (DeclaredType::String, json!(["a"]), None),
            (DeclaredType::List, json!("a"), None),
            (DeclaredType::Object, json!({}), Some(json!({}))),
            (DeclaredType::Date, json!("2026-11-21"), Some(json!("2026-11-21"))),
            (DeclaredType::Date, json!("2026-02-30"), None),
            (DeclaredType::String, Value::Null, None),
        ];
        for (declared, value, expected) in table {
            assert_eq!(declared.coerce(&value), expected, "{} from {value}", declared.name());
        }
    }

    #[test]
    fn dates_are_in_the_form_in_which_texts_have_the_order_of_time() {
        for text in [
            "2026-01-02",
            "0001-01-01",
            "2026-01-02T10:00",
            "2026-01-02T10:00:30",
            "2026-01-02T10:00:30.5",
            "2026-01-02T10:00Z",
            "2026-01-02T10:00:30+08:00",
        ] {
            assert!(is_date(text), "{text}");
            assert_eq!(DeclaredType::Date.coerce(&json!(text)), Some(json!(text)));
        }
        let table = [
            ("20260102", Some("2026-01-02")),
            ("+002026-01-02", Some("2026-01-02")),
            (" 2026-01-02\n", Some("2026-01-02")),
            ("2026-01-02 10:00:00+08:00", Some("2026-01-02T10:00:00+08:00")),
            ("2026-01-02t10:00z", Some("2026-01-02T10:00Z")),
            ("20260102T10:00", Some("2026-01-02T10:00")),
            ("-000001-01-01", None),
            ("2026-01-02t00", None),
            ("2026-01-02T00", None),
            ("2026-01-02T10:00[Asia/Shanghai]", None),
            ("2026-01-02T10:00+08:00[Asia/Shanghai]", None),
            ("2026-01-02T10:00.5", None),
            ("2026-01-02T25:00", None),
            ("2026-02-30", None),
            ("2026-01-02T", None),
            ("2026-W01-5", None),
            ("10/10/2025", None),
            ("2026-01-0２", None),
            ("", None),
        ];
        for (text, usual) in table {
            assert!(!is_date(text), "{text}");
            let coerced = DeclaredType::Date.coerce(&json!(text));
            assert_eq!(coerced.as_ref().and_then(Value::as_str), usual, "{text}");
        }
    }

    #[test]
    fn every_type_is_found_by_its_name() {
        for declared in DeclaredType::ALL {
            assert_eq!(DeclaredType::parse(declared.name()), Some(declared));
        }
        assert_eq!(DeclaredType::parse("text"), None);
    }

    #[test]
    fn coercion_keeps_the_digits_of_numbers() {
        let table = [
            (DeclaredType::Number, "1.10", Some("1.10")),
            (DeclaredType::Number, r#"" 1.10 ""#, Some("1.10")),
            (DeclaredType::Number, r#""12345678901234567890123""#, Some("12345678901234567890123")),
            (DeclaredType::String, "1.10", Some(r#""1.10""#)),
            (DeclaredType::String, "20241018220014123456789012", Some(r#""20241018220014123456789012""#)),
            (DeclaredType::Integer, "20241018220014123456789012", Some("20241018220014123456789012")),
            (DeclaredType::Integer, r#""20241018220014123456789012""#, Some("20241018220014123456789012")),
            (DeclaredType::Integer, "20241018220014123.5", None),
            (DeclaredType::Integer, "5.00", Some("5")),
            (DeclaredType::Integer, "1.10", None),
            (DeclaredType::List, "[1.10]", Some("[1.10]")),
            (DeclaredType::Boolean, "1.10", None),
        ];
        for (declared, json, expected) in table {
            let coerced = declared.coerce_exact(&ExactValue::parse(json).unwrap());
            assert_eq!(coerced.map(|value| value.to_string()).as_deref(), expected, "{declared:?} {json}");
        }
    }
}
