//! The small part of a session that is written with every commit.

use bcc_lang::message::message::Message;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::program::event::Summary;
use crate::program::limits::Budget;
use crate::run::mailbox::Unanswered;
use crate::run::planner::RequestedPlan;

/// Where a session is in its life (docs/sessions.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// A turn is due.
    Running,
    /// It waits for the person.
    WaitingInput,
    /// The model could not be reached, or the budget is used up; it can be resumed.
    Stopped,
    /// It came to its end.
    Completed,
    /// It cannot go on.
    Failed,
}

impl SessionStatus {
    /// The name in events, exports and the store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::WaitingInput => "waiting_input",
            Self::Stopped => "stopped",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        [Self::Running, Self::WaitingInput, Self::Stopped, Self::Completed, Self::Failed]
            .into_iter()
            .find(|status| status.name() == name)
    }

    /// Whether nothing can follow.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

/// Counts and what is awaited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The `answer_id` of the answer that is awaited.
    pub waiting: Option<String>,
    /// Whether what is awaited is a word about an outside effect that was found open.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks_effect: bool,
    /// Whether the newest message is an answer that no turn has taken yet.
    pub pending: bool,
    /// Values so far that must be masked.
    #[serde(default)]
    pub hidden: u64,
    pub messages: u64,
    pub turns: u64,
    pub model_calls: u64,
    /// Tokens of prompts so far, as far as providers counted them.
    pub tokens_in: u64,
    /// Tokens of replies so far, as far as providers counted them.
    pub tokens_out: u64,
    /// Milliseconds so far while some process drove it.
    #[serde(default)]
    pub ms: u64,
    /// What it may use: what its script says, or who began or resumed it.
    #[serde(default)]
    pub budget: Budget,
    /// The key of what a trigger inserted that was told to go on though the budget is used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overdrawn: Option<String>,
    /// Routes since the newest answer that may lead in a circle.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hops: u32,
    /// The newest of them, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub way: Vec<String>,
    /// What monitors were asked and had not answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub monitors: Vec<Unanswered>,
    /// The plan that was asked for and is not there yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planning: Option<RequestedPlan>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fired: BTreeMap<String, Fired>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fired {
    pub times: u64,
    /// How many answers there were when it fired, or when what it inserted came to its end: it does not fire again before
    /// the next one.
    pub answers: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde asks for a reference
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Head {
    pub fn summary(&self, answers: u64, reason: Option<Message>) -> Summary {
        Summary {
            answers,
            turns: self.turns,
            model_calls: self.model_calls,
            tokens_in: self.tokens_in,
            tokens_out: self.tokens_out,
            active_ms: self.ms,
            reason,
        }
    }
}
