//! The first number in a person's words: digits of any width, signs, decimals, and Chinese numerals.

use serde_json::Number;

/// What follows `一` in words that count nothing: 一般, 一些, 一起 …
const AFTER_AN_UNCOUNTED_ONE: &str = "般些起样直定下点切旦边向律致会共时再";

/// What stands before `一` in such words: 统一, 唯一.
const BEFORE_AN_UNCOUNTED_ONE: [char; 2] = ['统', '唯'];

/// The first number of `text`: `35`, `-2.5`, `1,200`, `３５`, `三十五`, `3万5千`, `零下五`, `三点五`.
///
/// Digits inside a word of letters (`B12`, `child_2`) are no number, nor is what no JSON number can hold.
pub fn first_number(text: &str) -> Option<Number> {
    let mut rest = text;
    let mut before: Option<char> = None;
    while let Some(character) = rest.chars().next() {
        if let Some((sign, digits)) = start(rest, before)
            && let Some((numeral, _)) = numeral_at(digits)
        {
            return numeral.signed(sign);
        }
        rest = rest.get(character.len_utf8()..).unwrap_or_default();
        before = Some(character);
    }
    None
}

/// A numeral without its sign.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Numeral {
    /// Plain digits, kept as text so that long ones stay exact.
    Digits(String),
    /// A computed value.
    Value(f64),
}

impl Numeral {
    fn value(&self) -> f64 {
        match self {
            // Digits and at most one point: always a float.
            Self::Digits(digits) => digits.parse().unwrap_or(f64::INFINITY),
            Self::Value(value) => *value,
        }
    }

    /// The number as a small whole one, for the parts of a date.
    pub(crate) fn small(&self) -> Option<i16> {
        let value = self.value();
        // The range makes the cast exact.
        #[allow(clippy::cast_possible_truncation)]
        (value.fract() == 0.0 && (0.0..=9999.0).contains(&value)).then_some(value as i16)
    }

    fn signed(&self, negative: bool) -> Option<Number> {
        if let Self::Digits(digits) = self {
            let signed = if negative { format!("-{digits}") } else { digits.clone() };
            if let Ok(whole) = signed.parse::<i64>() {
                return Some(whole.into());
            }
            if let Ok(whole) = signed.parse::<u64>() {
                return Some(whole.into());
            }
        }
        let value = if negative { -self.value() } else { self.value() };
        // Bounded to where every whole float is exact.
        #[allow(clippy::cast_possible_truncation)]
        if value.fract() == 0.0 && value.abs() < 9e15 { Some((value as i64).into()) } else { Number::from_f64(value) }
    }
}

/// Where a number's digits begin and whether a minus stands before them, if one may begin here.
fn start(rest: &str, before: Option<char>) -> Option<(bool, &str)> {
    let free = |before: Option<char>| {
        before.is_none_or(|c| !(c.is_ascii_alphanumeric() || c == '_' || is_point(c) || digit(c).is_some()))
    };
    let mut characters = rest.chars();
    let first = characters.next()?;
    let after = characters.as_str();
    let second = characters.next();
    match narrow(first) {
        '0'..='9' => free(before).then_some((false, rest)),
        '-' if free(before) => after.starts_with(|c: char| narrow(c).is_ascii_digit()).then_some((true, after)),
        '负' => after.trim_start().starts_with(begins_numeral).then(|| (true, after.trim_start())),
        '零' if second == Some('下') => {
            let below = characters.as_str();
            below.starts_with(begins_numeral).then_some((true, below))
        }
        '一' if second.is_some_and(|c| AFTER_AN_UNCOUNTED_ONE.contains(c)) => None,
        '一' if before.is_some_and(|c| BEFORE_AN_UNCOUNTED_ONE.contains(&c)) => None,
        // "very": 十分, but not ten minutes (十分钟) nor tenths (十分之一).
        '十' if second == Some('分') && !characters.as_str().starts_with(['钟', '之']) => None,
        other if begins_numeral(other) && before.is_none_or(|c| digit(c).is_none() && unit(c).is_none()) => {
            Some((false, rest))
        }
        _ => None,
    }
}

fn begins_numeral(character: char) -> bool {
    narrow(character).is_ascii_digit() || digit(character).is_some() || character == '十'
}

/// The numeral that `text` begins with, and its length in bytes.
pub(crate) fn numeral_at(text: &str) -> Option<(Numeral, usize)> {
    let (mut total, mut section) = (0.0, 0.0);
    let mut current: Option<f64> = None;
    let mut last_unit = 1.0;
    // Whether `current` is one digit right after a unit: the 五 of 三万五 counts thousands.
    let mut bare = false;
    let mut digits_only = None;
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let mut taken = character.len_utf8();
        if narrow(character).is_ascii_digit() {
            if current.is_some() {
                break;
            }
            let (literal, length) = literal_at(rest);
            taken = length;
            bare = literal.chars().count() == 1 && last_unit > 1.0;
            current = literal.parse().ok();
            digits_only = (rest.len() == text.len()).then_some(literal);
        } else if let Some(value) = digit(character) {
            match current {
                Some(_) if digits_only.is_some() => break,
                Some(earlier) => {
                    current = Some(earlier * 10.0 + value);
                    bare = false;
                }
                None => {
                    current = Some(value);
                    bare = value > 0.0 && last_unit > 1.0;
                }
            }
        } else if let Some(size) = unit(character) {
            if current.is_none() && section == 0.0 && total == 0.0 && character != '十' {
                break;
            }
            if size < 10_000.0 {
                section += current.unwrap_or(1.0) * size;
            } else if size > 10_000.0 {
                total = (total + section + current.unwrap_or(0.0)) * size;
                section = 0.0;
            } else {
                total += (section + current.unwrap_or(0.0)) * size;
                section = 0.0;
            }
            (current, last_unit, bare, digits_only) = (None, size, false, None);
        } else if let ('点', Some(whole), Some((fraction, length))) = (character, current, fraction_at(rest)) {
            let value = total + section + whole + fraction;
            return Some((Numeral::Value(value), text.len() - rest.len() + length));
        } else {
            break;
        }
        rest = rest.get(taken..).unwrap_or_default();
    }
    let length = text.len() - rest.len();
    if length == 0 {
        return None;
    }
    if let Some(digits) = digits_only {
        return Some((Numeral::Digits(digits), length));
    }
    let tail = current.unwrap_or(0.0) * if bare { last_unit / 10.0 } else { 1.0 };
    Some((Numeral::Value(total + section + tail), length))
}

/// The digits that `text` begins with, with a fraction, without thousands separators; and the length in bytes.
fn literal_at(text: &str) -> (String, usize) {
    let mut literal = String::new();
    let mut rest = text;
    let (mut fraction, mut grouped, mut since) = (false, false, 0);
    while let Some(character) = rest.chars().next() {
        let narrowed = narrow(character);
        let after = rest.get(character.len_utf8()..).unwrap_or_default();
        if narrowed.is_ascii_digit() {
            literal.push(narrowed);
            since += 1;
        } else if narrowed == '.' && !fraction && leading_digits(after) > 0 {
            literal.push('.');
            fraction = true;
        } else if character == ','
            && !fraction
            && leading_digits(after) == 3
            && (if grouped { since == 3 } else { since <= 3 })
        {
            (grouped, since) = (true, 0);
        } else {
            break;
        }
        rest = after;
    }
    (literal, text.len() - rest.len())
}

/// How many digits `text` begins with; more than three count as four.
fn leading_digits(text: &str) -> usize {
    text.chars().take(4).take_while(|c| narrow(*c).is_ascii_digit()).count()
}

/// The fraction of 三点一四, from its 点 on; `None` where 点 tells the time.
fn fraction_at(text: &str) -> Option<(f64, usize)> {
    let digits = text.strip_prefix('点')?;
    let (mut fraction, mut place, mut length) = (0.0, 1.0, '点'.len_utf8());
    let mut next = None;
    for character in digits.chars() {
        next = Some(character);
        let Some(value) = digit(character) else { break };
        place /= 10.0;
        fraction += value * place;
        length += character.len_utf8();
        next = None;
    }
    (place < 1.0 && next.is_none_or(|c| unit(c).is_none() && c != '分')).then_some((fraction, length))
}

fn digit(character: char) -> Option<f64> {
    Some(match character {
        '零' | '〇' => 0.0,
        '一' => 1.0,
        '二' | '两' => 2.0,
        '三' => 3.0,
        '四' => 4.0,
        '五' => 5.0,
        '六' => 6.0,
        '七' => 7.0,
        '八' => 8.0,
        '九' => 9.0,
        _ => return None,
    })
}

fn unit(character: char) -> Option<f64> {
    Some(match character {
        '十' => 10.0,
        '百' => 100.0,
        '千' => 1_000.0,
        '万' => 10_000.0,
        '亿' => 100_000_000.0,
        _ => return None,
    })
}

fn is_point(character: char) -> bool {
    narrow(character) == '.'
}

/// The ASCII form of full-width digits and signs.
pub(crate) fn narrow(character: char) -> char {
    match character {
        '０'..='９' | '．' | '／' | '－' => {
            // The full-width forms stand at a fixed distance from ASCII.
            u32::from(character).checked_sub(0xFEE0).and_then(char::from_u32).unwrap_or(character)
        }
        '−' => '-',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn the_first_number_is_found_however_it_is_written() {
        let table = [
            ("35", json!(35)),
            ("我今年35岁，有2个孩子", json!(35)),
            ("３５岁", json!(35)),
            ("１．５", json!(1.5)),
            ("-5", json!(-5)),
            ("－５度", json!(-5)),
            ("温度−2.5度", json!(-2.5)),
            ("负十二", json!(-12)),
            ("零下五度", json!(-5)),
            ("零下太冷", Value::Null),
            ("3-5岁", json!(3)),
            ("3.25", json!(3.25)),
            ("3.", json!(3)),
            ("1,200 元", json!(1200)),
            ("1,234,567.5", json!(1_234_567.5)),
            ("1,2,3", json!(1)),
            ("1234,567", json!(1234)),
            ("007", json!(7)),
            ("13800001111", json!(13_800_001_111_i64)),
            ("18446744073709551615", json!(u64::MAX)),
            ("3万", json!(30_000)),
            ("3.5万", json!(35_000)),
            ("3万5千", json!(35_000)),
            ("3万5", json!(35_000)),
            ("3万5000", json!(35_000)),
            ("两百万", json!(2_000_000)),
            ("三十五岁", json!(35)),
            ("十五", json!(15)),
            ("二十", json!(20)),
            ("一百", json!(100)),
            ("一百五", json!(150)),
            ("一百零五", json!(105)),
            ("一百一十", json!(110)),
            ("两千零二十六", json!(2026)),
            ("二〇二六", json!(2026)),
            ("一万零五百", json!(10_500)),
            ("一亿三千万", json!(130_000_000)),
            ("三万亿", json!(3_000_000_000_000_i64)),
            ("三点五", json!(3.5)),
            ("三点二五", json!(3.25)),
            ("三点半", json!(3)),
            ("三点十五分", json!(3)),
            ("大概两个", json!(2)),
            ("我一般睡六个小时", json!(6)),
            ("一共5个", json!(5)),
            ("万一有3个", json!(3)),
            ("十分钟", json!(10)),
            ("我十分开心", Value::Null),
            ("一点都不", Value::Null),
            ("child_2_age：7", json!(7)),
            ("B12 和 v1.2", Value::Null),
            ("age 35.", json!(35)),
            ("没有", Value::Null),
            ("-", Value::Null),
            ("负责", Value::Null),
            ("百万", Value::Null),
            ("", Value::Null),
        ];
        for (text, expected) in table {
            assert_eq!(first_number(text).map_or(Value::Null, Value::Number), expected, "{text:?}");
        }
    }

    #[test]
    fn a_number_that_json_cannot_hold_is_none() {
        assert_eq!(first_number(&"9".repeat(400)), None);
    }

    #[test]
    fn long_texts_are_read_once() {
        for text in ["一".repeat(300_000), "-".repeat(1_000_000), "x1".repeat(500_000), "千".repeat(300_000)] {
            let _ = first_number(&text);
        }
    }
}
