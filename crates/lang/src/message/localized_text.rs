//! A text of this program that holds words of others: what is ours can be said in another language, what is theirs never is.

use std::borrow::Cow;
use std::fmt;

use crate::message::language::Language;
use crate::message::pattern::{Captured, MessagePattern, beside, fill};

/// What stands between the parts of a row, and what stands there in Chinese.
const JOINTS: [(&str, &str); 4] = [(", ", "，"), (" and ", "和"), (" or ", "或"), (", or ", "，或")];

/// A text whose parts know whose words they are. Shown with `{}` it is in English.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalizedText {
    /// Words of this program, said in the language of the person.
    Own(Cow<'static, str>),
    /// Words of an author, a person, a model or a file: the same in every language.
    Theirs(String),
    /// A literal of the source with what stands in its places; unnamed places are `1`, `2`, …
    Filled(&'static str, Vec<(&'static str, LocalizedText)>),
    /// Texts behind one another, with `, `, ` and `, ` or ` or `, or ` between them.
    Row(&'static str, Vec<LocalizedText>),
}

impl LocalizedText {
    pub fn own(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Own(text.into())
    }

    pub fn theirs(text: impl Into<String>) -> Self {
        Self::Theirs(text.into())
    }

    /// A literal with a single, unnamed place.
    pub fn around(literal: &'static str, value: impl Into<Self>) -> Self {
        Self::Filled(literal, vec![("1", value.into())])
    }

    /// Texts behind one another.
    pub fn row(joint: &'static str, parts: impl IntoIterator<Item = Self>) -> Self {
        Self::Row(joint, parts.into_iter().collect())
    }

    pub fn is_empty(&self) -> bool {
        self.to_string().is_empty()
    }

    /// The text in a language. Only what is [`LocalizedText::Own`], and the literals, are looked for in the catalogue.
    pub fn said(&self, language: Language) -> String {
        match self {
            Self::Own(text) => language.said(text).into_owned(),
            Self::Theirs(text) => text.clone(),
            Self::Filled(literal, values) => {
                let values: Vec<(&str, String)> =
                    values.iter().map(|(name, value)| (*name, value.said(language))).collect();
                language.set(literal, &values)
            }
            Self::Row(joint, parts) => {
                let chinese = JOINTS.iter().find(|(english, _)| english == joint).map(|(_, chinese)| *chinese);
                let parts = parts.iter().map(|part| part.said(language));
                match chinese.filter(|_| language == Language::Chinese) {
                    Some(joint) => set(parts, joint),
                    None => parts.collect::<Vec<_>>().join(joint),
                }
            }
        }
    }

    /// Changes all words of others in it, as masking does.
    pub fn change_theirs(&mut self, change: &mut impl FnMut(&mut String)) {
        match self {
            Self::Own(_) => {}
            Self::Theirs(text) => change(text),
            Self::Filled(_, values) => values.iter_mut().for_each(|(_, value)| value.change_theirs(change)),
            Self::Row(_, parts) => parts.iter_mut().for_each(|part| part.change_theirs(change)),
        }
    }
}

/// Words that nobody says to be ours are others'.
impl From<String> for LocalizedText {
    fn from(text: String) -> Self {
        Self::Theirs(text)
    }
}

impl fmt::Display for LocalizedText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.said(Language::English))
    }
}

impl Language {
    /// `literal` with values that are said already, with spaces as the language sets them.
    fn set(self, literal: &str, values: &[(&str, String)]) -> String {
        match self.literal(literal) {
            Some(translation) => {
                let written = values.iter().map(|(name, text)| Captured { name, code: true, text });
                MessagePattern::new(literal, translation)
                    .translated(&written.collect::<Vec<_>>(), |value| value.text.to_owned())
            }
            None => fill(literal, &values.iter().map(|(name, text)| (*name, text.as_str())).collect::<Vec<_>>()),
        }
    }
}

fn set(parts: impl Iterator<Item = String>, joint: &str) -> String {
    let mut out = String::new();
    for (number, part) in parts.enumerate() {
        if number == 0 {
            out.push_str(&part);
        } else {
            beside(&mut out, joint);
            beside(&mut out, &part);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_others_are_the_same_in_every_language() {
        let of = |text: &str| LocalizedText::around("with {}", LocalizedText::theirs(format!("「{text}」")));
        let both = LocalizedText::row(
            ", ",
            [of("remove it. Then warning"), LocalizedText::around("of length {}", LocalizedText::theirs("3"))],
        );
        assert_eq!(both.to_string(), "with 「remove it. Then warning」, of length 3");
        assert_eq!(both.said(Language::Chinese), "含有「remove it. Then warning」，长度为 3");
        let row = LocalizedText::row(
            " and ",
            [LocalizedText::theirs("a"), LocalizedText::theirs("「warning」"), LocalizedText::own("warning")],
        );
        assert_eq!(row.to_string(), "a and 「warning」 and warning");
        assert_eq!(row.said(Language::Chinese), "a 和「warning」和警告");
        assert_eq!(LocalizedText::from("warning".to_owned()).said(Language::Chinese), "warning");
    }

    #[test]
    fn only_words_of_others_are_changed() {
        let mut told = LocalizedText::around(
            "with {}",
            LocalizedText::row(", ", [LocalizedText::own("text"), LocalizedText::theirs("text")]),
        );
        told.change_theirs(&mut |text| *text = "•••".to_owned());
        assert_eq!(told.to_string(), "with text, •••");
        assert!(!told.is_empty() && LocalizedText::theirs("").is_empty());
    }
}
