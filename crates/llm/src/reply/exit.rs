//! The words of models for yes, no, and "not said" (docs/replies.md).

use bcc_lang::value::mask::MASK;
use serde_json::Value;

const YES: [&str; 4] = ["yes", "true", "1", "是"];
const NO: [&str; 4] = ["no", "false", "0", "否"];

/// The words that mean that no risk was detected; everything else means that there is one.
const NO_RISK: [&str; 8] = ["no", "none", "false", "null", "0", "否", "无", "没有"];

/// The words for a value that the person did not give. Words that may be an answer, such as 无 or 不知道, are not among them.
const NO_VALUE: [&str; 23] = [
    "null",
    "none",
    "nil",
    "undefined",
    "n/a",
    "not mentioned",
    "not provided",
    "not stated",
    "not specified",
    "not given",
    "not available",
    "unspecified",
    "no information",
    "未提及",
    "未提到",
    "未提供",
    "未说明",
    "未给出",
    "未透露",
    "没有提及",
    "没有提到",
    "尚未提及",
    "暂未提供",
];

/// Quotes and brackets, in normal width.
const ENCLOSING: [char; 23] = [
    '"', '\'', '`', '“', '”', '‘', '’', '「', '」', '『', '』', '«', '»', '(', ')', '[', ']', '{', '}', '【', '】',
    '《', '》',
];

/// Characters that draw a line in an empty field.
const LINES: [char; 9] = ['-', '_', '‐', '‑', '‒', '–', '—', '―', '−'];

/// Whether `value` means yes or no: true and false, 1 and 0, and the words, in any case and width, with surrounding punctuation.
/// `None` for every other value.
pub fn yes_or_no(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(*truth),
        Value::Number(number) if number.as_f64() == Some(1.0) => Some(true),
        Value::Number(number) if number.as_f64() == Some(0.0) => Some(false),
        Value::String(text) => {
            let word = plain(text);
            if YES.contains(&word.as_str()) { Some(true) } else { NO.contains(&word.as_str()).then_some(false) }
        }
        _ => None,
    }
}

/// Whether `value` means yes; every value that is not known means no.
pub fn is_yes(value: &Value) -> bool {
    yes_or_no(value) == Some(true)
}

/// Whether a risk or a crisis is reported. It fails closed: everything that does not clearly deny it counts as a report.
pub(crate) fn is_reported(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !NO_RISK.contains(&plain(text).as_str()),
        Value::Array(_) | Value::Object(_) => true,
    }
}

/// Whether `text` says that there is no value. A mask does not: it stands for the value of a recorded reply.
pub fn is_no_value(text: &str) -> bool {
    !text.contains(MASK) && (is_blank_filler(text) || NO_VALUE.contains(&plain(text).as_str()))
}

/// Whether `text` consists only of what stands in an empty field: quotes or brackets with nothing inside, a line, or an ellipsis.
/// Other symbols, such as an emoji, stars or `+`, are a value.
fn is_blank_filler(text: &str) -> bool {
    let narrow = narrow(text);
    let inner = narrow.trim_matches(|c: char| c.is_whitespace() || ENCLOSING.contains(&c));
    let is_ellipsis = |c: char| matches!(c, '.' | '。' | '…' | '⋯');
    inner.chars().all(|c| LINES.contains(&c))
        || (inner.chars().all(is_ellipsis) && (inner.contains(['…', '⋯']) || inner.chars().count() > 2))
}

/// Whether `text` and `choice` are the same word, in any case and width, with surrounding punctuation.
pub(crate) fn same_word(text: &str, choice: &str) -> bool {
    let word = plain(text);
    if word.is_empty() { text.trim() == choice.trim() } else { word == plain(choice) }
}

/// `text` in lower case and normal width, without white space and punctuation around it.
fn plain(text: &str) -> String {
    narrow(text).trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

/// `text` in normal width.
fn narrow(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\u{ff01}'..='\u{ff5e}' => u32::from(c).checked_sub(0xfee0).and_then(char::from_u32).unwrap_or(c),
            '\u{3000}' => ' ',
            other => other,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn known_words_mean_yes_or_no_in_any_case_width_and_punctuation() {
        let yes =
            json!(["YES", "yes", " Yes\n", "True", "1", true, 1, 1.0, "是", "是。", "YES.", "ＹＥＳ", "“是”", "１"]);
        for value in yes.as_array().unwrap() {
            assert_eq!(yes_or_no(value), Some(true), "{value}");
        }
        let no = json!(["NO", "no.", "ＮＯ", "False", "0", false, 0, "否", "否！"]);
        for value in no.as_array().unwrap() {
            assert_eq!(yes_or_no(value), Some(false), "{value}");
        }
        let unknown = json!(["", "YES或NO", "yes, but", "11", "1.0", 2, -1, null, [true], { "EXIT": "YES" }]);
        for value in unknown.as_array().unwrap() {
            assert_eq!(yes_or_no(value), None, "{value}");
            assert!(!is_yes(value), "{value}");
        }
    }

    #[test]
    fn a_risk_is_denied_only_by_known_words() {
        let denied = json!([false, 0, null, "no", "None", "FALSE.", "否", "无", "没有。", "ｎｏ", "0"]);
        for value in denied.as_array().unwrap() {
            assert!(!is_reported(value), "{value}");
        }
        let reported = json!([true, 1, "YES", "是", "maybe", "low", "", "无法判断", [], ["x"], { "detected": false }]);
        for value in reported.as_array().unwrap() {
            assert!(is_reported(value), "{value}");
        }
    }

    #[test]
    fn words_for_a_value_that_was_not_said_are_known() {
        for text in [
            "",
            " ",
            "null",
            "None",
            "N/A",
            "(未提及)",
            "未提及。",
            "Not mentioned.",
            "ｎｕｌｌ",
            "-",
            "—",
            "－－",
            "___",
            "…",
            "......",
            "\"\"",
            "（）",
            "[ ]",
            "\u{3000}",
        ] {
            assert!(is_no_value(text), "{text}");
        }
        for text in ["😊", "★★★★☆", "+", "↑", "?", "/", ".", "..", "-+", "👍。", "(*)", "<>", "√"] {
            assert!(!is_no_value(text), "{text}");
        }
        for text in ["无", "不知道", "没有", "教师", "no", "unknown", "0", "nulla", MASK] {
            assert!(!is_no_value(text), "{text}");
        }
    }
}
