//! What a provider is asked: the messages for a model, and the task for the providers that are no models.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::message::ChatMessage;
use bcc_lang::value::declared::DeclaredType;

/// One call of a model.
///
/// It is deliberately not `Serialize`: what a real provider sends is built field by field, so that [`Task`] cannot
/// slip into it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelRequest {
    pub messages: Vec<ChatMessage>,
    /// The JSON Schema of the reply, the one that it is checked against. Servers that take it are told it.
    pub schema: Option<Arc<Value>>,
    /// The sampling temperature; `None` leaves it to the provider's configuration.
    pub temperature: Option<f64>,
    /// The most tokens that the reply may have; `None` leaves it to the provider's configuration.
    pub max_tokens: Option<u32>,
    pub task: Task,
}

/// What is asked, for providers that are no models (offline, replay). Never part of what a real provider sends
/// (docs/models.md).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Task {
    pub purpose: Purpose,
    /// The kind of the action, as an author writes it: `ai_ask`.
    pub kind: String,
    pub action_id: String,
    /// The instance of the action: `path` of the events' `location` (`topic_a#2/skill_comfort/ask_1`).
    pub path: String,
    pub content: String,
    /// The outputs that the reply should carry, in the author's order.
    pub wanted: Vec<WantedOutput>,
    /// What the person just said; `None` on an opening turn.
    pub answer: Option<String>,
    /// The `input_variables` of an `ai_think`, in the author's order.
    pub inputs: Vec<(String, Value)>,
    /// The round that the call belongs to, from 1.
    pub round: u32,
    /// How many model calls the action made in the session before this one, from 0.
    pub call: u32,
    /// Whether nothing was said in this action yet (docs/actions/, "Rounds").
    pub opening: bool,
}

/// One entry of an action's `output` (docs/actions/).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WantedOutput {
    pub name: String,
    pub declared: Option<DeclaredType>,
    /// The values it may take (`enum`); empty when any.
    pub choices: Vec<Value>,
    pub define: Option<String>,
    /// Whether the action should not end while it is null.
    pub required: bool,
}

/// What a model call is for; `purpose` of the event `model_call`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    #[default]
    Action,
    /// The analysis of an answered turn (docs/monitors.md).
    Monitor,
    /// A plan for the rest of a topic (docs/monitors.md).
    Orchestrator,
    /// What a simulated person says in a conversation test (docs/tests.md).
    Persona,
}

impl Purpose {
    pub const ALL: [Self; 4] = [Self::Action, Self::Monitor, Self::Orchestrator, Self::Persona];

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|purpose| purpose.name() == name)
    }

    /// The name in events and replay files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Action => "action",
            Self::Monitor => "monitor",
            Self::Orchestrator => "orchestrator",
            Self::Persona => "persona",
        }
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purpose_is_written_by_its_name_everywhere() {
        for purpose in Purpose::ALL {
            assert_eq!(serde_json::to_value(purpose).unwrap(), purpose.name());
            assert_eq!(Purpose::parse(purpose.name()), Some(purpose));
            assert_eq!(purpose.to_string(), purpose.name());
        }
        assert_eq!(Purpose::parse("Action"), None);
    }
}
