//! A question to a model or a behavior server, while it is not answered: shown, but never stored.

use crate::program::location::EventLocation;

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked<'a> {
    Model,
    /// The behavior server of this name.
    Server(&'a str),
}

/// A question that an observer is told about.
#[derive(Debug)]
pub struct QuestionPiece<'a> {
    pub asked: Asked<'a>,
    /// Whether it was asked now; else its answer is there, or given up.
    pub is_open: bool,
    pub location: &'a EventLocation,
}
