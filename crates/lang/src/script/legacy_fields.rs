//! Older spellings of field names (docs/language.md "Texts"): read, with a deprecation warning.

use crate::schema::legacy_names::RENAMED;

/// Today's spelling of `key`, when `key` is an older one: a renamed field, or camelCase.
///
/// `target_variable` and `extraction_prompt` are not here: together they make one `output`, which the reader of
/// outputs puts together.
pub fn todays_spelling(key: &str) -> Option<String> {
    let snake = snake_case(key);
    let plain = snake.as_deref().unwrap_or(key);
    if let Some((_, today)) = RENAMED.iter().find(|(older, _)| *older == plain) {
        return Some((*today).to_owned());
    }
    snake
}

/// Whether it is one of the two older fields that together make one `output`: read, and never proposed.
pub fn is_older_output(key: &str) -> bool {
    matches!(key, "target_variable" | "extraction_prompt")
}

/// `maxRounds` as `max_rounds`; `None` when the key is not camelCase.
fn snake_case(key: &str) -> Option<String> {
    // Most keys have no capital letter, which is the quickest to see.
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
    fn older_spellings_have_todays_name() {
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
        for (key, today) in table {
            assert_eq!(todays_spelling(key).as_deref(), today, "{key}");
        }
    }
}
