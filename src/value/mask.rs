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
            Value::String(text) if text.trim().chars().count() >= SHORTEST => self.needles.push(text.trim().to_owned()),
            Value::Number(number) if number.to_string().len() > SHORTEST => self.needles.push(number.to_string()),
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            Value::Object(fields) => fields.values().for_each(|field| self.add(field)),
            _ => {}
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
