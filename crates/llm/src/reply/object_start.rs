//! Finds where the object of a reply begins, character by character, as the text arrives.
//!
//! It follows the rules of [`crate::reply::extract`] as far as that is possible without knowing what comes later.

/// What opens and closes a block of reasoning, in any case.
const THINK: [&str; 2] = ["<think>", "</think>"];

/// The search for the first `{` that is followed by a quoted key or by `}`: not inside `<think>…</think>`, and not inside
/// another brace of the prose (`{name}`).
#[derive(Clone, Copy, Debug, Default)]
pub struct ObjectStart {
    state: State,
    tag: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Prose,
    Thinking,
    Brace,
    /// Inside a brace that does not: how many are open, and whether in a string and after a backslash there.
    Aside {
        depth: usize,
        string: bool,
        escaped: bool,
    },
}

impl ObjectStart {
    /// Takes the next character. True when it is the first one inside the object, a quote or the closing brace; from then
    /// on the object is the caller's to read.
    pub fn take(&mut self, c: char) -> bool {
        match self.state {
            State::Prose if c == '{' => *self = Self { state: State::Brace, tag: 0 },
            State::Prose => {
                if self.ends(THINK[0], c) {
                    self.state = State::Thinking;
                }
            }
            State::Thinking => {
                if self.ends(THINK[1], c) {
                    self.state = State::Prose;
                }
            }
            State::Brace => match c {
                '"' | '}' => return true,
                // `{{`: the second one may begin it.
                '{' | ' ' | '\t' | '\n' | '\r' => {}
                _ => self.state = State::Aside { depth: 1, string: false, escaped: false },
            },
            State::Aside { depth, string, escaped } => self.state = aside(depth, string, escaped, c),
        }
        false
    }

    fn ends(&mut self, tag: &str, c: char) -> bool {
        let fits = |at: usize| tag.as_bytes().get(at).is_some_and(|&byte| char::from(byte) == c.to_ascii_lowercase());
        // A tag has its `<` only at its beginning, so what does not go on with it can only begin it anew.
        self.tag = if fits(self.tag) { self.tag + 1 } else { usize::from(fits(0)) };
        let ends = self.tag == tag.len();
        if ends {
            self.tag = 0;
        }
        ends
    }
}

const fn aside(depth: usize, string: bool, escaped: bool, c: char) -> State {
    match c {
        _ if escaped => State::Aside { depth, string, escaped: false },
        '\\' if string => State::Aside { depth, string, escaped: true },
        '"' => State::Aside { depth, string: !string, escaped },
        '{' if !string => State::Aside { depth: depth + 1, string, escaped },
        '}' if !string && depth == 1 => State::Prose,
        '}' if !string => State::Aside { depth: depth - 1, string, escaped },
        _ => State::Aside { depth, string, escaped },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::extract;

    fn rest(text: &str) -> Option<String> {
        let mut start = ObjectStart::default();
        let at = text.char_indices().find(|(_, c)| start.take(*c))?.0;
        Some(format!("{{{}", &text[at..]))
    }

    #[test]
    fn it_finds_the_object_that_the_finished_text_is_read_from() {
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
            let found = rest(text).and_then(|rest| extract::object(&rest).ok());
            assert_eq!(found, read, "{text}");
        }
    }
}
