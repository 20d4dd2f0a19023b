//! Parses values without quotes: literals in other spellings, numbers in other notations, constructors.

use serde_json::{Number, Value};

use crate::reply::repair::characters::{closing, is_space, is_word, plain};
use crate::reply::repair::follow::RepairLocation;
use crate::reply::repair::parser::{Parser, Stop};
use crate::reply::repair::record::RepairKind;

/// The constructors of typed values: of the shell of MongoDB, and of Python.
const CONSTRUCTORS: [&str; 10] = [
    "ObjectId",
    "ISODate",
    "NumberLong",
    "NumberInt",
    "NumberDecimal",
    "Timestamp",
    "UUID",
    "Decimal",
    "datetime",
    "date",
];

impl Parser<'_> {
    /// The value without quotes at the current position.
    ///
    /// # Errors
    /// [`Stop::Cut`] when the raw text ends directly after it, so that it may be truncated; [`Stop::Rejected`] when it is not a valid
    /// value.
    pub(super) fn bare(&mut self, depth: usize, location: RepairLocation) -> Result<Value, Stop> {
        let at = self.at;
        let rest = self.rest();
        let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or_default();
        let after = rest.get(end..).unwrap_or_default();
        if (after.is_empty() && !word.is_empty()) || (word == "-" && after.trim_start_matches(is_space).is_empty()) {
            self.at += end;
            return Err(Stop::Cut);
        }
        if CONSTRUCTORS.contains(&word) && after.starts_with('(') {
            return self.constructor(depth, end);
        }
        let reading = read(word);
        let is_text = matches!(reading, Some((Some(RepairKind::UnquotedText), _)));
        // A number that is out of range is not a string.
        let may_be_text = reading.is_none() && !word.parse::<f64>().is_ok_and(f64::is_infinite);
        if (is_text || may_be_text || !ends_value(after))
            && let Some(text) = self.bare_text(location)?
        {
            return Ok(Value::from(text));
        }
        self.at += end;
        let (repair, value) = reading.ok_or(Stop::Rejected("a value was expected", at))?;
        if let Some(repair) = repair {
            self.add_repair(repair, at)?;
            self.bare_text |= repair == RepairKind::UnquotedText;
        }
        if value.is_number() {
            self.numbers.push(word);
        }
        Ok(value)
    }

    /// Whether a number, `true`, `false` or `null` is at the current position.
    pub(super) fn starts_number_or_literal(&self) -> bool {
        let rest = self.rest();
        let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or_default();
        end < rest.len() && is_literal(word)
    }

    /// The value inside a constructor, whose name has `name` bytes.
    fn constructor(&mut self, depth: usize, name: usize) -> Result<Value, Stop> {
        let at = self.at;
        self.at += name + 1;
        self.tuples += 1;
        let mut items = self.items(depth + 1, ')')?;
        self.tuples -= 1;
        self.add_repair(RepairKind::Constructor, at)?;
        match (items.pop(), items.is_empty()) {
            (Some(value), true) if !value.is_array() && !value.is_object() => Ok(value),
            _ => Err(Stop::Rejected("a value was expected", at)),
        }
    }
}

/// Whether `word` is a number, or a literal in any spelling.
pub(super) fn is_literal(word: &str) -> bool {
    read(word).is_some_and(|(repair, _)| repair != Some(RepairKind::UnquotedText))
}

/// Whether `after`, the text after a word, ends its value.
fn ends_value(after: &str) -> bool {
    let trimmed = after.trim_start_matches(is_space);
    trimmed.is_empty()
        || trimmed.starts_with(|c| {
            matches!(plain(c), ',' | '}' | ']' | ')' | '{' | '[') || closing(c).is_some() && trimmed.len() < after.len()
        })
        || after.get(..after.len() - trimmed.len()).is_some_and(|space| space.contains('\n'))
        || trimmed.starts_with("/*")
        || (trimmed.len() < after.len() && trimmed.starts_with(['#', '/']))
}

/// The value of `word`, and the repair that it requires.
fn read(word: &str) -> Option<(Option<RepairKind>, Value)> {
    let literal = match word {
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        "null" => Some(Value::Null),
        _ => None,
    };
    if let Some(value) = literal {
        return Some((None, value));
    }
    let other_literal = match word {
        "True" | "TRUE" => Some(Value::Bool(true)),
        "False" | "FALSE" => Some(Value::Bool(false)),
        "None" | "Null" | "NULL" | "nil" => Some(Value::Null),
        _ => None,
    };
    if let Some(value) = other_literal {
        return Some((Some(RepairKind::OtherWord), value));
    }
    if matches!(word.trim_start_matches(['+', '-']), "NaN" | "Infinity" | "undefined" | "nan" | "inf") {
        return Some((Some(RepairKind::NoValue), Value::Null));
    }
    if let Ok(number) = serde_json::from_str::<Number>(word) {
        return Some((None, Value::Number(number)));
    }
    if let Some(number) = number(word) {
        return Some((Some(RepairKind::OtherNumber), Value::Number(number)));
    }
    // A number that is out of range is not a string.
    if word.parse::<f64>().is_ok_and(f64::is_infinite) {
        return None;
    }
    let text = word.starts_with(char::is_alphanumeric) && !word.ends_with(['.', '+', '-']) && !word.contains('+');
    text.then(|| (Some(RepairKind::UnquotedText), Value::from(word)))
}

/// A number in a notation that JSON does not have: `.5`, `5.`, `+1`, `1_000`, `0x1F`.
fn number(word: &str) -> Option<Number> {
    let (sign, digits) = match word.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", word.strip_prefix('+').unwrap_or(word)),
    };
    if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        let digits_only = !hex.is_empty() && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        return if digits_only && sign.is_empty() { u64::from_str_radix(hex, 16).ok().map(Number::from) } else { None };
    }
    let separates_digits = |(at, _): (usize, &str)| {
        let digit = |at: Option<usize>| at.and_then(|at| digits.as_bytes().get(at)).is_some_and(u8::is_ascii_digit);
        digit(at.checked_sub(1)) && digit(Some(at + 1))
    };
    if !digits.bytes().any(|byte| byte.is_ascii_digit()) || !digits.match_indices('_').all(separates_digits) {
        return None;
    }
    let mut digits_as_json = digits.replace('_', "");
    if digits_as_json.starts_with('.') {
        digits_as_json.insert(0, '0');
    }
    if digits_as_json.ends_with('.') {
        digits_as_json.push('0');
    }
    serde_json::from_str(&format!("{sign}{digits_as_json}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_word_is_a_literal_a_number_a_string_or_invalid() {
        let table = [
            ("true", json!(true)),
            ("False", json!(false)),
            ("None", json!(null)),
            ("NaN", json!(null)),
            ("-Infinity", json!(null)),
            ("undefined", json!(null)),
            ("12", json!(12)),
            ("-1.5e3", json!(-1.5e3)),
            (".5", json!(0.5)),
            ("-.5", json!(-0.5)),
            ("5.", json!(5.0)),
            ("+1", json!(1)),
            ("1_000", json!(1000)),
            ("0x1F", json!(31)),
            ("YES", json!("YES")),
            ("none", json!("none")),
            ("焦虑", json!("焦虑")),
            ("2026-11-21", json!("2026-11-21")),
            ("007", json!("007")),
            ("1__0", json!("1__0")),
            ("5岁", json!("5岁")),
        ];
        for (word, value) in table {
            assert_eq!(read(word).map(|(_, value)| value), Some(value), "{word}");
        }
        for word in ["", "...", "1e999", "-", ".", "+", "1+1", "a.", "--1"] {
            assert_eq!(read(word), None, "{word}");
        }
    }
}
