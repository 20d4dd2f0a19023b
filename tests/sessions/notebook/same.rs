//! Compares actual JSON values with expected ones.

use serde_json::Value;

/// The places where `actual` differs from `expected`. Objects may have additional fields, null means absent, and lists must be complete.
pub(crate) fn differences(at: &str, expected: &Value, actual: &Value) -> Vec<String> {
    match (expected, actual) {
        (Value::Object(fields), Value::Object(actual_fields)) => fields
            .iter()
            .flat_map(|(key, value)| {
                differences(&format!("{at}.{key}"), value, actual_fields.get(key).unwrap_or(&Value::Null))
            })
            .collect(),
        (Value::Array(items), Value::Array(actual_items)) if items.len() == actual_items.len() => {
            let pairs = items.iter().zip(actual_items).enumerate();
            pairs.flat_map(|(index, (item, actual))| differences(&format!("{at}[{index}]"), item, actual)).collect()
        }
        _ if expected == actual => vec![],
        _ => vec![format!("{at}: expected {expected}, found {actual}")],
    }
}
