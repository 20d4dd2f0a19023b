//! Fields of what other programs send: each is read as what it should be, or left out with a note that repeats nothing of it.

use serde_json::{Map, Value};

/// The field, where it is there and not null.
fn given<'a>(whole: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    whole.get(name).filter(|value| !value.is_null())
}

fn wrong(name: &str, should: &str, notes: &mut Vec<String>) {
    notes.push(format!("`{name}` is not {should}, and was left out"));
}

/// An object.
pub fn object(whole: &Map<String, Value>, name: &str, notes: &mut Vec<String>) -> Option<Map<String, Value>> {
    match given(whole, name)? {
        Value::Object(fields) => Some(fields.clone()),
        _ => {
            wrong(name, "an object", notes);
            None
        }
    }
}

/// A list; an empty one where there is none.
pub fn list(whole: &Map<String, Value>, name: &str, notes: &mut Vec<String>) -> Vec<Value> {
    match given(whole, name) {
        None => vec![],
        Some(Value::Array(items)) => items.clone(),
        Some(_) => {
            wrong(name, "a list", notes);
            vec![]
        }
    }
}

/// A text that says something. A number is one, too: ids are often numbers.
pub fn text(whole: &Map<String, Value>, name: &str, notes: &mut Vec<String>) -> Option<String> {
    match given(whole, name)? {
        Value::String(text) if text.trim().is_empty() => None,
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => {
            wrong(name, "a text", notes);
            None
        }
    }
}

/// A number from 0 up.
pub fn count(whole: &Map<String, Value>, name: &str, notes: &mut Vec<String>) -> Option<u64> {
    let value = given(whole, name)?;
    let count = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok());
    if count.is_none() {
        wrong(name, "a whole number from 0 up", notes);
    }
    count
}

/// Yes or no.
pub fn truth(whole: &Map<String, Value>, name: &str, notes: &mut Vec<String>) -> Option<bool> {
    let said = match given(whole, name)? {
        Value::Bool(said) => Some(*said),
        Value::String(word) if word.eq_ignore_ascii_case("true") => Some(true),
        Value::String(word) if word.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    };
    if said.is_none() {
        wrong(name, "true or false", notes);
    }
    said
}

/// A list of texts, or one text. Items that are none are left out.
pub fn texts(whole: &Map<String, Value>, name: &str, notes: &mut Vec<String>) -> Option<Vec<String>> {
    let items = match given(whole, name)? {
        Value::String(one) => return Some(vec![one.clone()]),
        Value::Array(items) => items,
        _ => {
            wrong(name, "a list of texts", notes);
            return None;
        }
    };
    let kept: Vec<String> = items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect();
    if kept.len() < items.len() {
        notes.push(format!("`{name}` holds what is no text; that was left out"));
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
