//! What is wrong with a line of a source, which is left out.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineProblem {
    NotText,
    TooLong,
    OpenQuote,
    NotJson,
    MissingPart,
}

impl LineProblem {
    const ALL: [Self; 5] = [Self::NotText, Self::TooLong, Self::OpenQuote, Self::NotJson, Self::MissingPart];

    /// The number in a stored segment.
    pub(crate) fn code(self) -> u32 {
        Self::ALL.iter().position(|one| *one == self).and_then(|code| u32::try_from(code).ok()).unwrap_or(0)
    }

    pub(crate) fn from_code(code: u32) -> Option<Self> {
        Self::ALL.get(usize::try_from(code).ok()?).copied()
    }

    pub(crate) fn message(self) -> Message {
        match self {
            Self::NotText => msg!("the line is not UTF-8 text"),
            Self::TooLong => msg!("the line, or a part of it, is too long"),
            Self::OpenQuote => msg!("a quote that begins here does not end"),
            Self::NotJson => {
                msg!("the line is neither a JSON object nor a list with a subject, a predicate and an object")
            }
            Self::MissingPart => msg!("the subject, the predicate or the object is missing"),
        }
    }
}
