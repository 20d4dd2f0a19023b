//! What the analysis of an expression finds.

use bcc_lang::message::message::Message;
use std::ops::Range;

use bcc_lang::template::unknown::SourceRepair;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeMistake {
    /// Values that an operator can never bring together.
    Mismatch,
    /// Values that are compared and never equal.
    NeverEqual,
    /// A condition that always or never holds: which.
    Constant(bool),
    /// A condition that is neither a boolean nor null.
    NotBoolean,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeFinding {
    pub fault: TypeMistake,
    /// Where, in bytes of the source.
    pub range: Range<usize>,
    pub message: Message,
    pub help: Message,
    /// The change that would settle it, where there is one.
    pub repair: Option<SourceRepair>,
}
