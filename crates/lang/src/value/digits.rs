//! How the numbers inside a JSON value were written, where a number would be written in another way again: `1.10` and not `1.1`.

use std::collections::BTreeMap;

use memchr::memchr2;
use serde_json::value::RawValue;
use serde_json::{Number, Value};

/// A number of at most this many digits, without a fraction or an exponent, is always written in the same way again.
const PLAIN_DIGITS: usize = 15;

/// The written numbers inside one value, at the places where they are. Only those that differ from how the number is written again,
/// so that nearly every value has none.
///
/// A tree and no map of JSON pointers: those would repeat a long key for each number below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Digits {
    /// The value is a number, written as this.
    Number(Box<str>),
    /// By the index in a list.
    Items(BTreeMap<usize, Self>),
    /// By the key in an object.
    Fields(BTreeMap<String, Self>),
}

impl Digits {
    /// The written numbers of a JSON text, which must be valid; `None` if all would be written in the same way again.
    pub fn of_json(json: &str) -> Option<Self> {
        if has_own_digits(json) { of_raw(json.trim()) } else { None }
    }

    /// The written form of a number, as in a script: `+1.10` and `.50` are not JSON, but `1.10` and `0.50` are.
    pub(crate) fn of_number(text: &str) -> Option<Self> {
        let text = text.strip_prefix('+').unwrap_or(text);
        let (sign, unsigned) = match text.strip_prefix('-') {
            Some(unsigned) => ("-", unsigned),
            None => ("", text),
        };
        let zero = if unsigned.starts_with('.') { "0" } else { "" };
        of_token(&format!("{sign}{zero}{unsigned}"))
    }

    pub fn field(&self, key: &str) -> Option<&Self> {
        if let Self::Fields(fields) = self { fields.get(key) } else { None }
    }

    pub fn item(&self, index: usize) -> Option<&Self> {
        if let Self::Items(items) = self { items.get(&index) } else { None }
    }

    /// The written form, if the value is a number.
    pub fn number(&self) -> Option<&str> {
        if let Self::Number(text) = self { Some(text) } else { None }
    }

    /// The digits of a list with these elements.
    pub fn of_items(items: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        let items = items.into_iter().enumerate().filter_map(|(index, digits)| Some((index, digits?))).collect();
        Some(Self::Items(items)).filter(|digits| !digits.is_empty())
    }

    /// The digits of an object with these fields.
    pub fn of_fields(fields: impl IntoIterator<Item = (String, Option<Self>)>) -> Option<Self> {
        let fields = fields.into_iter().filter_map(|(key, digits)| Some((key, digits?))).collect();
        Some(Self::Fields(fields)).filter(|digits| !digits.is_empty())
    }

    /// Only the digits of numbers that `value` still has at the same place.
    #[must_use]
    pub fn matching(self, value: &Value) -> Option<Self> {
        match (self, value) {
            (Self::Number(text), Value::Number(number)) => {
                (serde_json::from_str(&text).ok().as_ref() == Some(number)).then_some(Self::Number(text))
            }
            (Self::Items(items), Value::Array(values)) => {
                let own = |(index, digits): (usize, Self)| Some((index, digits.matching(values.get(index)?)?));
                Some(Self::Items(items.into_iter().filter_map(own).collect())).filter(|digits| !digits.is_empty())
            }
            (Self::Fields(fields), Value::Object(values)) => {
                let own = |(key, digits): (String, Self)| {
                    let digits = digits.matching(values.get(&key)?)?;
                    Some((key, digits))
                };
                Some(Self::Fields(fields.into_iter().filter_map(own).collect())).filter(|digits| !digits.is_empty())
            }
            _ => None,
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Number(_) => false,
            Self::Items(items) => items.is_empty(),
            Self::Fields(fields) => fields.is_empty(),
        }
    }

    /// Every written number.
    pub(crate) fn each(&self, visit: &mut impl FnMut(&str)) {
        match self {
            Self::Number(text) => visit(text),
            Self::Items(items) => items.values().for_each(|digits| digits.each(visit)),
            Self::Fields(fields) => fields.values().for_each(|digits| digits.each(visit)),
        }
    }

    /// The total length of the written numbers, in bytes.
    pub(crate) fn length(&self) -> usize {
        let mut length = 0_usize;
        self.each(&mut |text| length = length.saturating_add(text.len()));
        length
    }
}

/// Whether `text` is a whole number: without a fraction other than zeros, and without an exponent.
pub(crate) fn is_whole(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole = whole.strip_prefix('-').unwrap_or(whole);
    !whole.is_empty() && whole.bytes().all(|byte| byte.is_ascii_digit()) && fraction.bytes().all(|byte| byte == b'0')
}

/// Whether any number outside the strings of a JSON text would be written in another way again. Reads the text once.
fn has_own_digits(json: &str) -> bool {
    let bytes = json.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = end_of_string(bytes, at + 1),
            b'-' | b'0'..=b'9' => {
                let end = end_of_number(bytes, at);
                if json.get(at..end).is_some_and(differs) {
                    return true;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    false
}

/// The position after the quote that closes the string whose content starts at `at`.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(found) = memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        match bytes.get(at + found) {
            Some(b'"') => return at + found + 1,
            _ => at += found + 2,
        }
    }
    bytes.len()
}

fn end_of_number(bytes: &[u8], start: usize) -> usize {
    let is_part = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    start + bytes.get(start..).unwrap_or_default().iter().take_while(is_part).count()
}

/// Whether a number of a JSON text would be written in another way again.
fn differs(written: &str) -> bool {
    let digits = written.strip_prefix('-').unwrap_or(written);
    let is_plain = digits.len() <= PLAIN_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain && written != "-0" {
        return false;
    }
    serde_json::from_str::<Number>(written).is_ok_and(|number| number.to_string() != written)
}

fn of_token(written: &str) -> Option<Digits> {
    differs(written).then(|| Digits::Number(written.into()))
}

/// As [`Digits::of_json`]. The depth is limited, because `serde_json` has read the text before.
fn of_raw(raw: &str) -> Option<Digits> {
    match raw.as_bytes().first()? {
        b'{' => {
            // Of a repeated key the last value counts, as in the value itself.
            let fields: BTreeMap<String, &RawValue> = serde_json::from_str(raw).ok()?;
            Digits::of_fields(fields.into_iter().map(|(key, value)| (key, of_raw(value.get()))))
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(raw).ok()?;
            Digits::of_items(items.into_iter().map(|item| of_raw(item.get())))
        }
        b'-' | b'0'..=b'9' => of_token(raw),
        _ => None,
    }
}
