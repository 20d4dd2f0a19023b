//! Writes maps with long texts as JSON, such as the prompts of a model call. `serde_json` looks at each byte of a text by itself, and the
//! prompts of a turn would take a tenth of its time.

use serde::ser::Error;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The number of bytes that are looked at together.
const CHUNK_BYTES: usize = 16;

/// Serializes a map as `serde_json` does: for `#[serde(serialize_with)]`. The result only has this form in JSON.
pub(crate) fn serialize<S: Serializer>(map: &Map<String, Value>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut json = String::with_capacity(map.values().map(texts_length).sum::<usize>() + 256);
    write_map(map, &mut json).map_err(S::Error::custom)?;
    RawValue::from_string(json).map_err(S::Error::custom)?.serialize(serializer)
}

/// About how long the texts in a value are, in bytes.
fn texts_length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + text.len() / 16,
        Value::Array(values) => values.iter().map(texts_length).sum(),
        Value::Object(map) => map.values().map(texts_length).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn write_map(map: &Map<String, Value>, json: &mut String) -> Result<(), serde_json::Error> {
    json.push('{');
    for (number, (name, value)) in map.iter().enumerate() {
        if number > 0 {
            json.push(',');
        }
        write_text(name, json);
        json.push(':');
        write(value, json)?;
    }
    json.push('}');
    Ok(())
}

fn write(value: &Value, json: &mut String) -> Result<(), serde_json::Error> {
    match value {
        Value::String(text) => write_text(text, json),
        Value::Array(values) => {
            json.push('[');
            for (number, value) in values.iter().enumerate() {
                if number > 0 {
                    json.push(',');
                }
                write(value, json)?;
            }
            json.push(']');
        }
        Value::Object(map) => write_map(map, json)?,
        Value::Null | Value::Bool(_) | Value::Number(_) => json.push_str(&serde_json::to_string(value)?),
    }
    Ok(())
}

/// Writes a string with the escapes that JSON requires, and no others.
fn write_text(text: &str, json: &mut String) {
    json.push('"');
    let mut rest = text;
    while let Some(at) = first_escape(rest.as_bytes()) {
        let (plain, escaped) = rest.split_at_checked(at).unwrap_or((rest, ""));
        json.push_str(plain);
        let mut characters = escaped.chars();
        match characters.next() {
            Some('"') => json.push_str("\\\""),
            Some('\\') => json.push_str("\\\\"),
            Some('\n') => json.push_str("\\n"),
            Some('\r') => json.push_str("\\r"),
            Some('\t') => json.push_str("\\t"),
            Some('\u{8}') => json.push_str("\\b"),
            Some('\u{c}') => json.push_str("\\f"),
            Some(control) => json.push_str(&format!("\\u{:04x}", u32::from(control))),
            None => {}
        }
        rest = characters.as_str();
    }
    json.push_str(rest);
    json.push('"');
}

/// The place of the first byte that is escaped.
fn first_escape(bytes: &[u8]) -> Option<usize> {
    let is_escaped = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    let chunks = bytes.chunks_exact(CHUNK_BYTES);
    // Without an end within a chunk, the compiler makes one comparison of all its bytes.
    let plain = chunks.take_while(|chunk| !chunk.iter().fold(false, |found, byte| found | is_escaped(*byte))).count();
    let checked = plain * CHUNK_BYTES;
    let rest = bytes.get(checked..).unwrap_or_default();
    rest.iter().position(|byte| is_escaped(*byte)).map(|at| checked + at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[derive(Serialize)]
    struct Texts(#[serde(serialize_with = "serialize")] Map<String, Value>);

    fn assert_is_the_same(value: Value) {
        let Value::Object(map) = value else { panic!("not a map") };
        let texts = Texts(map);
        assert_eq!(serde_json::to_string(&texts).unwrap(), serde_json::to_string(&texts.0).unwrap());
        assert_eq!(serde_json::to_value(&texts).unwrap(), Value::Object(texts.0));
    }

    #[test]
    fn every_control_character_and_every_kind_of_value_is_written_as_by_serde_json() {
        let characters: String = (0..0x180_u32).filter_map(char::from_u32).collect();
        for length in 0..40 {
            let text = format!("{}{characters}", "长".repeat(length));
            assert_is_the_same(
                json!({ "text": text, &text: [1, -2.5, 1e300, u64::MAX, null, true, {}, [], { "a": text }] }),
            );
        }
        assert_is_the_same(json!({}));
    }

    proptest! {
        #[test]
        fn texts_are_written_as_by_serde_json(text in any::<String>(), name in "[a-z\"\n]{0,20}") {
            assert_is_the_same(json!({ name: [text] }));
        }
    }
}
