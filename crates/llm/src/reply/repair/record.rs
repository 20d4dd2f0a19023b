//! The kinds of repairs of the fourth strategy, and their records.

use std::fmt;

use serde::Serialize;

/// A kind of invalid JSON that was repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RepairKind {
    /// The text ends before the object; open values were closed, and the truncated field was omitted.
    CutOff,
    /// A field was omitted because the text ends inside it.
    CutField,
    /// An extra comma before a closing bracket or another comma.
    ExtraComma,
    /// No comma between two members or items.
    MissingComma,
    /// No colon after a key, or `=` instead of it.
    MissingColon,
    /// A closing bracket is missing, or is of another kind than the opening one.
    WrongBracket,
    /// A closing bracket that closes nothing.
    ExtraBracket,
    /// `…` or `...` in place of fields or items that the model left out.
    Ellipsis,
    /// A list in parentheses.
    Tuple,
    /// The constructor of a type around a value: `ObjectId("1")`, `Decimal('1.10')`.
    Constructor,
    /// Strings that are joined with `+`.
    JoinedText,
    /// A string or key has no opening or no closing quote.
    MissingQuote,
    /// The opening or closing quote of a string or key is doubled.
    ExtraQuote,
    /// A word in capital letters before a key or after a field, such as `COMMENT`; it was omitted.
    ExtraWord,
    /// A field or item without a value; it became null.
    MissingValue,
    /// The object has no opening brace.
    MissingBrace,
    /// `{{ … }}`.
    DoubledBrace,
    /// A string or key with quotes other than `"`.
    OtherQuotes,
    /// Full-width punctuation as syntax.
    FullWidth,
    /// White space between two tokens that JSON does not allow.
    OtherSpace,
    Comment,
    UnquotedKey,
    /// A string without quotes.
    UnquotedText,
    /// `True`, `False`, `None` of Python, or true, false, null in another case.
    OtherWord,
    /// `NaN`, `Infinity`, `undefined`; it became null.
    NoValue,
    /// A number in a notation that JSON does not have.
    OtherNumber,
    /// An unescaped line end, tab or control character inside a string; it is kept.
    RawControl,
    /// An unescaped quote inside a string; it is kept.
    RawQuote,
    /// An escape that JSON does not have.
    OtherEscape,
    /// A lone surrogate; it became U+FFFD.
    LoneSurrogate,
    /// The object is encoded as a JSON string, possibly without the outer quotes.
    DoubleEncoded,
    /// A repeated key; the last value is used, as in JSON.
    RepeatedKey,
    /// The same object follows again.
    SeveralObjects,
}

impl RepairKind {
    /// Every kind, with its name in events and logs.
    pub const ALL: [(Self, &str); 33] = [
        (Self::CutOff, "cut_off"),
        (Self::CutField, "cut_field"),
        (Self::ExtraComma, "extra_comma"),
        (Self::MissingComma, "missing_comma"),
        (Self::MissingColon, "missing_colon"),
        (Self::WrongBracket, "wrong_bracket"),
        (Self::ExtraBracket, "extra_bracket"),
        (Self::Ellipsis, "ellipsis"),
        (Self::Tuple, "tuple"),
        (Self::Constructor, "constructor"),
        (Self::JoinedText, "joined_text"),
        (Self::MissingQuote, "missing_quote"),
        (Self::ExtraQuote, "extra_quote"),
        (Self::ExtraWord, "extra_word"),
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

/// One repair: its kind and position, never the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RepairRecord {
    pub kind: RepairKind,
    /// The position in bytes from the start of the raw text.
    pub at: usize,
}
