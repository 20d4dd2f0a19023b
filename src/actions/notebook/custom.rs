//! Carries out a kind of the project, turn by turn: for actions of YAML, and for those that a model or a server sends.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::program::action::{ActionError, Flow};
use crate::program::custom::CustomKind;
use crate::program::outcome::Outcome;
use crate::program::turn::Turn;

/// How far it came; whoever runs it keeps this in its frame.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// How many of its parts (`before`, itself, `after`) are done.
    pub parts: u8,
}

/// What follows.
#[derive(Clone, Debug, PartialEq)]
pub enum Went {
    /// This flow first; then [`advance`] again, with the progress kept.
    On(Flow),
    /// It is done.
    Done(Box<Outcome>),
}

/// Goes on with it.
///
/// # Errors
/// When the project does not allow what it does.
pub async fn advance(
    turn: &Turn<'_>,
    kind: &CustomKind,
    inputs: &Map<String, Value>,
    progress: &mut Progress,
) -> Result<Went, ActionError> {
    let _ = (turn, kind, inputs, progress);
    Err(ActionError::failed("not-there", "kinds of the project cannot be run"))
}
