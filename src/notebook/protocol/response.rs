//! What comes back to an observation (001, section 4.2), in the new form and every older one.

use serde_json::Value;

use crate::notebook::protocol::context::ContextUpdate;
use crate::notebook::workflow::Workflow;

/// What is to be done next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Response {
    /// The id of the behavior, when the server gives it one.
    pub behavior_id: Option<String>,
    /// Which one of its step, when the server counts.
    pub iteration: Option<u32>,
    /// What it is for.
    pub target: String,
    /// The actions, each in whatever form: [`crate::notebook::action::read`] reads them.
    pub actions: Vec<Value>,
    /// Where the session goes on.
    pub transition: Transition,
    /// What changes in the context.
    pub context_update: ContextUpdate,
    /// What was read though it is no longer part of the protocol, and what was left out, in words for a log.
    pub notes: Vec<String>,
}

/// Where a session goes on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transition {
    /// The stage to move to.
    pub next_stage_id: Option<String>,
    /// The step to move to.
    pub next_step_id: Option<String>,
    /// Whether more behaviors follow; nothing when it was not said.
    pub continue_behaviors: Option<bool>,
    /// Whether the target of the step is achieved; nothing when it was not said.
    pub target_achieved: Option<bool>,
    /// Why.
    pub reason: String,
    /// Another plan.
    pub workflow_update: Option<Workflow>,
}

/// The judgement of a behavior.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reflection {
    /// Whether the target of the step is achieved; nothing when it was not said.
    pub target_achieved: Option<bool>,
    /// Why.
    pub reason: String,
    /// Where the session goes on, when the judgement says so.
    pub transition: Transition,
    /// What changes in the context.
    pub context_update: ContextUpdate,
    /// As of [`Response::notes`].
    pub notes: Vec<String>,
}

/// What is no response at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Rubbish {
    /// What is wrong. Holds nothing that was sent beyond names of fields.
    pub message: String,
}

/// Reads a response in any form.
///
/// # Errors
/// When it is no object or list, or a field has a type that nothing can be made of.
pub fn response(value: &Value) -> Result<Response, Rubbish> {
    let _ = value;
    Err(Rubbish { message: "this response cannot be read".to_owned() })
}

/// Reads a judgement in any form.
///
/// # Errors
/// As [`response`].
pub fn reflection(value: &Value) -> Result<Reflection, Rubbish> {
    let _ = value;
    Err(Rubbish { message: "this judgement cannot be read".to_owned() })
}
