//! Regular expressions of a test, compiled when they are read, so that errors are reported with their position.

use crate::message::library::library;
use crate::message::msg;
use regex::{Regex, RegexBuilder};

use crate::script::fields::Fields;
use crate::source::span::{Span, Spanned};
use crate::template::pattern_marks::full_width_marks;

/// The maximum size of a compiled expression, in bytes. Matching any expression takes time linear in the text.
const MAX_BYTES: usize = 2 * 1024 * 1024;

#[derive(Clone, Debug)]
pub struct TextPattern {
    pub source: String,
    pub regex: Regex,
    pub span: Span,
}

/// Compiles an expression; reports `wrong-pattern` if it is invalid.
pub(crate) fn pattern(written: Spanned<String>, fields: &Fields<'_>) -> Option<TextPattern> {
    let Spanned { value: source, span } = written;
    match RegexBuilder::new(&source).size_limit(MAX_BYTES).build() {
        Ok(regex) => {
            if let Some(found) = full_width_marks(&source, 0).filter(|found| !found.keywords) {
                fields.findings().report(found.diagnostic(fields.file(), span));
            }
            Some(TextPattern { source, regex, span })
        }
        Err(error) => {
            let why = match error {
                regex::Error::CompiledTooBig(_) => msg!("it is too large"),
                // The last line contains the message; those before it show the position.
                other => library(&other.to_string().lines().last().unwrap_or_default().replace("error: ", "")),
            };
            let message = msg!("this is not a valid regular expression: {why}");
            let help = "`.*+?()[]{}|^$\\` have a special meaning: write `\\` before a character to match it literally, or use `contains` for plain text";
            fields.error("wrong-pattern", message, span, help);
            None
        }
    }
}
