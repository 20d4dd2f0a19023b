//! Regular expressions of a test: compiled where they are read, so that a wrong one is told with its place.

use crate::message::message::Message;
use crate::message::msg;
use regex::{Regex, RegexBuilder};

use crate::script::fields::Fields;
use crate::source::span::{Span, Spanned};

/// The largest compiled expression, in bytes: matching itself takes time linear in the text, whatever is written.
const MOST_BYTES: usize = 2 * 1024 * 1024;

#[derive(Clone, Debug)]
pub struct TextPattern {
    pub source: String,
    /// What it finds.
    pub regex: Regex,
    pub span: Span,
}

/// Compiles an expression; reports `wrong-pattern` when it is none.
pub(crate) fn pattern(written: Spanned<String>, fields: &Fields<'_>) -> Option<TextPattern> {
    let Spanned { value: source, span } = written;
    match RegexBuilder::new(&source).size_limit(MOST_BYTES).build() {
        Ok(regex) => Some(TextPattern { source, regex, span }),
        Err(error) => {
            let why = match error {
                regex::Error::CompiledTooBig(_) => msg!("it is too large"),
                // The last line of several says what is wrong; those before it draw the place.
                other => Message::text(other.to_string().lines().last().unwrap_or_default().replace("error: ", "")),
            };
            let message = msg!("this is not a valid regular expression: {why}");
            let help = "`.*+?()[]{}|^$\\` have a special meaning: write `\\` before a character to match it literally, or use `contains` for plain text";
            fields.error("wrong-pattern", message, span, help);
            None
        }
    }
}
