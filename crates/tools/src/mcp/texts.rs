//! Texts of servers, made harmless: bounded, and without characters that are invisible or change the order of others.

use serde_json::Value;

/// The maximum length of a description, and of an error of a server, in characters.
pub(crate) const MAX_TEXT: usize = 2_000;

/// The maximum length of a text within a schema, in characters.
const MAX_SCHEMA_TEXT: usize = 500;

/// What is put at the end of a text that was cut.
const CUT: char = '…';

/// The text without control characters other than line ends and tabs, and without invisible characters; at most `limit` characters.
pub(crate) fn cleaned(text: &str, limit: usize) -> String {
    let mut kept = text.chars().filter(|c| !is_removed(*c));
    let mut short: String = kept.by_ref().take(limit).collect();
    if kept.next().is_some() {
        short.pop();
        short.push(CUT);
    }
    short.trim().to_owned()
}

/// Characters that a person does not see, or that make a person see another text. Joiners and variation selectors, which writing
/// systems and emoji need, stay.
pub(crate) fn is_removed(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Cleans the texts of a schema that only describe it. False if the name of a property has a character that is removed from texts.
pub(crate) fn clean_schema(schema: &mut Value) -> bool {
    match schema {
        Value::Object(fields) => fields.iter_mut().all(|(name, value)| {
            if let (Value::String(text), "description" | "title" | "$comment") = (&mut *value, name.as_str()) {
                *text = cleaned(text, MAX_SCHEMA_TEXT);
            }
            !name.contains(is_removed) && clean_schema(value)
        }),
        Value::Array(items) => items.iter_mut().all(clean_schema),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_keeps_what_a_person_sees() {
        assert_eq!(
            cleaned("  读\u{1b}[31m a\u{202e}b\u{200b}\u{e0041}\r\n\tc👩\u{200d}🌾 ", 100),
            "读[31m ab\n\tc👩\u{200d}🌾"
        );
        assert_eq!(cleaned("abcdef", 4), "abc…");
        assert_eq!(cleaned("abcd", 4), "abcd");
    }

    #[test]
    fn the_texts_of_a_schema_are_cleaned_and_its_values_stay() {
        let mut schema = json!({
            "description": "a\u{202e}b",
            "properties": { "x": { "title": "t\u{0}", "enum": ["v\u{202e}"] }, "description": { "type": "string" } },
        });
        assert!(clean_schema(&mut schema));
        assert_eq!(schema["description"], "ab");
        assert_eq!(schema["properties"]["x"], json!({ "title": "t", "enum": ["v\u{202e}"] }));
        assert!(!clean_schema(&mut json!({ "properties": { "a\u{200b}b": {} } })));
    }
}
