//! Extracts the text for the person from a JSON reply while it is streamed (docs/replies.md): the top-level field `content`, or
//! `llm_reply.message` of structured actions.
//!
//! It is stricter than the strategies that parse the complete reply: if the text is ambiguous, it stops, and the content is shown
//! when the reply is complete. The extracted text may not be part of the final reply (later text may be invalid, or a later
//! fenced block may be used instead); then the caller discards it.

use crate::reply::object_start::ObjectStart;
use crate::reply::unescape::{Unescape, UnescapeStep};
use serde_json::{Map, Value};

const MAX_DEPTH: usize = 128;

/// The maximum length of a buffered key or literal; longer ones are irrelevant.
const MAX_WORD_BYTES: usize = 16;

/// The field of a reply with the text for the person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MessageField {
    /// `content`. It is shown only if `safety_risk` with `detected: false` precedes it.
    #[default]
    Content,
    /// `llm_reply.message`. It is shown unless `safety_risk` with something else precedes it.
    LlmReply,
}

impl MessageField {
    /// The text in a complete reply.
    pub fn text_in(self, reply: &Map<String, Value>) -> Option<&str> {
        match self {
            Self::Content => reply.get("content")?.as_str(),
            Self::LlmReply => reply.get("llm_reply")?.get("message")?.as_str(),
        }
    }
}

/// Extracts the text for the person from a reply that arrives in pieces: that of the first such field of the first top-level object.
/// It takes linear time.
#[derive(Clone, Debug, Default)]
pub struct LiveContent {
    state: State,
    start: ObjectStart,
    open: Vec<char>,
    word: String,
    field: Name,
    message: MessageField,
    /// Whether the current value is `safety_risk.detected`.
    detected: bool,
    /// Whether the current value is `llm_reply.message`.
    is_message: bool,
    safety: Safety,
    /// Whether nothing is shown before an `EXIT` that means no.
    only_without_exit: bool,
    /// Whether there was such an `EXIT`.
    goes_on: bool,
    shown: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Before,
    /// Inside the object, between strings and literals.
    Between(Next),
    Text(Role, Unescape),
    Literal,
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Key,
    KeyOrEnd,
    Colon,
    Value,
    ValueOrEnd,
    CommaOrEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Key,
    Content,
    Exit,
    Other,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Name {
    SafetyRisk,
    Content,
    LlmReply,
    Exit,
    #[default]
    Other,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Safety {
    #[default]
    Unknown,
    NoRisk,
    Risk,
}

impl LiveContent {
    pub fn new() -> Self {
        Self::default()
    }

    /// Shows `llm_reply.message`.
    pub fn of_structured_actions() -> Self {
        Self { message: MessageField::LlmReply, ..Self::default() }
    }

    /// Shows the content only if an `EXIT` that means no precedes it, because the words of other replies may not count.
    pub fn only_without_exit() -> Self {
        Self { only_without_exit: true, ..Self::default() }
    }

    /// Processes the next piece of the reply, which may end anywhere, and returns the new characters of `content`, if any.
    pub fn push(&mut self, piece: &str) -> String {
        let before = self.shown.len();
        let mut rest = piece;
        while self.state != State::Done {
            if let State::Text(role, unescape) = self.state
                && unescape.is_between_characters()
            {
                let (plain, further) = plain_start(rest);
                self.take_plain(role, plain);
                rest = further;
            }
            let mut chars = rest.chars();
            let Some(c) = chars.next() else { break };
            self.take(c);
            rest = chars.as_str();
        }
        self.shown.get(before..).unwrap_or_default().to_owned()
    }

    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Takes characters of a string that stand for themselves.
    fn take_plain(&mut self, role: Role, text: &str) {
        match role {
            Role::Content => self.shown.push_str(text),
            Role::Key | Role::Exit => text.chars().take(MAX_WORD_BYTES).for_each(|c| self.push_word(c)),
            Role::Other => {}
        }
    }

    fn take(&mut self, c: char) {
        match self.state {
            State::Before => {
                if self.start.take(c) {
                    self.open.push('{');
                    self.between(Next::KeyOrEnd, c);
                }
            }
            State::Between(next) => self.between(next, c),
            State::Text(role, unescape) => self.text(role, unescape, c),
            State::Literal => match c {
                ',' | '}' | ']' | ' ' | '\t' | '\n' | '\r' => {
                    self.end_literal();
                    self.between(Next::CommaOrEnd, c);
                }
                _ => self.push_word(c),
            },
            State::Done => {}
        }
    }

    fn between(&mut self, next: Next, c: char) {
        let inside = self.open.last().copied();
        self.state = match (next, c) {
            (_, ' ' | '\t' | '\n' | '\r') => State::Between(next),
            (Next::Key | Next::KeyOrEnd, '"') => {
                self.word.clear();
                State::Text(Role::Key, Unescape::default())
            }
            (Next::Colon, ':') => {
                self.end_key();
                State::Between(Next::Value)
            }
            (Next::KeyOrEnd | Next::CommaOrEnd, '}') if inside == Some('{') => self.close(),
            (Next::ValueOrEnd | Next::CommaOrEnd, ']') if inside == Some('[') => self.close(),
            (Next::CommaOrEnd, ',') if inside == Some('{') => State::Between(Next::Key),
            (Next::CommaOrEnd, ',') if inside == Some('[') => State::Between(Next::Value),
            (Next::Value | Next::ValueOrEnd, c) => self.start_value(c),
            _ => State::Done,
        };
    }

    fn start_value(&mut self, c: char) -> State {
        if self.is_message {
            // Only the first message counts, and only if it is a string.
            return match c {
                '"' if self.safety != Safety::Risk => State::Text(Role::Content, Unescape::default()),
                _ => State::Done,
            };
        }
        if self.open.len() == 1 && self.field == Name::Content {
            // Only the first `content` is shown, and only if it is a string and there is no risk.
            return match c {
                '"' if self.safety == Safety::NoRisk && (self.goes_on || !self.only_without_exit) => {
                    State::Text(Role::Content, Unescape::default())
                }
                _ => State::Done,
            };
        }
        if self.detected && matches!(c, '"' | '{' | '[') {
            self.safety = Safety::Risk;
            self.detected = false;
        }
        match c {
            '"' if self.open.len() == 1 && self.field == Name::Exit => {
                self.word.clear();
                State::Text(Role::Exit, Unescape::default())
            }
            '"' => State::Text(Role::Other, Unescape::default()),
            '{' | '[' if self.open.len() < MAX_DEPTH => {
                self.open.push(c);
                State::Between(if c == '{' { Next::KeyOrEnd } else { Next::ValueOrEnd })
            }
            '-' | '0'..='9' | 't' | 'f' | 'n' => {
                self.word.clear();
                self.push_word(c);
                State::Literal
            }
            _ => State::Done,
        }
    }

    fn text(&mut self, role: Role, mut unescape: Unescape, c: char) {
        let step = unescape.step(c);
        self.state = State::Text(role, unescape);
        match (step, role) {
            (UnescapeStep::Char(c), Role::Content) => self.shown.push(c),
            (UnescapeStep::Char(c), Role::Key | Role::Exit) => self.push_word(c),
            (UnescapeStep::Char(_), Role::Other) | (UnescapeStep::More, _) => {}
            (UnescapeStep::End, Role::Key) => self.state = State::Between(Next::Colon),
            (UnescapeStep::End, Role::Exit) => {
                self.end_exit();
                self.state = State::Between(Next::CommaOrEnd);
            }
            (UnescapeStep::End, Role::Other) => self.state = State::Between(Next::CommaOrEnd),
            (UnescapeStep::End, Role::Content) | (UnescapeStep::Invalid, _) => self.state = State::Done,
        }
    }

    fn end_key(&mut self) {
        match self.open.len() {
            1 => {
                self.field = match self.word.as_str() {
                    "safety_risk" => Name::SafetyRisk,
                    "content" if self.message == MessageField::Content => Name::Content,
                    "llm_reply" if self.message == MessageField::LlmReply => Name::LlmReply,
                    "EXIT" => Name::Exit,
                    _ => Name::Other,
                };
            }
            2 => {
                self.detected = self.field == Name::SafetyRisk && self.word == "detected";
                self.is_message = self.field == Name::LlmReply && self.word == "message";
            }
            _ => {}
        }
    }

    /// The last value of `EXIT` counts.
    fn end_exit(&mut self) {
        self.goes_on = matches!(self.word.trim().to_lowercase().as_str(), "no" | "false" | "0" | "否");
    }

    fn end_literal(&mut self) {
        if self.open.len() == 1 && self.field == Name::Exit {
            self.end_exit();
        }
        if self.detected {
            // If `detected` occurs twice, the worse value counts.
            self.safety = match self.safety {
                Safety::Risk => Safety::Risk,
                _ if self.word == "false" => Safety::NoRisk,
                _ => Safety::Risk,
            };
            self.detected = false;
        }
    }

    fn close(&mut self) -> State {
        self.open.pop();
        if self.open.is_empty() { State::Done } else { State::Between(Next::CommaOrEnd) }
    }

    fn push_word(&mut self, c: char) {
        if self.word.len() < MAX_WORD_BYTES {
            self.word.push(c);
        }
    }
}

/// Splits off the characters of a JSON string that stand for themselves.
fn plain_start(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|byte| byte < b' ' || byte == b'"' || byte == b'\\');
    text.split_at_checked(end.unwrap_or(text.len())).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests;
