//! Legacy spellings of field names (docs/language.md "Texts"), which are read with a deprecation warning.

use crate::schema::legacy_names::RENAMED;

/// The current spelling of `key`, if `key` is a legacy one: a renamed field, or camelCase.
///
/// `target_variable` and `extraction_prompt` are not included: together they make one `output`, which the reader of
/// outputs handles.
pub fn current_spelling(key: &str) -> Option<String> {
    let snake = snake_case(key);
    let plain = snake.as_deref().unwrap_or(key);
    if let Some((_, current)) = RENAMED.iter().find(|(legacy, _)| *legacy == plain) {
        return Some((*current).to_owned());
    }
    snake
}

/// Whether the key is one of the two legacy fields that together make one `output`. They are read, but never suggested.
pub fn is_legacy_output(key: &str) -> bool {
    matches!(key, "target_variable" | "extraction_prompt")
}

/// `maxRounds` as `max_rounds`; `None` when the key is not camelCase.
fn snake_case(key: &str) -> Option<String> {
    // Fast path: most keys have no capital letter.
    let camel = key.bytes().any(|byte| byte.is_ascii_uppercase())
        && key.starts_with(|c: char| c.is_ascii_lowercase())
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !camel {
        return None;
    }
    let mut snake = String::with_capacity(key.len() + 4);
    for c in key.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    Some(snake)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legacy_spellings_have_a_current_name() {
        let table = [
            ("content_template", Some("content")),
            ("questionTemplate", Some("content")),
            ("exitCriteria", Some("exit")),
            ("maxRounds", Some("max_rounds")),
            ("say_goal", Some("goal")),
            ("content", None),
            ("max_rounds", None),
            ("Content", None),
            ("内容", None),
            ("x-Mine", None),
        ];
        for (key, current) in table {
            assert_eq!(current_spelling(key).as_deref(), current, "{key}");
        }
    }
}
