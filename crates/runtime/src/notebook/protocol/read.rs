//! Fields of what other programs send: each is read as what it should be, or left out with a note that repeats nothing of it.

use serde_json::{Map, Value};

/// The field as `read` takes it, where it is there and not null.
fn taken<T>(
    whole: &Map<String, Value>,
    name: &str,
    should: &str,
    notes: &mut Vec<String>,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Option<T> {
    let taken = read(whole.get(name).filter(|value| !value.is_null())?);
    if taken.is_none() {
        notes.push(format!("`{name}` is not {should} and was ignored"));
    }
    taken
}

pub fn object(whole: &Map<String, Value>, name: &str, notes: &mut Vec<String>) -> Option<Map<String, Value>> {
    taken(whole, name, "an object", notes, |value| value.as_object().cloned())
}

/// A list; an empty one where there is none.
pub fn list(whole: &Map<String, Value>, name: &str, notes: &mut Vec<String>) -> Vec<Value> {
    taken(whole, name, "a list", notes, |value| value.as_array().cloned()).unwrap_or_default()
}

/// A text that says something. A number is one, too: ids are often numbers.
pub fn text(whole: &Map<String, Value>, name: &str, notes: &mut Vec<String>) -> Option<String> {
    let text = taken(whole, name, "a string", notes, |value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    });
    text.filter(|text| !text.trim().is_empty())
}

/// A number from 0 up.
pub fn count(whole: &Map<String, Value>, name: &str, notes: &mut Vec<String>) -> Option<u64> {
    taken(whole, name, "a whole number of at least 0", notes, |value| {
        value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
    })
}

pub fn truth(whole: &Map<String, Value>, name: &str, notes: &mut Vec<String>) -> Option<bool> {
    taken(whole, name, "true or false", notes, |value| match value {
        Value::Bool(said) => Some(*said),
        Value::String(word) => word.to_ascii_lowercase().parse().ok(),
        _ => None,
    })
}

/// A list of texts, or one text. Items that are none are left out.
pub fn texts(whole: &Map<String, Value>, name: &str, notes: &mut Vec<String>) -> Option<Vec<String>> {
    let items = taken(whole, name, "a list of strings", notes, |value| match value {
        Value::String(_) => Some(vec![value.clone()]),
        other => other.as_array().cloned(),
    })?;
    let kept: Vec<String> = items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect();
    if kept.len() < items.len() {
        notes.push(format!("`{name}` contains items that are not strings; they were ignored"));
    }
    Some(kept)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_field_is_what_it_should_be_or_a_note_without_what_was_sent() {
        let whole = json!({"a": {"x": 1}, "l": [1], "t": "secret", "n": 7, "s": "8", "y": "TRUE", "e": " ", "z": null, "m": ["p", 3]});
        let whole = whole.as_object().unwrap();
        let mut notes = Vec::new();
        let said = &mut notes;
        assert_eq!((object(whole, "a", said).unwrap().len(), list(whole, "l", said).len()), (1, 1));
        assert_eq!((text(whole, "n", said), text(whole, "e", said)), (Some("7".into()), None));
        assert_eq!((count(whole, "n", said), count(whole, "s", said)), (Some(7), Some(8)));
        assert_eq!((truth(whole, "y", said), truth(whole, "z", said)), (Some(true), None));
        assert_eq!(texts(whole, "t", said).unwrap(), ["secret"]);
        assert!(said.is_empty());
        assert_eq!((object(whole, "t", said), list(whole, "t", said), text(whole, "a", said)), (None, vec![], None));
        assert_eq!((count(whole, "t", said), truth(whole, "t", said), texts(whole, "n", said)), (None, None, None));
        assert_eq!(texts(whole, "m", said).unwrap(), ["p"]);
        assert_eq!(notes.len(), 7);
        assert!(notes.iter().all(|note| !note.contains("secret")), "{notes:?}");
    }
}
