//! The buffered changes of a turn: separate from the session until they are committed, and dropped completely if the turn fails.

use std::collections::BTreeMap;

use crate::notebook::cell::Cell;
use crate::notebook::state::NotebookState;
use crate::program::event::Event;
use bcc_lang::value::exact::ExactValue;
use bcc_lang::value::scopes::{Scope, Scopes, Stored, WrittenAt};
use bcc_store::rows::TextRow;

#[derive(Clone, Debug)]
pub struct VariableWrite {
    pub name: String,
    pub written: WrittenAt,
    pub stored: Stored,
    /// The scope that the author named for it.
    pub scope: Option<Scope>,
}

/// The buffer of one turn.
#[derive(Debug, Default)]
pub struct TurnWork {
    /// The variables with the changes of this turn.
    pub scopes: Scopes,
    /// The events, each with its round.
    pub events: Vec<(Option<u32>, Event)>,
    pub writes: Vec<VariableWrite>,
    /// Values that are not stored, but must be masked wherever they are shown, as those of sensitive variables.
    pub hidden: Vec<ExactValue>,
    /// The variables with a route in a table `on_change` whose value was replaced by another one, in the order of the changes.
    pub changed: Vec<String>,
    /// The new state of the action; none if it did not change.
    pub state: Option<ExactValue>,
    /// The round that subsequent events belong to.
    pub round: Option<u32>,
    pub calls: u32,
    pub tokens_in: u64,
    pub tokens_out: u64,
    /// Whether the monitor's advice reached a prompt.
    pub advice_used: bool,
    /// The messages that were shown while they were streamed, and not discarded.
    pub streamed: Vec<String>,
    /// The number of message ids issued.
    pub message_ids: u32,
    /// The notebook with the changes of this turn; none if it did not change.
    pub notebook: Option<NotebookState>,
    /// New or changed cells, by number.
    pub cells: BTreeMap<u64, Cell>,
    /// Long texts to store.
    pub texts: Vec<TextRow>,
    /// Whether the open external effect was closed.
    pub effect_closed: bool,
    /// The code that the open external effect runs.
    pub effect_code: Option<String>,
}
