//! What follows a turn: the session goes on, waits, or ends, also before its script does.

use std::sync::Arc;

use crate::program::event::{Event, Summary};
use crate::program::location::EventLocation;
use crate::program::work::TurnWork;
use crate::run::draft::CommitDraft;
use crate::run::head::SessionStatus;
use crate::run::mailbox::FinishedAnalysis;
use crate::run::session::Session;
use crate::run::transitions::{SessionFailure, WalkEnd};
use crate::run::turns::NextStep;

impl Session {
    pub(crate) fn conclude(
        &mut self,
        next: Result<NextStep, SessionFailure>,
        place: &EventLocation,
        draft: &mut CommitDraft,
    ) {
        if matches!(next, Ok(NextStep::End) | Err(_)) {
            // Results of monitors that are available by now were paid for and belong to the history.
            // No topic is left that a plan could change.
            for arrival in self.mailbox.take() {
                self.record_analysis(FinishedAnalysis { orchestrate: false, ..arrival }, draft);
            }
        }
        match next {
            // A branch ends inside of its action only.
            Ok(NextStep::Turn | NextStep::BranchEnd) => {}
            Ok(NextStep::Request(request)) => self.request_decision(*request, place, draft),
            Ok(NextStep::Effect(announced)) => self.announce(place, announced, draft),
            Ok(NextStep::Wait(what)) => self.wait(what, place, draft),
            Ok(NextStep::End) => {
                self.status = SessionStatus::Completed;
                let summary = self.summary(None);
                draft.event(&EventLocation::default(), Event::SessionCompleted { summary });
            }
            Err(error) => self.failed(place, error, draft),
        }
    }

    /// Moves to the next action that must run.
    pub(crate) fn settled(&mut self, draft: &mut CommitDraft) -> Result<NextStep, SessionFailure> {
        Ok(match self.walk_to_action(draft)? {
            WalkEnd::Action => NextStep::Turn,
            WalkEnd::Branch => NextStep::BranchEnd,
            WalkEnd::End => NextStep::End,
        })
    }

    /// [`Session::settled`], and follows what a route on the way has changed.
    pub(crate) fn settled_with_changes(&mut self, draft: &mut CommitDraft) -> Result<NextStep, SessionFailure> {
        let next = self.settled(draft)?;
        let program = Arc::clone(&self.program);
        self.follow_changes(&program, next, draft)
    }

    /// Moves to the next action, and completes or fails the session if there is none.
    pub(crate) fn walk_on(&mut self, place: &EventLocation, draft: &mut CommitDraft) {
        let next = self.settled_with_changes(draft);
        self.conclude(next, place, draft);
    }

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

    /// Fails the session, after what must run before it ends. An error in a cleanup only ends this cleanup.
    pub(crate) fn failed(&mut self, place: &EventLocation, error: SessionFailure, draft: &mut CommitDraft) {
        if self.cleanup_failed(place, &error, draft) {
            return;
        }
        if self.head.ending.is_some() {
            let SessionFailure { code, message, help } = error;
            draft.event(place, Event::Error { code, message, help });
            return self.finish_ending(draft);
        }
        if self.starts_ending(SessionStatus::Failed, Some(error.message.clone()), true) {
            let SessionFailure { code, message, help } = error;
            draft.event(place, Event::Error { code, message, help });
            return self.walk_on(place, draft);
        }
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

    /// Keeps only the model calls and warnings of a turn that failed. What it has shown is in no transcript, and is retracted.
    pub(crate) fn keep_calls(&mut self, place: &EventLocation, work: TurnWork, draft: &mut CommitDraft) {
        let mut place = place.clone();
        for (round, event) in work.events {
            place.round = round;
            if matches!(event, Event::ModelCall(_) | Event::Warning { .. } | Event::MessageDiscarded { .. }) {
                draft.event(&place, event);
            }
        }
        for message_id in work.streamed {
            draft.event(&place, Event::MessageDiscarded { message_id });
        }
    }
}
