//! Compiled JSON Schemas (draft 2020-12). They validate values and report violations as data.

use crate::message::ToMessage;
use crate::message::message::Message;
use crate::message::msg;
use std::fmt;
use std::sync::Arc;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;

use crate::schema::cost::{CheckCost, MAX_PATTERN_BYTES};

/// The maximum number of reported violations of one value: a value with a million wrong items must not produce a million messages.
pub(crate) const MAX_VIOLATIONS: usize = 100;

/// The maximum number of steps back of a pattern that needs them (look-around, references to groups).
const MAX_BACKTRACKS: usize = 10_000;

/// The text in messages that replaces the invalid value.
const VALUE: &str = "the value";

/// Checks a value of one `format`.
pub type FormatCheck = fn(&str) -> bool;

/// A compiled schema. Clones share it. Compilation takes milliseconds, validation microseconds.
#[derive(Clone)]
pub struct Compiled {
    validator: Arc<Validator>,
    cost: Arc<CheckCost>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ToMessage)]
#[error("not a usable JSON Schema at `{path}`: {message}")]
pub struct SchemaError {
    /// A JSON pointer into the schema; empty for its root.
    pub path: String,
    pub message: Message,
}

/// A violation of one rule of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// A JSON pointer to the invalid part of the value; empty for its root. It contains keys of the value, unmasked.
    pub path: String,
    /// The violated keyword: `type`, `enum`, `required` …
    pub keyword: String,
    /// The error message; never quotes the value.
    pub message: Message,
}

impl Compiled {
    /// Compiles `schema`. Formats are checked. References can only refer to the schema itself.
    /// Errors: [`SchemaError`] if it is not a valid schema of draft 2020-12, refers to another document, or if checking a value would
    /// take too long.
    pub fn new(schema: &Value) -> Result<Self, SchemaError> {
        Self::with_formats(schema, &[])
    }

    /// Like [`Compiled::new`], with custom checks that replace the standard ones for these formats.
    /// Errors: As for [`Compiled::new`].
    pub fn with_formats(schema: &Value, formats: &[(&'static str, FormatCheck)]) -> Result<Self, SchemaError> {
        let cost = CheckCost::of(schema).map_err(|error| SchemaError { path: error.path, message: error.message })?;
        let mut options = jsonschema::options().with_draft(Draft::Draft202012).should_validate_formats(true).offline();
        for (name, check) in formats {
            options = options.with_format(*name, *check);
        }
        // Patterns take linear time. Only a schema with patterns that this engine does not know gets the one that steps back.
        let linear = PatternOptions::regex().size_limit(MAX_PATTERN_BYTES);
        let backtracking = PatternOptions::fancy_regex().backtrack_limit(MAX_BACKTRACKS).size_limit(MAX_PATTERN_BYTES);
        let validator = options.clone().with_pattern_options(linear).build(schema);
        let validator = validator.or_else(|_| options.with_pattern_options(backtracking).build(schema));
        let validator = validator.map_err(|error| SchemaError {
            path: error.instance_path().to_string(),
            message: Message::text(error.to_string()),
        })?;
        Ok(Self { validator: Arc::new(validator), cost: Arc::new(cost) })
    }

    pub fn is_valid(&self, value: &Value) -> bool {
        self.cost.allows(value) && self.validator.is_valid(value)
    }

    /// The violations of `value`, at most `MAX_VIOLATIONS`.
    pub fn violations(&self, value: &Value) -> Vec<Violation> {
        if !self.cost.allows(value) {
            let message = msg!("{VALUE} has too many or too deep parts for this schema", VALUE = Message::word(VALUE));
            return vec![Violation { path: String::new(), keyword: "$ref".to_owned(), message }];
        }
        let violation = |error: ValidationError<'_>| Violation {
            path: error.instance_path().to_string(),
            keyword: error.kind().keyword().to_owned(),
            message: message(&error),
        };
        self.validator.iter_errors(value).take(MAX_VIOLATIONS).map(violation).collect()
    }
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled").finish_non_exhaustive()
    }
}

/// The message of `error` without any content of the value. Masking alone is not sufficient: some kinds of errors contain keys of the
/// value, or an error text that quotes it.
fn message(error: &ValidationError<'_>) -> Message {
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            msg!(
                "{VALUE} has properties that the schema does not define ({})",
                unexpected.len(),
                VALUE = Message::word(VALUE)
            )
        }
        ValidationErrorKind::PropertyNames { .. } => {
            msg!("a property of {VALUE} has a name that is not allowed", VALUE = Message::word(VALUE))
        }
        ValidationErrorKind::BacktrackLimitExceeded { .. } | ValidationErrorKind::RegexEngineFailure { .. } => {
            msg!("{VALUE} could not be matched against the pattern", VALUE = Message::word(VALUE))
        }
        ValidationErrorKind::FromUtf8 { .. } => {
            msg!("{VALUE} does not decode to UTF-8 text", VALUE = Message::word(VALUE))
        }
        ValidationErrorKind::Custom { keyword, .. } => {
            msg!("{VALUE} violates `{keyword}`", VALUE = Message::word(VALUE))
        }
        _ => Message::text(error.masked_with(VALUE).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn violations_have_a_path_and_a_keyword_and_never_quote_the_value() {
        let schema = json!({
            "type": "object",
            "required": ["name"],
            "additionalProperties": false,
            "propertyNames": { "maxLength": 12 },
            "properties": {
                "name": { "type": "string", "minLength": 3 },
                "day": { "format": "date" },
                "mood": { "enum": ["好", "坏"] },
                "deep": { "properties": { "n": { "type": "number", "maximum": 5 } } },
                "list": { "type": "array", "uniqueItems": true, "maxItems": 1, "items": { "pattern": "^a" } },
                "either": { "oneOf": [{ "type": "null" }, { "const": 1 }] },
            },
        });
        let compiled = Compiled::new(&schema).unwrap();
        let secret = "秘密4711";
        let table = [
            (json!({}), "", "required"),
            (json!({ "name": 4711 }), "/name", "type"),
            (json!({ "name": "abc", "day": secret }), "/day", "format"),
            (json!({ "name": "abc", "mood": secret }), "/mood", "enum"),
            (json!({ "name": "abc", "deep": { "n": 4711 } }), "/deep/n", "maximum"),
            (json!({ "name": "abc", "list": [secret] }), "/list/0", "pattern"),
            (json!({ "name": "abc", "either": secret }), "/either", "oneOf"),
            (json!({ "name": "abc", secret: 1 }), "", "additionalProperties"),
            (json!({ "name": "abc", "秘密4711秘密4711秘密4711": 1 }), "", "propertyNames"),
        ];
        for (value, path, keyword) in table {
            let violations = compiled.violations(&value);
            assert!(!compiled.is_valid(&value));
            assert!(
                violations.iter().any(|violation| violation.path == path && violation.keyword == keyword),
                "{value}: {violations:?}"
            );
            for violation in violations {
                assert!(!violation.message.to_string().contains("4711"), "{}", violation.message);
            }
        }
        let good = json!({ "name": "小林林", "day": "2026-11-21", "mood": "好" });
        assert!(compiled.is_valid(&good));
        assert!(compiled.violations(&good).is_empty());
    }

    #[test]
    fn the_number_of_violations_is_limited() {
        let compiled = Compiled::new(&json!({ "items": { "type": "string" } })).unwrap();
        assert_eq!(compiled.violations(&json!(vec![1; 100_000])).len(), MAX_VIOLATIONS);
    }

    #[test]
    fn the_error_of_an_invalid_schema_has_a_path() {
        let error = Compiled::new(&json!({ "properties": { "a": { "type": "text" } } })).unwrap_err();
        assert_eq!(error.path, "/properties/a/type", "{error}");
    }

    #[test]
    fn a_reference_to_another_document_is_rejected() {
        for reference in ["https://example.com/a.json", "file:///etc/passwd", "other.json"] {
            assert!(Compiled::new(&json!({ "$ref": reference })).is_err(), "{reference}");
        }
        let inner = json!({ "$ref": "#/$defs/a", "$defs": { "a": { "type": "string" } } });
        assert!(Compiled::new(&inner).unwrap().is_valid(&json!("x")));
    }

    #[test]
    fn patterns_take_bounded_time_and_memory() {
        let text = json!("a".repeat(50_000));
        assert!(!Compiled::new(&json!({ "pattern": "^(a+)+$b" })).unwrap().is_valid(&text));
        // This one needs to step back; it is given up instead of tried on.
        assert!(!Compiled::new(&json!({ "pattern": "^(?=a)(a+)+\\1b$" })).unwrap().is_valid(&text));
        assert!(Compiled::new(&json!({ "pattern": "^(?!b)a" })).unwrap().is_valid(&text));
        let large = Compiled::new(&json!({ "properties": { "a": { "pattern": "(\\w{1000}){1000}" } } })).unwrap_err();
        assert!(large.path.starts_with("/properties/a"), "{large}");
    }

    #[test]
    fn references_that_multiply_are_rejected_before_they_are_compiled() {
        let mut definitions = serde_json::Map::new();
        for level in 0..40 {
            let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
            definitions.insert(format!("d{level}"), json!({ "anyOf": [next, next] }));
        }
        definitions.insert("d40".to_owned(), json!({ "const": 1 }));
        let error = Compiled::new(&json!({ "$ref": "#/$defs/d0", "$defs": definitions })).unwrap_err();
        assert!(error.message.to_string().contains("references multiply"), "{error}");
    }

    #[test]
    fn a_custom_format_replaces_the_standard_one() {
        let schema = json!({ "format": "date" });
        assert!(!Compiled::new(&schema).unwrap().is_valid(&json!("today")));
        let own = Compiled::with_formats(&schema, &[("date", |text| text == "today")]).unwrap();
        assert!(own.is_valid(&json!("today")));
        assert!(!own.is_valid(&json!("2026-11-21")));
    }
}
