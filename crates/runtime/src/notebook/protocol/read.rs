//! Reads fields of payloads of other programs. A field of a wrong type is omitted with a note that does not repeat its value.

use serde_json::{Map, Value};

/// The field as returned by `read`, if it is present and not null.
fn read_field<T>(
    fields: &Map<String, Value>,
    name: &str,
    expected: &str,
    notes: &mut Vec<String>,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Option<T> {
    let value = read(fields.get(name).filter(|value| !value.is_null())?);
    if value.is_none() {
        notes.push(format!("`{name}` is not {should} and was ignored", should = expected));
    }
    value
}

pub fn object(fields: &Map<String, Value>, name: &str, notes: &mut Vec<String>) -> Option<Map<String, Value>> {
    read_field(fields, name, "an object", notes, |value| value.as_object().cloned())
}

/// A list; empty if it is missing.
pub fn list(fields: &Map<String, Value>, name: &str, notes: &mut Vec<String>) -> Vec<Value> {
    read_field(fields, name, "a list", notes, |value| value.as_array().cloned()).unwrap_or_default()
}

/// A text that is not blank. Numbers are accepted, because ids are often numbers.
pub fn text(fields: &Map<String, Value>, name: &str, notes: &mut Vec<String>) -> Option<String> {
    let text = read_field(fields, name, "a string", notes, |value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    });
    text.filter(|text| !text.trim().is_empty())
}

/// An integer of at least 0.
pub fn count(fields: &Map<String, Value>, name: &str, notes: &mut Vec<String>) -> Option<u64> {
    read_field(fields, name, "a whole number of at least 0", notes, |value| {
        value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
    })
}

pub fn boolean(fields: &Map<String, Value>, name: &str, notes: &mut Vec<String>) -> Option<bool> {
    read_field(fields, name, "true or false", notes, |value| match value {
        Value::Bool(value) => Some(*value),
        Value::String(word) => word.to_ascii_lowercase().parse().ok(),
        _ => None,
    })
}

/// A list of texts, or a single text. Other items are omitted.
pub fn texts(fields: &Map<String, Value>, name: &str, notes: &mut Vec<String>) -> Option<Vec<String>> {
    let items = read_field(fields, name, "a list of strings", notes, |value| match value {
        Value::String(_) => Some(vec![value.clone()]),
        other => other.as_array().cloned(),
    })?;
    let texts: Vec<String> = items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect();
    if texts.len() < items.len() {
        notes.push(format!("`{name}` contains items that are not strings; they were ignored"));
    }
    Some(texts)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_field_has_its_type_or_a_note_without_its_value() {
        let fields = json!({"a": {"x": 1}, "l": [1], "t": "secret", "n": 7, "s": "8", "y": "TRUE", "e": " ", "z": null, "m": ["p", 3]});
        let fields = fields.as_object().unwrap();
        let mut notes = Vec::new();
        let notes = &mut notes;
        assert_eq!((object(fields, "a", notes).unwrap().len(), list(fields, "l", notes).len()), (1, 1));
        assert_eq!((text(fields, "n", notes), text(fields, "e", notes)), (Some("7".into()), None));
        assert_eq!((count(fields, "n", notes), count(fields, "s", notes)), (Some(7), Some(8)));
        assert_eq!((boolean(fields, "y", notes), boolean(fields, "z", notes)), (Some(true), None));
        assert_eq!(texts(fields, "t", notes).unwrap(), ["secret"]);
        assert!(notes.is_empty());
        assert_eq!(
            (object(fields, "t", notes), list(fields, "t", notes), text(fields, "a", notes)),
            (None, vec![], None)
        );
        assert_eq!(
            (count(fields, "t", notes), boolean(fields, "t", notes), texts(fields, "n", notes)),
            (None, None, None)
        );
        assert_eq!(texts(fields, "m", notes).unwrap(), ["p"]);
        assert_eq!(notes.len(), 7);
        assert!(notes.iter().all(|note| !note.contains("secret")), "{notes:?}");
    }
}
