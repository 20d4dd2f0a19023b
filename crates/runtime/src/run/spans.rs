//! The spans of a session and its turns (docs/observability.md). They name places in scripts, and contain nothing of what was said.

use tracing::Span;
use tracing::field::Empty;

use crate::program::flow::ActionError;
use crate::program::location::EventLocation;
use crate::run::error::RunError;
use crate::run::session::{Session, SessionPause};
use bcc_llm::model::call_span::span_number;

impl Session {
    /// The span of the turns from now until the session has to wait, a child of `cause`.
    pub(crate) fn session_span(&self, cause: &Span) -> Span {
        tracing::info_span!(
            parent: cause,
            "session",
            gen_ai.conversation.id = self.id,
            bcc_script.script = self.base.id,
            bcc_script.after = span_number(self.last_seq),
            bcc_script.pause = Empty,
            otel.status_code = Empty,
            error.type = Empty,
        )
    }

    /// The span of the next turn.
    pub(crate) fn turn_span(&self) -> Span {
        let span = self.empty_turn_span();
        if !span.is_disabled() {
            self.record_place(&span, &self.frames.leaf());
        }
        span
    }

    /// The span of a turn of a branch: of the action `key`.
    pub(crate) fn branch_turn_span(&self, key: &str) -> Span {
        let span = self.empty_turn_span();
        if !span.is_disabled() {
            self.record_place(&span, key);
        }
        span
    }

    fn record_place(&self, span: &Span, key: &str) {
        // Not the path: it names the elements of lists.
        let EventLocation { phase_id, topic_id, action_id, .. } = self.place_of(key);
        // A model chooses the ids of the actions of its plans.
        let action_id = action_id.filter(|_| self.planned_action(key).is_none());
        span.record("bcc_script.phase", phase_id);
        span.record("bcc_script.topic", topic_id);
        span.record("bcc_script.action", action_id);
    }

    fn empty_turn_span(&self) -> Span {
        tracing::info_span!(
            "turn",
            gen_ai.conversation.id = self.id,
            bcc_script.turn = span_number(self.head.turns + 1),
            bcc_script.phase = Empty,
            bcc_script.topic = Empty,
            bcc_script.action = Empty,
            bcc_script.action_type = Empty,
            bcc_script.round = Empty,
            otel.status_code = Empty,
            error.type = Empty,
        )
    }
}

/// Records in the span of the turn, which is the current one, what the action was and how its turn ended.
pub(crate) fn record_turn(kind: &'static str, round: Option<u32>, failure: Option<&ActionError>) {
    let span = Span::current();
    if span.is_disabled() {
        return;
    }
    span.record("bcc_script.action_type", kind);
    span.record("bcc_script.round", round.map(i64::from));
    if let Some(failure) = failure {
        span.record("otel.status_code", "ERROR");
        span.record("error.type", failure.code());
    }
}

/// Records why the session takes no other turn.
pub(crate) fn record_pause(span: &Span, pause: &Result<SessionPause, RunError>) {
    if span.is_disabled() {
        return;
    }
    match pause {
        Ok(pause) => {
            span.record("bcc_script.pause", pause.name());
            if *pause == SessionPause::Failed {
                span.record("otel.status_code", "ERROR");
                span.record("error.type", "session_failed");
            }
        }
        Err(_) => {
            span.record("otel.status_code", "ERROR");
            span.record("error.type", "store");
        }
    }
}
