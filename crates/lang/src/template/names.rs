//! Every name that a text, template or expression can see, looked up when it is used.

use crate::message::ToMessage;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use indexmap::IndexMap;
use minijinja::value::{Enumerator, Object, Serde, Value};
use minijinja::{Error, ErrorKind};
use serde_json::Value as Json;

use crate::value::scopes::Scopes;

/// How much text (keys and texts, in bytes) one value may bring into a rendering.
pub const MAX_VALUE_BYTES: usize = 2 * 1024 * 1024;

/// A value that is too long to be rendered. Names the variable, never what it holds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ToMessage)]
#[error("the value of `{name}` is longer than {MAX_VALUE_BYTES} bytes")]
pub struct Oversize {
    pub name: String,
}

/// What the engine gives under one name.
#[derive(Clone)]
enum Given {
    Text(Arc<str>),
    Json(Arc<(Json, OnceLock<Value>)>),
}

/// A value that many sets of names are given: kept, and converted, once.
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

/// What the engine gives wins, then the variables, narrowest scope first. Values are converted only when used; cloning
/// is cheap.
#[derive(Clone, Default)]
pub struct TemplateNames {
    scopes: Scopes,
    given: Arc<IndexMap<&'static str, Given>>,
    /// Lists and objects of the scopes, converted once: a loop may ask for one in every round.
    converted: Arc<Mutex<HashMap<String, Value>>>,
}

impl TemplateNames {
    /// The variables of these scopes, and nothing given yet.
    pub fn new(scopes: Scopes) -> Self {
        Self { scopes, ..Self::default() }
    }

    /// Gives `value` under `name`, before every variable of that name.
    pub fn give(&mut self, name: &'static str, value: Json) {
        self.give_shared(name, &SharedValue::new(value));
    }

    /// Gives a shared value under `name`, before every variable of that name.
    pub fn give_shared(&mut self, name: &'static str, value: &SharedValue) {
        Arc::make_mut(&mut self.given).insert(name, value.0.clone());
    }

    /// Gives a text under `name`, before every variable of that name.
    pub fn give_text(&mut self, name: &'static str, text: impl Into<Arc<str>>) {
        Arc::make_mut(&mut self.given).insert(name, Given::Text(text.into()));
    }

    /// The value under `name`; `None` when nobody knows the name. A name that is declared and was never set is null.
    /// Errors: [`Oversize`] when the value is longer than [`MAX_VALUE_BYTES`].
    pub fn look_up(&self, name: &str) -> Option<Result<Value, Oversize>> {
        let oversize = || Oversize { name: name.to_owned() };
        if let Some(given) = self.given.get(name) {
            return Some(match given {
                Given::Text(text) if text.len() > MAX_VALUE_BYTES => Err(oversize()),
                Given::Text(text) => Ok(Value::from(Arc::clone(text))),
                Given::Json(entry) => match entry.1.get() {
                    Some(value) => Ok(value.clone()),
                    None if !fits(&entry.0) => Err(oversize()),
                    None => Ok(entry.1.get_or_init(|| convert(&entry.0)).clone()),
                },
            });
        }
        let Some(stored) = self.scopes.get(name) else {
            return self.scopes.declaration(name).map(|_| Ok(Value::from(())));
        };
        match &stored.value {
            value @ (Json::Array(_) | Json::Object(_)) => {
                let mut converted = self.converted.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(value) = converted.get(name) {
                    return Some(Ok(value.clone()));
                }
                if !fits(value) {
                    return Some(Err(oversize()));
                }
                let value = convert(value);
                converted.insert(name.to_owned(), value.clone());
                Some(Ok(value))
            }
            Json::String(text) if text.len() > MAX_VALUE_BYTES => Some(Err(oversize())),
            scalar => Some(Ok(convert(scalar))),
        }
    }

    /// Whether the engine gives a value under `name`, so that no variable of that name is seen.
    pub fn is_given(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    /// As [`look_up`](Self::look_up); a value that is too long comes as an invalid one, which fails where it is used.
    pub fn get(&self, name: &str) -> Option<Value> {
        self.look_up(name).map(|looked_up| {
            looked_up
                .unwrap_or_else(|oversize| Value::from(Error::new(ErrorKind::InvalidOperation, oversize.to_string())))
        })
    }

    /// Every name that can be used: the given ones, then the variables, narrowest scope first, each once.
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

/// Names only: what the values are is nobody's business in a log.
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
        // Only look-ups: listing all would convert all.
        Enumerator::NonEnumerable
    }
}

/// A JSON value as expressions and templates have it.
pub fn convert(value: &Json) -> Value {
    match value {
        Json::Null => Value::from(()),
        Json::Bool(truth) => Value::from(*truth),
        Json::String(text) => Value::from(text.as_str()),
        other => Value::from(Serde(other)),
    }
}

/// Whether the texts and keys inside `value` are within [`MAX_VALUE_BYTES`].
fn fits(value: &Json) -> bool {
    fn spend(value: &Json, left: &mut usize) -> bool {
        let cost = match value {
            Json::String(text) => text.len(),
            // What a scalar or an empty collection costs as text, roughly.
            _ => 4,
        };
        let Some(rest) = left.checked_sub(cost) else { return false };
        *left = rest;
        match value {
            Json::Array(items) => items.iter().all(|item| spend(item, left)),
            Json::Object(fields) => fields.iter().all(|(key, field)| match left.checked_sub(key.len()) {
                Some(rest) => {
                    *left = rest;
                    spend(field, left)
                }
                None => false,
            }),
            _ => true,
        }
    }
    let mut left = MAX_VALUE_BYTES;
    spend(value, &mut left)
}

/// Names for the tests of this room: variables of one session scope.
#[cfg(test)]
pub(crate) fn session_names(values: Json) -> TemplateNames {
    use crate::value::scopes::{DeclarationMap, Scope, ScopeLayer, Stored};
    let mut layer = ScopeLayer::new(Scope::Session, "", Arc::new(DeclarationMap::new()));
    for (name, value) in values.as_object().unwrap() {
        let stored = Stored { value: value.clone(), source: "test".to_owned(), round: None, at: String::new() };
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
    fn what_the_engine_gives_wins_over_variables() {
        let mut names = session_names(json!({ "time": "variable", "年龄": 18 }));
        names.give_text("time", "10:00");
        names.give("outputs", json!([1, { "a": null }]));
        assert_eq!(names.get("time").unwrap().as_str(), Some("10:00"));
        assert_eq!(names.get("年龄").unwrap().as_i64(), Some(18));
        assert_eq!(names.get("outputs").unwrap().len(), Some(2));
        assert!(names.get("nobody").is_none());
        assert_eq!(names.known(), ["time", "outputs", "年龄"]);
    }

    #[test]
    fn a_clone_that_is_given_more_leaves_the_original_alone() {
        let names = session_names(json!({}));
        let mut other = names.clone();
        other.give("x", json!(1));
        assert!(names.get("x").is_none());
    }

    #[test]
    fn a_declared_name_without_a_value_is_null() {
        use crate::value::scopes::{Declaration, Scope, ScopeLayer};
        let declaration = Declaration {
            name: "mood".into(),
            value: Json::Null,
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
        names.give_text("given", long.clone());
        names.give("object", json!({ "key": long }));
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
