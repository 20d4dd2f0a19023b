//! Deserializes values of `bcc-script.toml` that TOML has no type for. Errors name the values that are accepted.

use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, Unexpected};
use serde_json::{Map, Value};

use bcc_lang::message::library::library;
use bcc_lang::message::message::{Joint, Message};
use bcc_lang::message::msg;
use bcc_lang::message::stored::StoredMessage;

use bcc_llm::providers::http::config::MAX_TIMEOUT;

/// A text in the file, or in an environment variable if the file must not contain it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextOrEnv {
    Text(String),
    /// `{ env = "NAME" }`: the environment variable that contains it.
    Env(String),
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct EnvTable {
    env: String,
}

/// The error for a value that is not `expected`; `right_type` if only the value is wrong, not its type.
fn wrong_value<E: Error>(value: &toml::Value, right_type: bool, expected: &str) -> E {
    let found = match value {
        toml::Value::String(text) => Unexpected::Str(text),
        toml::Value::Integer(number) => Unexpected::Signed(*number),
        toml::Value::Float(number) => Unexpected::Float(*number),
        toml::Value::Boolean(truth) => Unexpected::Bool(*truth),
        other => Unexpected::Other(other.type_str()),
    };
    if right_type { E::invalid_value(found, &expected) } else { E::invalid_type(found, &expected) }
}

/// Marks a serialized message in an error of the deserializer, which contains only text.
const MARK: char = '\u{1}';

/// An error with a message of this program, for `message_of`.
pub fn custom<E: Error>(message: &Message) -> E {
    let stored = serde_json::to_string(&StoredMessage(message.clone())).unwrap_or_default();
    E::custom(format!("{MARK}{stored}"))
}

/// The message in an error text of the deserializer; none if the library wrote the text.
pub(crate) fn message_of(text: &str) -> Option<Message> {
    let stored = text.strip_prefix(MARK)?;
    serde_json::from_str::<StoredMessage>(stored).ok().map(|stored| stored.0)
}

/// A duration such as `"60s"`: more than zero, and at most one day.
pub fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let duration = humantime::parse_duration(&text).map_err(|error| {
        custom(&msg!(
            "`{text}` is not a valid duration ({error}); write, for example, \"60s\" or \"2m\"",
            error = library(&error.to_string())
        ))
    })?;
    if duration.is_zero() || duration > MAX_TIMEOUT {
        return Err(custom(&msg!("`{text}` must be more than zero and at most one day; write, for example, \"60s\"")));
    }
    Ok(Some(duration))
}

/// A whole number from `LOW` to `HIGH`.
pub fn whole<'de, D, T, const LOW: u64, const HIGH: u64>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    let value = toml::Value::deserialize(deserializer)?;
    let number = value.as_integer().and_then(|number| u64::try_from(number).ok());
    let fits = number.filter(|number| (LOW..=HIGH).contains(number)).and_then(|number| T::try_from(number).ok());
    fits.map(Some)
        .ok_or_else(|| wrong_value(&value, value.is_integer(), &format!("a whole number from {LOW} to {HIGH}")))
}

/// A non-negative number.
pub fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let number = f64::deserialize(deserializer)?;
    if number.is_finite() && number >= 0.0 {
        return Ok(number);
    }
    Err(D::Error::invalid_value(Unexpected::Float(number), &"a non-negative number"))
}

/// An optional non-negative number.
pub(crate) fn some_amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    amount(deserializer).map(Some)
}

/// A boolean, or `"on"` or `"off"`.
pub fn switch<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    let value = toml::Value::deserialize(deserializer)?;
    match &value {
        toml::Value::Boolean(on) => Ok(Some(*on)),
        toml::Value::String(text) if text == "on" => Ok(Some(true)),
        toml::Value::String(text) if text == "off" => Ok(Some(false)),
        _ => Err(wrong_value(&value, value.is_str(), "true, false, \"on\" or \"off\"")),
    }
}

/// One of the names of `all`. `config::advice` parses the error message for the nearest name.
pub fn named<T: Copy, E: Error>(
    noun: &'static str,
    all: &[T],
    name: fn(T) -> &'static str,
    text: &str,
) -> Result<T, E> {
    all.iter().copied().find(|one| name(*one) == text).ok_or_else(|| {
        let known: Vec<String> = all.iter().map(|one| format!("`{}`", name(*one))).collect();
        let known = Message::list(Joint::Item, known.into_iter().map(Message::text));
        custom(&msg!("there is no {what} `{text}`; available: {}", known, what = Message::word(noun)))
    })
}

impl<'de> Deserialize<'de> for TextOrEnv {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match toml::Value::deserialize(deserializer)? {
            toml::Value::String(text) => Ok(Self::Text(text)),
            toml::Value::Table(table) => {
                let table = EnvTable::deserialize(table).map_err(|error| D::Error::custom(error.message()))?;
                let env = Some(table.env).filter(|name| !name.trim().is_empty());
                env.map(Self::Env).ok_or_else(|| D::Error::missing_field("env"))
            }
            // The value is not repeated: it may be a part of a secret.
            other => {
                let expected = "a string, or { env = \"NAME\" } with the environment variable that contains it";
                Err(D::Error::invalid_type(Unexpected::Other(other.type_str()), &expected))
            }
        }
    }
}

impl TextOrEnv {
    /// An optional value.
    pub fn some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Self>, D::Error> {
        Self::deserialize(deserializer).map(Some)
    }
}

/// A table that can be sent as JSON.
pub fn body<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    let table = toml::Table::deserialize(deserializer)?;
    fields(table).map_err(D::Error::custom)
}

fn fields(table: toml::Table) -> Result<Map<String, Value>, String> {
    table.into_iter().map(|(key, value)| json(&key, value).map(|value| (key, value))).collect()
}

fn json(key: &str, value: toml::Value) -> Result<Value, String> {
    Ok(match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => Value::from(number),
        toml::Value::Boolean(truth) => Value::Bool(truth),
        toml::Value::Float(number) => serde_json::Number::from_f64(number).map(Value::Number).ok_or_else(|| {
            format!("`{key}` is a number that JSON cannot represent; omit it, or write it as a string")
        })?,
        toml::Value::Datetime(_) => {
            return Err(format!("`{key}` is a date, which JSON does not support; write it as a string"));
        }
        toml::Value::Array(list) => {
            Value::Array(list.into_iter().map(|value| json(key, value)).collect::<Result<_, _>>()?)
        }
        toml::Value::Table(table) => Value::Object(fields(table)?),
    })
}
