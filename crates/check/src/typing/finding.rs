//! The findings of the type analysis.

use bcc_lang::message::message::Message;
use std::ops::Range;

use bcc_lang::template::unknown::SourceRepair;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TypeMistake {
    /// Values of types that an operator cannot combine.
    Mismatch,
    /// Values that are compared but never equal.
    NeverEqual,
    /// A condition with a constant result: this one.
    Constant(bool),
    /// A date that is ordered by comparing it with a text that is no date.
    NotADate,
    /// A condition that is neither a boolean nor null.
    NotBoolean,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TypeFinding {
    pub mistake: TypeMistake,
    /// The place, in bytes of the source.
    pub range: Range<usize>,
    pub message: Message,
    pub help: Message,
    /// The change that repairs it, if there is one.
    pub repair: Option<SourceRepair>,
}
