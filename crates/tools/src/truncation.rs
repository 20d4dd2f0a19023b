//! Truncates the result of a tool to its maximum size. The same result always gives the same part of it.

use serde_json::{Map, Value};

/// The result with at most `max_bytes` bytes as JSON, and whether something is missing. Texts end at a character, lists lose their last
/// elements, and of an object the largest values are truncated first.
pub fn truncated(value: Value, max_bytes: usize) -> (Value, bool) {
    if json_size(&value) <= max_bytes {
        return (value, false);
    }
    (shrink(value, max_bytes), true)
}

/// The size of a value as compact JSON, in bytes.
pub(crate) fn json_size(value: &Value) -> usize {
    match value {
        Value::Null => 4,
        Value::Bool(truth) => 5 - usize::from(*truth),
        Value::Number(number) => number.to_string().len(),
        Value::String(text) => text_size(text),
        Value::Array(list) => list.iter().map(|one| json_size(one) + 1).sum::<usize>().max(1) + 1,
        Value::Object(fields) => {
            fields.iter().map(|(key, one)| text_size(key) + json_size(one) + 2).sum::<usize>().max(1) + 1
        }
    }
}

/// The size of a text as a JSON string.
fn text_size(text: &str) -> usize {
    text.chars().map(escaped_size).sum::<usize>() + 2
}

const fn escaped_size(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => c.len_utf8(),
    }
}

fn shrink(value: Value, max_bytes: usize) -> Value {
    match value {
        Value::String(text) => Value::String(shrink_text(&text, max_bytes)),
        Value::Array(list) => Value::Array(shrink_list(list, max_bytes)),
        Value::Object(fields) => Value::Object(shrink_object(fields, max_bytes)),
        other => other,
    }
}

/// The first characters that fit.
fn shrink_text(text: &str, max_bytes: usize) -> String {
    let mut left = max_bytes.saturating_sub(2);
    let fits = |c: &char| {
        let size = escaped_size(*c);
        let fits = size <= left;
        left = left.saturating_sub(size);
        fits
    };
    text.chars().take_while(fits).collect()
}

/// The first elements that fit; of the first element, a part, if it does not fit as a whole.
fn shrink_list(list: Vec<Value>, max_bytes: usize) -> Vec<Value> {
    let mut left = max_bytes.saturating_sub(2);
    let mut kept = Vec::new();
    for one in list {
        let size = json_size(&one) + usize::from(!kept.is_empty());
        if size <= left {
            left -= size;
            kept.push(one);
            continue;
        }
        if kept.is_empty() {
            let part = shrink(one, left);
            if json_size(&part) <= left {
                kept.push(part);
            }
        }
        break;
    }
    kept
}

/// The fields, the largest values truncated; without the last fields if that is not enough.
fn shrink_object(fields: Map<String, Value>, max_bytes: usize) -> Map<String, Value> {
    let mut fields: Vec<(String, Value, usize)> = fields
        .into_iter()
        .map(|(key, value)| {
            let size = json_size(&value);
            (key, value, size)
        })
        .collect();
    let total = |fields: &[(String, Value, usize)]| {
        fields.iter().map(|(key, _, size)| text_size(key) + size + 2).sum::<usize>().max(1) + 1
    };
    let mut order: Vec<(usize, usize)> = fields.iter().map(|(_, _, size)| *size).enumerate().collect();
    // The largest first; of equal ones, the last.
    order.sort_by(|(one, one_size), (other, other_size)| other_size.cmp(one_size).then(other.cmp(one)));
    for (number, _) in order {
        let excess = total(&fields).saturating_sub(max_bytes);
        if excess == 0 {
            break;
        }
        if let Some((_, value, size)) = fields.get_mut(number) {
            *value = shrink(std::mem::take(value), size.saturating_sub(excess));
            *size = json_size(value);
        }
    }
    while total(&fields) > max_bytes && fields.pop().is_some() {}
    fields.into_iter().map(|(key, value, _)| (key, value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_result_that_fits_is_unchanged() {
        let value = json!({ "a": [1, "b"], "c": null });
        let size = value.to_string().len();
        assert_eq!(truncated(value.clone(), size), (value, false));
    }

    #[test]
    fn texts_end_at_a_character_and_lists_lose_their_last_elements() {
        assert_eq!(truncated(json!("咨询abc"), 9), (json!("咨询a"), true));
        assert_eq!(truncated(json!("咨询abc"), 7), (json!("咨"), true));
        assert_eq!(truncated(json!([1, 22, 333]), 7), (json!([1, 22]), true));
        assert_eq!(truncated(json!(["aaaaaaaa", "b"]), 8), (json!(["aaaa"]), true));
    }

    #[test]
    fn of_an_object_the_largest_value_is_truncated_first() {
        let value = json!({ "provider": "x", "results": [{ "title": "one" }, { "title": "two" }], "links": ["l"] });
        let (part, is_truncated) = truncated(value, 70);
        assert_eq!(part, json!({ "provider": "x", "results": [{ "title": "one" }], "links": ["l"] }));
        assert!(is_truncated);
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "\\PC{0,20}".prop_map(Value::from),
            "[\\x00-\\x7f]{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 60, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::vec(("[a-z\"]{0,6}", inner), 0..8)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_size_is_that_of_the_text_and_a_part_never_exceeds_the_limit(value in values(), max_bytes in 24_usize..300) {
            prop_assert_eq!(json_size(&value), value.to_string().len());
            let (part, is_truncated) = truncated(value.clone(), max_bytes);
            prop_assert!(part.to_string().len() <= max_bytes, "{}", part);
            prop_assert_eq!(is_truncated, part != value);
            prop_assert_eq!(truncated(value, max_bytes).0, part);
        }
    }
}
