//! Carries out one action on the notebook: for the kinds of YAML, for models and for servers.

use serde_json::Value;

use crate::notebook::action::{Action, Exec};
use crate::notebook::cell::Cell;
use crate::program::action::ActionError;
use crate::program::turn::Turn;

/// What came of an action.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Done {
    /// Whether it did what it was to do.
    pub success: bool,
    /// The response of 000: `{"success": false, "error", "action_id"}` when it did not.
    pub result: Value,
    /// What is wrong, when it did not: nothing that anybody said.
    pub error: Option<String>,
    /// How many cells it added.
    pub cells_added: u32,
    /// How many sections it began.
    pub sections_added: u32,
    /// How many code cells it ran.
    pub executed: u32,
    /// How long it took, in milliseconds.
    pub ms: u64,
}

/// How far an action came.
#[derive(Clone, Debug, PartialEq)]
pub enum Performed {
    /// It is done.
    Done(Done),
    /// A cell is to run: the caller keeps it, announces the effect (`Flow::Effect`) and calls [`run`] in the turn that finds it
    /// due. What is counted so far stands beside it.
    Run(Box<(Cell, Exec, Done)>),
}

/// Carries out an action, up to the running of code. `by` is `script`, `model` or `server`.
///
/// # Errors
/// When the store cannot be read. What is wrong with the action itself is no error: see [`Done::success`].
pub async fn perform(turn: &Turn<'_>, action: &Action, by: &'static str) -> Result<Performed, ActionError> {
    let _ = (turn, action, by);
    Ok(Performed::Done(Done::default()))
}

/// Runs a cell in the kernel of the session, in the turn that its effect is due in, and closes the effect.
///
/// # Errors
/// When the store cannot be read, or no kernel can be had.
pub async fn run(
    turn: &Turn<'_>,
    cell: Cell,
    exec: &Exec,
    so_far: Done,
    by: &'static str,
) -> Result<Done, ActionError> {
    let _ = (turn, cell, exec, by);
    Ok(so_far)
}
