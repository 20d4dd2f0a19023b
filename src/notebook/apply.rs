//! What the eleven actions do to a notebook (000, "state transition examples"): pure functions from a state to the next one.

use serde_json::{Value, json};

use crate::notebook::action::{Action, Exec};
use crate::notebook::cell::Cell;
use crate::notebook::kernel::contract::Execution;
use crate::notebook::state::State;

/// What an action changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// Cells that are new or changed.
    pub cells: Vec<Cell>,
    /// The result of 000: `{}` mostly, `{"workflow_update_pending": true}` of `update_workflow`.
    pub result: Value,
    /// The code cell that is to run now, its earlier outputs cleared, and how.
    pub run: Option<(Cell, Exec)>,
}

/// Why an action was refused. It changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// A stable slug: `no-such-cell`, `not-a-code-cell`, `unknown-step`, …
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
}

impl Refusal {
    /// A refusal with this slug.
    pub const fn new(code: &'static str, message: String) -> Self {
        Self { code, message }
    }
}

/// The result of an action that failed (000, "error response").
pub fn failure(error: &str, action_id: &str) -> Value {
    json!({"success": false, "error": error, "action_id": action_id})
}

/// The id of the cell that an action needs to see, when it needs one: `found` of [`apply`].
pub fn target(action: &Action, state: &State) -> Option<String> {
    let _ = (action, state);
    None
}

/// Applies an action to the state. `found` is the cell that [`target`] names, when there is one; `at` is the time, RFC 3339.
///
/// # Errors
/// When what it names is not there, or a plan does not hold together. The state is then as it was.
pub fn apply(state: &mut State, action: &Action, found: Option<Cell>, at: &str) -> Result<Change, Refusal> {
    let _ = (state, action, found, at);
    Err(Refusal { code: "not-there", message: "this action cannot be applied".to_owned() })
}

/// Takes over what running a cell gave: the cell as it is now, and the effects.
pub fn ran(state: &mut State, cell: Cell, exec: &Exec, execution: Execution) -> Cell {
    let _ = (state, exec, execution);
    cell
}
