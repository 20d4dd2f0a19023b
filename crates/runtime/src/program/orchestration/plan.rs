//! The plan of an orchestrator, and the moment of a topic's visit for which it was made.

use bcc_lang::message::message::Message;
use bcc_lang::message::stored;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How many characters of a plan's reason are kept.
const MOST_REASON: usize = 1_000;

/// What a plan does to the rest of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanChange {
    /// Puts a new action among those to come.
    Insert,
    /// Changes fields of an action to come, or the content and exit of the current one.
    Modify,
    /// Keeps an action to come from running.
    Skip,
    /// Puts the actions to come into another order.
    Reorder,
}

impl PlanChange {
    /// The name that a model writes and events tell.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Modify => "modify",
            Self::Skip => "skip",
            Self::Reorder => "reorder",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        [Self::Insert, Self::Modify, Self::Skip, Self::Reorder].into_iter().find(|change| change.name() == name)
    }
}

/// Which action or gap a plan means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PlanPosition {
    /// The index in the topic's list of actions, from 0.
    Index(usize),
    /// `after_current`, `before_next`, or the id of an action.
    Named(String),
}

/// How far a visit of a topic has come in its list of actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// The index of the action that runs or is next. What stands before it is done, or was passed over.
    pub at: usize,
    /// Whether that action has begun, which makes it the current one; else it is still to come.
    pub begun: bool,
}

impl Cursor {
    /// The index of the first action that is still to come.
    pub fn first_to_come(self) -> usize {
        self.at + usize::from(self.begun)
    }
}

/// For what state of a topic's visit a plan was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    /// How many plans had been applied in this visit.
    pub plans: u32,
    /// Where the visit stood. Positions of the plan are meant from here.
    #[serde(flatten)]
    pub cursor: Cursor,
}

/// A change of the rest of a topic (docs/monitors.md, "Path 2"). What it may do is decided when it is executed; this is
/// what was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OrchestrationPlan {
    pub action: PlanChange,
    /// Where. `insert` without one means `after_current`, `modify` without one the current action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_position: Option<PlanPosition>,
    /// The action that `insert` puts in, as a script would write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_action: Option<Value>,
    /// The fields of the config that `modify` sets; null takes a field away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modifications: Option<Map<String, Value>>,
    /// The ids of the actions to come in the order that `reorder` gives them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Vec<String>>,
    /// Why, in the words of the model.
    #[serde(default)]
    pub reason: String,
    /// What it was made for. Never read from a reply.
    #[serde(default)]
    pub revision: Revision,
}

impl OrchestrationPlan {
    /// The plan in a reply of the shape `topic_orchestrator`; `None` when the reply asks for no change.
    pub fn of_reply(reply: &Map<String, Value>, revision: Revision) -> Option<Self> {
        let action = PlanChange::parse(reply.get("action")?.as_str()?)?;
        let object = |name: &str| reply.get(name).filter(|value| value.is_object());
        let target_position = reply.get("target_position").and_then(|value| match value {
            Value::Number(number) => {
                number.as_u64().and_then(|index| usize::try_from(index).ok()).map(PlanPosition::Index)
            }
            Value::String(name) if !name.trim().is_empty() => Some(PlanPosition::Named(name.trim().to_owned())),
            _ => None,
        });
        let order = reply.get("order").and_then(Value::as_array).map(|ids| {
            // What is no text is no id, and must not vanish: the order would look complete without it.
            ids.iter().map(|id| id.as_str().map_or_else(|| id.to_string(), str::to_owned)).collect()
        });
        let reason = reply.get("reason").and_then(Value::as_str).unwrap_or_default();
        Some(Self {
            action,
            target_position,
            new_action: object("new_action").cloned(),
            modifications: object("modifications").and_then(Value::as_object).cloned(),
            order,
            reason: reason.chars().take(MOST_REASON).collect(),
            revision,
        })
    }
}

/// Why a plan changes nothing. It is told in the event of the plan; nothing else happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{why}")]
pub struct PlanError {
    /// A stable slug.
    pub code: String,
    /// A sentence. Names ids of actions and fields, never what a person said.
    #[serde(with = "stored")]
    pub why: Message,
}

impl PlanError {
    pub fn new(code: &str, why: impl Into<Message>) -> Self {
        Self { code: code.to_owned(), why: why.into() }
    }
}
