//! Fills an output from a person's input by its type and choices, or with null if the input is not clear.
//!
//! Sentences are not interpreted: `不好` contains `好`, and `no problem` contains `no`. Therefore yes, no or a choice is recognized only
//! if it is the complete answer except for punctuation and filler words, and a number only without a negation.

use std::sync::LazyLock;

use jiff::civil::Date;
use regex::Regex;
use serde_json::{Number, Value};

use crate::model::request::WantedOutput;
use bcc_lang::value::declared::DeclaredType;
use bcc_lang::value::digits::Digits;

const SEPARATORS: [char; 7] = ['，', '、', ',', '；', ';', '\n', '\r'];

const YES: &str = "是 是的 对 对的 没错 有 有的 有过 好 好的 好啊 行 可以 愿意 同意 当然 嗯 会 要 能 \
                   yes y yeah yep true ok okay sure right";

const NO: &str = "不 不是 不是的 不对 没 没有 否 无 不行 不可以 不愿意 不同意 不会 不要 不能 no n nope false";

/// Filler words before and after a choice or a Chinese numeral.
const LEADING_FILLERS: &str = "我的 我 想要 想 要 喝 选 来 杯 就 大概 大约 最多 至少 有 是 a an the";
const TRAILING_FILLERS: &str = "吧 啊 呀 呢 左右 please mostly";

const COUNTERS: [char; 7] = ['分', '岁', '次', '个', '天', '年', '月'];

/// A number in digits with adjacent letters and punctuation, which change its meaning: `B12`, `1:30`.
static DIGITS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"[a-zA-Z_0-9.,:/+-]*[0-9][a-zA-Z_0-9.,:/+-]*").ok());

static NEGATION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)[不没未无别勿]|\b(no|not|never|none|nor|neither|without|cannot)\b|n['’]t\b").ok()
});

static DATE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^([0-9]{4}) ?[-/.年] ?([0-9]{1,2}) ?[-/.月] ?([0-9]{1,2}) ?[日号]?$").ok());

/// The value of `wanted` in `text`; null if the text is blank or not clear. With choices, only a choice is returned; for a list, only
/// elements that are choices.
pub fn fill(wanted: &WantedOutput, text: &str) -> Value {
    let text = text.trim();
    let value = match (wanted.declared, wanted.choices.as_slice()) {
        _ if text.is_empty() => None,
        (declared, []) => by_type(declared, text),
        (Some(DeclaredType::List), choices) => elements(text, |part| matching_choice(choices, part)),
        (declared, choices) => {
            matching_choice(choices, text).or_else(|| by_type(declared, text).filter(|value| choices.contains(value)))
        }
    };
    value.unwrap_or(Value::Null)
}

fn by_type(declared: Option<DeclaredType>, text: &str) -> Option<Value> {
    let string = || Some(Value::from(text));
    match declared {
        None | Some(DeclaredType::String) => string(),
        Some(declared @ (DeclaredType::Number | DeclaredType::Integer)) => declared.coerce(&Value::from(number(text)?)),
        Some(DeclaredType::Boolean) => yes_or_no(text).map(Value::Bool),
        Some(DeclaredType::Date) => {
            DeclaredType::Date.coerce(&Value::from(text)).or_else(|| date(text).map(Value::from))
        }
        Some(DeclaredType::List) => elements(text, |part| Some(Value::from(part))),
        Some(DeclaredType::Object) => serde_json::from_str(text).ok().filter(Value::is_object),
    }
}

/// The number with which [`fill`] fills an output, if it was written in another way than it would be written again: `8500.50`.
pub(super) fn written_number(text: &str) -> Option<Digits> {
    let number = number(text.trim())?;
    serde_json::from_str::<Number>(&number).ok()?;
    Digits::of_json(&number)
}

fn elements(text: &str, element: impl Fn(&str) -> Option<Value>) -> Option<Value> {
    let parts = text.split(SEPARATORS).map(str::trim).filter(|part| !part.is_empty());
    let found: Vec<Value> = parts.filter_map(element).collect();
    (!found.is_empty()).then_some(Value::Array(found))
}

/// The choice that equals the text, case-insensitive; of alternatives (`茶或者咖啡`) the first.
fn matching_choice(choices: &[Value], text: &str) -> Option<Value> {
    let find_choice =
        |text: &str| choices.iter().find(|choice| choice.as_str().is_some_and(|name| normalized(name) == text));
    let choice_of = |part: &str| {
        let core = without_fillers(part);
        find_choice(&normalized(part)).or_else(|| find_choice(&core)).filter(|_| !core.is_empty())
    };
    let alternatives = text.split("或").flat_map(|part| part.trim_start_matches('者').split(" or "));
    let found: Option<Vec<&Value>> = alternatives.map(choice_of).collect();
    choice_of(text).or_else(|| found?.first().copied()).cloned()
}

/// True if every part of the text means yes, false if every part means no.
fn yes_or_no(text: &str) -> Option<bool> {
    let parts = || {
        text.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’' && c != ' ')
            .filter(|part| !part.trim().is_empty())
    };
    let all = |words: &str| parts().all(|part| words.split(' ').any(|word| word == normalized(part)));
    parts().next()?;
    if all(YES) { Some(true) } else { all(NO).then_some(false) }
}

/// The only number in the text, in JSON notation.
fn number(text: &str) -> Option<String> {
    let ascii: String = text.chars().map(to_ascii).collect();
    if NEGATION.as_ref()?.is_match(&ascii) {
        return None;
    }
    let mut digits = DIGITS.as_ref()?.find_iter(&ascii);
    match (digits.next(), digits.next()) {
        (Some(only), None) => {
            let after = ascii.get(only.end()..)?;
            let only = only.as_str().trim_end_matches(['.', ',']);
            let multiplied = after.trim_start().starts_with(['十', '百', '千', '万', '亿', '点', '半']);
            (!multiplied && only.parse::<f64>().is_ok_and(f64::is_finite)).then(|| only.to_owned())
        }
        (None, _) => chinese_numeral(&without_fillers(&ascii)).map(|value| value.to_string()),
        _ => None,
    }
}

/// Parses a Chinese numeral below 100, optionally with a counter word.
fn chinese_numeral(text: &str) -> Option<usize> {
    let digit = |text: &str| -> Option<usize> {
        let mut characters = text.chars();
        let value = characters.next().and_then(|digit| "零一二三四五六七八九".chars().position(|known| known == digit));
        let value = value.or((text == "两").then_some(2))?;
        characters.next().is_none().then_some(value)
    };
    let text = text.trim_end_matches(COUNTERS);
    let Some((tens, ones)) = text.split_once('十') else { return digit(text) };
    let tens = if tens.is_empty() { 1 } else { digit(tens)? };
    Some(tens * 10 + if ones.is_empty() { 0 } else { digit(ones)? })
}

fn date(text: &str) -> Option<String> {
    let text: String = text.chars().map(to_ascii).collect();
    let (_, [year, month, day]) = DATE.as_ref()?.captures(text.trim_end_matches('。'))?.extract();
    Date::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?).ok().map(|date| date.to_string())
}

/// A text in lower case, without leading and trailing characters that are neither letters nor digits.
fn normalized(text: &str) -> String {
    text.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

/// A text without leading and trailing filler words, except before a negation, where they change the meaning: `有没有` is a question.
fn without_fillers(text: &str) -> String {
    let mut text = normalized(text);
    let shorter = |text: &str| {
        // An ASCII word must be separated by a space.
        let before = LEADING_FILLERS
            .split(' ')
            .filter_map(|word| text.strip_prefix(word).filter(|rest| !word.is_ascii() || rest.starts_with(' ')));
        let after = TRAILING_FILLERS
            .split(' ')
            .filter_map(|word| text.strip_suffix(word).filter(|rest| !word.is_ascii() || rest.ends_with(' ')));
        before.chain(after).map(normalized).find(|rest| !rest.is_empty() && !rest.starts_with(['不', '没']))
    };
    while let Some(rest) = shorter(&text) {
        text = rest;
    }
    text
}

/// Maps full-width digits and signs to ASCII, which has a fixed offset.
fn to_ascii(character: char) -> char {
    match character {
        '０'..='９' | '．' | '／' | '－' => {
            u32::from(character).checked_sub(0xFEE0).and_then(char::from_u32).unwrap_or(character)
        }
        '−' => '-',
        other => other,
    }
}

#[cfg(test)]
mod tests;
