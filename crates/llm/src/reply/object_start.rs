//! Finds the start of the object of a reply, character by character, while the text arrives.
//!
//! It follows the rules of [`crate::reply::extract`] as far as possible without knowing the rest of the text.

use crate::reply::reasoning::{BLOCKS, CHANNEL, MAX_CHANNEL_BYTES, MESSAGE, is_final_channel};

/// The maximum length of a tag, in bytes.
const MAX_TAG_BYTES: usize = 24;

/// Searches for the first `{` followed by a quoted key or `}`, outside reasoning and other braces of the prose (`{name}`).
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectStart {
    state: State,
    /// The last characters; in [`State::ChannelName`] all since its marker.
    last: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Prose,
    /// Inside reasoning, up to this tag.
    Thinking(&'static str),
    /// After the marker of a channel, up to the end of its name.
    ChannelName,
    /// Inside a channel of reasoning, up to the next channel.
    OtherChannel,
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
            State::Prose if c == '{' => *self = Self { state: State::Brace, last: String::new() },
            State::Prose => {
                self.remember(c);
                if let Some((_, close)) = BLOCKS.iter().find(|(open, _)| self.ends_with(open)) {
                    self.state = State::Thinking(close);
                } else if self.last.ends_with(CHANNEL) {
                    *self = Self { state: State::ChannelName, last: String::new() };
                }
            }
            State::Thinking(close) => {
                self.remember(c);
                if self.ends_with(close) {
                    self.state = State::Prose;
                }
            }
            State::ChannelName => self.take_channel_name(c),
            State::OtherChannel => {
                self.remember(c);
                if self.last.ends_with(CHANNEL) {
                    *self = Self { state: State::ChannelName, last: String::new() };
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

    fn take_channel_name(&mut self, c: char) {
        self.last.push(c);
        if let Some(name) = self.last.strip_suffix(MESSAGE) {
            let state = if is_final_channel(name) { State::Prose } else { State::OtherChannel };
            *self = Self { state, last: String::new() };
        } else if self.last.len() >= MAX_CHANNEL_BYTES {
            // What looked like a marker is none.
            *self = Self::default();
        }
    }

    fn remember(&mut self, c: char) {
        self.last.push(c);
        while self.last.len() > MAX_TAG_BYTES {
            self.last.remove(0);
        }
    }

    /// Whether the last characters are this tag, ignoring ASCII case.
    fn ends_with(&self, tag: &str) -> bool {
        let start = self.last.len().checked_sub(tag.len());
        start.and_then(|start| self.last.get(start..)).is_some_and(|end| end.eq_ignore_ascii_case(tag))
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
            "<reasoning>{\"b\":1}</reasoning>{\"a\":1}",
            "[THINK]{\"b\":1}[/THINK]{\"a\":1}",
            "<|channel|>analysis<|message|>{\"b\":1}<|end|><|start|>assistant<|channel|>final<|message|>{\"a\":1}",
            "<|channel|>analysis<|message|>{\"b\":1} <think><|end|><|start|>assistant<|channel|>commentary to=a<|message|>{\"b\":2}<|call|><|start|>assistant<|channel|> final <|constrain|>json<|message|>{\"a\":1}",
            "<|channel|>final<|message|>{\"a\":1}",
            "<|channel|>Final<|message|>{\"a\":1}",
            "<|channel|>analysis<|message|>{\"b\":1}",
            "nothing",
            "{",
            "{a {",
        ];
        for text in texts {
            // What follows may change what other texts mean.
            let is_cut = text.starts_with("<|channel|>");
            let ends = text.char_indices().map(|(end, _)| end).filter(|_| is_cut).chain([text.len()]);
            for text in ends.map(|end| &text[..end]) {
                let read = extract::object(text, &[]).ok();
                let found = object_text(text).and_then(|text| extract::object(&text, &[]).ok());
                assert_eq!(found, read, "{text}");
            }
        }
    }
}
