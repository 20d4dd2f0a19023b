//! What the eleven actions do to a notebook (docs/notebook.md): pure functions from a state to the next one.

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
mod plan;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct NotebookChange {
    /// Cells that are new or changed; what the action is about stands last.
    pub cells: Vec<Cell>,
    /// The result of docs/notebook.md: `{}` mostly, `{"workflow_update_pending": true}` of `update_workflow`.
    pub result: Value,
    /// The code cell that is to run now, its earlier outputs cleared, and how.
    pub run: Option<(Cell, ExecAction)>,
}

impl NotebookChange {
    /// These cells, and nothing to tell or to run.
    fn of(cells: Vec<Cell>) -> Self {
        Self { cells, result: Value::Object(Map::new()), run: None }
    }
}

/// The result of an action that failed (docs/notebook.md).
pub fn failure(error: &Message, action_id: &str) -> Value {
    json!({"success": false, "error": error, "action_id": action_id})
}

/// The id of the cell that an action needs to see, when it needs one: `found` of [`apply`]. Of `add` it is the id that the new
/// cell is to get, which may be taken.
pub fn target(action: &NotebookAction, state: &NotebookState) -> Option<String> {
    match action {
        NotebookAction::Add(add) => add.store_id.clone(),
        NotebookAction::Exec(exec) if exec.codecell_id == LAST_ADDED => state.last_code_cell.clone(),
        NotebookAction::Exec(exec) => Some(exec.codecell_id.clone()),
        NotebookAction::IsThinking(_) | NotebookAction::FinishThinking => state.thinking.clone(),
        NotebookAction::UpdateTitle(_) => state.title_cell.clone(),
        _ => None,
    }
}

/// Applies an action to the state. `found` is the cell that [`target`] names, when there is one; `at` is the time, RFC 3339.
/// The effects of `exec` are told by [`ran`].
/// Errors: When what it names is not there, or a plan does not hold together. The state is then as it was.
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
            (NotebookChange { run, ..NotebookChange::of(vec![cell]) }, effect)
        }
        NotebookAction::Exec(exec) => {
            let (cell, is_changed) = cleared(exec, found)?;
            let changed = if is_changed { vec![cell.clone()] } else { vec![] };
            return Ok(NotebookChange { run: Some((cell, exec.clone())), ..NotebookChange::of(changed) });
        }
        NotebookAction::IsThinking(thinking) => {
            let closed = found.map(cells::finished);
            let cells = closed.into_iter().chain([cells::thinking(state, thinking)]).collect();
            (NotebookChange::of(cells), "Agent thinking started".to_owned())
        }
        NotebookAction::FinishThinking => {
            // Nobody thinks: there is nothing to end, and nothing is wrong with that.
            if state.thinking.take().is_none() {
                return Ok(NotebookChange::of(vec![]));
            }
            (NotebookChange::of(found.map(cells::finished).into_iter().collect()), "Thinking completed".to_owned())
        }
        NotebookAction::NewChapter(heading) => {
            let (cell, words) = cells::heading(state, heading, cells::Level::Chapter);
            (NotebookChange::of(vec![cell]), format!("Created chapter: {}", quoted(&words)))
        }
        NotebookAction::NewSection(heading) => {
            let (cell, words) = cells::heading(state, heading, cells::Level::Section);
            (NotebookChange::of(vec![cell]), format!("Created section: {}", quoted(&words)))
        }
        NotebookAction::NewStep(heading) => {
            let (cell, words) = cells::heading(state, heading, cells::Level::Step);
            (NotebookChange::of(vec![cell]), format!("Created step: {}", quoted(&words)))
        }
        NotebookAction::UpdateTitle(title) => {
            let cells = cells::title(state, title, found);
            (NotebookChange::of(cells.into_iter().collect()), format!("Updated title: {}", quoted(title)))
        }
        NotebookAction::UpdateWorkflow(workflow) => {
            plan::replace(state, workflow, at)?;
            let change =
                NotebookChange { result: json!({"workflow_update_pending": true}), ..NotebookChange::of(vec![]) };
            (change, "Workflow update pending".to_owned())
        }
        NotebookAction::UpdateStageSteps(stage, steps) => {
            plan::update_steps(state, stage, steps)?;
            (NotebookChange::of(vec![]), format!("Updated steps for {}", quoted(stage)))
        }
        NotebookAction::EndPhase(step) => {
            let done = state.complete_step(step.as_deref(), at)?;
            (NotebookChange::of(vec![]), format!("Step completed: {}", quoted(&done)))
        }
        NotebookAction::NextEvent(event) => {
            plan::event(state, event, at);
            (NotebookChange::of(vec![]), format!("Triggered event: {}", quoted(event)))
        }
    };
    state.effects.now(vec![effect]);
    Ok(change)
}

/// The code cell that is to run, without what came of it before; and whether anything was taken from it.
fn cleared(exec: &ExecAction, found: Option<Cell>) -> Result<(Cell, bool), ActionRejection> {
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
    let ran = !cell.outputs.is_empty() || cell.execution_count.is_some() || cell.ended.is_some();
    cell.outputs.clear();
    cell.execution_count = None;
    cell.ended = None;
    Ok((cell, ran))
}

/// Takes over what running a cell gave: the cell as it is now; in the state, the effects (`Executed code: …`, then `Output: …`,
/// then `Error: …`), the last output, and the variables of the kernel. Without `need_output` nothing that the code gave is kept
/// but errors, so that nobody takes code that failed for code that said nothing.
pub fn ran(state: &mut NotebookState, cell: Cell, exec: &ExecAction, execution: Execution) -> Cell {
    execution::ran(state, cell, exec, execution)
}
