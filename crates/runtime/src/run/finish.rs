//! Ends a session before its script does: stopped or failed.

use crate::program::event::{Event, Summary};
use crate::program::location::EventLocation;
use crate::program::work::TurnWork;
use crate::run::draft::CommitDraft;
use crate::run::head::SessionStatus;
use crate::run::session::Session;
use crate::run::transitions::SessionFailure;

impl Session {
    pub(crate) fn stopped(
        &mut self,
        place: &EventLocation,
        error: SessionFailure,
        work: TurnWork,
        draft: &mut CommitDraft,
    ) {
        self.keep_calls(place, work, draft);
        let summary = self.end_with(SessionStatus::Stopped, place, error, draft);
        draft.event(place, Event::SessionStopped { summary });
    }

    pub(crate) fn failed(&mut self, place: &EventLocation, error: SessionFailure, draft: &mut CommitDraft) {
        let summary = self.end_with(SessionStatus::Failed, place, error, draft);
        draft.event(place, Event::SessionFailed { summary });
    }

    fn end_with(
        &mut self,
        status: SessionStatus,
        place: &EventLocation,
        error: SessionFailure,
        draft: &mut CommitDraft,
    ) -> Summary {
        self.status = status;
        let SessionFailure { code, message, help } = error;
        draft.event(place, Event::Error { code, message: message.clone(), help });
        self.summary(Some(message))
    }

    /// Keeps only the model calls and warnings of a turn that failed.
    pub(crate) fn keep_calls(&mut self, place: &EventLocation, work: TurnWork, draft: &mut CommitDraft) {
        let mut place = place.clone();
        for (round, event) in work.events {
            place.round = round;
            if matches!(event, Event::ModelCall(_) | Event::Warning { .. } | Event::MessageDiscarded { .. }) {
                draft.event(&place, event);
            }
        }
    }
}
