//! How a session ends before its script does: stopped, or failed.

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
        lost: SessionFailure,
        work: TurnWork,
        draft: &mut CommitDraft,
    ) {
        self.only_calls(place, work, draft);
        let summary = self.over(SessionStatus::Stopped, place, lost, draft);
        draft.event(place, Event::SessionStopped { summary });
    }

    pub(crate) fn failed(&mut self, place: &EventLocation, lost: SessionFailure, draft: &mut CommitDraft) {
        let summary = self.over(SessionStatus::Failed, place, lost, draft);
        draft.event(place, Event::SessionFailed { summary });
    }

    fn over(
        &mut self,
        status: SessionStatus,
        place: &EventLocation,
        lost: SessionFailure,
        draft: &mut CommitDraft,
    ) -> Summary {
        self.status = status;
        let SessionFailure { code, message, help } = lost;
        draft.event(place, Event::Error { code, message: message.clone(), help });
        self.summary(Some(message))
    }

    /// Of a turn that came to nothing, what it cost is kept, and the notes that it made.
    pub(crate) fn only_calls(&mut self, place: &EventLocation, work: TurnWork, draft: &mut CommitDraft) {
        let mut place = place.clone();
        for (round, event) in work.events {
            place.round = round;
            if matches!(event, Event::ModelCall(_) | Event::Warning { .. } | Event::MessageDiscarded { .. }) {
                draft.event(&place, event);
            }
        }
    }
}
