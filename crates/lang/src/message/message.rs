//! A message as data: the literal that identifies the text, and its arguments. It is rendered when it is displayed, in the
//! language of the user (docs/languages.md).

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use crate::message::language::Language;
use crate::message::pattern::{fill_english, fill_translation, push_in_language};

/// A text for people. `Display` and serialization use English.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Message {
    /// A text of this program without arguments. Braces in it are literal.
    Word(Cow<'static, str>),
    /// A text of this program with its arguments.
    Known(Box<KnownMessage>),
    /// A text from outside this program (an author, a person, a model, a file, a library), a name or a number: the same in every language.
    Text(Box<str>),
    /// Several messages with a separator.
    List(Box<MessageList>),
}

/// A literal of the source and the arguments for its placeholders.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KnownMessage {
    /// The literal, which is the key in the catalogues.
    pub(crate) id: Cow<'static, str>,
    /// The arguments by the names of their placeholders; unnamed placeholders are `1`, `2`, …
    pub(crate) arguments: Vec<(Cow<'static, str>, Message)>,
}

/// Messages with a separator.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageList {
    pub(crate) joint: Joint,
    pub(crate) parts: Vec<Message>,
}

/// The separator between the parts of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Joint {
    Nothing,
    /// A space, between sentences and other independent parts.
    Space,
    Line,
    /// A comma between parts of a sentence.
    Comma,
    /// A comma between names and values.
    Item,
    And,
    Or,
    /// An "or" after a comma.
    CommaOr,
    Semicolon,
    /// A colon, before an explanation of the previous part.
    Colon,
    /// The end of a sentence; not added after the last one.
    Sentence,
}

impl Joint {
    const fn text(self, language: Language) -> &'static str {
        let (english, chinese, pseudo) = match self {
            Self::Nothing => ("", "", ""),
            Self::Space => (" ", " ", " "),
            Self::Line => ("\n", "\n", "\n"),
            Self::Comma => (", ", "，", "⟦, ⟧"),
            Self::Item => (", ", "、", "⟦, ⟧"),
            Self::And => (" and ", "和", "⟦ and ⟧"),
            Self::Or => (" or ", "或", "⟦ or ⟧"),
            Self::CommaOr => (", or ", "，或", "⟦, or ⟧"),
            Self::Semicolon => ("; ", "；", "⟦; ⟧"),
            Self::Colon => (": ", "：", "⟦: ⟧"),
            Self::Sentence => (". ", "。", "⟦. ⟧"),
        };
        match language {
            Language::English => english,
            Language::Chinese => chinese,
            Language::Pseudo => pseudo,
        }
    }
}

impl Message {
    /// The message of a literal. `msg!` expands to this call; the names are those of the literal's placeholders.
    pub fn new(id: &'static str, arguments: Vec<(Cow<'static, str>, Self)>) -> Self {
        Self::Known(Box::new(KnownMessage { id: Cow::Borrowed(id), arguments }))
    }

    /// A word or sentence of this program without arguments.
    pub const fn word(text: &'static str) -> Self {
        Self::Word(Cow::Borrowed(text))
    }

    /// A text that is the same in every language.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into().into_boxed_str())
    }

    pub fn list(joint: Joint, parts: impl IntoIterator<Item = Self>) -> Self {
        let mut parts: Vec<Self> = parts.into_iter().collect();
        match (parts.pop(), parts.is_empty()) {
            (Some(only), true) => only,
            (Some(last), false) => {
                parts.push(last);
                Self::List(Box::new(MessageList { joint, parts }))
            }
            (None, _) => Self::text(""),
        }
    }

    /// `a, b, c`: values that are the same in every language
    pub fn values(values: impl IntoIterator<Item = impl fmt::Display>) -> Self {
        Self::list(Joint::Item, values.into_iter().map(|value| Self::text(value.to_string())))
    }

    /// Like [`Self::values`], each value in backticks
    pub fn names(names: impl IntoIterator<Item = impl fmt::Display>) -> Self {
        Self::list(Joint::Item, names.into_iter().map(|name| Self::text(format!("`{name}`"))))
    }

    /// `a, b or c`
    pub fn any_of(parts: impl IntoIterator<Item = Self>) -> Self {
        Self::enumeration(Joint::Or, parts)
    }

    /// `a, b and c`
    pub fn all_of(parts: impl IntoIterator<Item = Self>) -> Self {
        Self::enumeration(Joint::And, parts)
    }

    fn enumeration(last_joint: Joint, parts: impl IntoIterator<Item = Self>) -> Self {
        let mut parts: Vec<Self> = parts.into_iter().collect();
        match parts.pop() {
            Some(last) if parts.is_empty() => last,
            Some(last) => Self::List(Box::new(MessageList {
                joint: last_joint,
                parts: vec![Self::list(Joint::Item, parts), last],
            })),
            None => Self::text(""),
        }
    }

    /// Whether `other` is this message or its beginning.
    pub fn starts_with(&self, other: &Self) -> bool {
        self == other || self.to_string().starts_with(&other.to_string())
    }

    /// Whether this is the message of a literal, with any arguments.
    pub fn is(&self, literal: &str) -> bool {
        match self {
            Self::Word(text) => text == literal,
            Self::Known(known) => known.id == literal,
            Self::Text(_) | Self::List(_) => false,
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Self::Word(text) => text.is_empty(),
            Self::Known(known) => known.id.is_empty(),
            Self::Text(text) => text.is_empty(),
            Self::List(list) => list.parts.iter().all(Self::is_empty),
        }
    }

    /// The text in a language, or in English if its catalogue does not contain it.
    pub fn render(&self, language: Language) -> String {
        match self {
            Self::Word(text) => language.literal(text).unwrap_or(text).to_owned(),
            Self::Known(known) => {
                let KnownMessage { id, arguments } = known.as_ref();
                let value = |name: &str| {
                    let found = arguments.iter().find(|(key, _)| key == name);
                    found.map(|(_, argument)| argument.render(language))
                };
                match language.literal(id) {
                    Some(translation) => fill_translation(translation, value),
                    None => fill_english(id, value),
                }
            }
            Self::Text(text) => text.to_string(),
            Self::List(list) => {
                let MessageList { joint, parts } = list.as_ref();
                let mut out = String::new();
                for (number, part) in parts.iter().enumerate() {
                    if number > 0 {
                        push_in_language(&mut out, joint.text(language), language);
                    }
                    push_in_language(&mut out, &part.render(language), language);
                }
                out
            }
        }
    }

    /// Changes all texts that are not from this program, for example to mask values.
    pub fn change_texts(&mut self, change: &mut impl FnMut(&mut String)) {
        match self {
            Self::Word(_) => {}
            Self::Known(known) => known.arguments.iter_mut().for_each(|(_, argument)| argument.change_texts(change)),
            Self::Text(text) => {
                let mut changed = std::mem::take(text).into_string();
                change(&mut changed);
                *text = changed.into_boxed_str();
            }
            Self::List(list) => list.parts.iter_mut().for_each(|part| part.change_texts(change)),
        }
    }
}

impl From<&'static str> for Message {
    fn from(id: &'static str) -> Self {
        Self::word(id)
    }
}

impl Default for Message {
    fn default() -> Self {
        Self::text("")
    }
}

impl From<&Self> for Message {
    fn from(message: &Self) -> Self {
        message.clone()
    }
}

impl From<Message> for String {
    fn from(message: Message) -> Self {
        message.to_string()
    }
}

impl fmt::Display for Message {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => formatter.pad(text),
            message => formatter.pad(&message.render(Language::English)),
        }
    }
}

impl PartialEq<str> for Message {
    fn eq(&self, other: &str) -> bool {
        self.render(Language::English) == other
    }
}

impl PartialEq<&str> for Message {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::msg;

    #[test]
    fn texts_from_outside_are_the_same_in_every_language() {
        let containing = |text: &str| msg!("containing {}", format!("「{text}」"));
        let both = Message::list(Joint::Comma, [containing("remove it. Then warning"), msg!("of length {}", 3)]);
        assert_eq!(both.to_string(), "containing 「remove it. Then warning」, of length 3");
        assert_eq!(both.render(Language::Chinese), "包含「remove it. Then warning」，长度为 3");
        let list =
            Message::list(Joint::And, [Message::text("a"), Message::text("「warning」"), Message::word("warning")]);
        assert_eq!(list.to_string(), "a and 「warning」 and warning");
        assert_eq!(list.render(Language::Chinese), "a 和「warning」和警告");
        assert_eq!(Message::text("warning").render(Language::Chinese), "warning");
    }

    #[test]
    fn lists_of_names_use_the_punctuation_of_the_language() {
        let names = |count: usize| Message::any_of(["`a`", "`b`", "`c`"].into_iter().take(count).map(Message::text));
        let both = |message: Message| (message.to_string(), message.render(Language::Chinese));
        assert_eq!(both(names(0)), (String::new(), String::new()));
        assert_eq!(both(names(1)), ("`a`".into(), "`a`".into()));
        assert_eq!(both(names(2)), ("`a` or `b`".into(), "`a` 或 `b`".into()));
        assert_eq!(both(names(3)), ("`a`, `b` or `c`".into(), "`a`、`b` 或 `c`".into()));
    }

    #[test]
    fn only_texts_from_outside_are_changed() {
        let mut message =
            msg!("containing {}", Message::list(Joint::Comma, [Message::word("text"), Message::text("text")]));
        message.change_texts(&mut |text| *text = "•••".to_owned());
        assert_eq!(message.to_string(), "containing text, •••");
        assert!(!message.is_empty() && Message::text("").is_empty());
    }

    #[test]
    fn an_argument_that_is_a_message_is_translated_and_braces_in_texts_are_not_placeholders() {
        let inner = Message::word("warning");
        let name = "{name} warning";
        let message = msg!("containing {}", inner);
        assert_eq!(message.render(Language::Chinese), "包含警告");
        assert_eq!(msg!("containing {}", name).render(Language::Chinese), "包含 {name} warning");
        assert_eq!(msg!("with {name:?}").to_string(), "with \"{name} warning\"");
        assert_eq!(msg!("{0} {{}} {0} {count}", 7, count = 1 + 1).to_string(), "7 {} 7 2");
    }
}
