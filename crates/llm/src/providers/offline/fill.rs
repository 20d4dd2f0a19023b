//! A wanted output filled from a person's words, by its type and its choices: what the answer plainly says as a whole, else null.
//!
//! Nobody understands a sentence here: `不好` contains `好`, and `no problem` contains `no`. So a yes, a no or a choice counts only
//! when it is the whole answer but for punctuation and words that change nothing, and a number only without a negation.

use std::sync::LazyLock;

use jiff::civil::Date;
use regex::Regex;
use serde_json::Value;

use crate::model::request::WantedOutput;
use bcc_lang::value::declared::{DeclaredType, is_date};

const SEPARATORS: [char; 7] = ['，', '、', ',', '；', ';', '\n', '\r'];

const YES: &str = "是 是的 对 对的 没错 有 有的 有过 好 好的 好啊 行 可以 愿意 同意 当然 嗯 会 要 能 \
                   yes y yeah yep true ok okay sure right";

const NO: &str = "不 不是 不是的 不对 没 没有 否 无 不行 不可以 不愿意 不同意 不会 不要 不能 no n nope false";

/// What changes nothing before a choice or a Chinese numeral, and after it.
const BEFORE: &str = "我的 我 想要 想 要 喝 选 来 杯 就 大概 大约 最多 至少 有 是 a an the";
const AFTER: &str = "吧 啊 呀 呢 左右 please mostly";

const COUNTED: [char; 7] = ['分', '岁', '次', '个', '天', '年', '月'];

/// A number in digits, with any letters and marks right around it, which make it something else: `B12`, `1:30`.
static DIGITS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"[a-zA-Z_0-9.,:/+-]*[0-9][a-zA-Z_0-9.,:/+-]*").ok());

static NEGATION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)[不没未无别勿]|\b(no|not|never|none|nor|neither|without|cannot)\b|n['’]t\b").ok()
});

static DATE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^([0-9]{4}) ?[-/.年] ?([0-9]{1,2}) ?[-/.月] ?([0-9]{1,2}) ?[日号]?$").ok());

/// The value of `wanted` in `text`; null when the text does not plainly say one. White space fills nothing. With choices only one
/// of them is ever given; in a list they are those of its elements.
pub fn fill(wanted: &WantedOutput, text: &str) -> Value {
    let text = text.trim();
    let value = match (wanted.declared, wanted.choices.as_slice()) {
        _ if text.is_empty() => None,
        (declared, []) => by_type(declared, text),
        (Some(DeclaredType::List), choices) => elements(text, |part| pick(choices, part)),
        (declared, choices) => {
            pick(choices, text).or_else(|| by_type(declared, text).filter(|value| choices.contains(value)))
        }
    };
    value.unwrap_or(Value::Null)
}

fn by_type(declared: Option<DeclaredType>, text: &str) -> Option<Value> {
    let words = || Some(Value::from(text));
    match declared {
        None | Some(DeclaredType::String) => words(),
        Some(declared @ (DeclaredType::Number | DeclaredType::Integer)) => declared.coerce(&Value::from(number(text)?)),
        Some(DeclaredType::Boolean) => truth(text).map(Value::Bool),
        Some(DeclaredType::Date) => {
            if is_date(text) {
                words()
            } else {
                date(text).map(Value::from)
            }
        }
        Some(DeclaredType::List) => elements(text, |part| Some(Value::from(part))),
        Some(DeclaredType::Object) => serde_json::from_str(text).ok().filter(Value::is_object),
    }
}

fn elements(text: &str, element: impl Fn(&str) -> Option<Value>) -> Option<Value> {
    let parts = text.split(SEPARATORS).map(str::trim).filter(|part| !part.is_empty());
    let found: Vec<Value> = parts.filter_map(element).collect();
    (!found.is_empty()).then_some(Value::Array(found))
}

/// The choice that the text is, upper and lower case alike; of several that it leaves open (`茶或者咖啡`) the first.
fn pick(choices: &[Value], text: &str) -> Option<Value> {
    let named = |said: &str| choices.iter().find(|choice| choice.as_str().is_some_and(|name| plain(name) == said));
    let one = |part: &str| {
        let core = core(part);
        named(&plain(part)).or_else(|| named(&core)).filter(|_| !core.is_empty())
    };
    let alternatives = text.split("或").flat_map(|part| part.trim_start_matches('者').split(" or "));
    let found: Option<Vec<&Value>> = alternatives.map(one).collect();
    one(text).or_else(|| found?.first().copied()).cloned()
}

/// Yes when every part of the text says yes, no when every part says no.
fn truth(text: &str) -> Option<bool> {
    let parts = || {
        text.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’' && c != ' ')
            .filter(|part| !part.trim().is_empty())
    };
    let all = |words: &str| parts().all(|part| words.split(' ').any(|word| word == plain(part)));
    parts().next()?;
    if all(YES) { Some(true) } else { all(NO).then_some(false) }
}

/// The one number of the text, as JSON writes it.
fn number(text: &str) -> Option<String> {
    let narrow: String = text.chars().map(narrow).collect();
    if NEGATION.as_ref()?.is_match(&narrow) {
        return None;
    }
    let mut digits = DIGITS.as_ref()?.find_iter(&narrow);
    match (digits.next(), digits.next()) {
        (Some(only), None) => {
            let after = narrow.get(only.end()..)?;
            let only = only.as_str().trim_end_matches(['.', ',']);
            let multiplied = after.trim_start().starts_with(['十', '百', '千', '万', '亿', '点', '半']);
            (!multiplied && only.parse::<f64>().is_ok_and(f64::is_finite)).then(|| only.to_owned())
        }
        (None, _) => numeral(&core(&narrow)).map(|value| value.to_string()),
        _ => None,
    }
}

/// A Chinese numeral below a hundred and at most a word for what it counts.
fn numeral(text: &str) -> Option<usize> {
    let digit = |text: &str| -> Option<usize> {
        let mut characters = text.chars();
        let value = characters.next().and_then(|digit| "零一二三四五六七八九".chars().position(|known| known == digit));
        let value = value.or((text == "两").then_some(2))?;
        characters.next().is_none().then_some(value)
    };
    let text = text.trim_end_matches(COUNTED);
    let Some((tens, ones)) = text.split_once('十') else { return digit(text) };
    let tens = if tens.is_empty() { 1 } else { digit(tens)? };
    Some(tens * 10 + if ones.is_empty() { 0 } else { digit(ones)? })
}

fn date(text: &str) -> Option<String> {
    let text: String = text.chars().map(narrow).collect();
    let (_, [year, month, day]) = DATE.as_ref()?.captures(text.trim_end_matches('。'))?.extract();
    Date::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?).ok().map(|date| date.to_string())
}

/// A text in lower case, without what is neither letter nor digit at its ends.
fn plain(text: &str) -> String {
    text.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

/// A text without the words at its ends that change nothing. Before a negation they may: `有没有` asks.
fn core(text: &str) -> String {
    let mut text = plain(text);
    let shorter = |text: &str| {
        // A word of letters is one only with a space between it and the rest.
        let before = BEFORE
            .split(' ')
            .filter_map(|word| text.strip_prefix(word).filter(|rest| !word.is_ascii() || rest.starts_with(' ')));
        let after = AFTER
            .split(' ')
            .filter_map(|word| text.strip_suffix(word).filter(|rest| !word.is_ascii() || rest.ends_with(' ')));
        before.chain(after).map(plain).find(|rest| !rest.is_empty() && !rest.starts_with(['不', '没']))
    };
    while let Some(rest) = shorter(&text) {
        text = rest;
    }
    text
}

/// The ASCII form of full-width digits and signs, which stand at a fixed distance from it.
fn narrow(character: char) -> char {
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
