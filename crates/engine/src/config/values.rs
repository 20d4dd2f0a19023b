//! Values of `bcc-script.toml` that TOML itself has no type for, each refused with what may stand there.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Unexpected, Visitor};
use serde_json::{Map, Value};

use bcc_llm::providers::http::config::LONGEST_TIMEOUT;

/// A text that stands in the file, or in the environment where the file must not hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// The text.
    Text(String),
    /// `{ env = "NAME" }`: the environment variable that holds it.
    Env(String),
}

/// A length of time, as in `"60s"`: more than nothing, and at most a day.
pub fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let duration = humantime::parse_duration(&text).map_err(|error| {
        D::Error::custom(format!("`{text}` is no duration ({error}); write for example \"60s\" or \"2m\""))
    })?;
    if duration.is_zero() || duration > LONGEST_TIMEOUT {
        return Err(D::Error::custom(format!("`{text}` is not between nothing and a day; write for example \"60s\"")));
    }
    Ok(Some(duration))
}

struct Whole<T, const LOW: u64, const HIGH: u64>(PhantomData<T>);

impl<T: TryFrom<u64>, const LOW: u64, const HIGH: u64> Visitor<'_> for Whole<T, LOW, HIGH> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from {LOW} to {HIGH}")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        let fits = u64::try_from(number).ok().filter(|number| (LOW..=HIGH).contains(number));
        fits.and_then(|fits| T::try_from(fits).ok()).ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        let fits = Some(number).filter(|number| (LOW..=HIGH).contains(number));
        fits.and_then(|fits| T::try_from(fits).ok())
            .ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
    }
}

/// A whole number from `LOW` to `HIGH`.
pub fn whole<'de, D, T, const LOW: u64, const HIGH: u64>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    deserializer.deserialize_any(Whole::<T, LOW, HIGH>(PhantomData)).map(Some)
}

/// A number from 0 up.
pub fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let number = f64::deserialize(deserializer)?;
    if number.is_finite() && number >= 0.0 {
        return Ok(number);
    }
    Err(D::Error::invalid_value(Unexpected::Float(number), &"a number from 0 up"))
}

/// The same where it may be left out.
pub fn some_amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    amount(deserializer).map(Some)
}

struct Switch;

impl Visitor<'_> for Switch {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true, false, \"on\" or \"off\"")
    }

    fn visit_bool<E: Error>(self, on: bool) -> Result<bool, E> {
        Ok(on)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<bool, E> {
        match text {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }
}

/// On or off.
pub fn switch<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    deserializer.deserialize_any(Switch).map(Some)
}

/// One of the names of `all`. The message has the form that advice looks for the nearest name in.
pub fn named<T: Copy, E: Error>(what: &str, all: &[T], name: fn(T) -> &'static str, text: &str) -> Result<T, E> {
    all.iter().copied().find(|one| name(*one) == text).ok_or_else(|| {
        let known: Vec<String> = all.iter().map(|one| format!("`{}`", name(*one))).collect();
        E::custom(format!("there is no {what} `{text}`; there are {}", known.join(", ")))
    })
}

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Given;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, or { env = \"NAME\" } with the environment variable that holds it")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Given, E> {
                Ok(Given::Text(text.to_owned()))
            }

            // What else may stand here is not repeated: it may be a part of a secret.
            fn visit_i64<E: Error>(self, _: i64) -> Result<Given, E> {
                Err(E::invalid_type(Unexpected::Other("number"), &self))
            }

            fn visit_f64<E: Error>(self, _: f64) -> Result<Given, E> {
                Err(E::invalid_type(Unexpected::Other("number"), &self))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Given, A::Error> {
                let mut env = None;
                while let Some(key) = map.next_key::<String>()? {
                    if key != "env" || env.is_some() {
                        return Err(A::Error::unknown_field(&key, &["env"]));
                    }
                    env = Some(map.next_value::<String>()?);
                }
                let env = env.filter(|name| !name.trim().is_empty());
                env.map(Given::Env).ok_or_else(|| A::Error::missing_field("env"))
            }
        }

        deserializer.deserialize_any(Either)
    }
}

impl Given {
    /// The same where it may be left out.
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
        toml::Value::Float(number) => serde_json::Number::from_f64(number)
            .map(Value::Number)
            .ok_or_else(|| format!("`{key}` is no number that JSON has; leave it out, or write it as a text"))?,
        toml::Value::Datetime(_) => {
            return Err(format!("`{key}` is a date, which JSON does not have; write it as a text"));
        }
        toml::Value::Array(list) => {
            Value::Array(list.into_iter().map(|value| json(key, value)).collect::<Result<_, _>>()?)
        }
        toml::Value::Table(table) => Value::Object(fields(table)?),
    })
}
