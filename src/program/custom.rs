//! Kinds that a project makes itself: the table `kinds` of bcc-script.toml maps a name to a skill or a command (000,
//! "register custom action"). A session is pinned to the table as it was when it began.

use serde::{Deserialize, Serialize};

/// A kind of the project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomKind {
    /// The name, as `action_type` and as `action` of a model's reply.
    pub name: String,
    /// What it does.
    pub does: Does,
    /// What is done before it; when this fails, it is not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Does>,
    /// What is done after it, also when it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Does>,
}

/// What a kind of the project, or a hook of it, does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Does {
    /// It runs this skill; the fields of the action are its inputs.
    Skill(String),
    /// It runs this program with these arguments; the fields of the action are JSON on its standard input.
    Command(Vec<String>),
}
