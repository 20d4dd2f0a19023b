//! Finds the start of the object of a reply, character by character, while the text arrives.
//!
//! It follows the rules of [`crate::reply::extract`] as far as possible without knowing the rest of the text.

/// The tags of a reasoning block, case-insensitive.
const THINK_TAGS: [&str; 2] = ["<think>", "</think>"];

/// Searches for the first `{` followed by a quoted key or `}`, outside `<think>…</think>` and other braces of the prose (`{name}`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ObjectStart {
    state: State,
    tag: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Prose,
    Thinking,
    Brace,
    /// Inside a brace that does not start the object.
    OtherBrace {
        depth: usize,
        string: bool,
        escaped: bool,
    },
}

impl ObjectStart {
    /// Processes the next character. True if it is the first one inside the object, a quote or the closing brace; the caller reads
    /// the object from there.
    pub(crate) fn take(&mut self, c: char) -> bool {
        match self.state {
            State::Prose if c == '{' => *self = Self { state: State::Brace, tag: 0 },
            State::Prose => {
                if self.completes(THINK_TAGS[0], c) {
                    self.state = State::Thinking;
                }
            }
            State::Thinking => {
                if self.completes(THINK_TAGS[1], c) {
                    self.state = State::Prose;
                }
            }
            State::Brace => match c {
                '"' | '}' => return true,
                // `{{`: the second brace may start the object.
                '{' | ' ' | '\t' | '\n' | '\r' => {}
                _ => self.state = State::OtherBrace { depth: 1, string: false, escaped: false },
            },
            State::OtherBrace { depth, string, escaped } => self.state = next_in_other_brace(depth, string, escaped, c),
        }
        false
    }

    fn completes(&mut self, tag: &str, c: char) -> bool {
        let matches =
            |at: usize| tag.as_bytes().get(at).is_some_and(|&byte| char::from(byte) == c.to_ascii_lowercase());
        // A tag contains `<` only at its start, so a mismatch can only start a new tag.
        self.tag = if matches(self.tag) { self.tag + 1 } else { usize::from(matches(0)) };
        let complete = self.tag == tag.len();
        if complete {
            self.tag = 0;
        }
        complete
    }
}

const fn next_in_other_brace(depth: usize, string: bool, escaped: bool, c: char) -> State {
    match c {
        _ if escaped => State::OtherBrace { depth, string, escaped: false },
        '\\' if string => State::OtherBrace { depth, string, escaped: true },
        '"' => State::OtherBrace { depth, string: !string, escaped },
        '{' if !string => State::OtherBrace { depth: depth + 1, string, escaped },
        '}' if !string && depth == 1 => State::Prose,
        '}' if !string => State::OtherBrace { depth: depth - 1, string, escaped },
        _ => State::OtherBrace { depth, string, escaped },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::extract;

    fn object_text(text: &str) -> Option<String> {
        let mut start = ObjectStart::default();
        let at = text.char_indices().find(|(_, c)| start.take(*c))?.0;
        Some(format!("{{{}", &text[at..]))
    }

    #[test]
    fn it_finds_the_same_object_as_extraction_from_the_complete_text() {
        let texts = [
            "{\"a\":1}",
            "  {  \n\"a\":1}",
            "{}",
            "好的 {name}：{\"a\":1}",
            "{a: {\"b\":1}, c: \"}\\\"\"} {\"a\":1}",
            "{{\"a\":1}}",
            "[{\"a\":1}]",
            "<think>{\"b\":1}</think>{\"a\":1}",
            "<thin><Think>{\"b\":1}<</THINK>```json\n{\"a\":1}\n```",
            "<think>{\"b\":1}",
            "nothing",
            "{",
            "{a {",
        ];
        for text in texts {
            let read = extract::object(text).ok();
            let found = object_text(text).and_then(|text| extract::object(&text).ok());
            assert_eq!(found, read, "{text}");
        }
    }
}
