//! The values of plain scalars: the core schema of YAML 1.2 (section 10.3.2 of its specification), and its tags.

use serde_json::{Number, Value};

/// The names of the known tags, as after `!!`.
pub(crate) const TAGS: [&str; 7] = ["str", "int", "float", "bool", "null", "map", "seq"];

/// The value of a plain scalar: null, a boolean, a number, or its own text.
///
/// `yes`, `no`, `on`, `off` are text. Values that JSON cannot represent stay text as well, so that nothing is lost: `.inf`,
/// `.nan`, integers beyond 64 bits, floats that overflow.
pub(crate) fn plain(text: &str) -> Value {
    null(text)
        .or_else(|| boolean(text))
        .or_else(|| integer(text))
        .or_else(|| float(text))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

/// The value of a scalar with the known tag `!!tag`; `None` if the text does not fit the tag.
pub(crate) fn tagged(tag: &str, text: &str) -> Option<Value> {
    match tag {
        "str" => Some(Value::String(text.to_owned())),
        "int" => integer(text),
        "float" => float(text).or_else(|| integer(text)),
        "bool" => boolean(text),
        "null" => null(text),
        _ => None,
    }
}

fn null(text: &str) -> Option<Value> {
    matches!(text, "" | "~" | "null" | "Null" | "NULL").then_some(Value::Null)
}

fn boolean(text: &str) -> Option<Value> {
    match text {
        "true" | "True" | "TRUE" => Some(Value::Bool(true)),
        "false" | "False" | "FALSE" => Some(Value::Bool(false)),
        _ => None,
    }
}

fn integer(text: &str) -> Option<Value> {
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if let Ok(small) = text.parse::<i64>() {
        return Some(Value::Number(small.into()));
    }
    text.parse::<u64>().ok().map(|large| Value::Number(large.into()))
}

fn radix(digits: &str, base: u32) -> Option<Value> {
    // `from_str_radix` would accept a sign.
    if !digits.chars().all(|c| c.is_digit(base)) {
        return None;
    }
    u64::from_str_radix(digits, base).ok().map(|number| Value::Number(number.into()))
}

/// `[-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`, with a dot or an exponent.
fn float(text: &str) -> Option<Value> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let valid_start = digits.bytes().next().is_some_and(|byte| byte.is_ascii_digit() || byte == b'.');
    let has_digit = digits.bytes().any(|byte| byte.is_ascii_digit());
    let allowed = digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    let has_mark = digits.contains(['.', 'e', 'E']);
    if !(valid_start && has_digit && allowed && has_mark) {
        return None;
    }
    Number::from_f64(text.parse().ok()?).map(Value::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plain_text_resolves_by_the_core_schema() {
        let table = [
            ("", json!(null)),
            ("~", json!(null)),
            ("null", json!(null)),
            ("NULL", json!(null)),
            ("nULL", json!("nULL")),
            ("true", json!(true)),
            ("False", json!(false)),
            ("yes", json!("yes")),
            ("no", json!("no")),
            ("on", json!("on")),
            ("off", json!("off")),
            ("y", json!("y")),
            ("12", json!(12)),
            ("-12", json!(-12)),
            ("+12", json!(12)),
            ("007", json!(7)),
            ("0o14", json!(12)),
            ("0xff", json!(255)),
            ("0o", json!("0o")),
            ("0x", json!("0x")),
            ("0x-1", json!("0x-1")),
            ("0o9", json!("0o9")),
            ("1_000", json!("1_000")),
            ("18446744073709551615", json!(u64::MAX)),
            ("123456789012345678901234", json!("123456789012345678901234")),
            ("1.5", json!(1.5)),
            (".5", json!(0.5)),
            ("5.", json!(5.0)),
            ("1e3", json!(1000.0)),
            ("-1.5E-2", json!(-0.015)),
            (".", json!(".")),
            ("-", json!("-")),
            ("+", json!("+")),
            ("e3", json!("e3")),
            ("1e", json!("1e")),
            ("1.2.3", json!("1.2.3")),
            ("2026-11-21", json!("2026-11-21")),
            ("12:30", json!("12:30")),
            (".inf", json!(".inf")),
            ("-.INF", json!("-.INF")),
            (".nan", json!(".nan")),
            ("inf", json!("inf")),
            ("1e999", json!("1e999")),
            ("１２", json!("１２")),
            ("五", json!("五")),
        ];
        for (text, expected) in table {
            assert_eq!(plain(text), expected, "{text}");
        }
    }

    #[test]
    fn a_tag_decides_which_text_is_valid() {
        let table = [
            ("str", "5", Some(json!("5"))),
            ("str", "", Some(json!(""))),
            ("int", "5", Some(json!(5))),
            ("int", "5.5", None),
            ("int", "five", None),
            ("float", "5", Some(json!(5))),
            ("float", "5.5", Some(json!(5.5))),
            ("bool", "true", Some(json!(true))),
            ("bool", "yes", None),
            ("null", "", Some(json!(null))),
            ("null", "x", None),
            ("map", "x", None),
        ];
        for (tag, text, expected) in table {
            assert_eq!(tagged(tag, text), expected, "!!{tag} {text}");
        }
    }
}
