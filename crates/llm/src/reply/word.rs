//! The word for what a value is, as failures and the record of bends use it: the names of `declare`, and null.

use serde_json::Value;

/// `null`, `boolean`, `number`, `string`, `list` or `object`: never the value itself.
pub const fn shape(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}
