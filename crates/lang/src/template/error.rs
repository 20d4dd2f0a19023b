//! minijinja's errors, told without the values that they may carry.

use crate::message::ToMessage;
use crate::message::library::library;
use crate::message::message::{Joint, Message};
use crate::message::msg;
use std::error::Error as _;
use std::ops::Range;

use minijinja::{Error, ErrorKind};

use crate::template::features::{FUEL, MAX_NESTING, MAX_OUTPUT};

/// What went wrong inside minijinja.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderError {
    /// What is wrong, without any value.
    pub message: Message,
    /// The name or attribute chain that was undefined, where that is what is wrong.
    pub undefined: Option<String>,
    /// The template in which it happened, as the environment calls it.
    pub template: Option<String>,
    /// Where in that template, in bytes.
    pub range: Option<Range<usize>>,
}

impl RenderError {
    /// The same with its place inside `source` and on whole characters: minijinja's tokenizer marks one byte, be it in the
    /// middle of a character or behind the end.
    #[must_use]
    pub fn within(mut self, source: &str) -> Self {
        self.range = self.range.map(|range| {
            let start = source.floor_char_boundary(range.start.min(source.len()));
            let end = source.ceil_char_boundary(range.end.min(source.len()));
            start..end.max(start)
        });
        self
    }
}

/// What is wrong with a template, or with finding one.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", self.place())]
pub struct TemplateError {
    /// What is wrong, without any value.
    pub message: Message,
    /// The file, as people are shown it.
    pub file: Option<String>,
    /// The line of the whole file, front matter included, from 1.
    pub line: Option<usize>,
    /// The column in characters, from 1.
    pub column: Option<usize>,
    pub help: Option<Message>,
    /// What more is known of a mistake that stands in a file, found before anything is rendered.
    pub mistake: Option<Box<Mistake>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    pub kind: MistakeKind,
    /// Where, in bytes of the whole file.
    pub range: Range<usize>,
    /// The one text that was probably meant in the place of `range`.
    pub instead: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MistakeKind {
    Front,
    /// What minijinja cannot read, or what templates may not use.
    Syntax,
    /// A template is pulled in that is not there.
    Missing,
    /// What is pulled in lies outside of the layers.
    Outside,
    /// A template pulls itself in, alone or through others.
    Itself,
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

    /// The same with the one text that was probably meant.
    #[must_use]
    pub fn with_instead(mut self, instead: Option<&str>) -> Self {
        if let Some(mistake) = &mut self.mistake {
            mistake.instead = instead.map(str::to_owned);
        }
        self
    }

    fn place(&self) -> String {
        let mut place = self.file.clone().unwrap_or_default();
        for number in [self.line, self.column].into_iter().flatten() {
            place.push_str(&format!(":{number}"));
        }
        if !place.is_empty() {
            place.push_str(": ");
        }
        place
    }
}

impl ToMessage for TemplateError {
    fn to_message(&self) -> Message {
        match self.place() {
            place if place.is_empty() => self.message.clone(),
            place => Message::list(Joint::Nothing, [Message::text(place), self.message.clone()]),
        }
    }
}

/// A message of this program inside an error of minijinja.
#[derive(Debug)]
struct OwnMessage(Message);

impl std::fmt::Display for OwnMessage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&self.0, formatter)
    }
}

impl std::error::Error for OwnMessage {}

/// An error for minijinja from which [`fault`] gets the message back.
pub(crate) fn of_message(kind: ErrorKind, message: impl Into<Message>) -> Error {
    let message = message.into();
    Error::new(kind, message.to_string()).with_source(OwnMessage(message))
}

/// Tells the innermost of minijinja's errors that knows where it happened.
pub fn fault(error: &Error) -> RenderError {
    let mut told = error;
    let mut next: Option<&(dyn std::error::Error + 'static)> = error.source();
    while let Some(inner) = next {
        if let Some(inner) = inner.downcast_ref::<Error>()
            && (inner.name().is_some() || inner.kind() == ErrorKind::WriteFailure || told.name().is_none())
        {
            told = inner;
        }
        next = inner.source();
    }
    let undefined = match told.kind() {
        ErrorKind::UndefinedError | ErrorKind::InvalidOperation | ErrorKind::UnknownMethod => {
            told.detail().and_then(undefined_name)
        }
        _ => None,
    };
    RenderError {
        message: message(told, undefined.as_deref()),
        undefined,
        template: told.name().map(str::to_owned),
        range: told.range(),
    }
}

fn message(error: &Error, undefined: Option<&str>) -> Message {
    if let Some(OwnMessage(message)) = error.source().and_then(|source| source.downcast_ref()) {
        return message.clone();
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
        // The one message of minijinja's operators that shows what they were given.
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
    fn a_place_is_made_of_whole_characters_of_the_source() {
        for (source, marked) in [("a ？ b", "？"), ("a ~ 'b", "")] {
            let error = minijinja::machinery::parse_expr(source).map(drop).unwrap_err();
            let range = fault(&error).within(source).range.unwrap();
            assert_eq!(source.get(range), Some(marked), "{source}");
        }
    }

    #[test]
    fn what_was_calculated_with_is_not_told() {
        let error = minijinja::Environment::new().render_str("{{ 99887766 // 0 }}", ()).unwrap_err();
        assert!(!fault(&error).message.to_string().contains("99887766"));
    }
}
