//! Errors of libraries as messages. They are English sentences; the few forms that people meet are taken apart here, where they arise,
//! so that their parts can be looked up in the catalogues.

use std::borrow::Cow;

use crate::message::language::Language;
use crate::message::message::Message;
use crate::message::msg;

/// What a library says of an error. What no catalogue knows stays in English.
pub fn library(text: &str) -> Message {
    if let Some((what, line, column)) = place(text) {
        return msg!("{} at line {} column {}", library(what), line, column);
    }
    if let Some((found, expected)) = text.strip_prefix("unexpected ").and_then(|rest| rest.split_once(", expected ")) {
        return msg!("unexpected {}, expected {}", word(found), word(expected));
    }
    if let Some((found, expected)) = text.strip_prefix("invalid type: ").and_then(|rest| rest.split_once(", expected "))
    {
        return msg!("invalid type: {}, expected {}", word(found), word(expected));
    }
    match text.strip_prefix("unexpected ") {
        Some(found) if !matches!(text, "unexpected end of string") => msg!("unexpected {}", word(found)),
        _ => word(text),
    }
}

/// What a deserializer says of an error, and where.
pub fn json_error(error: &serde_json::Error) -> Message {
    library(&error.to_string())
}

/// A part that a catalogue knows is a word of the library. Any other may hold a value or a name of the person's, which masks must find.
fn word(text: &str) -> Message {
    match Language::Chinese.literal(text) {
        Some(_) => Message::Word(Cow::Owned(text.to_owned())),
        None => Message::text(text),
    }
}

/// `… at line 1 column 2`, as serde_json writes it.
fn place(text: &str) -> Option<(&str, usize, usize)> {
    let (what, place) = text.rsplit_once(" at line ")?;
    let (line, column) = place.split_once(" column ")?;
    Some((what, line.parse().ok()?, column.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_libraries_are_translated_by_their_parts_and_read_the_same_in_english() {
        let table = [
            ("expected value at line 1 column 2", "这里应有一个值（第 1 行第 2 列）"),
            ("unexpected end of input, expected end of block", "这里是文本的结尾，而应该是标签的结尾 `%}`"),
            ("unexpected end of string", "引号没有结束"),
            ("something new", "something new"),
        ];
        for (english, chinese) in table {
            assert_eq!(library(english).to_string(), english);
            assert_eq!(library(english).render(Language::Chinese), chinese);
        }
        let error = serde_json::from_str::<serde_json::Value>("{").unwrap_err();
        assert_eq!(json_error(&error).render(Language::Chinese), "对象不完整，内容提前结束（第 1 行第 1 列）");
    }

    #[test]
    fn what_a_library_repeats_of_a_value_can_be_masked() {
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
