//! Counts the actions of a behavior, and describes those that failed for their source.

use serde_json::Value;

use crate::actions::behaviors::frame::Current;
use crate::actions::behaviors::perform::SUCCESS;
use crate::actions::behaviors::source::masker;
use crate::actions::notebook::perform::PerformedAction;
use crate::notebook::action::NotebookAction;
use crate::notebook::cell::CellEnd;
use crate::notebook::protocol::brief::{MAX_NAME_BYTES, cut};
use crate::notebook::protocol::feedback::{FailedAction, MAX_FAILURE_BYTES, MAX_FAILURES};
use crate::notebook::protocol::traceback::{cell_line, error_output, error_text};
use crate::program::flow::ActionError;
use crate::program::turn::Turn;

/// An action as its source sent it, as far as its failure names it.
pub(crate) struct SentAction<'a> {
    pub name: &'a str,
    /// The cell, the step or the stage that it names.
    pub id: Option<&'a str>,
}

impl<'a> SentAction<'a> {
    pub(crate) fn of(action: &'a NotebookAction) -> Self {
        let id = match action {
            NotebookAction::Add(add) => add.store_id.as_deref(),
            NotebookAction::Exec(exec) => Some(exec.codecell_id.as_str()),
            NotebookAction::UpdateStageSteps(stage, _) => Some(stage.as_str()),
            NotebookAction::EndPhase(step) => step.as_deref(),
            _ => None,
        };
        Self { name: action.name(), id }
    }

    /// An action that could not be read, with the name that it has nevertheless.
    pub(crate) fn unreadable(sent: &'a Value) -> Self {
        let name = ["action", "type"].iter().find_map(|name| sent.get(*name)?.as_str());
        Self { name: name.unwrap_or_default(), id: None }
    }
}

impl Current {
    /// Counts a performed action. One that failed is described with the error of its code, as the notebook shows it.
    ///
    /// # Errors
    /// The notebook cannot be read.
    pub(crate) async fn count(
        &mut self,
        turn: &Turn<'_>,
        sent: SentAction<'_>,
        done: &PerformedAction,
    ) -> Result<(), ActionError> {
        let counts = &mut self.counts;
        counts.actions_executed += 1;
        counts.execution_time_ms = counts.execution_time_ms.saturating_add(done.ms);
        counts.sections_added += done.sections_added;
        counts.cells_added += done.cells_added;
        counts.code_cells_executed += done.executed;
        if done.success {
            counts.actions_succeeded += 1;
            SUCCESS.clone_into(&mut counts.last_action_result);
            return Ok(());
        }
        counts.actions_failed += 1;
        let error = done.error.as_ref().map_or_else(|| "failed".to_owned(), ToString::to_string);
        counts.last_action_result.clone_from(&error);
        if counts.failures.len() >= MAX_FAILURES {
            return Ok(());
        }
        let (mut line, mut message) = (None, error);
        if done.ended == Some(CellEnd::Error)
            && let Some(id) = &done.cell_id
            && let Some(cell) = turn.cell(id).await?
            && let Some(error) = error_output(&cell.outputs)
        {
            line = cell_line(error, cell.execution_count);
            message = error_text(error).unwrap_or(message);
        }
        let masker = masker(turn);
        let id = sent.id.or(done.cell_id.as_deref());
        self.counts.failures.push(FailedAction {
            number: self.received,
            action: cut(&masker.text(sent.name), MAX_NAME_BYTES),
            code: code(done).to_owned(),
            id: id.map(|id| cut(&masker.text(id), MAX_NAME_BYTES)),
            line,
            message: cut(&masker.text(&message), MAX_FAILURE_BYTES),
        });
        Ok(())
    }
}

/// The slug of a failure.
const fn code(done: &PerformedAction) -> &'static str {
    match (done.rejected, done.ended) {
        (Some(code), _) => code,
        (None, Some(CellEnd::TimedOut)) => "code-timed-out",
        (None, Some(CellEnd::Died)) => "kernel-died",
        (None, Some(CellEnd::Interrupted)) => "code-interrupted",
        (None, Some(_)) => "code-failed",
        (None, None) => "action-failed",
    }
}
