//! Nesting depth of values. The reader of stored values stops at 128 levels, including those of the row around a value.

use serde_json::Value;

/// The maximum nesting depth of an external value that is stored. It leaves enough levels for the surrounding row.
pub const MAX_LEVELS: usize = 64;

/// Whether a value is nested deeper than `max` levels. A text or a number has none, `[1]` has one.
pub fn is_deeper_than(value: &Value, max: usize) -> bool {
    let inner = |item: &Value| max == 0 || is_deeper_than(item, max - 1);
    match value {
        Value::Object(fields) => max == 0 || fields.values().any(inner),
        Value::Array(items) => max == 0 || items.iter().any(inner),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::value::depth::is_deeper_than;

    #[test]
    fn levels_are_counted_from_the_outside() {
        let table = [(json!(1), 0), (json!([]), 1), (json!([1]), 1), (json!({ "a": [1] }), 2), (json!([[], [[]]]), 3)];
        for (value, levels) in table {
            assert!(!is_deeper_than(&value, levels), "{value}");
            assert!(levels == 0 || is_deeper_than(&value, levels - 1), "{value}");
        }
        let deep = (0..100).fold(Value::Null, |inner, _| json!([inner]));
        assert!(is_deeper_than(&deep, 99) && !is_deeper_than(&deep, 100));
    }
}
