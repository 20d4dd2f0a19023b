//! The replies of a scripted model, and the calls that they are for.

use std::time::Duration;

use bcc_lang::value::exact::ExactValue;

use crate::model::error::TimeoutPhase;
use crate::model::request::{Purpose, Task};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyKey {
    One(Purpose, String),
    /// Calls of this purpose for actions without their own list.
    Every(Purpose),
    /// Calls of actions without their own list.
    Anyone,
}

#[derive(Clone, Debug)]
pub struct ReplyList {
    pub key: ReplyKey,
    /// One entry per attempt, in order, except for those by round.
    pub entries: Vec<ReplyEntry>,
}

#[derive(Clone, Debug)]
pub struct ReplyEntry {
    /// The round that it is for. Such an entry is not part of the order and answers every matching attempt.
    pub round: Option<u32>,
    /// Whether it is for answered or for opening turns. Such an entry is not part of the order either.
    pub answered: Option<bool>,
    pub after: Duration,
    pub reply: NextReply,
}

#[derive(Clone, Debug, PartialEq)]
pub enum NextReply {
    /// A value, as compact JSON.
    Value(ExactValue),
    Text(String),
    /// The first characters of a reply; then the connection breaks.
    Cut(usize, Box<NextReply>),
    Http {
        status: u16,
        retry_after: Option<Duration>,
        message: String,
    },
    /// No reply within this limit.
    Timeout(TimeoutPhase),
    Unreachable,
}

impl ReplyEntry {
    /// Whether it is for certain rounds or turns instead of a position in the order.
    pub(crate) fn is_named(&self) -> bool {
        self.round.is_some() || self.answered.is_some()
    }

    pub(crate) fn matches(&self, task: &Task) -> bool {
        self.is_named()
            && self.round.is_none_or(|round| round == task.round)
            && self.answered.is_none_or(|answered| answered == task.answer.is_some())
    }
}
