//! Requests to providers: the messages for a model, and the task for providers that are not models.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::message::ChatMessage;
use bcc_lang::value::declared::DeclaredType;

/// One call of a model.
///
/// It is deliberately not `Serialize`: real providers build the request body field by field, so that it cannot contain
/// [`Task`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelRequest {
    pub messages: Vec<ChatMessage>,
    /// The JSON Schema that the reply is validated against. It is sent to servers that support it.
    pub schema: Option<Arc<Value>>,
    /// The sampling temperature; `None` uses the provider's configuration.
    pub temperature: Option<f64>,
    /// The token limit of the reply; `None` uses the provider's configuration.
    pub max_tokens: Option<u32>,
    pub task: Task,
}

/// The purpose and context of a call, for providers that are not models (offline, replay). Real providers never send it
/// (docs/models.md).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Task {
    pub purpose: Purpose,
    /// The id of the session, for traces; empty if the call belongs to none.
    pub session: String,
    /// The kind of the action as written in scripts: `ai_ask`.
    pub kind: String,
    pub action_id: String,
    /// The instance of the action: `path` of `location` in events (`topic_a#2/skill_comfort/ask_1`).
    pub path: String,
    pub content: String,
    /// The outputs that the reply should contain, in the order of the script.
    pub wanted: Vec<WantedOutput>,
    /// The last input of the person; `None` on an opening turn.
    pub answer: Option<String>,
    /// The `input_variables` of an `ai_think`, in the order of the script.
    pub inputs: Vec<(String, Value)>,
    /// The round of the call, starting at 1.
    pub round: u32,
    /// The number of earlier model calls of the action in the session.
    pub call: u32,
    /// Whether the action has no messages yet (docs/actions/, "Rounds").
    pub opening: bool,
    /// The complete schema of the reply, with the defaults that the schema for a server leaves out.
    pub reply_schema: Option<Arc<Value>>,
}

/// One entry of an action's `output` (docs/actions/).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WantedOutput {
    pub name: String,
    pub declared: Option<DeclaredType>,
    /// The allowed values (`enum`); empty if any value is allowed.
    pub choices: Vec<Value>,
    pub define: Option<String>,
    /// Whether the action should continue while it is null.
    pub required: bool,
    /// Whether the action does not ask for it, but listens for it.
    pub heard: bool,
}

/// The purpose of a model call; `purpose` of the event `model_call`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    #[default]
    Action,
    /// Analysis of an answered turn (docs/monitors.md).
    Monitor,
    /// A plan for the rest of a topic (docs/monitors.md).
    Orchestrator,
    /// The input of a simulated person in a conversation test (docs/tests.md).
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
    fn a_purpose_has_one_name_in_all_formats() {
        for purpose in Purpose::ALL {
            assert_eq!(serde_json::to_value(purpose).unwrap(), purpose.name());
            assert_eq!(Purpose::parse(purpose.name()), Some(purpose));
            assert_eq!(purpose.to_string(), purpose.name());
        }
        assert_eq!(Purpose::parse("Action"), None);
    }
}
