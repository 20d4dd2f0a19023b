//! JSON values that keep the digits of their numbers as they were written (docs/language.md "Variables").

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use indexmap::IndexMap;
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::value::digits::Digits;

/// A JSON value with the digits of its numbers. It dereferences to the value, computes and compares like it, and is written as JSON
/// with the digits.
#[derive(Clone, Debug, Default)]
pub struct ExactValue {
    value: Value,
    /// `None` for nearly every value.
    digits: Option<Arc<Digits>>,
}

/// Values by name, in their order.
pub type ExactValues = IndexMap<String, ExactValue>;

impl ExactValue {
    /// `value` with `digits`, of which those are kept that are numbers of the value.
    pub fn new(value: Value, digits: Option<Digits>) -> Self {
        let digits = digits.and_then(|digits| digits.matching(&value)).map(Arc::new);
        Self { value, digits }
    }

    /// Reads a JSON text.
    ///
    /// # Errors
    /// The text is not JSON.
    pub fn parse(json: &str) -> serde_json::Result<Self> {
        let value = serde_json::from_str(json)?;
        Ok(Self { value, digits: Digits::of_json(json).map(Arc::new) })
    }

    pub fn into_value(self) -> Value {
        self.value
    }

    pub fn digits(&self) -> Option<&Digits> {
        self.digits.as_deref()
    }

    /// The written form of a number, if it differs from how the number is written again.
    pub fn number_text(&self) -> Option<&str> {
        self.digits()?.number()
    }

    /// The elements of a list; none of any other value.
    pub fn items(&self) -> impl Iterator<Item = Self> {
        let items = self.value.as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().enumerate().map(|(index, item)| Self::part(item, self.digits().and_then(|own| own.item(index))))
    }

    /// The fields of an object; none of any other value.
    pub fn fields(&self) -> impl Iterator<Item = (&str, Self)> {
        self.value.as_object().into_iter().flatten().map(|(key, field)| {
            let digits = self.digits().and_then(|own| own.field(key));
            (key.as_str(), Self::part(field, digits))
        })
    }

    /// The value of a key of an object.
    pub fn field(&self, key: &str) -> Option<Self> {
        Some(Self::part(self.value.get(key)?, self.digits().and_then(|own| own.field(key))))
    }

    fn part(value: &Value, digits: Option<&Digits>) -> Self {
        Self { value: value.clone(), digits: digits.cloned().map(Arc::new) }
    }

    /// Changes the value. Numbers that stay at their place keep their digits.
    pub fn change(&mut self, change: impl FnOnce(&mut Value)) {
        change(&mut self.value);
        if let Some(digits) = self.digits.take() {
            self.digits = Arc::unwrap_or_clone(digits).matching(&self.value).map(Arc::new);
        }
    }
}

/// A value and its digits, for serialization.
struct WithDigits<'v>(&'v Value, Option<&'v Digits>);

impl Serialize for WithDigits<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.0, self.1) {
            (Value::Array(items), Some(digits)) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for (index, item) in items.iter().enumerate() {
                    list.serialize_element(&WithDigits(item, digits.item(index)))?;
                }
                list.end()
            }
            (Value::Object(fields), Some(digits)) => {
                let mut object = serializer.serialize_map(Some(fields.len()))?;
                for (key, field) in fields {
                    object.serialize_entry(key, &WithDigits(field, digits.field(key)))?;
                }
                object.end()
            }
            (Value::Number(_), Some(Digits::Number(text))) => raw_number(text, serializer),
            (value, _) => value.serialize(serializer),
        }
    }
}

/// Writes a number with its digits.
pub(crate) fn raw_number<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    RawValue::from_string(text.to_owned()).map_err(serde::ser::Error::custom)?.serialize(serializer)
}

impl Serialize for ExactValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        WithDigits(&self.value, self.digits()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ExactValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(json.get()).map_err(serde::de::Error::custom)
    }
}

/// As JSON on one line.
impl fmt::Display for ExactValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.digits {
            None => self.value.fmt(f),
            Some(_) => f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?),
        }
    }
}

impl Deref for ExactValue {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.value
    }
}

impl Borrow<Value> for ExactValue {
    fn borrow(&self) -> &Value {
        &self.value
    }
}

impl PartialEq for ExactValue {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl PartialEq<Value> for ExactValue {
    fn eq(&self, other: &Value) -> bool {
        self.value == *other
    }
}

impl From<Value> for ExactValue {
    fn from(value: Value) -> Self {
        Self { value, digits: None }
    }
}

impl FromIterator<Self> for ExactValue {
    fn from_iter<I: IntoIterator<Item = Self>>(items: I) -> Self {
        let (values, digits): (Vec<Value>, Vec<_>) = items.into_iter().map(Self::into_parts).unzip();
        Self { value: Value::Array(values), digits: Digits::of_items(digits).map(Arc::new) }
    }
}

impl FromIterator<(String, Self)> for ExactValue {
    fn from_iter<I: IntoIterator<Item = (String, Self)>>(fields: I) -> Self {
        let mut values = serde_json::Map::new();
        let mut digits = Vec::new();
        for (key, field) in fields {
            let (value, own) = field.into_parts();
            digits.push((key.clone(), own));
            values.insert(key, value);
        }
        Self { value: Value::Object(values), digits: Digits::of_fields(digits).map(Arc::new) }
    }
}

impl ExactValue {
    fn into_parts(self) -> (Value, Option<Digits>) {
        (self.value, self.digits.map(Arc::unwrap_or_clone))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_json_text_is_written_again_with_its_digits() {
        for json in [
            "1.10",
            "-0",
            "1e3",
            "1E+2",
            "0.12345678901234567890",
            "20241018220014123456789012",
            "18446744073709551616",
            r#"{"price":1.10,"n":1,"list":[1,2.50,{"a":[]},0.0]}"#,
            r#"{"a\"1.10\\":"1.10","é":[[[1.10]]],"b":-1.50}"#,
            r#"[1.1,2,"3.30",null,true,18446744073709551615,-9223372036854775808]"#,
        ] {
            assert_eq!(ExactValue::parse(json).unwrap().to_string(), json);
            let read: ExactValue = serde_json::from_str(json).unwrap();
            assert_eq!(read.to_string(), json);
        }
    }

    #[test]
    fn a_text_whose_numbers_are_written_in_the_same_way_has_no_digits() {
        for json in [
            r#"{"text":"1.10 and 20241018220014123456789012","n":12,"share":0.85,"big":9007199254740993}"#,
            r#"[0,-1,1.5,1e-7,"\\",{"1.10":"\"1.10"}]"#,
            "18446744073709551615",
        ] {
            assert!(ExactValue::parse(json).unwrap().digits().is_none(), "{json}");
        }
    }

    #[test]
    fn of_a_repeated_key_the_last_value_counts() {
        assert_eq!(ExactValue::parse(r#"{"a":1.10,"a":2}"#).unwrap().to_string(), r#"{"a":2}"#);
        assert_eq!(ExactValue::parse(r#"{"a":2,"a":1.10}"#).unwrap().to_string(), r#"{"a":1.10}"#);
    }

    #[test]
    fn a_number_that_changes_loses_its_digits_and_the_others_keep_theirs() {
        let mut value = ExactValue::parse(r#"{"a":[1.10,2.20],"b":3.30,"c":4.40}"#).unwrap();
        value.change(|value| {
            value["a"][0] = json!(1.5);
            value["b"] = json!("***");
            value.as_object_mut().unwrap().shift_remove("c");
        });
        assert_eq!(value.to_string(), r#"{"a":[1.5,2.20],"b":"***"}"#);
        assert_eq!(ExactValue::new(json!(5), Digits::of_json("5.0")).to_string(), "5");
    }

    #[test]
    fn digits_move_with_their_values() {
        let value = ExactValue::parse(r#"{"a":[1.10,2,3.30]}"#).unwrap();
        let list = value.field("a").unwrap();
        let longer: ExactValue = [ExactValue::parse("0.50").unwrap()].into_iter().chain(list.items()).collect();
        assert_eq!(longer.to_string(), "[0.50,1.10,2,3.30]");
        let object: ExactValue = [("b".to_owned(), longer), ("c".to_owned(), json!(1).into())].into_iter().collect();
        assert_eq!(object.to_string(), r#"{"b":[0.50,1.10,2,3.30],"c":1}"#);
        assert_eq!(serde_json::to_string_pretty(&list).unwrap(), "[\n  1.10,\n  2,\n  3.30\n]");
    }

    #[test]
    fn values_with_digits_are_equal_by_their_numbers() {
        assert_eq!(ExactValue::parse("1.10").unwrap(), ExactValue::parse("1.1").unwrap());
        assert_eq!(ExactValue::parse("1.10").unwrap(), json!(1.1));
        assert_eq!(serde_json::to_value(ExactValue::parse("[1.10]").unwrap()).unwrap(), json!([1.1]));
    }

    #[test]
    fn numbers_of_scripts_are_written_as_json() {
        for (text, written) in
            [("+1.10", Some("1.10")), (".50", Some("0.50")), ("-.50", Some("-0.50")), ("5.", None), ("007", None)]
        {
            assert_eq!(Digits::of_number(text).as_ref().and_then(Digits::number), written, "{text}");
        }
    }

    #[test]
    fn a_long_key_above_many_numbers_is_kept_once() {
        let json = format!(r#"{{"{}":[{}1.10]}}"#, "k".repeat(1000), "1.10,".repeat(1000));
        let value = ExactValue::parse(&json).unwrap();
        let Some(Digits::Fields(fields)) = value.digits() else { panic!("no fields") };
        assert_eq!((fields.len(), value.digits().unwrap().length()), (1, 4 * 1001));
    }
}
