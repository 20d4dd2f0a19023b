//! Compiled JSON Schemas (draft 2020-12). They validate values and report violations as data.

use crate::message::ToMessage;
use crate::message::message::Message;
use crate::message::msg;
use std::fmt;
use std::sync::Arc;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, ValidationError, Validator};
use serde_json::Value;

/// The maximum number of reported violations of one value: a value with a million wrong items must not produce a million messages.
pub(crate) const MAX_VIOLATIONS: usize = 100;

/// The text in messages that replaces the invalid value.
const VALUE: &str = "the value";

/// Checks a value of one `format`.
pub type FormatCheck = fn(&str) -> bool;

/// A compiled schema. Clones share it. Compilation takes milliseconds, validation microseconds.
#[derive(Clone)]
pub struct Compiled {
    validator: Arc<Validator>,
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
    /// Errors: [`SchemaError`] if it is not a valid schema of draft 2020-12, or refers to another document.
    pub fn new(schema: &Value) -> Result<Self, SchemaError> {
        Self::with_formats(schema, &[])
    }

    /// Like [`Compiled::new`], with custom checks that replace the standard ones for these formats.
    /// Errors: As for [`Compiled::new`].
    pub fn with_formats(schema: &Value, formats: &[(&'static str, FormatCheck)]) -> Result<Self, SchemaError> {
        let mut options = jsonschema::options().with_draft(Draft::Draft202012).should_validate_formats(true).offline();
        for (name, check) in formats {
            options = options.with_format(*name, *check);
        }
        let validator = options.build(schema).map_err(|error| SchemaError {
            path: error.instance_path().to_string(),
            message: Message::text(error.to_string()),
        })?;
        Ok(Self { validator: Arc::new(validator) })
    }

    pub fn is_valid(&self, value: &Value) -> bool {
        self.validator.is_valid(value)
    }

    /// The violations of `value`, at most `MAX_VIOLATIONS`.
    pub fn violations(&self, value: &Value) -> Vec<Violation> {
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
    fn a_custom_format_replaces_the_standard_one() {
        let schema = json!({ "format": "date" });
        assert!(!Compiled::new(&schema).unwrap().is_valid(&json!("today")));
        let own = Compiled::with_formats(&schema, &[("date", |text| text == "today")]).unwrap();
        assert!(own.is_valid(&json!("today")));
        assert!(!own.is_valid(&json!("2026-11-21")));
    }
}
