//! Compares what came out with what was written down of it.

use serde_json::Value;

/// Where `actual` is not what `expected` says. Objects may have more than was said; null stands for nothing; lists are whole.
pub(crate) fn differences(at: &str, expected: &Value, actual: &Value) -> Vec<String> {
    match (expected, actual) {
        (Value::Object(fields), Value::Object(there)) => fields
            .iter()
            .flat_map(|(key, value)| differences(&format!("{at}.{key}"), value, there.get(key).unwrap_or(&Value::Null)))
            .collect(),
        (Value::Array(items), Value::Array(there)) if items.len() == there.len() => {
            let both = items.iter().zip(there).enumerate();
            both.flat_map(|(index, (item, there))| differences(&format!("{at}[{index}]"), item, there)).collect()
        }
        _ if expected == actual => vec![],
        _ => vec![format!("{at}: expected {expected}, found {actual}")],
    }
}
