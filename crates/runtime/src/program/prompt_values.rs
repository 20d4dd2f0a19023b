//! The values of the wanted outputs in a prompt: which are known, and which required ones are missing (docs/templates.md, "Names").

use serde_json::{Value, json};

use crate::program::output::OutputVariable;
use crate::program::transcript::cut_in_the_middle;
use crate::program::turn::Turn;

/// The maximum number of shown characters of a known value, so that a prompt does not grow with a list.
const MAX_VALUE_CHARS: usize = 100;

/// The outputs that have a value, as a list of `get` and `value`: JSON on one line, which no text in it can leave.
pub(crate) fn known(turn: &Turn<'_>, outputs: &[OutputVariable]) -> Value {
    let known = |output: &OutputVariable| {
        let value = turn.variable(&output.get).filter(|value| !value.is_null())?;
        Some(json!({ "get": output.get, "value": cut_in_the_middle(&value.to_string(), MAX_VALUE_CHARS) }))
    };
    outputs.iter().filter_map(known).collect()
}

/// The names of required outputs that are still null.
pub(crate) fn missing(turn: &Turn<'_>, outputs: &[OutputVariable]) -> Vec<String> {
    outputs
        .iter()
        .filter(|output| output.required)
        .filter(|output| turn.variable(&output.get).is_none_or(|value| value.is_null()))
        .map(|output| output.get.clone())
        .collect()
}
