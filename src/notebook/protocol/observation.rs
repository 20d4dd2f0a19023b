//! What is sent to whoever plans the next behavior (001, section 4.1): within a fixed window, however long the notebook is.

use serde_json::{Map, Value};

use crate::notebook::cell::Cell;
use crate::notebook::protocol::feedback::Feedback;
use crate::notebook::state::State;

/// How many of the last cells are sent.
pub const MOST_CELLS: usize = 20;

/// What an observation is made from.
pub struct Seen<'a> {
    /// The id of the notebook: that of the session.
    pub notebook_id: &'a str,
    /// The state of the notebook.
    pub state: &'a State,
    /// Its last cells, in order: [`MOST_CELLS`] are enough.
    pub cells: &'a [Cell],
    /// The variables that may be sent, without what is sensitive.
    pub variables: Map<String, Value>,
    /// What came of the last behavior.
    pub feedback: Option<&'a Feedback>,
    /// Whether the actions of the answer may come one by one.
    pub stream: bool,
    /// `options.include_progress`: whether `progress`, `goals` and `FSM` of 000 are sent, too.
    pub include_progress: bool,
}

/// The observation in the new form.
pub fn observation(seen: &Seen<'_>) -> Value {
    let _ = seen;
    Value::Null
}

/// The same in the older form, with the older names: for servers that know no other.
pub fn older_observation(seen: &Seen<'_>) -> Value {
    let _ = seen;
    Value::Null
}
