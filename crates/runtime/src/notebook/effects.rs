//! The effects of actions on a notebook, as text (docs/notebook.md).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// The maximum number of stored earlier effects; the journal has all of them.
pub const MAX_HISTORY: usize = 50;

/// The maximum length of a quoted text in an effect, in bytes.
pub const MAX_QUOTED_BYTES: usize = 200;

/// The effects of the last action and of those before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Effects {
    /// Those of the last action.
    pub current: Vec<String>,
    /// Those of earlier actions, the newest last; at most [`MAX_HISTORY`].
    pub history: VecDeque<String>,
}

impl Effects {
    /// Sets the effects of the next action; the current ones become history.
    pub(crate) fn set_current(&mut self, effects: Vec<String>) {
        self.history.extend(std::mem::replace(&mut self.current, effects));
        let excess = self.history.len().saturating_sub(MAX_HISTORY);
        self.history.drain(..excess);
    }
}

/// The start of a text as quoted in an effect: at most [`MAX_QUOTED_BYTES`] bytes, followed by `…` if the text is longer.
pub fn quoted(text: &str) -> String {
    let text = text.trim_end();
    if text.len() <= MAX_QUOTED_BYTES {
        return text.to_owned();
    }
    let start = text.get(..text.floor_char_boundary(MAX_QUOTED_BYTES)).unwrap_or_default();
    format!("{start}…")
}
