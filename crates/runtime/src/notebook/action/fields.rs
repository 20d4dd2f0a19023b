//! The fields of one action: looked up by name or legacy name, coerced if nothing is lost, and limited in size.

use bcc_lang::message::msg;
use serde_json::{Map, Value};

use crate::notebook::error::ActionFieldError;
use crate::notebook::error::field_error;
use crate::notebook::workflow::{MAX_NAME, is_id};

/// The maximum size of a content or a thought, in bytes.
pub const MAX_CONTENT_BYTES: usize = 1024 * 1024;

/// The maximum number of pieces of a thought.
pub(crate) const MAX_PIECES: usize = 200;

/// The maximum size of the extra metadata of a cell as JSON, in bytes.
pub const MAX_EXTRA_BYTES: usize = 64 * 1024;

/// The fields of an action or of its metadata, with names in snake_case.
pub(crate) struct ActionFields(Map<String, Value>);

/// Converts a key to snake_case: `shotType` becomes `shot_type`.
pub fn snake(key: &str) -> String {
    let mut snake = String::with_capacity(key.len() + 4);
    let mut after_small = false;
    for c in key.chars() {
        if c.is_uppercase() && after_small {
            snake.push('_');
        }
        after_small = c.is_lowercase() || c.is_numeric();
        snake.extend(c.to_lowercase());
    }
    snake
}

impl ActionFields {
    /// Reads these fields. If one is given in two spellings, the one in snake_case is used.
    pub(crate) fn new(fields: &Map<String, Value>) -> Self {
        let mut named = Map::new();
        for (key, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
            let name = snake(key);
            if name == *key || !named.contains_key(&name) {
                named.insert(name, value.clone());
            }
        }
        Self(named)
    }

    /// The first of these fields that is present. Errors use the first name.
    fn get(&self, names: &[&str]) -> Option<&Value> {
        names.iter().find_map(|name| self.0.get(*name))
    }

    pub(crate) fn value(&self, names: &[&'static str]) -> Option<&Value> {
        self.get(names)
    }

    pub(crate) fn object(&self, name: &'static str) -> Result<Option<&Map<String, Value>>, ActionFieldError> {
        match self.get(&[name]) {
            None => Ok(None),
            Some(Value::Object(fields)) => Ok(Some(fields)),
            Some(_) => Err(field_error(name, msg!("`{name}` must be an object"))),
        }
    }

    /// A text of at most [`MAX_CONTENT_BYTES`] bytes. Numbers and booleans are converted to text.
    pub(crate) fn text(&self, names: &[&'static str]) -> Result<Option<String>, ActionFieldError> {
        let (Some(value), Some(name)) = (self.get(names), names.first().copied()) else { return Ok(None) };
        let text = as_text(value).ok_or_else(|| field_error(name, msg!("`{name}` must be a string")))?;
        if text.len() > MAX_CONTENT_BYTES {
            return Err(field_error(name, msg!("`{name}` is larger than {MAX_CONTENT_BYTES} bytes")));
        }
        Ok(Some(text))
    }

    /// Like [`ActionFields::text`], but required.
    pub(crate) fn required_text(&self, names: &[&'static str]) -> Result<String, ActionFieldError> {
        let name = names.first().copied().unwrap_or_default();
        self.text(names)?.ok_or_else(|| field_error(name, msg!("`{name}` is missing")))
    }

    /// An id or a name: one line of at most [`MAX_NAME`] characters. Blank text counts as absent.
    pub(crate) fn name(&self, names: &[&'static str]) -> Result<Option<String>, ActionFieldError> {
        let Some(text) = self.text(names)? else { return Ok(None) };
        let name = names.first().copied().unwrap_or_default();
        let text = text.trim();
        if text.chars().count() > MAX_NAME {
            return Err(field_error(name, msg!("`{name}` is longer than {MAX_NAME} characters")));
        }
        if text.chars().any(char::is_control) {
            return Err(field_error(name, msg!("`{name}` must be one line")));
        }
        Ok(Some(text.to_owned()).filter(|text| !text.is_empty()))
    }

    /// Like [`ActionFields::name`], but required.
    pub(crate) fn required_name(&self, names: &[&'static str]) -> Result<String, ActionFieldError> {
        let name = names.first().copied().unwrap_or_default();
        self.name(names)?.ok_or_else(|| field_error(name, msg!("`{name}` is missing")))
    }

    /// A boolean; `true` and `false` as text are accepted.
    pub(crate) fn boolean(&self, names: &[&'static str]) -> Result<Option<bool>, ActionFieldError> {
        let (Some(value), Some(name)) = (self.get(names), names.first().copied()) else { return Ok(None) };
        let text = value.as_str().map(|text| text.trim().to_ascii_lowercase());
        match (value, text.as_deref()) {
            (Value::Bool(value), _) => Ok(Some(*value)),
            (_, Some("true")) => Ok(Some(true)),
            (_, Some("false")) => Ok(Some(false)),
            _ => Err(field_error(name, msg!("`{name}` must be true or false"))),
        }
    }

    /// An integer of at least 0. Text is accepted, and so is a number without a fractional part.
    pub(crate) fn count(&self, name: &'static str) -> Result<Option<u64>, ActionFieldError> {
        let Some(value) = self.get(&[name]) else { return Ok(None) };
        let number = match value {
            Value::Number(number) => number.as_u64().or_else(|| number.as_f64().and_then(exact_integer)),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        number.map(Some).ok_or_else(|| field_error(name, msg!("`{name}` must be a whole number of at least 0")))
    }

    /// At most [`MAX_PIECES`] texts of at most [`MAX_CONTENT_BYTES`] bytes in total; a single text is accepted as a list.
    pub(crate) fn texts(&self, name: &'static str) -> Result<Vec<String>, ActionFieldError> {
        let Some(value) = self.get(&[name]) else { return Ok(vec![]) };
        let items = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        if items.len() > MAX_PIECES {
            return Err(field_error(name, msg!("`{name}` has more than {MAX_PIECES} items")));
        }
        let texts: Option<Vec<String>> = items.iter().map(as_text).collect();
        let texts = texts.ok_or_else(|| field_error(name, msg!("`{name}` must be a list of strings")))?;
        if texts.iter().map(String::len).sum::<usize>() > MAX_CONTENT_BYTES {
            return Err(field_error(name, msg!("`{name}` is larger than {MAX_CONTENT_BYTES} bytes")));
        }
        Ok(texts)
    }

    /// At most `max` ids, each valid for [`ActionFields::name`], without duplicates.
    pub(crate) fn names(&self, name: &'static str, max: usize) -> Result<Vec<String>, ActionFieldError> {
        let texts = self.texts(name)?;
        if texts.len() > max {
            return Err(field_error(name, msg!("`{name}` has more than {max} items")));
        }
        let mut names: Vec<String> = Vec::new();
        for text in texts {
            if !is_id(&text) {
                return Err(field_error(name, msg!("an item of `{name}` is empty, too long, or more than one line")));
            }
            if !names.contains(&text) {
                names.push(text);
            }
        }
        Ok(names)
    }
}

fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

/// The number as an integer, if it is whole and small enough to be exact.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Whole, not negative, below 2^53.
fn exact_integer(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && (0.0..9_007_199_254_740_992.0).contains(&number)).then_some(number as u64)
}
