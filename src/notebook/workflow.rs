//! The plan of a session (000, `workflow`): stages with their steps. It begins as the phases and topics of the script; what
//! a server or a model changes in it is checked first and changes this session only.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The most stages of a plan.
pub const MOST_STAGES: usize = 200;

/// The most steps of a stage.
pub const MOST_STEPS: usize = 500;

/// A plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Workflow {
    /// What it is called.
    #[serde(default)]
    pub name: String,
    /// Its stages, in order.
    pub stages: Vec<Stage>,
}

/// A stage: a phase of the script, or one that was planned since.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Its id, unique in the plan.
    #[serde(alias = "stage_id")]
    pub id: String,
    /// What it is called.
    #[serde(default, alias = "title")]
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "String::is_empty", alias = "description")]
    pub goal: String,
    /// Its steps, in order.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// Whatever else was given.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A step: a topic of the script, or one that was planned since.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its id, unique in the plan.
    #[serde(alias = "step_id")]
    pub id: String,
    /// What it is called.
    #[serde(default, alias = "title")]
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "String::is_empty", alias = "description")]
    pub goal: String,
    /// Whatever else was given.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}
