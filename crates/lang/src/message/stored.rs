//! Serialization of messages for a store. [`Message`] serializes as its English text; this module serializes its structure, so that
//! it can be rendered in another language when the session is shown later.
//!
//! A text from outside this program is a JSON string; `{"word": …}` is a text of this program without arguments,
//! `{"id": …, "with": {…}}` one with arguments, `{"joint": …, "parts": […]}` a list. Earlier versions stored strings, which stay texts.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::message::message::{Joint, KnownMessage, Message, MessageList};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored<'m> {
    Text(Cow<'m, str>),
    Word { word: Cow<'m, str> },
    Known { id: Cow<'m, str>, with: BTreeMap<Cow<'m, str>, Self> },
    List { joint: Joint, parts: Vec<Self> },
}

impl<'m> From<&'m Message> for Stored<'m> {
    fn from(message: &'m Message) -> Self {
        match message {
            Message::Text(text) => Self::Text(Cow::Borrowed(text)),
            Message::Word(word) => Self::Word { word: Cow::Borrowed(word) },
            Message::Known(known) => {
                let KnownMessage { id, arguments } = known.as_ref();
                let with = arguments.iter().map(|(name, argument)| (Cow::Borrowed(name.as_ref()), argument.into()));
                Self::Known { id: Cow::Borrowed(id), with: with.collect() }
            }
            Message::List(list) => {
                let MessageList { joint, parts } = list.as_ref();
                Self::List { joint: *joint, parts: parts.iter().map(Self::from).collect() }
            }
        }
    }
}

impl From<Stored<'_>> for Message {
    fn from(stored: Stored<'_>) -> Self {
        match stored {
            Stored::Text(text) => Self::text(text),
            Stored::Word { word } => Self::Word(Cow::Owned(word.into_owned())),
            Stored::Known { id, with } => {
                let arguments =
                    with.into_iter().map(|(name, argument)| (Cow::Owned(name.into_owned()), argument.into()));
                let id = Cow::Owned(id.into_owned());
                Self::Known(Box::new(KnownMessage { id, arguments: arguments.collect() }))
            }
            Stored::List { joint, parts } => {
                Self::List(Box::new(MessageList { joint, parts: parts.into_iter().map(Self::from).collect() }))
            }
        }
    }
}

/// Serializes the structure of the message.
pub fn serialize<S: Serializer>(message: &Message, serializer: S) -> Result<S::Ok, S::Error> {
    Stored::from(message).serialize(serializer)
}

/// Deserializes the output of [`serialize`], or a text.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Message, D::Error> {
    Stored::deserialize(deserializer).map(Message::from)
}

/// A message that serializes with its structure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StoredMessage(#[serde(with = "self")] pub Message);

/// The same for an optional field.
pub mod option {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::message::message::Message;
    use crate::message::stored::{Stored, StoredMessage};

    /// Serializes the structure of the message, or null.
    pub fn serialize<S: Serializer>(message: &Option<Message>, serializer: S) -> Result<S::Ok, S::Error> {
        message.as_ref().map(Stored::from).serialize(serializer)
    }

    /// Deserializes the output of [`serialize`], a text, or null.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Message>, D::Error> {
        Ok(Option::<StoredMessage>::deserialize(deserializer)?.map(|stored| stored.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::language::Language;
    use crate::message::msg;

    #[test]
    fn a_stored_message_is_the_same_in_every_language() {
        let parts = [Message::word("warning"), Message::text("{word}"), msg!("containing {}", Message::text("a {b}"))];
        let message = msg!("of length {}", Message::any_of(parts));
        let stored = serde_json::to_string(&StoredMessage(message.clone())).unwrap();
        let StoredMessage(read) = serde_json::from_str(&stored).unwrap();
        assert_eq!(read, message);
        assert_eq!(read.render(Language::Chinese), "长度为警告、{word}或包含 a {b}");
        assert_eq!(serde_json::to_string(&message).unwrap(), "\"of length warning, {word} or containing a {b}\"");
    }

    #[test]
    fn a_text_of_an_earlier_version_is_unchanged() {
        let StoredMessage(read) = serde_json::from_str("\"warning\"").unwrap();
        assert_eq!(read.render(Language::Chinese), "warning");
    }
}
