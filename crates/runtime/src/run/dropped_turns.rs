//! Turns that a trigger interrupts: the reply is dropped whole, and the answer is assessed again later (docs/triggers.md).

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::msg;

use crate::program::event::Event;
use crate::program::flow::Flow;
use crate::program::location::EventLocation;
use crate::program::outcome::Outcome;
use crate::program::program::Program;
use crate::program::work::TurnWork;
use crate::run::draft::CommitDraft;
use crate::run::error::RunError;
use crate::run::session::Session;
use crate::run::triggers::{FiredTrigger, TriggerCheck};

impl Session {
    /// The trigger that fires after this turn, which is not applied yet.
    pub(crate) fn interrupting_trigger<'p>(
        &mut self,
        program: &'p Program,
        check: TriggerCheck<'_>,
        (flow, work): (&Flow, &TurnWork),
        draft: &mut CommitDraft,
    ) -> Option<FiredTrigger<'p>> {
        let metadata = outcome_of(flow, work).map(|outcome| outcome.metadata.clone()).unwrap_or_default();
        self.find_trigger_in_turn(program, check, (metadata, &work.scopes), draft)
    }

    /// Drops the changes and messages of a turn, and keeps its model calls, in which its sensitive values are masked as in any other.
    ///
    /// # Errors
    /// If a value cannot be written as JSON, which does not happen.
    pub(crate) fn drop_turn(
        &mut self,
        key: &str,
        place: &EventLocation,
        (flow, mut work): (&Flow, TurnWork),
        draft: &mut CommitDraft,
    ) -> Result<(), RunError> {
        self.hide_sensitive(&work, draft)
            .map_err(|error| RunError::Unreadable { id: self.id.clone(), what: error.to_message() })?;
        if let Some(frame) = self.frames.change(key) {
            frame.calls += work.calls;
        }
        // No outcome will contain the last call, so its event does.
        let debug_info = outcome_of(flow, &work).map(|outcome| outcome.debug_info.clone()).unwrap_or_default();
        let mut calls = work.events.iter_mut().rev().filter_map(|(_, event)| match event {
            Event::ModelCall(call) => Some(call),
            _ => None,
        });
        let had_reply = match calls.next() {
            Some(call) => {
                if call.debug_info.is_empty() {
                    call.debug_info = debug_info;
                }
                true
            }
            None => false,
        };
        self.keep_calls(place, work, draft);
        if had_reply {
            let message =
                msg!("a trigger interrupted this reply, which was dropped; the answer will be assessed again");
            draft.event(place, Event::Warning { code: "reply-dropped", message, help: None });
        }
        Ok(())
    }
}

/// The outcome of a turn.
fn outcome_of<'t>(flow: &'t Flow, work: &'t TurnWork) -> Option<&'t Outcome> {
    match flow {
        Flow::Done(outcome) | Flow::Exit(outcome) | Flow::Goto(outcome, ..) => Some(outcome),
        _ => work.events.iter().rev().find_map(|(_, event)| match event {
            Event::Outcome { outcome, .. } => Some(outcome.as_ref()),
            _ => None,
        }),
    }
}
