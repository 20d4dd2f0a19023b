//! Words without quotes: literals in other spellings, numbers in other notations, texts of one word.

use serde_json::{Number, Value};

use crate::reply::repair::characters::is_word;
use crate::reply::repair::parser::{Parser, Stop};
use crate::reply::repair::record::RepairKind;

impl Parser<'_> {
    /// The value that begins here and has no quotes.
    ///
    /// # Errors
    /// [`Stop::Cut`] when the raw text ends right behind it, so that it may be a part of a longer one;
    /// [`Stop::Refused`] when it is none of the words that can be meant.
    pub(super) fn bare(&mut self) -> Result<Value, Stop> {
        let at = self.at;
        let rest = self.rest();
        let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or_default();
        let whole = end < rest.len();
        self.at += end;
        if !whole {
            return Err(Stop::Cut);
        }
        let (mend, value) = read(word).ok_or(Stop::Refused("a value was expected", at))?;
        if let Some(mend) = mend {
            self.mend(mend, at)?;
            self.bare_text |= mend == RepairKind::UnquotedText;
        }
        Ok(value)
    }
}

/// What `word` means, and what had to be mended for it.
fn read(word: &str) -> Option<(Option<RepairKind>, Value)> {
    let plain = match word {
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        "null" => Some(Value::Null),
        _ => None,
    };
    if let Some(value) = plain {
        return Some((None, value));
    }
    let other = match word {
        "True" | "TRUE" => Some(Value::Bool(true)),
        "False" | "FALSE" => Some(Value::Bool(false)),
        "None" | "Null" | "NULL" | "nil" => Some(Value::Null),
        _ => None,
    };
    if let Some(value) = other {
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
    // A number beyond all bounds is no text.
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
    let grouped = |(at, _): (usize, &str)| {
        let digit = |at: Option<usize>| at.and_then(|at| digits.as_bytes().get(at)).is_some_and(u8::is_ascii_digit);
        digit(at.checked_sub(1)) && digit(Some(at + 1))
    };
    if !digits.bytes().any(|byte| byte.is_ascii_digit()) || !digits.match_indices('_').all(grouped) {
        return None;
    }
    let mut spelled = digits.replace('_', "");
    if spelled.starts_with('.') {
        spelled.insert(0, '0');
    }
    if spelled.ends_with('.') {
        spelled.push('0');
    }
    serde_json::from_str(&format!("{sign}{spelled}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_word_means_a_literal_a_number_a_text_or_nothing() {
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
