//! How a session fails or is cancelled: first the `finally` of its topic runs, then the compensations, and then the status is final
//! (docs/failures.md).

use std::sync::Arc;

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;

use crate::program::event::Event;
use crate::program::location::EventLocation;
use crate::run::draft::CommitDraft;
use crate::run::error::RunError;
use crate::run::frames::ROOT;
use crate::run::head::{Ending, SessionStatus};
use crate::run::session::Session;
use crate::run::topic_exit::TopicExit;

impl Session {
    /// Starts what runs before the session ends with `status`. Returns whether there is anything. The frames change; the caller moves
    /// to the next action.
    pub(crate) fn starts_ending(&mut self, status: SessionStatus, reason: Option<Message>, compensate: bool) -> bool {
        let program = Arc::clone(&self.program);
        let has_finally = self.enter_finally(&program, TopicExit::SessionEnds);
        if !(has_finally || compensate && self.has_compensations()) {
            return false;
        }
        if !has_finally {
            self.unwind(ROOT);
        }
        self.head.ending = Some(Ending { status, reason, compensate, failed: vec![] });
        self.head.route_hops = 0;
        self.head.recent_routes.clear();
        self.clear_pending();
        self.status = SessionStatus::Running;
        true
    }

    /// No action that runs from now on takes the answer that the session was about to process.
    pub(crate) fn clear_pending(&mut self) {
        self.pending = None;
        self.head.pending = false;
        self.clear_carried_answer();
        self.metadata.clear();
        self.forget_changes();
    }

    /// Whether the session is about to end, and nothing of its script runs any more: the next turn starts a compensation, or ends
    /// the session.
    pub(crate) fn is_between_compensations(&self) -> bool {
        self.head.ending.is_some() && self.frames.leaf() == ROOT
    }

    /// Ends the session as was decided.
    pub(crate) fn finish_ending(&mut self, draft: &mut CommitDraft) {
        let Some(Ending { status, reason, failed, .. }) = self.head.ending.take() else { return };
        self.status = status;
        let reason = match (reason, failed.as_slice()) {
            (reason, []) => reason,
            (Some(reason), failed) => {
                Some(msg!("{reason}; these could not be undone completely: {}", Message::names(failed)))
            }
            (None, failed) => Some(msg!("these could not be undone completely: {}", Message::names(failed))),
        };
        let summary = self.summary(reason);
        let event = match status {
            SessionStatus::Cancelled => Event::SessionCancelled { summary },
            _ => Event::SessionFailed { summary },
        };
        draft.event(&EventLocation::default(), event);
    }

    /// Ends the session for good, after the `finally` of its topic and, if `compensate`, its compensations: [`Session::advance`] runs
    /// them. Without them, it ends at once, and effects that are open are reported as abandoned. A session that is about to end already
    /// goes on with that, or, without `compensate`, ends at once.
    ///
    /// # Errors
    /// [`RunError::Final`] if it has ended already; otherwise the store failed.
    pub async fn cancel(&mut self, reason: Option<String>, compensate: bool) -> Result<(), RunError> {
        self.ensure_consistent()?;
        if self.status.is_final() {
            return Err(RunError::Final { id: self.id.clone(), status: self.status.name() });
        }
        if self.head.ending.is_some() && compensate {
            return Ok(());
        }
        let mut draft = CommitDraft::default();
        draft.answered.extend(self.head.waiting.take());
        self.request = None;
        self.head.asks_effect = false;
        let reason = reason.map(Message::text);
        let place = self.place();
        if self.head.ending.is_some() {
            self.unwind(ROOT);
            self.finish_ending(&mut draft);
        } else if self.starts_ending(SessionStatus::Cancelled, reason.clone(), compensate) {
            self.walk_on(&place, &mut draft);
        } else {
            draft.answered.extend(std::mem::take(&mut self.branch_requests).into_values().map(|request| request.id));
            self.status = SessionStatus::Cancelled;
            let summary = self.head.summary(self.answers, reason);
            draft.event(&EventLocation::default(), Event::SessionCancelled { summary });
        }
        self.commit(draft).await?;
        if self.status.is_final() {
            self.end_kernel().await;
        }
        Ok(())
    }
}
