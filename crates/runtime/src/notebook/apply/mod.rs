//! What the eleven actions do to a notebook (docs/notebook.md): pure functions from a state to the next one.

use serde_json::{Map, Value, json};

use crate::notebook::action::{Action, Exec, LAST_ADDED};
use crate::notebook::cell::{Cell, CellKind};
use crate::notebook::effects::quoted;
use crate::notebook::error::Refusal;
use crate::notebook::kernel::contract::Execution;
use crate::notebook::state::State;

mod cells;
mod clean;
mod plan;
mod ran;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// Cells that are new or changed; what the action is about stands last.
    pub cells: Vec<Cell>,
    /// The result of docs/notebook.md: `{}` mostly, `{"workflow_update_pending": true}` of `update_workflow`.
    pub result: Value,
    /// The code cell that is to run now, its earlier outputs cleared, and how.
    pub run: Option<(Cell, Exec)>,
}

impl Change {
    /// These cells, and nothing to tell or to run.
    fn of(cells: Vec<Cell>) -> Self {
        Self { cells, result: Value::Object(Map::new()), run: None }
    }
}

/// The result of an action that failed (docs/notebook.md).
pub fn failure(error: &str, action_id: &str) -> Value {
    json!({"success": false, "error": error, "action_id": action_id})
}

/// The id of the cell that an action needs to see, when it needs one: `found` of [`apply`]. Of `add` it is the id that the new
/// cell is to get, which may be taken.
pub fn target(action: &Action, state: &State) -> Option<String> {
    match action {
        Action::Add(add) => add.store_id.clone(),
        Action::Exec(exec) if exec.codecell_id == LAST_ADDED => state.last_code_cell.clone(),
        Action::Exec(exec) => Some(exec.codecell_id.clone()),
        Action::IsThinking(_) | Action::FinishThinking => state.thinking.clone(),
        Action::UpdateTitle(_) => state.title_cell.clone(),
        _ => None,
    }
}

/// Applies an action to the state. `found` is the cell that [`target`] names, when there is one; `at` is the time, RFC 3339.
/// The effects of `exec` are told by [`ran`].
/// Errors: When what it names is not there, or a plan does not hold together. The state is then as it was.
pub fn apply(state: &mut State, action: &Action, found: Option<Cell>, at: &str) -> Result<Change, Refusal> {
    let (change, effect) = match action {
        Action::Add(add) => {
            let (cell, run) = cells::add(state, add, found)?;
            let effect = format!("Added content: {}", quoted(&cell.content));
            let run = run.map(|exec| (cell.clone(), exec));
            (Change { run, ..Change::of(vec![cell]) }, effect)
        }
        Action::Exec(exec) => {
            let (cell, is_changed) = cleared(exec, found)?;
            let changed = if is_changed { vec![cell.clone()] } else { vec![] };
            return Ok(Change { run: Some((cell, exec.clone())), ..Change::of(changed) });
        }
        Action::IsThinking(thinking) => {
            let closed = found.map(cells::finished);
            let cells = closed.into_iter().chain([cells::thinking(state, thinking)]).collect();
            (Change::of(cells), "Agent thinking started".to_owned())
        }
        Action::FinishThinking => {
            // Nobody thinks: there is nothing to end, and nothing is wrong with that.
            if state.thinking.take().is_none() {
                return Ok(Change::of(vec![]));
            }
            (Change::of(found.map(cells::finished).into_iter().collect()), "Thinking completed".to_owned())
        }
        Action::NewChapter(heading) => {
            let (cell, words) = cells::heading(state, heading, cells::Level::Chapter);
            (Change::of(vec![cell]), format!("Created chapter: {}", quoted(&words)))
        }
        Action::NewSection(heading) => {
            let (cell, words) = cells::heading(state, heading, cells::Level::Section);
            (Change::of(vec![cell]), format!("Created section: {}", quoted(&words)))
        }
        Action::NewStep(heading) => {
            let (cell, words) = cells::heading(state, heading, cells::Level::Step);
            (Change::of(vec![cell]), format!("Created step: {}", quoted(&words)))
        }
        Action::UpdateTitle(title) => {
            let cells = cells::title(state, title, found);
            (Change::of(cells.into_iter().collect()), format!("Updated title: {}", quoted(title)))
        }
        Action::UpdateWorkflow(workflow) => {
            plan::replace(state, workflow, at)?;
            let change = Change { result: json!({"workflow_update_pending": true}), ..Change::of(vec![]) };
            (change, "Workflow update pending".to_owned())
        }
        Action::UpdateStageSteps(stage, steps) => {
            plan::update_steps(state, stage, steps)?;
            (Change::of(vec![]), format!("Updated steps for {}", quoted(stage)))
        }
        Action::EndPhase(step) => {
            let done = state.complete_step(step.as_deref(), at)?;
            (Change::of(vec![]), format!("Step completed: {}", quoted(&done)))
        }
        Action::NextEvent(event) => {
            plan::event(state, event, at);
            (Change::of(vec![]), format!("Triggered event: {}", quoted(event)))
        }
    };
    state.effects.now(vec![effect]);
    Ok(change)
}

/// The code cell that is to run, without what came of it before; and whether anything was taken from it.
fn cleared(exec: &Exec, found: Option<Cell>) -> Result<(Cell, bool), Refusal> {
    let Some(mut cell) = found else {
        return Err(if exec.codecell_id == LAST_ADDED {
            Refusal::new("no-such-cell", "no code cell was added yet that `lastAddedCellId` could stand for")
        } else {
            Refusal::new("no-such-cell", "the notebook has no cell with the id in `codecell_id`")
        });
    };
    if cell.kind != CellKind::Code {
        return Err(Refusal::new("not-a-code-cell", "the cell with the id in `codecell_id` holds no code"));
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
pub fn ran(state: &mut State, cell: Cell, exec: &Exec, execution: Execution) -> Cell {
    ran::ran(state, cell, exec, execution)
}
