//! The rules that differ between expressions, texts and templates, and what can end an evaluation.

use crate::message::ToMessage;
use crate::message::message::Message;
use crate::message::msg;
use std::ops::Range;

use minijinja::{Error, ErrorKind};

use crate::expr::parse::ExprError;
use crate::source::near::did_you_mean;
use crate::template::error::render_error;

/// Where an expression stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpressionDialect {
    /// A condition or a value of a script: conditions must be booleans, and an unknown name is an error.
    Expression,
    /// An author text: texts, numbers and lists have a truth, and an unknown name is null.
    Text,
    /// A prompt template: as a text, but an unknown name is an error.
    Template,
}

/// What ended an evaluation.
#[derive(Debug)]
pub(crate) enum EvaluationError {
    /// An operation failed: incompatible operands, division by zero, a filter.
    Operation(Box<ExprError>),
    /// A name, or a part of an object, that does not exist.
    Unknown(Box<ExprError>, String),
    /// A value exceeds a limit.
    Limit(Box<ExprError>),
    /// An error of minijinja: inside a macro, or an exceeded limit.
    Template(Error),
}

impl From<ExprError> for EvaluationError {
    fn from(error: ExprError) -> Self {
        Self::Operation(Box::new(error))
    }
}

impl EvaluationError {
    pub(crate) fn unknown_name(name: &str, range: &Range<usize>, known: &[String]) -> Self {
        let mut error = ExprError::at(range, msg!("`{name}` is not known here"));
        error.help = match name {
            "null" | "Null" | "NULL" | "nil" | "undefined" => Some(msg!("write `none`")),
            "TRUE" => Some(msg!("write `true`")),
            "FALSE" => Some(msg!("write `false`")),
            _ => did_you_mean(name, known.iter().map(String::as_str)),
        };
        Self::Unknown(Box::new(error), name.to_owned())
    }

    /// A missing part of a value, as `x.y`.
    pub(crate) fn unknown_part(text: &str, range: &Range<usize>) -> Self {
        Self::Unknown(Box::new(ExprError::at(range, msg!("`{text}` has no value"))), text.to_owned())
    }

    pub(crate) fn into_error(self) -> ExprError {
        match self {
            Self::Operation(error) | Self::Unknown(error, _) | Self::Limit(error) => *error,
            Self::Template(error) => {
                let message: Message = render_error(&error).message;
                ExprError { message, range: None, help: None, unknown: None, repair: None }
            }
        }
    }
}

impl ToMessage for EvaluationError {
    fn to_message(&self) -> Message {
        match self {
            Self::Operation(error) | Self::Unknown(error, _) | Self::Limit(error) => error.message.clone(),
            Self::Template(error) => render_error(error).message,
        }
    }
}

/// Whether an error of minijinja is an exceeded limit of the rendering.
pub(crate) fn is_limit(error: &Error) -> bool {
    let is_limit = |error: &Error| {
        matches!(error.kind(), ErrorKind::OutOfFuel | ErrorKind::WriteFailure)
            || error.detail() == Some("recursion limit exceeded")
    };
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = next {
        if current.downcast_ref::<Error>().is_some_and(is_limit) {
            return true;
        }
        next = current.source();
    }
    false
}
