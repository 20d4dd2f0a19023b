//! Whether the value of `EXIT` means yes (docs/routes.md).

use serde_json::Value;

/// Whether `value` means yes: the text YES, TRUE or 1 (in any case, with surrounding white space), `true`, or the number 1.
/// Every other value means no.
pub fn is_yes(value: &Value) -> bool {
    match value {
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_f64() == Some(1.0),
        Value::String(text) => ["yes", "true", "1"].iter().any(|yes| text.trim().eq_ignore_ascii_case(yes)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_yes_true_and_one_mean_yes_in_any_case() {
        let yeses = json!(["YES", "yes", " Yes\n", "True", "1", true, 1, 1.0]);
        for yes in yeses.as_array().unwrap() {
            assert!(is_yes(yes), "{yes}");
        }
        let noes = json!(["NO", "", "YES或NO", "yes, but", "是", "11", "1.0", false, 0, 2, -1, null, [true], { "EXIT": "YES" }]);
        for no in noes.as_array().unwrap() {
            assert!(!is_yes(no), "{no}");
        }
    }
}
