//! The plan of an orchestrator, and the state of the topic's visit that it was made for.

use bcc_lang::message::message::Message;
use bcc_lang::message::stored;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::program::orchestration::content::as_action;

/// The maximum number of stored characters of a plan's reason.
const MAX_REASON_CHARS: usize = 1_000;

/// The change that a plan makes to the remaining topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanChange {
    /// Inserts a new pending action.
    Insert,
    /// Changes fields of a pending action, or the content and exit of the current one.
    Modify,
    /// Skips a pending action.
    Skip,
    /// Reorders the pending actions.
    Reorder,
    /// Changes nothing.
    #[serde(rename = "none")]
    NoChange,
}

impl PlanChange {
    /// The name in replies of models and in events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Modify => "modify",
            Self::Skip => "skip",
            Self::Reorder => "reorder",
            Self::NoChange => "none",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        let all = [Self::Insert, Self::Modify, Self::Skip, Self::Reorder, Self::NoChange];
        all.into_iter().find(|change| change.name() == name)
    }
}

/// The action or position that a plan refers to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PlanPosition {
    /// The index in the topic's list of actions, from 0.
    Index(usize),
    /// `after_current`, `before_next`, or the id of an action.
    Named(String),
}

/// The progress of a topic's visit in its list of actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// The index of the action that runs or is next. Those before it are done or were skipped.
    pub at: usize,
    /// Whether that action has started and is the current one; else it is still pending.
    #[serde(rename = "begun")]
    pub started: bool,
}

impl Cursor {
    /// The index of the first pending action.
    pub(crate) fn first_pending(self) -> usize {
        self.at + usize::from(self.started)
    }
}

/// The state of a topic's visit that a plan was made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    /// The number of plans applied in this visit.
    pub plans: u32,
    /// The position of the visit. Positions of the plan are relative to it.
    #[serde(flatten)]
    pub cursor: Cursor,
}

/// A change of the remaining topic (docs/monitors.md, "Path 2"), as requested. Whether it is allowed is decided when it is
/// executed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OrchestrationPlan {
    pub action: PlanChange,
    /// The position. `insert` without one means `after_current`, `modify` without one the current action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_position: Option<PlanPosition>,
    /// The action that `insert` adds, as a script would contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_action: Option<Value>,
    /// The fields of the config that `modify` sets; null removes a field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modifications: Option<Map<String, Value>>,
    /// The ids of the pending actions in the order for `reorder`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Vec<String>>,
    /// The reason that the model gave.
    #[serde(default)]
    pub reason: String,
    /// The state that it was made for. Never read from a reply.
    #[serde(default)]
    pub revision: Revision,
}

impl OrchestrationPlan {
    /// The plan in a reply of the shape `topic_orchestrator`; `None` if its change is unknown. `new_id` is the id of a new action
    /// that has none.
    pub fn from_reply(reply: &Map<String, Value>, revision: Revision, new_id: &str) -> Option<Self> {
        let action = PlanChange::parse(reply.get("action")?.as_str()?)?;
        let object = |name: &str| reply.get(name).and_then(Value::as_object);
        let target_position = reply.get("target_position").and_then(|value| match value {
            Value::Number(number) => {
                number.as_u64().and_then(|index| usize::try_from(index).ok()).map(PlanPosition::Index)
            }
            Value::String(name) if !name.trim().is_empty() => Some(PlanPosition::Named(name.trim().to_owned())),
            _ => None,
        });
        let order = reply.get("order").and_then(Value::as_array).map(|ids| {
            // An item that is not a string is no valid id but must be kept: without it the order would look complete.
            ids.iter().map(|id| id.as_str().map_or_else(|| id.to_string(), str::to_owned)).collect()
        });
        let reason = reply.get("reason").and_then(Value::as_str).unwrap_or_default();
        Some(Self {
            action,
            target_position,
            new_action: object("new_action").map(|new| as_action(new, new_id)),
            modifications: object("modifications").cloned(),
            order,
            reason: reason.chars().take(MAX_REASON_CHARS).collect(),
            revision,
        })
    }
}

/// Why a plan was rejected. The event of the plan reports it; nothing else happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{why}")]
pub struct PlanError {
    /// A stable slug.
    pub code: String,
    /// A message. Contains ids of actions and fields, never text of a person.
    #[serde(with = "stored")]
    pub why: Message,
}

impl PlanError {
    pub fn new(code: &str, why: impl Into<Message>) -> Self {
        Self { code: code.to_owned(), why: why.into() }
    }
}
