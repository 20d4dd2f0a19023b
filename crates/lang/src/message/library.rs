//! Converts errors of libraries to messages. They are English sentences: the common forms are listed here, and the parts of a
//! sentence are looked up in the catalogues one by one.

use std::borrow::Cow;

use crate::message::argument::ToMessage;
use crate::message::language::Language;
use crate::message::message::Message;

/// The forms of errors of serde, minijinja, clap, humantime and the operating system. Of forms with a common prefix the longest comes first. A wrong match
/// does no harm: the English text always remains the text of the library.
const FORMS: [&str; 24] = [
    "{} (os error {})",
    "{} at line {} column {}, while parsing {}",
    "{} at line {} column {}",
    "invalid type: {}, expected {}",
    "invalid value: {}, expected {}",
    "unknown field {}, expected one of {}",
    "unknown field {}, expected {}",
    "unknown field {}, there are no fields",
    "missing field {}",
    "unexpected {}, expected {}",
    "unexpected {}",
    "tried to include non-existing template {}",
    "cannot convert {} to {}",
    "cannot extend value of type {} with a dotted key",
    "{} is not in {}",
    "expected number at {}",
    "invalid character at {}",
    "time unit needed, for example {}",
    "unknown time unit {}, supported units: {}",
    "{}, expected {}",
    "unknown statement {}",
    "integer {}",
    "floating point {}",
    "boolean {}",
];

/// The message for an error text of a library. Parts that no catalogue contains stay in English.
pub fn library(text: &str) -> Message {
    if is_known(text) {
        return word(text);
    }
    if let Some(names) = quoted_names(text) {
        return names;
    }
    // Only words: names of an author may contain an `or`.
    if let Some((first, second)) = text.split_once(" or ").filter(|(first, second)| is_known(first) && is_known(second))
    {
        return Message::any_of([word(first), word(second)]);
    }
    let form = FORMS.iter().find_map(|form| Some((*form, parts(form, text)?)));
    let Some((form, parts)) = form else { return word(text) };
    let names = (1..).map(|number: usize| Cow::Owned(number.to_string()));
    Message::new(form, names.zip(parts.into_iter().map(library)).collect())
}

/// The parts of `text` that match the placeholders of a form; `None` if the text does not match. Each part is as short as possible
/// and not empty.
fn parts<'t>(form: &str, text: &'t str) -> Option<Vec<&'t str>> {
    let mut constants = form.split("{}");
    let mut rest = text.strip_prefix(constants.next()?)?;
    let mut parts = Vec::new();
    let mut constants = constants.peekable();
    while let Some(constant) = constants.next() {
        let (part, after) = match constants.peek() {
            None => (rest.strip_suffix(constant)?, ""),
            Some(_) => rest.split_once(constant)?,
        };
        parts.push(part);
        rest = after;
    }
    parts.iter().all(|part| !part.is_empty()).then_some(parts)
}

impl ToMessage for std::io::Error {
    fn to_message(&self) -> Message {
        library(&self.to_string())
    }
}

/// With the position.
impl ToMessage for serde_json::Error {
    fn to_message(&self) -> Message {
        library(&self.to_string())
    }
}

impl ToMessage for regex::Error {
    fn to_message(&self) -> Message {
        library(&self.to_string())
    }
}

/// A list such as `` `a`, `b` `` or `` `a` or `b` ``; `None` for any other text.
fn quoted_names(text: &str) -> Option<Message> {
    let inside = text.strip_prefix('`')?.strip_suffix('`')?;
    let list = match inside.split_once("` or `") {
        Some((first, second)) => Message::any_of([first, second].map(|name| Message::text(format!("`{name}`")))),
        None => Message::names(inside.split("`, `")),
    };
    let names = inside.split("`, `").flat_map(|names| names.split("` or `"));
    (names.clone().count() > 1 && names.clone().all(|name| !name.contains('`'))).then_some(list)
}

/// A part that a catalogue contains is a word of the library. Any other may contain a value or a name that must be masked.
fn word(text: &str) -> Message {
    if is_known(text) { Message::Word(Cow::Owned(text.to_owned())) } else { Message::text(text) }
}

fn is_known(text: &str) -> bool {
    Language::Chinese.literal(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_libraries_are_translated_by_parts_and_unchanged_in_english() {
        let table = [
            ("expected value at line 1 column 2", "这里应有一个值（第 1 行第 2 列）"),
            ("unexpected end of input, expected end of block", "这里是文本的结尾，应为标签的结尾 `%}`"),
            ("unexpected end of string", "引号没有结束"),
            ("something new", "something new"),
            ("unexpected end of input, expected identifier or integer", "这里是文本的结尾，应为名称或整数"),
            ("unknown field `tea or coffee`, there are no fields", "未知的字段 `tea or coffee`，这里不能有字段"),
            ("unknown statement endif", "这里不能用标签 endif"),
            ("invalid type: integer `3`, expected a string", "类型不正确：这里是整数 `3`，应为文本"),
            ("unknown field `x`, expected `a` or `b`", "未知的字段 `x`，应为 `a` 或 `b`"),
            ("Permission denied (os error 13)", "没有权限（系统错误 13）"),
        ];
        for (english, chinese) in table {
            assert_eq!(library(english).to_string(), english);
            assert_eq!(library(english).render(Language::Chinese), chinese);
        }
        let error = serde_json::from_str::<serde_json::Value>("{").unwrap_err();
        assert_eq!(error.to_message().render(Language::Chinese), "对象不完整，内容提前结束（第 1 行第 1 列）");
    }

    #[test]
    fn a_value_in_an_error_of_a_library_can_be_masked() {
        for text in [
            "tried to include non-existing template 'q7'",
            "unexpected q7, expected end of block",
            "q7 at line 1 column 2",
        ] {
            let mut message = library(text);
            message.change_texts(&mut |text| *text = text.replace("q7", "***"));
            assert!(!message.to_string().contains("q7"), "{message}");
        }
    }
}
