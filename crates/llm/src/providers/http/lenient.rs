//! Fields of what servers send, read in one pass without copying, and without refusing what has another type than it
//! should: servers differ in every detail, so such a field counts as absent.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// A string that may be something else.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Text<'a> {
    /// Whether there is anything but `null`.
    pub(crate) present: bool,
    text: Option<Cow<'a, str>>,
}

impl<'a> Text<'a> {
    /// The string; `None` where there is none or an empty one.
    pub(crate) fn said(self) -> Option<Cow<'a, str>> {
        self.text.filter(|text| !text.is_empty())
    }

    /// The string; empty where there is none.
    pub(crate) fn or_empty(self) -> Cow<'a, str> {
        self.text.unwrap_or_default()
    }

    /// Whether it is this string.
    pub(crate) fn is(&self, text: &str) -> bool {
        self.text.as_deref() == Some(text)
    }
}

/// A count that may be something else.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Count {
    /// Whether there is anything but `null`.
    pub(crate) present: bool,
    /// The number.
    pub(crate) number: Option<u64>,
}

/// An object that may be something else.
#[derive(Debug, PartialEq)]
pub(crate) struct Object<T>(pub(crate) Option<T>);

impl<T> Default for Object<T> {
    fn default() -> Self {
        Self(None)
    }
}

/// A list that may be something else; `present` says whether it is one.
#[derive(Debug, PartialEq)]
pub(crate) struct List<T> {
    /// Whether there is a list.
    pub(crate) present: bool,
    /// Its elements.
    pub(crate) items: Vec<T>,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { present: false, items: Vec::new() }
    }
}

/// A JSON document as text: a string holds it, or it stands there itself.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Document<'a>(pub(crate) Cow<'a, str>);

/// The content of a message: a text, or a list of parts of which those of type `text` count.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Content<'a>(pub(crate) Cow<'a, str>);

/// One part of a content, in the shape of either protocol.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Part<'a> {
    /// `text`, `thinking`, `tool_use` …
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Text<'a>,
    /// The text of a part that has one.
    #[serde(borrow)]
    pub(crate) text: Text<'a>,
    /// What a tool is called with.
    #[serde(borrow)]
    pub(crate) input: Document<'a>,
}

/// What each visitor does with what it does not want: nothing.
macro_rules! ignore {
    ($absent:expr, $other:expr; $($method:ident($type:ty)),*) => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("anything")
        }

        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok($absent)
        }

        $(fn $method<E: Error>(self, _: $type) -> Result<Self::Value, E> {
            Ok($other)
        })*
    };
}

fn skip_list<'de, A: SeqAccess<'de>>(list: A) -> Result<(), A::Error> {
    IgnoredAny.visit_seq(list).map(|_| ())
}

fn skip_object<'de, A: MapAccess<'de>>(object: A) -> Result<(), A::Error> {
    IgnoredAny.visit_map(object).map(|_| ())
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    ignore!(Text::default(), Text { present: true, text: None };
        visit_bool(bool), visit_i64(i64), visit_u64(u64), visit_f64(f64));

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text { present: true, text: Some(Cow::Borrowed(text)) })
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text { present: true, text: Some(Cow::Owned(text.to_owned())) })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Text<'de>, A::Error> {
        skip_list(list).map(|()| Text { present: true, text: None })
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Text<'de>, A::Error> {
        skip_object(object).map(|()| Text { present: true, text: None })
    }
}

struct CountVisitor;

impl<'de> Visitor<'de> for CountVisitor {
    type Value = Count;

    ignore!(Count::default(), Count { present: true, number: None };
        visit_bool(bool), visit_i64(i64), visit_f64(f64), visit_str(&str));

    fn visit_u64<E: Error>(self, number: u64) -> Result<Count, E> {
        Ok(Count { present: true, number: Some(number) })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Count, A::Error> {
        skip_list(list).map(|()| Count { present: true, number: None })
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Count, A::Error> {
        skip_object(object).map(|()| Count { present: true, number: None })
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    ignore!(Object(None), Object(None);
        visit_bool(bool), visit_i64(i64), visit_u64(u64), visit_f64(f64), visit_str(&str));

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Object<T>, A::Error> {
        skip_list(list).map(|()| Object(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(object)).map(|object| Object(Some(object)))
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = List<T>;

    ignore!(List::default(), List::default();
        visit_bool(bool), visit_i64(i64), visit_u64(u64), visit_f64(f64), visit_str(&str));

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<List<T>, A::Error> {
        let items = Vec::deserialize(SeqAccessDeserializer::new(list))?;
        Ok(List { present: true, items })
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<List<T>, A::Error> {
        skip_object(object).map(|()| List::default())
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Document<'de>;

    ignore!(Document::default(), Document::default();
        visit_bool(bool), visit_i64(i64), visit_u64(u64), visit_f64(f64));

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Document<'de>, E> {
        Ok(Document(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Document<'de>, E> {
        Ok(Document(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Document<'de>, A::Error> {
        let value = Value::deserialize(SeqAccessDeserializer::new(list))?;
        Ok(Document(Cow::Owned(value.to_string())))
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Document<'de>, A::Error> {
        let value = Value::deserialize(MapAccessDeserializer::new(object))?;
        Ok(Document(Cow::Owned(value.to_string())))
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    ignore!(Content::default(), Content::default();
        visit_bool(bool), visit_i64(i64), visit_u64(u64), visit_f64(f64));

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Content<'de>, E> {
        Ok(Content(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Content<'de>, E> {
        Ok(Content(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Content<'de>, A::Error> {
        let parts: Vec<Object<Part<'de>>> = Vec::deserialize(SeqAccessDeserializer::new(list))?;
        let parts = parts.into_iter().filter_map(|part| part.0);
        let texts = parts.filter(|part| !part.kind.present || part.kind.is("text"));
        Ok(Content(Cow::Owned(texts.map(|part| part.text.or_empty()).collect())))
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Content<'de>, A::Error> {
        skip_object(object).map(|()| Content::default())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountVisitor)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ObjectVisitor(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor(PhantomData))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Document<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DocumentVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Probe<'a> {
        #[serde(borrow)]
        text: Text<'a>,
        count: Count,
        #[serde(borrow)]
        inner: Object<Inner<'a>>,
        #[serde(borrow)]
        list: List<Object<Inner<'a>>>,
        #[serde(borrow)]
        document: Document<'a>,
        #[serde(borrow)]
        content: Content<'a>,
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Inner<'a> {
        #[serde(borrow)]
        name: Text<'a>,
    }

    /// Every type that a field can have.
    const ANYTHING: [&str; 8] =
        ["null", "true", "-1", "7", "1.5", "\"s\"", "[1, [2], {\"name\": 3}]", "{\"name\": \"n\"}"];

    #[test]
    fn a_field_of_another_type_is_absent_and_never_refused() {
        for field in ["text", "count", "inner", "list", "document", "content", "unknown"] {
            for value in ANYTHING {
                let json = format!("{{\"{field}\": {value}}}");
                let probe: Probe<'_> = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{json}: {error}"));
                let present = value != "null";
                assert_eq!(probe.text.present, field == "text" && present, "{json}");
                assert_eq!(probe.text.said().is_some(), field == "text" && value == "\"s\"", "{json}");
                assert_eq!(probe.count.present, field == "count" && present, "{json}");
                assert_eq!(probe.count.number, (field == "count" && value == "7").then_some(7), "{json}");
                let named = probe.inner.0.and_then(|inner| inner.name.said().map(Cow::into_owned));
                assert_eq!(named.is_some(), field == "inner" && value.starts_with('{'), "{json}");
                assert_eq!(probe.list.present, field == "list" && value.starts_with('['), "{json}");
                assert_eq!(probe.list.items.len(), if probe.list.present { 3 } else { 0 }, "{json}");
                assert_eq!(probe.content.0, if field == "content" && value == "\"s\"" { "s" } else { "" }, "{json}");
            }
        }
    }

    #[test]
    fn a_document_is_a_string_or_stands_there_itself() {
        let read = |json: &str| {
            let probe: Probe<'_> = serde_json::from_str(json).unwrap();
            probe.document.0.into_owned()
        };
        assert_eq!(read(r#"{"document": "{\"a\": 1}"}"#), r#"{"a": 1}"#);
        assert_eq!(read(r#"{"document": {"b": 1, "a": [2]}}"#), r#"{"b":1,"a":[2]}"#);
        assert_eq!(read(r#"{"document": 5}"#), "");
    }

    #[test]
    fn strings_without_escapes_are_not_copied() {
        let probe: Probe<'_> = serde_json::from_slice(r#"{"text": "您好"}"#.as_bytes()).unwrap();
        assert!(matches!(probe.text.said(), Some(Cow::Borrowed("您好"))));
        let probe: Probe<'_> = serde_json::from_slice(br#"{"text": "\u60a8"}"#).unwrap();
        assert!(matches!(probe.text.said(), Some(Cow::Owned(text)) if text == "您"));
    }
}
