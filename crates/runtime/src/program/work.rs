//! What a turn has done so far: kept apart from the session until it is committed, and dropped whole when it fails.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::notebook::cell::Cell;
use crate::notebook::state::NotebookState;
use crate::program::event::Event;
use bcc_lang::value::scopes::{Scopes, Stored, WrittenAt};

#[derive(Clone, Debug)]
pub struct VariableWrite {
    pub name: String,
    pub written: WrittenAt,
    pub stored: Stored,
}

/// The buffer of one turn.
#[derive(Debug, Default)]
pub struct TurnWork {
    /// The variables as this turn sees and leaves them.
    pub scopes: Scopes,
    /// What happened, each with the round in which it did.
    pub events: Vec<(Option<u32>, Event)>,
    pub writes: Vec<VariableWrite>,
    /// What the action must remember; none when nothing changed.
    pub state: Option<Value>,
    /// The round that events belong to from here on.
    pub round: Option<u32>,
    pub calls: u32,
    pub tokens_in: u64,
    pub tokens_out: u64,
    /// Whether the monitor's advice reached a prompt.
    pub advice_used: bool,
    /// Messages begun, which numbers their ids.
    pub message_ids: u32,
    /// The notebook as this turn leaves it; none when it did not change it.
    pub notebook: Option<NotebookState>,
    /// Cells that are new or changed, by their numbers.
    pub cells: BTreeMap<u64, Cell>,
    /// Whether the open outside effect came to its end.
    pub effect_closed: bool,
}
