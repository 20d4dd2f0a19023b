//! How deep a value nests. What is stored is read again by a reader that stops at 128 levels, inside of rows that add some.

use serde_json::Value;

/// The most levels that a value from outside may have before it is stored: enough for any data, with room for what it stands in.
pub const MOST_LEVELS: usize = 64;

/// Whether a value nests deeper than `most` levels. A text or a number has none, `[1]` has one.
pub fn deeper_than(value: &Value, most: usize) -> bool {
    let inner = |item: &Value| most == 0 || deeper_than(item, most - 1);
    match value {
        Value::Object(fields) => most == 0 || fields.values().any(inner),
        Value::Array(items) => most == 0 || items.iter().any(inner),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::value::depth::deeper_than;

    #[test]
    fn levels_are_counted_from_the_outside() {
        let table = [(json!(1), 0), (json!([]), 1), (json!([1]), 1), (json!({ "a": [1] }), 2), (json!([[], [[]]]), 3)];
        for (value, levels) in table {
            assert!(!deeper_than(&value, levels), "{value}");
            assert!(levels == 0 || deeper_than(&value, levels - 1), "{value}");
        }
        let deep = (0..100).fold(Value::Null, |inner, _| json!([inner]));
        assert!(deeper_than(&deep, 99) && !deeper_than(&deep, 100));
    }
}
