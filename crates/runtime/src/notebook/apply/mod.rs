//! Applies the eleven actions to a notebook (docs/notebook.md): pure functions from one state to the next.

use bcc_lang::message::message::Message;
use serde_json::{Map, Value, json};

use crate::notebook::action::{ExecAction, LAST_ADDED, NotebookAction};
use crate::notebook::cell::{Cell, CellKind};
use crate::notebook::effects::quoted;
use crate::notebook::error::ActionRejection;
use crate::notebook::kernel::contract::Execution;
use crate::notebook::state::NotebookState;

mod cells;
mod clean;
mod execution;
mod legacy;
mod plan;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct NotebookChange {
    /// New and changed cells; the cell that the action concerns is the last one.
    pub cells: Vec<Cell>,
    /// The result of docs/notebook.md: usually `{}`, for `update_workflow` `{"workflow_update_pending": true}`.
    pub result: Value,
    /// The code cell to run now, with its earlier outputs removed, and how to run it.
    pub run: Option<(Cell, ExecAction)>,
}

impl NotebookChange {
    /// These cells, with an empty result and nothing to run.
    fn new(cells: Vec<Cell>) -> Self {
        Self { cells, result: Value::Object(Map::new()), run: None }
    }
}

/// The result of an action that failed (docs/notebook.md).
pub fn failure(error: &Message, action_id: &str) -> Value {
    json!({"success": false, "error": error, "action_id": action_id})
}

/// The id of the existing cell that an action needs, passed to [`apply`] as `found`. For `add`, it is the id of the new cell,
/// which may already be in use.
pub fn target(action: &NotebookAction, state: &NotebookState) -> Option<String> {
    match action {
        NotebookAction::Add(add) => add.store_id.clone(),
        NotebookAction::Exec(exec) if exec.codecell_id == LAST_ADDED => state.last_code_cell.clone(),
        NotebookAction::Exec(exec) => Some(exec.codecell_id.clone()),
        NotebookAction::IsThinking(_) | NotebookAction::FinishThinking => state.thinking.clone(),
        NotebookAction::UpdateTitle(_) => state.title_cell.clone(),
        NotebookAction::UpdateLastText(_) => state.last_text_cell.clone(),
        NotebookAction::SetEffectAsThinking(_) => state.last_code_cell.clone(),
        _ => None,
    }
}

/// Applies an action to the state. `found` is the cell that [`target`] names, if it exists; `at` is the time in RFC 3339. The
/// effects of `exec` are added by [`apply_execution`].
/// Errors: Something that the action names does not exist, or a plan is invalid. The state is then unchanged.
pub fn apply(
    state: &mut NotebookState,
    action: &NotebookAction,
    found: Option<Cell>,
    at: &str,
) -> Result<NotebookChange, ActionRejection> {
    let (change, effect) = match action {
        NotebookAction::Add(add) => {
            let (cell, run) = cells::add(state, add, found)?;
            let effect = format!("Added content: {}", quoted(&cell.content));
            let run = run.map(|exec| (cell.clone(), exec));
            (NotebookChange { run, ..NotebookChange::new(vec![cell]) }, effect)
        }
        NotebookAction::Exec(exec) => {
            let (cell, is_changed) = clear_outputs(exec, found)?;
            let changed = if is_changed { vec![cell.clone()] } else { vec![] };
            return Ok(NotebookChange { run: Some((cell, exec.clone())), ..NotebookChange::new(changed) });
        }
        NotebookAction::IsThinking(thinking) => {
            let closed = found.map(cells::finish_thinking);
            let cells = closed.into_iter().chain([cells::thinking(state, thinking)]).collect();
            (NotebookChange::new(cells), "Agent thinking started".to_owned())
        }
        NotebookAction::FinishThinking => {
            // No thinking is in progress; this is not an error.
            if state.thinking.take().is_none() {
                return Ok(NotebookChange::new(vec![]));
            }
            (
                NotebookChange::new(found.map(cells::finish_thinking).into_iter().collect()),
                "Thinking completed".to_owned(),
            )
        }
        NotebookAction::NewChapter(heading) => {
            let (cell, heading_text) = cells::heading(state, heading, cells::Level::Chapter);
            (NotebookChange::new(vec![cell]), format!("Created chapter: {}", quoted(&heading_text)))
        }
        NotebookAction::NewSection(heading) => {
            let (cell, heading_text) = cells::heading(state, heading, cells::Level::Section);
            (NotebookChange::new(vec![cell]), format!("Created section: {}", quoted(&heading_text)))
        }
        NotebookAction::NewStep(heading) => {
            let (cell, heading_text) = cells::heading(state, heading, cells::Level::Step);
            (NotebookChange::new(vec![cell]), format!("Created step: {}", quoted(&heading_text)))
        }
        NotebookAction::UpdateTitle(title) => {
            let cells = cells::title(state, title, found);
            (NotebookChange::new(cells.into_iter().collect()), format!("Updated title: {}", quoted(title)))
        }
        NotebookAction::UpdateWorkflow(workflow) => {
            plan::replace(state, workflow, at)?;
            let change =
                NotebookChange { result: json!({"workflow_update_pending": true}), ..NotebookChange::new(vec![]) };
            (change, "Workflow update pending".to_owned())
        }
        NotebookAction::UpdateStageSteps(stage, steps) => {
            plan::update_steps(state, stage, steps)?;
            (NotebookChange::new(vec![]), format!("Updated steps for {}", quoted(stage)))
        }
        NotebookAction::EndPhase(step) => {
            let done = state.complete_step(step.as_deref(), at)?;
            (NotebookChange::new(vec![]), format!("Step completed: {}", quoted(&done)))
        }
        NotebookAction::UpdateLastText(text) => {
            let cell = legacy::update_text(text, found)?;
            let effect = format!("Updated text: {}", quoted(&cell.content));
            (NotebookChange::new(vec![cell]), effect)
        }
        // Without a code cell, there is nothing to mark; this is not an error.
        NotebookAction::SetEffectAsThinking(thought) => {
            let marked = found.map(|cell| legacy::as_thinking(cell, thought.as_deref()));
            (NotebookChange::new(marked.into_iter().collect()), "Thinking completed".to_owned())
        }
        NotebookAction::CompleteStage(stage) => {
            let done = state.complete_stage(stage.as_deref(), at)?;
            (NotebookChange::new(vec![]), format!("Stage completed: {}", quoted(&done)))
        }
        NotebookAction::CompleteReflection => return Ok(NotebookChange::new(vec![])),
        NotebookAction::NextEvent(event) => {
            plan::event(state, event, at);
            (NotebookChange::new(vec![]), format!("Triggered event: {}", quoted(event)))
        }
    };
    state.effects.set_current(vec![effect]);
    Ok(change)
}

/// The code cell to run, without its earlier outputs, and whether any were removed.
fn clear_outputs(exec: &ExecAction, found: Option<Cell>) -> Result<(Cell, bool), ActionRejection> {
    let Some(mut cell) = found else {
        return Err(if exec.codecell_id == LAST_ADDED {
            ActionRejection::new("no-such-cell", "no code cell has been added yet for `lastAddedCellId` to refer to")
        } else {
            ActionRejection::new("no-such-cell", "the notebook has no cell with the id in `codecell_id`")
        });
    };
    if cell.kind != CellKind::Code {
        return Err(ActionRejection::new(
            "not-a-code-cell",
            "the cell with the id in `codecell_id` does not contain code",
        ));
    }
    let had_outputs = !cell.outputs.is_empty() || cell.execution_count.is_some() || cell.ended.is_some();
    cell.outputs.clear();
    cell.execution_count = None;
    cell.ended = None;
    Ok((cell, had_outputs))
}

/// Applies the result of running a cell. Returns the cell with its outputs; the state gets the effects (`Executed code: …`,
/// then `Output: …`, then `Error: …`), the last output and the variables of the kernel. Without `need_output`, only errors are
/// stored, so that failed code is not mistaken for code without output.
pub fn apply_execution(state: &mut NotebookState, cell: Cell, exec: &ExecAction, execution: Execution) -> Cell {
    execution::ran(state, cell, exec, execution)
}
