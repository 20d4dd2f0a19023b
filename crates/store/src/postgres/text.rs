//! Texts in PostgreSQL, which has no NUL. In a stored text, NUL is U+0001 and `0`, and U+0001 is U+0001 and `1`: in the same order.

use std::borrow::Cow;
use std::error::Error;

use serde_json::Value;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

const ESCAPE: char = '\u{1}';

/// A text as a parameter.
#[derive(Debug)]
pub(crate) struct TextParameter<'t>(pub(crate) &'t str);

impl ToSql for TextParameter<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        escaped(self.0).as_ref().to_sql(kind, out)
    }

    accepts!(TEXT, JSONB);

    to_sql_checked!();
}

/// A text of a row.
pub(crate) struct TextColumn(pub(crate) String);

impl<'a> FromSql<'a> for TextColumn {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(unescaped(<&str>::from_sql(kind, raw)?)))
    }

    accepts!(TEXT);
}

pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| byte < 2) {
        return Cow::Borrowed(text);
    }
    let mut stored = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\0' => stored.push_str("\u{1}0"),
            ESCAPE => stored.push_str("\u{1}1"),
            other => stored.push(other),
        }
    }
    Cow::Owned(stored)
}

pub(crate) fn unescaped(stored: &str) -> String {
    if !stored.contains(ESCAPE) {
        return stored.to_owned();
    }
    let mut text = String::with_capacity(stored.len());
    let mut characters = stored.chars();
    while let Some(character) = characters.next() {
        match character {
            ESCAPE => match characters.next() {
                Some('0') => text.push('\0'),
                // Nothing else follows in a text that this program has written.
                _ => text.push(ESCAPE),
            },
            other => text.push(other),
        }
    }
    text
}

/// JSON whose strings are escaped. In JSON itself, the two characters stand as `\u0000` and `\u0001`.
pub(crate) fn escaped_json(json: String) -> serde_json::Result<String> {
    if !json.contains("\\u0000") && !json.contains("\\u0001") {
        return Ok(json);
    }
    let mut value = serde_json::from_str(&json)?;
    each_string(&mut value, &|text| escaped(text).into_owned());
    serde_json::to_string(&value)
}

/// The value of stored JSON.
pub(crate) fn unescaped_json(json: &str) -> serde_json::Result<Value> {
    let mut value = serde_json::from_str(json)?;
    if json.contains("\\u0001") {
        each_string(&mut value, &unescaped);
    }
    Ok(value)
}

/// Changes every string of a value. The members of the objects that are stored have fixed names.
fn each_string(value: &mut Value, change: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_string(item, change)),
        Value::Object(members) => members.values_mut().for_each(|member| each_string(member, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
