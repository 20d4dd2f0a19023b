//! What a scripted model has to say, and to whom.

use std::time::Duration;

use serde_json::Value;

use crate::model::error::TimeoutPhase;
use crate::model::request::{Purpose, Task};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyKey {
    One(Purpose, String),
    /// Calls of this purpose about any action that has no list of its own.
    Every(Purpose),
    /// Calls of any action that has no list of its own.
    Anyone,
}

#[derive(Clone, Debug)]
pub struct ReplyList {
    pub key: ReplyKey,
    /// One for each attempt, in order; but those by round.
    pub entries: Vec<ReplyEntry>,
}

#[derive(Clone, Debug)]
pub struct ReplyEntry {
    /// The round that it is for; such an entry has no place in the order, and answers every attempt that fits it.
    pub round: Option<u32>,
    /// Whether it is for answered turns or for opening ones, likewise.
    pub answered: Option<bool>,
    pub after: Duration,
    pub come: NextReply,
}

#[derive(Clone, Debug, PartialEq)]
pub enum NextReply {
    /// A value, as compact JSON.
    Value(Value),
    Text(String),
    /// So many characters of it; then the connection breaks.
    Cut(usize, Box<NextReply>),
    Http {
        status: u16,
        retry_after: Option<Duration>,
        message: String,
    },
    /// Nothing, within this limit.
    Timeout(TimeoutPhase),
    Unreachable,
}

impl ReplyEntry {
    /// Whether it is for certain rounds or turns, and not for its place in the order.
    pub(crate) fn is_named(&self) -> bool {
        self.round.is_some() || self.answered.is_some()
    }

    pub(crate) fn names(&self, task: &Task) -> bool {
        self.is_named()
            && self.round.is_none_or(|round| round == task.round)
            && self.answered.is_none_or(|answered| answered == task.answer.is_some())
    }
}
