//! A question to a model or a behavior server, while it is not answered: shown, but never stored.

use crate::program::event::Observer;
use crate::program::location::EventLocation;
use crate::program::turn::Turn;

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

/// Tells the observer of a session that somebody is asked, until it is dropped.
pub(crate) struct OpenQuestion<'a> {
    observer: &'a dyn Observer,
    asked: Asked<'a>,
    location: &'a EventLocation,
}

impl<'a> OpenQuestion<'a> {
    pub(crate) fn ask(turn: &'a Turn<'_>, asked: Asked<'a>) -> Self {
        let question = Self { observer: turn.services.observer.as_ref(), asked, location: turn.place };
        question.tell(true);
        question
    }

    fn tell(&self, is_open: bool) {
        self.observer.question(&QuestionPiece { asked: self.asked, is_open, location: self.location });
    }
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.tell(false);
    }
}
