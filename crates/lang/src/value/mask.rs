//! Masks `sensitive` values in all output: displayed, exported, recorded or logged (docs/language.md "Variables").

use std::collections::{BTreeSet, HashMap};
use std::ops::{Bound, Range};

use aho_corasick::{AhoCorasick, Input, MatchKind};
use serde_json::{Map, Value};

use crate::value::exact::ExactValue;
use crate::value::quoting::lines;

/// The replacement for a sensitive value.
pub const MASK: &str = "***";

/// Texts shorter than this are not searched for in other texts: to mask every `我` would protect nothing and make texts unreadable.
const MIN_LENGTH: usize = 2;

/// The maximum length, in bytes, of an ASCII value that is masked only in its own case, because in other cases it is a part of too many
/// words, and that is left inside a longer word of a key.
const MAX_SHORT_WORD: usize = 3;

/// Replaces the sensitive values of a session in other texts. ASCII letters match in both cases.
#[derive(Clone, Debug, Default)]
pub struct Masker {
    /// The texts to search for, with ASCII letters in lower case, except in short ones.
    needles: BTreeSet<String>,
    /// Finds all needles in one pass.
    search: Option<AhoCorasick>,
}

impl Masker {
    /// A masker for the texts and numbers inside `values`.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a ExactValue>) -> Self {
        let mut masker = Self::default();
        let before = masker.needles.len();
        for value in values {
            masker.collect_exact(value);
        }
        if masker.needles.len() != before {
            masker.build();
        }
        masker
    }

    /// Adds the texts and numbers inside `value`. Returns whether any of them is new.
    pub fn add(&mut self, value: &ExactValue) -> bool {
        let before = self.needles.len();
        self.collect_exact(value);
        let new = self.needles.len() != before;
        if new {
            self.build();
        }
        new
    }

    /// Numbers are searched for as they were written, too.
    fn collect_exact(&mut self, value: &ExactValue) {
        self.collect(value);
        if let Some(digits) = value.digits() {
            digits.each(&mut |text| {
                if text.len() > MIN_LENGTH {
                    self.insert(text.to_owned());
                }
            });
        }
    }

    fn collect(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                self.add_text(text);
                // A prompt quotes each line of an answer, so each line is also searched for by itself.
                if lines(text).nth(1).is_some() {
                    lines(text).for_each(|line| self.add_text(line));
                }
            }
            Value::Number(number) if number.to_string().len() > MIN_LENGTH => {
                self.insert(number.to_string());
            }
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            Value::Object(fields) => fields.values().for_each(|field| self.collect(field)),
            _ => {}
        }
    }

    fn insert(&mut self, mut needle: String) {
        if !is_short_word(&needle) {
            needle.make_ascii_lowercase();
        }
        self.needles.insert(needle);
    }

    /// Of two values that start at the same position the longer one is masked, so that no part of it remains.
    fn build(&mut self) {
        let mut builder = AhoCorasick::builder();
        let builder = builder.match_kind(MatchKind::LeftmostLongest).ascii_case_insensitive(true);
        self.search = builder.build(&self.needles).ok();
    }

    /// The ranges of sensitive values in `text`, which do not overlap.
    fn found<'t>(&'t self, search: &'t AhoCorasick, text: &'t str) -> impl Iterator<Item = Range<usize>> + 't {
        let mut at = 0;
        std::iter::from_fn(move || {
            loop {
                let found = search.find(Input::new(text).range(at.min(text.len())..))?.range();
                // A short word in another case is not the value, but a shorter one at its start may be.
                let same_case =
                    |end: &usize| text.get(found.start..*end).is_some_and(|text| self.needles.contains(text));
                let is_short = text.get(found.clone()).is_some_and(is_short_word);
                let end = if is_short { (found.start + 1..=found.end).rev().find(same_case) } else { Some(found.end) };
                at = end.unwrap_or(found.start + 1);
                if let Some(end) = end {
                    return Some(found.start..end);
                }
            }
        })
    }

    /// Adds a text, and its possible escaped forms in the JSON of a raw reply.
    fn add_text(&mut self, text: &str) {
        let text = text.trim();
        if text.chars().count() < MIN_LENGTH {
            return;
        }
        self.insert(text.to_owned());
        let quoted = Value::from(text).to_string();
        let escaped = quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned();
        if !escaped.is_ascii() {
            self.insert(escape_non_ascii(&escaped, |unit| format!("\\u{unit:04x}")));
        }
        if escaped != text {
            self.insert(escaped);
        }
    }

    pub fn count(&self) -> usize {
        self.needles.len()
    }

    pub fn is_empty(&self) -> bool {
        self.needles.is_empty()
    }

    /// How much of `text` can be masked on its own, in bytes: what follows it may be the beginning of a sensitive value.
    pub fn decided(&self, text: &str) -> usize {
        let Some(search) = &self.search else { return if self.is_empty() { text.len() } else { 0 } };
        let longest = self.needles.iter().map(String::len).max().unwrap_or_default();
        let first = text.ceil_char_boundary(text.len().saturating_sub(longest));
        let found: Vec<_> = self.found(search, text).collect();
        let starts_needle = |rest: &str| {
            let next = self.needles.range::<str, _>((Bound::Excluded(rest), Bound::Unbounded)).next();
            next.is_some_and(|needle| needle.starts_with(rest))
        };
        let lower = text.to_ascii_lowercase();
        let may_start_value = |at: &usize| {
            let rest = |text: &str| text.get(*at..).is_some_and(starts_needle);
            (rest(text) || rest(&lower)) && !found.iter().any(|found| found.start < *at && *at < found.end)
        };
        let starts = text.char_indices().map(|(at, _)| at).skip_while(|at| *at < first);
        starts.into_iter().find(may_start_value).unwrap_or(text.len())
    }

    /// `text` with every sensitive value in it replaced by [`MASK`].
    pub fn text(&self, text: &str) -> String {
        self.text_with_mask(text, MASK)
    }

    /// Like [`text`](Self::text) with another mask than [`MASK`], for a text that may contain [`MASK`] itself.
    pub fn text_with_mask(&self, text: &str, mask: &str) -> String {
        match &self.search {
            Some(search) => {
                let (mut masked, mut copied) = (String::new(), 0);
                for found in self.found(search, text) {
                    masked.push_str(text.get(copied..found.start).unwrap_or_default());
                    masked.push_str(mask);
                    copied = found.end;
                }
                masked.push_str(text.get(copied..).unwrap_or_default());
                masked
            }
            // If there are too many values to build the search, the complete text is masked.
            None if self.needles.is_empty() => text.to_owned(),
            None => mask.to_owned(),
        }
    }

    /// As [`value`](Self::value), for a value with digits.
    pub fn exact(&self, value: &mut ExactValue, excluded: &[&str]) {
        if !self.is_empty() {
            value.change(|value| self.value(value, excluded));
        }
    }

    /// Masks every text and number inside `value`, in place. Keys are not changed, because they may be the engine's own, and
    /// neither are the values of the keys in `excluded`.
    pub fn value(&self, value: &mut Value, excluded: &[&str]) {
        if self.is_empty() {
            return;
        }
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Number(number) if self.needles.contains(&number.to_string()) => *value = Value::String(MASK.into()),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item, excluded)),
            Value::Object(fields) => {
                for (_, field) in fields.iter_mut().filter(|(key, _)| !excluded.contains(&key.as_str())) {
                    self.value(field, excluded);
                }
            }
            _ => {}
        }
    }

    /// As [`data`](Self::data), for a value with digits.
    pub fn exact_data(&self, value: &mut ExactValue) {
        if !self.is_empty() {
            value.change(|value| self.data(value));
        }
    }

    /// Masks every text, number and key inside `value`, which is data of a person, a script or a program: none of its keys is the
    /// engine's own.
    pub fn data(&self, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.data(item)),
            Value::Object(fields) => {
                fields.values_mut().for_each(|field| self.data(field));
                self.keys(fields, &[]);
            }
            scalar => self.value(scalar, &[]),
        }
    }

    /// A key with every sensitive value in it replaced; `None` if it has none. A short value counts only as a word of its own: in names of
    /// fields such as `name`, nobody is called `me`.
    fn key(&self, key: &str) -> Option<String> {
        let Some(search) = &self.search else { return (!self.is_empty()).then(|| MASK.to_owned()) };
        let is_in_word = |found: &Range<usize>| {
            let ends = |text: Option<&str>, last: bool| {
                let mut bytes = text.unwrap_or_default().bytes();
                let byte = if last { bytes.next_back() } else { bytes.next() };
                byte.is_some_and(|byte| byte.is_ascii_alphanumeric())
            };
            let short = key.get(found.clone()).is_some_and(is_short_word);
            short && (ends(key.get(..found.start), true) || ends(key.get(found.end..), false))
        };
        let (mut shown, mut copied) = (String::new(), 0);
        for found in self.found(search, key).filter(|found| !is_in_word(found)) {
            shown.push_str(key.get(copied..found.start)?);
            shown.push_str(MASK);
            copied = found.end;
        }
        (copied > 0).then(|| shown + key.get(copied..).unwrap_or_default())
    }

    /// Masks the keys of an object except those in `excluded`. A key that another one has already become gets a number.
    pub fn keys(&self, fields: &mut Map<String, Value>, excluded: &[&str]) {
        let masked_key = |key: &str| self.key(key).filter(|_| !excluded.contains(&key));
        if self.is_empty() || !fields.keys().any(|key| masked_key(key).is_some()) {
            return;
        }
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let mut masked = Map::new();
        for (key, value) in std::mem::take(fields) {
            let shown = masked_key(&key).unwrap_or(key);
            let mut unique = shown.clone();
            while masked.contains_key(&unique) {
                let number = numbers.entry(shown.clone()).or_insert(1);
                *number += 1;
                unique = format!("{shown}_{number}");
            }
            masked.insert(unique, value);
        }
        *fields = masked;
    }
}

/// Whether a scalar value is too short to be searched for; prompts show such a value unmasked. Also true for lists and objects.
pub fn is_short(value: &Value) -> bool {
    match value {
        Value::String(text) => text.trim().chars().count() < MIN_LENGTH,
        Value::Number(number) => number.to_string().len() <= MIN_LENGTH,
        _ => true,
    }
}

fn is_short_word(text: &str) -> bool {
    text.len() <= MAX_SHORT_WORD && text.is_ascii()
}

/// `text` with every non-ASCII character as UTF-16 escapes.
fn escape_non_ascii(text: &str, escape: impl Fn(u16) -> String) -> String {
    let mut ascii = String::with_capacity(text.len() * 2);
    for character in text.chars() {
        if character.is_ascii() {
            ascii.push(character);
        } else {
            ascii.extend(character.encode_utf16(&mut [0; 2]).iter().map(|unit| escape(*unit)));
        }
    }
    ascii
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sensitive_texts_are_masked_in_nested_values() {
        let masker = Masker::new(&[json!("小林").into(), json!({ "phone": "13800001111" }).into(), json!(4711).into()]);
        let mut value = json!({ "text": "我叫小林，电话13800001111", "list": ["小林林", 4711, 47], "小林": true });
        masker.value(&mut value, &[]);
        assert_eq!(value, json!({ "text": "我叫***，电话***", "list": ["***林", "***", 47], "小林": true }));
    }

    #[test]
    fn keys_of_data_are_masked_and_stay_different() {
        let masker = Masker::new(&[json!("hunter2").into(), json!("secret").into(), json!(4711).into()]);
        let mut value =
            json!({ "hunter2": 1, "secret": [{ "a hunter2": "secret" }], "***_2": 2, "4711": 4711, "k": 3 });
        masker.data(&mut value);
        let expected = json!({ "***": 1, "***_2": [{ "a ***": "***" }], "***_2_2": 2, "***_3": "***", "k": 3 });
        assert_eq!(value, expected);
        let mut bundle = json!({ "hunter2": 1, "secret": 2 });
        masker.keys(bundle.as_object_mut().unwrap(), &["secret"]);
        assert_eq!(bundle, json!({ "***": 1, "secret": 2 }));
    }

    #[test]
    fn a_short_value_in_a_key_is_masked_as_a_word() {
        let masker = Masker::new(&["me", "张三", "hunter2"].map(|text| json!(text).into()));
        let mut value = json!({ "name": 1, "me": 2, "to_me": 3, "张三的评价": 4, "xhunter2y": 5 });
        masker.data(&mut value);
        assert_eq!(value, json!({ "name": 1, "***": 2, "to_***": 3, "***的评价": 4, "x***y": 5 }));
    }

    #[test]
    fn a_sensitive_number_is_masked_as_it_was_written_and_as_it_is_computed_with() {
        let exact = |json: &str| ExactValue::parse(json).unwrap();
        let masker = Masker::new(&[exact(r#"{"price":[1.10,20241018220014123456789012]}"#)]);
        let shown = masker.text(r#"{"a":1.10,"b":1.1,"c":20241018220014123456789012}"#);
        assert_eq!(shown, r#"{"a":***,"b":***,"c":***}"#);
        let mut value = exact(r#"{"a":1.10,"b":1.100,"c":2.50}"#);
        masker.exact(&mut value, &[]);
        assert_eq!(value.to_string(), r#"{"a":"***","b":"***","c":2.50}"#);
    }

    #[test]
    fn values_of_excluded_keys_are_not_masked() {
        let masker = Masker::new(&[json!("it").into(), json!(1200).into()]);
        let mut value = json!({ "exit_reason": "exit_criteria_met", "tokens_in": 1200, "said": "it costs 1200" });
        masker.value(&mut value, &["exit_reason", "tokens_in"]);
        assert_eq!(value, json!({ "exit_reason": "exit_criteria_met", "tokens_in": 1200, "said": "*** costs ***" }));
    }

    #[test]
    fn escaped_values_and_indented_lines_are_masked() {
        let masker = Masker::new(&[json!("他说\"滚\"😀\n我走了").into()]);
        let raw = json!({ "x": "他说\"滚\"😀\n我走了" }).to_string();
        let lower = r#"{"x":"\u4ed6\u8bf4\"\u6eda\"\ud83d\ude00\n\u6211\u8d70\u4e86"}"#;
        let upper = r#"{"x":"\u4ED6\u8BF4\"\u6EDA\"\uD83D\uDE00\n\u6211\u8D70\u4E86"}"#;
        for raw in [raw.as_str(), lower, upper] {
            assert_eq!(masker.text(raw), r#"{"x":"***"}"#);
        }
        assert_eq!(masker.text("来访者:\n> 他说\"滚\"😀\n> 我走了"), "来访者:\n> ***\n> ***");
        assert_eq!(Masker::new(&[json!("他走了\u{2028}我也走").into()]).text("> 他走了\n> 我也走"), "> ***\n> ***");
    }

    #[test]
    fn the_beginning_of_a_value_is_not_decided() {
        let masker = Masker::new(&["hunter2", "他的名字", "hunter2 and more", "er2x"].map(|text| json!(text).into()));
        for (text, decided) in [
            ("", 0),
            ("nothing", 7),
            ("it is hun", 6),
            ("hunted", 6),
            ("是他的", 3),
            ("it is hunter2", 6),
            ("it is hunter2!", 14),
            ("a\nhunter2 and less", 19),
        ] {
            assert_eq!(masker.decided(text), decided.min(text.len()), "{text}");
        }
        assert_eq!(Masker::default().decided("hun"), 3);
    }

    #[test]
    fn ascii_letters_are_masked_in_both_cases_except_in_short_values() {
        let masker = Masker::new(&["Tom Sawyer", "Li", "Lia", "李Ming", "bcde"].map(|text| json!(text).into()));
        let table = [
            ("TOM SAWYER, tom sawyer", "***, ***"),
            ("Li listens; Lia, LIA, LiA", "*** listens; ***, LIA, ***A"),
            ("李ming", "***"),
            // The rest of a short value in another case may begin another value.
            ("libcde lIABCDE", "li*** lIA***"),
        ];
        for (text, masked) in table {
            assert_eq!(masker.text(text), masked, "{text}");
        }
        let mut value = json!({ "TOM sawyer": ["Tom SAWYER"] });
        masker.data(&mut value);
        assert_eq!(value, json!({ "***": ["***"] }));
        for (text, decided) in [("I am TOM S", 5), ("I am tOm sAWYER", 15), ("LI", 2), ("an L", 3)] {
            assert_eq!(masker.decided(text), decided, "{text}");
        }
        let mut masker = Masker::new(&[json!("Tom").into(), json!("Sawyer").into()]);
        assert!(!masker.add(&json!("SAWYER").into()) && masker.add(&json!("TOM").into()));
    }

    #[test]
    fn short_values_are_not_masked() {
        let masker = Masker::new(&[json!("我").into(), json!(7).into(), json!(true).into(), Value::Null.into()]);
        assert!(masker.is_empty());
        assert_eq!(masker.text("我"), "我");
    }

    #[test]
    fn a_value_that_contains_another_is_masked_completely() {
        let mut masker = Masker::new(&[json!("Lin").into()]);
        assert!(masker.add(&json!("Linda Lin").into()));
        assert!(!masker.add(&json!("Lin").into()));
        assert_eq!(masker.text("Linda Lin and Lin"), "*** and ***");
    }
}
