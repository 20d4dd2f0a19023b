//! Errors of templates, and the conversion of errors of minijinja without the values that they may contain.

use crate::message::ToMessage;
use crate::message::library::library;
use crate::message::message::{Joint, Message};
use crate::message::msg;
use std::error::Error as _;
use std::ops::Range;

use minijinja::{Error, ErrorKind};

use crate::template::features::{FUEL, MAX_NESTING, MAX_OUTPUT};

/// An error of minijinja.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RenderError {
    /// The error message, without values.
    pub message: Message,
    /// The undefined name or attribute chain, if that is the error.
    pub undefined: Option<String>,
    /// The template in which it occurred, by its name in the environment.
    pub template: Option<String>,
    /// The byte range in that template, as minijinja compiled it.
    pub range: Option<Range<usize>>,
    /// The exact byte range in the template as its author wrote it, if it is known.
    pub exact: Option<Range<usize>>,
}

impl RenderError {
    /// Moves the range into `source` and to character boundaries: the tokenizer of minijinja marks one byte, which can be in the
    /// middle of a character or after the end.
    #[must_use]
    pub(crate) fn within(mut self, source: &str) -> Self {
        self.range = self.range.map(|range| {
            let start = source.floor_char_boundary(range.start.min(source.len()));
            let end = source.ceil_char_boundary(range.end.min(source.len()));
            start..end.max(start)
        });
        self
    }
}

/// An error in a template, or in the search for one.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", self.location())]
pub struct TemplateError {
    /// The error message, without values.
    pub message: Message,
    /// The display name of the file.
    pub file: Option<String>,
    /// The line in the file, including front matter, from 1.
    pub line: Option<usize>,
    /// The column in characters, from 1.
    pub column: Option<usize>,
    pub help: Option<Message>,
    /// Details of a mistake in a file that was found before rendering.
    pub mistake: Option<Box<Mistake>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    pub kind: MistakeKind,
    /// The byte range in the file.
    pub range: Range<usize>,
    /// The suggested replacement for `range`, if there is only one.
    pub instead: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MistakeKind {
    FrontMatter,
    /// The template of an action contains no text.
    Empty,
    /// A syntax error, or a feature that templates may not use.
    Syntax,
    /// The template refers to a template that does not exist.
    Missing,
    /// The template refers to a file outside the layers.
    OutsideLayers,
    /// The template includes or extends itself, directly or indirectly.
    Cycle,
}

impl TemplateError {
    pub fn new(message: impl Into<Message>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    #[must_use]
    pub fn with_help(mut self, help: impl Into<Message>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds the suggested replacement.
    #[must_use]
    pub(crate) fn with_instead(mut self, instead: Option<&str>) -> Self {
        if let Some(mistake) = &mut self.mistake {
            mistake.instead = instead.map(str::to_owned);
        }
        self
    }

    fn location(&self) -> String {
        let mut location = self.file.clone().unwrap_or_default();
        for number in [self.line, self.column].into_iter().flatten() {
            location.push_str(&format!(":{number}"));
        }
        if !location.is_empty() {
            location.push_str(": ");
        }
        location
    }
}

impl ToMessage for TemplateError {
    fn to_message(&self) -> Message {
        match self.location() {
            location if location.is_empty() => self.message.clone(),
            location => Message::list(Joint::Nothing, [Message::text(location), self.message.clone()]),
        }
    }
}

/// Carries a message of this program, and the exact place of an error, inside an error of minijinja.
#[derive(Debug)]
struct OwnDetails {
    message: Option<Message>,
    /// The byte range in the template as its author wrote it.
    range: Option<Range<usize>>,
}

impl std::fmt::Display for OwnDetails {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&self.message.clone().unwrap_or_default(), formatter)
    }
}

impl std::error::Error for OwnDetails {}

/// An error for minijinja from which [`render_error`] extracts the message.
pub(crate) fn error_with_message(kind: ErrorKind, message: impl Into<Message>) -> Error {
    let message = message.into();
    Error::new(kind, message.to_string()).with_source(OwnDetails { message: Some(message), range: None })
}

/// An error for minijinja with its byte range in the template as its author wrote it. Without a `message`, the message is made from the
/// kind and the detail.
pub(crate) fn error_at(kind: ErrorKind, detail: String, message: Option<Message>, range: Range<usize>) -> Error {
    Error::new(kind, detail).with_source(OwnDetails { message, range: Some(range) })
}

/// The message of this program in an error.
pub(crate) fn own_message(error: &Error) -> Option<Message> {
    own_details(error)?.message.clone()
}

fn own_details(error: &Error) -> Option<&OwnDetails> {
    error.source().and_then(|source| source.downcast_ref())
}

/// Converts the innermost error of minijinja that has a position.
pub(crate) fn render_error(error: &Error) -> RenderError {
    let mut reported = error;
    let mut next: Option<&(dyn std::error::Error + 'static)> = error.source();
    while let Some(inner) = next {
        if let Some(inner) = inner.downcast_ref::<Error>()
            && (inner.name().is_some() || inner.kind() == ErrorKind::WriteFailure || reported.name().is_none())
        {
            reported = inner;
        }
        next = inner.source();
    }
    let undefined = match reported.kind() {
        ErrorKind::UndefinedError | ErrorKind::InvalidOperation | ErrorKind::UnknownMethod => {
            reported.detail().and_then(undefined_name)
        }
        _ => None,
    };
    RenderError {
        message: message(reported, undefined.as_deref()),
        undefined,
        template: reported.name().map(str::to_owned),
        range: reported.range(),
        exact: own_details(reported).and_then(|details| details.range.clone()),
    }
}

fn message(error: &Error, undefined: Option<&str>) -> Message {
    if let Some(message) = own_details(error).and_then(|details| details.message.clone()) {
        return message;
    }
    if let Some(name) = undefined {
        return msg!("`{name}` is not known here");
    }
    match (error.kind(), error.detail()) {
        (ErrorKind::OutOfFuel, _) => msg!("this takes more than {FUEL} steps; is there a loop that runs too long?"),
        (ErrorKind::WriteFailure, Some(detail)) if detail.starts_with("more than") => Message::text(detail),
        (ErrorKind::WriteFailure, _) => msg!("the text is longer than {MAX_OUTPUT} bytes"),
        (_, Some("recursion limit exceeded")) => {
            msg!("macros, includes and blocks are nested more than {MAX_NESTING} levels deep")
        }
        // The only message of an operator of minijinja that contains the operands.
        (_, Some(detail)) if detail.starts_with("unable to calculate") => {
            msg!("this cannot be calculated: the result is too large, or it divides by zero")
        }
        (ErrorKind::SyntaxError | ErrorKind::TemplateNotFound, Some(detail)) => library(detail),
        (ErrorKind::UndefinedError, None) => msg!("something here is undefined"),
        (kind, Some(detail)) => Message::list(Joint::Colon, [library(&kind.to_string()), library(detail)]),
        (kind, None) => library(&kind.to_string()),
    }
}

/// The name in "`x` is undefined".
fn undefined_name(detail: &str) -> Option<String> {
    let end = detail.find("` is undefined")?;
    let before = detail.get(..end)?;
    let start = before.rfind('`')? + 1;
    before.get(start..).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_undefined_name_is_found_in_every_form() {
        let table = [
            ("`用户名` is undefined", Some("用户名")),
            ("`a.b` is undefined (from line 3)", Some("a.b")),
            ("something failed (`x` is undefined, from t:3)", Some("x")),
            ("nothing here", None),
        ];
        for (detail, expected) in table {
            assert_eq!(undefined_name(detail).as_deref(), expected, "{detail}");
        }
    }

    #[test]
    fn a_range_ends_at_character_boundaries_of_the_source() {
        for (source, marked) in [("a ？ b", "？"), ("a ~ 'b", "")] {
            let error = minijinja::machinery::parse_expr(source).map(drop).unwrap_err();
            let range = render_error(&error).within(source).range.unwrap();
            assert_eq!(source.get(range), Some(marked), "{source}");
        }
    }

    #[test]
    fn operands_are_not_in_the_message() {
        let error = minijinja::Environment::new().render_str("{{ 99887766 // 0 }}", ()).unwrap_err();
        assert!(!render_error(&error).message.to_string().contains("99887766"));
    }
}
