//! Insertions that end because an action in them failed and has no route for it (docs/routes.md).

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::script::route_parser::RouteTarget;

use crate::program::decision::NOT_APPROVED;
use crate::program::outcome::ExitReason;
use crate::program::program::Program;
use crate::program::route_table::RouteLevel;
use crate::run::draft::CommitDraft;
use crate::run::frames::{Frame, component, id_of, lineage, parent};
use crate::run::position::Position;
use crate::run::session::Session;
use crate::run::transitions::SessionFailure;

impl Session {
    /// The key of the innermost insertion that contains the action `key`, in the same branch.
    pub(crate) fn enclosing_insertion(&self, key: &str) -> Option<String> {
        let mut found = None;
        for key in lineage(parent(key)) {
            match self.frames.get(key) {
                Some(frame) if frame.insertion.is_some() => found = Some(key),
                Some(frame) if frame.branch.is_some() => found = None,
                // What cleans up does not belong to the insertions around it.
                Some(_) if self.is_cleanup(key) => found = None,
                _ => {}
            }
        }
        found.map(str::to_owned)
    }

    /// Whether the insertion that contains the action `key` ends with an error if the action has no route for `reason`. After an
    /// `error`, it does so only if a caller handles errors; else the insertion goes on.
    pub(crate) fn fails_insertion(
        &self,
        program: &Program,
        key: &str,
        reason: ExitReason,
        default: &RouteTarget,
    ) -> bool {
        let Some(mut inserted) = self.enclosing_insertion(key) else { return false };
        if *default == RouteTarget::Fail {
            return true;
        }
        if reason != ExitReason::Error {
            return false;
        }
        loop {
            // The error of what a trigger inserted is only reported.
            if self.frames.get(&inserted).is_none_or(Frame::triggered) {
                return false;
            }
            let caller = parent(&inserted);
            if self.handles_error(program, caller) {
                return true;
            }
            match self.enclosing_insertion(caller) {
                Some(outer) => inserted = outer,
                None => return false,
            }
        }
    }

    /// Whether the action `caller` handles the error of a skill that it called, or has a route for it.
    pub(crate) fn handles_error(&self, program: &Program, caller: &str) -> bool {
        let handles = |position: Position<'_>| {
            position.step.action.handles_failed_skills() || position.route(program, ExitReason::Error).is_some()
        };
        self.position(program, caller).is_some_and(handles)
    }

    /// An action in an insertion failed and has no route of its own: the complete insertion fails.
    pub(crate) fn fail_insertion(
        &mut self,
        program: &Program,
        key: &str,
        (reason, level): (ExitReason, Option<RouteLevel>),
        error: Option<SessionFailure>,
        draft: &mut CommitDraft,
    ) -> Result<(), SessionFailure> {
        let place = self.place_of(key);
        let from = id_of(component(key)).to_owned();
        let Some(inserted) = self.enclosing_insertion(key) else { return Ok(()) };
        let insertion = id_of(component(&inserted)).to_owned();
        let why = msg!("no route is defined for it in `{insertion}`, which therefore ends");
        self.report_route(&place, (reason, level), "error".into(), &from, why, draft);
        let is_refused = matches!(reason, ExitReason::Rejected | ExitReason::TimedOut);
        let error = error.unwrap_or_else(|| SessionFailure {
            code: if is_refused { NOT_APPROVED } else { "action-error" },
            message: msg!("the action `{from}` of `{insertion}` ended with `{}`", reason.name()),
            help: Some(Message::word("`/why` shows what was tried")),
        });
        self.unwind(&inserted);
        self.insertion_failed(program, &inserted, error, draft)
    }
}
