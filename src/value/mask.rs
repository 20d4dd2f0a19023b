//! Masking of `sensitive` values wherever they are shown, exported, recorded or logged (LANGUAGE.md section 3).

use serde_json::Value;

/// What stands in the place of a sensitive value.
pub const MASK: &str = "***";

/// Texts shorter than this are not looked for inside other texts: masking every `我` would hide nothing and destroy all.
const SHORTEST: usize = 2;

/// The sensitive values of a session, to be taken out of other texts.
#[derive(Clone, Debug, Default)]
pub struct Masker {
    needles: Vec<String>,
}

impl Masker {
    /// A masker for the texts and numbers inside `values`.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut masker = Self::default();
        for value in values {
            masker.add(value);
        }
        // Longest first, so that a value that contains another is masked whole.
        masker.needles.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        masker.needles.dedup();
        masker
    }

    fn add(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                self.add_text(text);
                // A prompt indents the further lines of an answer, so they are looked for one by one as well.
                if text.contains('\n') {
                    text.lines().for_each(|line| self.add_text(line));
                }
            }
            Value::Number(number) if number.to_string().len() > SHORTEST => self.needles.push(number.to_string()),
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            Value::Object(fields) => fields.values().for_each(|field| self.add(field)),
            _ => {}
        }
    }

    /// A text, and the ways in which it may be written in the JSON of a raw reply.
    fn add_text(&mut self, text: &str) {
        let text = text.trim();
        if text.chars().count() < SHORTEST {
            return;
        }
        self.needles.push(text.to_owned());
        let quoted = Value::from(text).to_string();
        let escaped = quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned();
        if !escaped.is_ascii() {
            self.needles.push(in_ascii(&escaped, |unit| format!("\\u{unit:04x}")));
            self.needles.push(in_ascii(&escaped, |unit| format!("\\u{unit:04X}")));
        }
        if escaped != text {
            self.needles.push(escaped);
        }
    }

    /// Whether there is nothing to mask.
    pub fn is_empty(&self) -> bool {
        self.needles.is_empty()
    }

    /// `text` with every sensitive value in it replaced by [`MASK`].
    pub fn text(&self, text: &str) -> String {
        self.needles.iter().fold(text.to_owned(), |text, needle| {
            if text.contains(needle.as_str()) { text.replace(needle.as_str(), MASK) } else { text }
        })
    }

    /// Masks every text and number inside `value`, in place. Keys stay.
    pub fn value(&self, value: &mut Value) {
        if self.is_empty() {
            return;
        }
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Number(number) if self.needles.contains(&number.to_string()) => *value = Value::String(MASK.into()),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.value(field)),
            _ => {}
        }
    }
}

/// `text` with every other character than those of ASCII as its UTF-16 escapes.
fn in_ascii(text: &str, escape: impl Fn(u16) -> String) -> String {
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
    fn sensitive_texts_vanish_from_deep_inside_other_values() {
        let masker = Masker::new([&json!("小林"), &json!({ "phone": "13800001111" }), &json!(4711)]);
        let mut value = json!({ "text": "我叫小林，电话13800001111", "list": ["小林林", 4711, 47], "小林": true });
        masker.value(&mut value);
        assert_eq!(value, json!({ "text": "我叫***，电话***", "list": ["***林", "***", 47], "小林": true }));
    }

    #[test]
    fn escapes_and_indented_lines_hide_nothing() {
        let masker = Masker::new([&json!("他说\"滚\"😀\n我走了")]);
        let raw = json!({ "x": "他说\"滚\"😀\n我走了" }).to_string();
        let lower = r#"{"x":"\u4ed6\u8bf4\"\u6eda\"\ud83d\ude00\n\u6211\u8d70\u4e86"}"#;
        let upper = r#"{"x":"\u4ED6\u8BF4\"\u6EDA\"\uD83D\uDE00\n\u6211\u8D70\u4E86"}"#;
        for raw in [raw.as_str(), lower, upper] {
            assert_eq!(masker.text(raw), r#"{"x":"***"}"#);
        }
        assert_eq!(masker.text("来访者: 他说\"滚\"😀\n  我走了"), "来访者: ***\n  ***");
    }

    #[test]
    fn short_values_are_not_looked_for() {
        let masker = Masker::new([&json!("我"), &json!(7), &json!(true), &Value::Null]);
        assert!(masker.is_empty());
    }

    #[test]
    fn a_value_that_contains_another_is_masked_whole() {
        let masker = Masker::new([&json!("Lin"), &json!("Linda Lin")]);
        assert_eq!(masker.text("Linda Lin and Lin"), "*** and ***");
    }
}
