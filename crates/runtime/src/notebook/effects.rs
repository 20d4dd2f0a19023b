//! What actions have done to a notebook, in words (docs/notebook.md).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// How many earlier effects are kept; the journal has all of them.
pub const MOST_HISTORY: usize = 50;

/// How many bytes of a text one effect quotes.
pub const MOST_QUOTED: usize = 200;

/// What the last action did, and what those before it did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Effects {
    /// Of the last action.
    pub current: Vec<String>,
    /// Of earlier ones, the newest last; at most [`MOST_HISTORY`].
    pub history: VecDeque<String>,
}

impl Effects {
    /// The effects of the next action: what was current becomes history.
    pub fn now(&mut self, effects: Vec<String>) {
        self.history.extend(std::mem::replace(&mut self.current, effects));
        let over = self.history.len().saturating_sub(MOST_HISTORY);
        self.history.drain(..over);
    }
}

/// As much of a text as an effect quotes of it: at most [`MOST_QUOTED`] bytes, and a sign that there is more.
pub fn quoted(text: &str) -> String {
    let text = text.trim_end();
    if text.len() <= MOST_QUOTED {
        return text.to_owned();
    }
    let begin = text.get(..text.floor_char_boundary(MOST_QUOTED)).unwrap_or_default();
    format!("{begin}…")
}
