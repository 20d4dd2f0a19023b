//! What the fourth strategy mends, and the record of each mend.

use std::fmt;

use serde::Serialize;

/// A way in which a text was no JSON, and was read nevertheless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RepairKind {
    /// The text ends before its object does; what was open was closed, and the field that was cut left out.
    CutOff,
    /// A field was left out because the text ends inside of it.
    CutField,
    /// A comma too many, before a closing bracket or another comma.
    ExtraComma,
    /// No comma between two members or items.
    MissingComma,
    /// A field or item without a value; it is null.
    MissingValue,
    /// The object has no opening brace.
    MissingBrace,
    /// `{{ … }}`.
    DoubledBrace,
    /// Other quotes than `"` around a text or key.
    OtherQuotes,
    /// Full-width punctuation as syntax.
    FullWidth,
    /// Other white space than JSON's between two tokens.
    OtherSpace,
    Comment,
    UnquotedKey,
    /// A text of one word without quotes.
    UnquotedText,
    /// `True`, `False`, `None` of Python, or true, false, null in other case.
    OtherWord,
    /// `NaN`, `Infinity`, `undefined`: null.
    NoValue,
    /// A number that JSON spells otherwise.
    OtherNumber,
    /// A line end, tab or control character that is not escaped inside a text; it is kept.
    RawControl,
    /// A quote that is not escaped inside a text; it is kept.
    RawQuote,
    /// An escape that JSON does not know.
    OtherEscape,
    /// Half a surrogate pair; it became U+FFFD.
    LoneSurrogate,
    /// The object stands inside a JSON text, or its quotes are escaped as if it did.
    DoubleEncoded,
    /// A key that was there before; the later value counts, as in JSON.
    RepeatedKey,
    /// Another object follows; the first was taken.
    SeveralObjects,
}

impl RepairKind {
    /// Every kind, with its name in events and logs.
    pub const ALL: [(Self, &str); 23] = [
        (Self::CutOff, "cut_off"),
        (Self::CutField, "cut_field"),
        (Self::ExtraComma, "extra_comma"),
        (Self::MissingComma, "missing_comma"),
        (Self::MissingValue, "missing_value"),
        (Self::MissingBrace, "missing_brace"),
        (Self::DoubledBrace, "doubled_brace"),
        (Self::OtherQuotes, "other_quotes"),
        (Self::FullWidth, "full_width"),
        (Self::OtherSpace, "other_space"),
        (Self::Comment, "comment"),
        (Self::UnquotedKey, "unquoted_key"),
        (Self::UnquotedText, "unquoted_text"),
        (Self::OtherWord, "other_word"),
        (Self::NoValue, "no_value"),
        (Self::OtherNumber, "other_number"),
        (Self::RawControl, "raw_control"),
        (Self::RawQuote, "raw_quote"),
        (Self::OtherEscape, "other_escape"),
        (Self::LoneSurrogate, "lone_surrogate"),
        (Self::DoubleEncoded, "double_encoded"),
        (Self::RepeatedKey, "repeated_key"),
        (Self::SeveralObjects, "several_objects"),
    ];

    /// The name in events and logs.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }
}

impl fmt::Display for RepairKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One mend: what was wrong and where, never the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RepairRecord {
    pub kind: RepairKind,
    /// Where, in bytes from the beginning of the raw text.
    pub at: usize,
}
