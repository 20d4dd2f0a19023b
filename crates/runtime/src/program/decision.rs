//! Decisions of people and of time: what an action requests outside of the conversation, and what it is given
//! (docs/requests.md).

use bcc_lang::value::exact::ExactValues;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The code of the error of an approval that nobody gave, also in a skill. What needs an approval must not happen without it, so
/// that this error fails the session without a route.
pub(crate) const NOT_APPROVED: &str = "not-approved";

/// What decides that a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// A person decides.
    Approval,
    /// A time comes.
    Time,
}

impl RequestKind {
    /// The name in events, requests and the store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Time => "time",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        [Self::Approval, Self::Time].into_iter().find(|kind| kind.name() == name)
    }
}

/// A decision about an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    Approve,
    Reject,
    /// The session goes back to an earlier action.
    PushBack,
    /// The call of a tool is made with other arguments.
    Edit,
    /// The call of a tool is not made: the decision carries its result.
    Answer,
}

impl DecisionKind {
    pub const ALL: [Self; 5] = [Self::Approve, Self::Reject, Self::PushBack, Self::Edit, Self::Answer];

    /// The decisions about an `approval` of a script.
    pub const OF_APPROVALS: [Self; 3] = [Self::Approve, Self::Reject, Self::PushBack];

    /// The name in scripts, events and requests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Reject => "reject",
            Self::PushBack => "push_back",
            Self::Edit => "edit",
            Self::Answer => "answer",
        }
    }

    /// Reads a name, also as a command line writes it (`push-back`).
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|decision| decision.name() == name || decision.name().replace('_', "-") == name)
    }
}

/// What an action waits for, outside of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionRequest {
    pub kind: RequestKind,
    /// What is to be decided, for the people who decide.
    pub prompt: String,
    /// The JSON Schema of the values of a decision; none if it has none.
    pub schema: Option<Value>,
    /// The permitted decisions; none for a time.
    pub decisions: Vec<DecisionKind>,
    /// Who may decide; anybody if empty.
    pub approvers: Vec<String>,
    /// When the action goes on without a decision, in UTC; none if it waits forever.
    pub due_at: Option<String>,
}

/// How a request was answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GivenDecision {
    /// What a person decided; none if the time came first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<DecisionKind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// The values of the form.
    #[serde(default, skip_serializing_if = "ExactValues::is_empty")]
    pub values: ExactValues,
}
