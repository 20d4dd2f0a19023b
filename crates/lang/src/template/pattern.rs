//! Implements the `regex` test: `last_user_message is regex('不想活|自杀')`.

use crate::message::library::library;
use crate::message::message::Message;
use crate::message::msg;
use crate::template::error::error_with_message;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind};
use regex::{Regex, RegexBuilder};

/// The maximum length of a pattern, in bytes.
pub(crate) const MAX_PATTERN_BYTES: usize = 2_048;

/// The maximum size of a compiled pattern, in bytes.
const MAX_COMPILED_BYTES: usize = 1024 * 1024;

/// The maximum number of cached patterns. The cache is cleared when it is full.
const MAX_CACHED: usize = 128;

/// A cache of compiled patterns.
#[derive(Debug, Default)]
pub(crate) struct Patterns {
    compiled: Mutex<HashMap<String, Regex>>,
}

impl Patterns {
    /// Whether `pattern` matches anywhere in `value`. It never matches null.
    /// Errors: A value that is neither text nor null, and a pattern that [`compile`] rejects.
    pub(crate) fn is_match(&self, value: &Value, pattern: &str) -> Result<bool, Error> {
        let Some(text) = value.as_str() else {
            return match value.kind() {
                ValueKind::None => Ok(false),
                _ => Err(Error::new(ErrorKind::InvalidOperation, "`regex` can only search text")),
            };
        };
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(regex) = compiled.get(pattern) {
            return Ok(regex.is_match(text));
        }
        let regex = compile(pattern).map_err(|message| error_with_message(ErrorKind::InvalidOperation, message))?;
        let found = regex.is_match(text);
        if compiled.len() >= MAX_CACHED {
            compiled.clear();
        }
        compiled.insert(pattern.to_owned(), regex);
        Ok(found)
    }
}

/// Compiles a pattern.
/// Errors: A message if it is too long, too large when compiled, or not a regular expression.
pub fn compile(pattern: &str) -> Result<Regex, Message> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(msg!("a `regex` pattern can be at most {MAX_PATTERN_BYTES} bytes long"));
    }
    RegexBuilder::new(pattern).size_limit(MAX_COMPILED_BYTES).build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => msg!("the `regex` pattern is too large when compiled"),
        other => {
            // The last line is the error; the lines before it show the pattern.
            let text = other.to_string();
            let reason = text.lines().last().unwrap_or_default().trim().trim_start_matches("error: ");
            let reason = library(reason);
            msg!("not a valid regular expression: {reason}")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_found_anywhere_in_the_text() {
        let patterns = Patterns::default();
        assert!(patterns.is_match(&Value::from("我真的不想活了"), "不想活|自杀").unwrap());
        assert!(!patterns.is_match(&Value::from("今天天气好"), "不想活|自杀").unwrap());
        assert!(!patterns.is_match(&Value::from(()), "x").unwrap());
        assert!(patterns.is_match(&Value::from(5), "5").is_err());
    }

    #[test]
    fn the_number_of_cached_patterns_is_limited() {
        let patterns = Patterns::default();
        for number in 0..MAX_CACHED * 3 {
            patterns.is_match(&Value::from("x"), &format!("x{number}")).unwrap();
            assert!(patterns.compiled.lock().unwrap().len() <= MAX_CACHED);
        }
    }

    #[test]
    fn invalid_long_and_large_patterns_are_rejected_with_a_reason() {
        assert!(compile("(").unwrap_err().to_string().contains("unclosed group"));
        assert!(compile(&"x".repeat(MAX_PATTERN_BYTES + 1)).unwrap_err().to_string().contains("at most"));
        assert!(compile("((a{100}){100}){100}").unwrap_err().to_string().contains("too large"));
    }
}
