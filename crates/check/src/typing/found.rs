//! What the analysis of an expression finds.

use std::ops::Range;

use bcc_lang::template::unknown::Repair;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Values that an operator can never bring together.
    Mismatch,
    /// Values that are compared and never equal.
    NeverEqual,
    /// A condition that always or never holds: which.
    Constant(bool),
    /// A condition that is neither a boolean nor null.
    NotBoolean,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What is wrong.
    pub fault: Fault,
    /// Where, in bytes of the source.
    pub range: Range<usize>,
    /// What is wrong, in words.
    pub message: String,
    /// What to do.
    pub help: String,
    /// The change that would settle it, where there is one.
    pub repair: Option<Repair>,
}
