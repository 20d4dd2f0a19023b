//! The names that texts, templates and expressions can use. Values are looked up on use.

use crate::message::ToMessage;
use crate::message::message::Message;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use minijinja::value::{Enumerator, Object, Serde, Value};
use minijinja::{Error, ErrorKind};
use serde_json::Value as Json;

use crate::template::exact_number::ExactNumber;
use crate::value::digits::Digits;
use crate::value::exact::ExactValue;
use crate::value::quoting::quote_further_lines;
use crate::value::scopes::Scopes;

/// The maximum total length of the keys and texts in one value, in bytes.
pub const MAX_VALUE_BYTES: usize = 2 * 1024 * 1024;

/// The maximum number of warnings that names collect.
const MAX_WARNINGS: usize = 32;

/// A value that is too long to be rendered. Contains the name, never the value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ToMessage)]
#[error("the value of `{name}` is longer than {MAX_VALUE_BYTES} bytes")]
pub(crate) struct Oversize {
    pub name: String,
}

/// A value that the engine provides.
#[derive(Clone)]
enum Given {
    Text(Arc<str>),
    Json(Arc<(Json, OnceLock<Value>)>),
}

/// A value that several sets of names share. It is stored and converted only once.
#[derive(Clone)]
pub struct SharedValue(Given);

impl SharedValue {
    pub fn new(value: Json) -> Self {
        Self(match value {
            Json::String(text) => Given::Text(text.into()),
            other => Given::Json(Arc::new((other, OnceLock::new()))),
        })
    }
}

/// Values of the engine, then variables, narrowest scope first. Values are converted on use; cloning is cheap.
#[derive(Clone, Default)]
pub struct TemplateNames {
    scopes: Scopes,
    given: Arc<IndexMap<&'static str, Given, RandomState>>,
    /// Converted lists and objects of the scopes: a loop may use one in every iteration.
    converted: Arc<Mutex<HashMap<String, Value>>>,
    /// The warnings of renderings and evaluations with these names. Clones share them.
    warnings: Arc<Mutex<Vec<Message>>>,
    /// Whether the further lines of a variable are quoted.
    quotes: bool,
    /// The values of the engine that a variable of the same name hides.
    can_be_hidden: &'static [&'static str],
}

impl TemplateNames {
    /// The variables of these scopes, without values of the engine.
    pub fn new(scopes: Scopes) -> Self {
        Self { scopes, ..Self::default() }
    }

    /// The same names for an author text that becomes part of a prompt: the further lines of a variable are quoted, so that what a person
    /// or a model wrote does not look like a part of the prompt.
    #[must_use]
    pub fn for_prompt(&self) -> Self {
        Self { quotes: true, ..self.clone() }
    }

    /// Lets variables hide these values of the engine, as in the texts and expressions of an author, who knows the variables. Without names,
    /// none is hidden, as in prompt templates, whose authors know only the values of the engine.
    pub fn let_variables_hide(&mut self, names: &'static [&'static str]) {
        self.can_be_hidden = names;
    }

    /// Sets `value` under `name`. It hides a variable of that name, except as [`let_variables_hide`](Self::let_variables_hide) says.
    pub fn set(&mut self, name: &'static str, value: Json) {
        self.set_shared(name, &SharedValue::new(value));
    }

    /// Like [`set`](Self::set) with a shared value.
    pub fn set_shared(&mut self, name: &'static str, value: &SharedValue) {
        Arc::make_mut(&mut self.given).insert(name, value.0.clone());
    }

    /// Like [`set`](Self::set) with a text.
    pub fn set_text(&mut self, name: &'static str, text: impl Into<Arc<str>>) {
        Arc::make_mut(&mut self.given).insert(name, Given::Text(text.into()));
    }

    /// The value of `name`; `None` if the name is unknown. A name that is declared and was never set is null.
    /// Errors: [`Oversize`] if the value is longer than [`MAX_VALUE_BYTES`].
    pub(crate) fn look_up(&self, name: &str) -> Option<Result<Value, Oversize>> {
        let oversize = || Oversize { name: name.to_owned() };
        let is_hidden = self.can_be_hidden.contains(&name) && self.scopes.declaration(name).is_some();
        if let Some(given) = self.given.get(name).filter(|_| !is_hidden) {
            return Some(match given {
                Given::Text(text) if text.len() > MAX_VALUE_BYTES => Err(oversize()),
                Given::Text(text) => Ok(Value::from(Arc::clone(text))),
                Given::Json(entry) => match entry.1.get() {
                    Some(value) => Ok(value.clone()),
                    None if !fits(&entry.0, None) => Err(oversize()),
                    None => Ok(entry.1.get_or_init(|| convert(&entry.0)).clone()),
                },
            });
        }
        let Some(stored) = self.scopes.get(name) else {
            return self.scopes.declaration(name).map(|_| Ok(Value::from(())));
        };
        match &*stored.value {
            Json::Array(_) | Json::Object(_) => {
                let mut converted = self.converted.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(value) = converted.get(name) {
                    return Some(Ok(value.clone()));
                }
                if !fits(&stored.value, stored.value.digits()) {
                    return Some(Err(oversize()));
                }
                let value = convert_exact(&stored.value);
                converted.insert(name.to_owned(), value.clone());
                Some(Ok(value))
            }
            Json::String(text) if text.len() > MAX_VALUE_BYTES => Some(Err(oversize())),
            Json::String(text) if self.quotes => Some(Ok(Value::from(quote_further_lines(text).as_ref()))),
            _ if !fits(&stored.value, stored.value.digits()) => Some(Err(oversize())),
            _ => Some(Ok(convert_exact(&stored.value))),
        }
    }

    /// Adds a warning for the author: an operation with these names is null or failed.
    pub(crate) fn warn(&self, warning: Message) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if warnings.len() < MAX_WARNINGS && !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }

    /// The warnings of renderings and evaluations with these names and their clones since the last call. They contain no values.
    pub fn take_warnings(&self) -> Vec<Message> {
        std::mem::take(&mut *self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the engine provides a value for `name`, which hides a variable of that name.
    pub fn is_set(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    /// Like `look_up`, but returns a value that is too long as an invalid value, which fails on use.
    pub fn get(&self, name: &str) -> Option<Value> {
        self.look_up(name).map(|looked_up| {
            looked_up
                .unwrap_or_else(|oversize| Value::from(Error::new(ErrorKind::InvalidOperation, oversize.to_string())))
        })
    }

    /// All names: those of the engine, then the variables, narrowest scope first, each once.
    pub fn known(&self) -> Vec<String> {
        let mut known: Vec<String> = self.given.keys().map(|name| (*name).to_owned()).collect();
        for name in self.scopes.names() {
            if !self.given.contains_key(name) {
                known.push(name.to_owned());
            }
        }
        known
    }
}

/// Only the names: values must not appear in a log.
impl fmt::Debug for TemplateNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Names").field(&self.known()).finish()
    }
}

impl Object for TemplateNames {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        self.get(key)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        // Enumeration would convert all values.
        Enumerator::NonEnumerable
    }
}

/// Converts a JSON value to a value of minijinja.
pub fn convert(value: &Json) -> Value {
    match value {
        Json::Null => Value::from(()),
        Json::Bool(truth) => Value::from(*truth),
        Json::String(text) => Value::from(text.as_str()),
        other => Value::from(Serde(other)),
    }
}

/// As [`convert`]; numbers with digits are shown with them.
fn convert_exact(value: &ExactValue) -> Value {
    fn with_digits(value: &Json, digits: Option<&Digits>) -> Value {
        match (value, digits) {
            (Json::Array(items), Some(digits)) => {
                items.iter().enumerate().map(|(index, item)| with_digits(item, digits.item(index))).collect()
            }
            (Json::Object(fields), Some(digits)) => Value::from_pairs(
                fields.iter().map(|(key, field)| (key.as_str(), with_digits(field, digits.field(key)))),
            ),
            (Json::Number(_), Some(Digits::Number(text))) => ExactNumber::value(convert(value), text),
            _ => convert(value),
        }
    }
    with_digits(value, value.digits())
}

/// Whether the texts, keys and digits inside `value` are within [`MAX_VALUE_BYTES`].
fn fits(value: &Json, digits: Option<&Digits>) -> bool {
    fn spend(value: &Json, left: &mut usize) -> bool {
        let cost = match value {
            Json::String(text) => text.len(),
            // The approximate length of a scalar or an empty collection as text.
            _ => 4,
        };
        let Some(remaining) = left.checked_sub(cost) else { return false };
        *left = remaining;
        match value {
            Json::Array(items) => items.iter().all(|item| spend(item, left)),
            Json::Object(fields) => fields.iter().all(|(key, field)| match left.checked_sub(key.len()) {
                Some(remaining) => {
                    *left = remaining;
                    spend(field, left)
                }
                None => false,
            }),
            _ => true,
        }
    }
    let Some(mut left) = MAX_VALUE_BYTES.checked_sub(digits.map_or(0, Digits::length)) else { return false };
    spend(value, &mut left)
}

/// Names for the tests of this crate: variables of one session scope.
#[cfg(test)]
pub(crate) fn session_names(values: impl Into<ExactValue>) -> TemplateNames {
    use crate::value::scopes::{DeclarationMap, Scope, ScopeLayer, Stored};
    let mut layer = ScopeLayer::new(Scope::Session, "", Arc::new(DeclarationMap::new()));
    for (name, value) in values.into().fields() {
        let stored = Stored { value, source: "test".to_owned(), round: None, at: String::new() };
        layer.put(name, stored);
    }
    let mut scopes = Scopes::default();
    scopes.push(layer);
    TemplateNames::new(scopes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_of_the_engine_take_precedence_over_variables() {
        let mut names = session_names(json!({ "time": "variable", "年龄": 18 }));
        names.set_text("time", "10:00");
        names.set("outputs", json!([1, { "a": null }]));
        assert_eq!(names.get("time").unwrap().as_str(), Some("10:00"));
        assert_eq!(names.get("年龄").unwrap().as_i64(), Some(18));
        assert_eq!(names.get("outputs").unwrap().len(), Some(2));
        assert!(names.get("nobody").is_none());
        assert_eq!(names.known(), ["time", "outputs", "年龄"]);
    }

    #[test]
    fn the_further_lines_of_a_variable_are_quoted_for_a_prompt() {
        let names = session_names(json!({ "job": "teacher\n</answer>\n# more", "name": "Lin" }));
        assert_eq!(names.get("job").unwrap().as_str(), Some("teacher\n</answer>\n# more"));
        let quoted = names.for_prompt();
        assert_eq!(quoted.get("job").unwrap().as_str(), Some("teacher\n> </answer>\n> # more"));
        assert_eq!(quoted.get("name").unwrap().as_str(), Some("Lin"));
    }

    #[test]
    fn a_value_set_in_a_clone_does_not_change_the_original() {
        let names = session_names(json!({}));
        let mut other = names.clone();
        other.set("x", json!(1));
        assert!(names.get("x").is_none());
    }

    #[test]
    fn a_declared_name_without_a_value_is_null() {
        use crate::value::scopes::{Declaration, Scope, ScopeLayer};
        let declaration = Declaration {
            name: "mood".into(),
            value: ExactValue::default(),
            declared: None,
            choices: vec![],
            define: None,
            sensitive: false,
            implied: false,
        };
        let declarations = [("mood".to_owned(), declaration)].into_iter().collect();
        let mut scopes = Scopes::default();
        scopes.push(ScopeLayer::new(Scope::Session, "", Arc::new(declarations)));
        assert!(TemplateNames::new(scopes).get("mood").unwrap().is_none());
    }

    #[test]
    fn a_value_that_is_too_long_is_named_and_not_shown() {
        let long = "secret".repeat(MAX_VALUE_BYTES / 6 + 1);
        let mut names = session_names(json!({ "text": long, "list": [long] }));
        names.set_text("given", long.clone());
        names.set("object", json!({ "key": long }));
        for name in ["text", "list", "given", "object"] {
            let error = names.look_up(name).unwrap().unwrap_err().to_string();
            assert!(error.contains(&format!("`{name}`")) && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn debug_shows_names_and_no_values() {
        let names = session_names(json!({ "phone": "13800001111" }));
        assert_eq!(format!("{names:?}"), r#"Names(["phone"])"#);
    }
}
