//! The fields of one action: asked for by name, with their older names, turned into what they are when nothing is lost by it,
//! and bounded.

use bcc_lang::message::msg;
use serde_json::{Map, Value};

use crate::notebook::error::ActionFieldError;
use crate::notebook::error::fault;
use crate::notebook::workflow::{MOST_NAME, is_id};

/// The most bytes of a content, or of a thought.
pub const MOST_CONTENT: usize = 1024 * 1024;

/// The most pieces of a thought.
pub const MOST_PIECES: usize = 200;

/// The most bytes of what else stands in a metadata, as JSON.
pub const MOST_EXTRA: usize = 64 * 1024;

/// The fields of an action or of its metadata, by their names in snake_case.
pub(crate) struct ActionFields(Map<String, Value>);

/// A key in snake_case: `shotType` is `shot_type`.
pub(crate) fn snake(key: &str) -> String {
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
    /// These fields. Where one stands there in two spellings, the one in snake_case counts.
    pub(crate) fn of(fields: &Map<String, Value>) -> Self {
        let mut named = Map::new();
        for (key, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
            let name = snake(key);
            if name == *key || !named.contains_key(&name) {
                named.insert(name, value.clone());
            }
        }
        Self(named)
    }

    /// The first of these that is there. The first name is that of faults.
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
            Some(_) => Err(fault(name, msg!("`{name}` must be an object"))),
        }
    }

    /// A text of at most [`MOST_CONTENT`] bytes. Numbers and booleans are taken as they are written.
    pub(crate) fn text(&self, names: &[&'static str]) -> Result<Option<String>, ActionFieldError> {
        let (Some(value), Some(name)) = (self.get(names), names.first().copied()) else { return Ok(None) };
        let text = as_text(value).ok_or_else(|| fault(name, msg!("`{name}` must be a string")))?;
        if text.len() > MOST_CONTENT {
            return Err(fault(name, msg!("`{name}` is larger than {MOST_CONTENT} bytes")));
        }
        Ok(Some(text))
    }

    /// As [`ActionFields::text`], and it must be there.
    pub(crate) fn needed(&self, names: &[&'static str]) -> Result<String, ActionFieldError> {
        let name = names.first().copied().unwrap_or_default();
        self.text(names)?.ok_or_else(|| fault(name, msg!("`{name}` is missing")))
    }

    /// An id or a name: one line of at most [`MOST_NAME`] characters. One of nothing but spaces is none.
    pub(crate) fn name(&self, names: &[&'static str]) -> Result<Option<String>, ActionFieldError> {
        let Some(text) = self.text(names)? else { return Ok(None) };
        let name = names.first().copied().unwrap_or_default();
        let text = text.trim();
        if text.chars().count() > MOST_NAME {
            return Err(fault(name, msg!("`{name}` is longer than {MOST_NAME} characters")));
        }
        if text.chars().any(char::is_control) {
            return Err(fault(name, msg!("`{name}` must be one line")));
        }
        Ok(Some(text.to_owned()).filter(|text| !text.is_empty()))
    }

    /// As [`ActionFields::name`], and it must be there.
    pub(crate) fn needed_name(&self, names: &[&'static str]) -> Result<String, ActionFieldError> {
        let name = names.first().copied().unwrap_or_default();
        self.name(names)?.ok_or_else(|| fault(name, msg!("`{name}` is missing")))
    }

    /// True or false, also as a text.
    pub(crate) fn truth(&self, names: &[&'static str]) -> Result<Option<bool>, ActionFieldError> {
        let (Some(value), Some(name)) = (self.get(names), names.first().copied()) else { return Ok(None) };
        let text = value.as_str().map(|text| text.trim().to_ascii_lowercase());
        match (value, text.as_deref()) {
            (Value::Bool(truth), _) => Ok(Some(*truth)),
            (_, Some("true")) => Ok(Some(true)),
            (_, Some("false")) => Ok(Some(false)),
            _ => Err(fault(name, msg!("`{name}` must be true or false"))),
        }
    }

    /// A whole number from 0 on, also as a text, and as a number with nothing behind its point.
    pub(crate) fn count(&self, name: &'static str) -> Result<Option<u64>, ActionFieldError> {
        let Some(value) = self.get(&[name]) else { return Ok(None) };
        let number = match value {
            Value::Number(number) => number.as_u64().or_else(|| number.as_f64().and_then(whole)),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        number.map(Some).ok_or_else(|| fault(name, msg!("`{name}` must be a whole number of at least 0")))
    }

    /// At most [`MOST_PIECES`] texts, which are at most [`MOST_CONTENT`] bytes together; one text alone is a list of it.
    pub(crate) fn texts(&self, name: &'static str) -> Result<Vec<String>, ActionFieldError> {
        let Some(value) = self.get(&[name]) else { return Ok(vec![]) };
        let items = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        if items.len() > MOST_PIECES {
            return Err(fault(name, msg!("`{name}` has more than {MOST_PIECES} items")));
        }
        let texts: Option<Vec<String>> = items.iter().map(as_text).collect();
        let texts = texts.ok_or_else(|| fault(name, msg!("`{name}` must be a list of strings")))?;
        if texts.iter().map(String::len).sum::<usize>() > MOST_CONTENT {
            return Err(fault(name, msg!("`{name}` is larger than {MOST_CONTENT} bytes")));
        }
        Ok(texts)
    }

    /// At most `most` ids, each one as of [`ActionFields::name`], none twice.
    pub(crate) fn names(&self, name: &'static str, most: usize) -> Result<Vec<String>, ActionFieldError> {
        let texts = self.texts(name)?;
        if texts.len() > most {
            return Err(fault(name, msg!("`{name}` has more than {most} items")));
        }
        let mut names: Vec<String> = Vec::new();
        for text in texts {
            if !is_id(&text) {
                return Err(fault(name, msg!("an item of `{name}` is empty, too long, or more than one line")));
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

/// The number when it is whole and small enough to be exact.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Whole, not negative, below 2^53.
fn whole(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && (0.0..9_007_199_254_740_992.0).contains(&number)).then_some(number as u64)
}
