//! Tells the observer of a session that a model or a behavior server is asked.

use crate::program::event::Observer;
use crate::program::location::EventLocation;
use crate::program::question::{Asked, QuestionPiece};
use crate::program::turn::Turn;

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
