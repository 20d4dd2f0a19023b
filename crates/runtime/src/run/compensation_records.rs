//! The records of completed actions that can be undone, as the store keeps them.

use std::collections::BTreeMap;

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde::{Deserialize, Serialize};

use crate::run::frames::{Frame, redacted_key};
use bcc_store::rows::VariableRow;

/// The scope of these records; it exists only in the store.
pub(crate) const COMPENSATIONS: &str = "compensations";

/// A completed action that can be undone. There is one record for each place of an action in a visit of its topic: an action that
/// runs again there replaces it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Compensation {
    /// Its number in the order of completion.
    pub order: u64,
    /// The frames from the session down to the action, as far as they determine its position and its variables.
    pub frames: Vec<(String, Frame)>,
    /// The path of the variables of the branch that it ran in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_path: Option<String>,
    /// Whether the compensation is over.
    #[serde(default)]
    pub done: bool,
}

/// The compensations of a session, by the keys of the frames of their actions.
pub(crate) type Compensations = BTreeMap<String, Compensation>;

/// Reads the stored records.
/// Errors: A message with the row that cannot be read.
pub(crate) fn compensations_of(rows: &[VariableRow]) -> Result<Compensations, Message> {
    let read = |row: &VariableRow| {
        let read = serde_json::from_str(&row.value);
        let read = read.map_err(|error| msg!("compensation `{}`: {error}", redacted_key(&row.path)))?;
        Ok((row.path.clone(), read))
    };
    rows.iter().filter(|row| row.scope == COMPENSATIONS).map(read).collect()
}
