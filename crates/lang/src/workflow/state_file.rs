//! The tree of a state file as written (docs/workflows.md).

use std::sync::Arc;

use crate::source::span::{Span, Spanned};
use crate::source::text::SourceFile;
use crate::source::yaml::YamlNode;
use crate::workflow::status::{StateStatus, StepType};

/// The target of `next` that completes the workflow.
pub const END: &str = "end";

#[derive(Clone, Debug)]
pub struct StateFile {
    pub file: Arc<SourceFile>,
    /// `workflow_id`.
    pub id: Spanned<String>,
    /// `type`, such as `software_deployment`.
    pub kind: Option<String>,
    /// `status`, if it is one that exists.
    pub status: Option<&'static str>,
    pub current_step: Option<Spanned<String>>,
    /// `variables`: a mapping.
    pub variables: Option<Arc<YamlNode>>,
    /// `tools`: the tools that steps may call, as in a script.
    pub tools: Option<Arc<YamlNode>>,
    pub steps: Vec<StateStep>,
}

/// A step, or a sub task of one.
#[derive(Clone, Debug)]
pub struct StateStep {
    pub id: Spanned<String>,
    pub name: Option<String>,
    pub kind: StepType,
    pub status: StateStatus,
    /// `next` or the targets of `cases` and `else`, without [`END`] and those that do not exist.
    pub next: Option<Spanned<String>>,
    pub cases: Vec<StateCase>,
    pub otherwise: Option<Spanned<String>>,
    pub depends_on: Vec<Spanned<String>>,
    pub on_failure: OnStepFailure,
    pub sub_tasks: Vec<StateStep>,
    pub node: Arc<YamlNode>,
    pub span: Span,
}

/// A case of a condition.
#[derive(Clone, Debug)]
pub struct StateCase {
    pub when: Arc<YamlNode>,
    pub target: Spanned<String>,
}

/// What follows the failure of a step.
#[derive(Clone, Debug, Default)]
pub enum OnStepFailure {
    /// The workflow fails.
    #[default]
    Stop,
    /// The workflow goes on as after a success.
    Continue,
    Goto(Spanned<String>),
}

impl StateStep {
    /// Whether it names something to run. An action that names nothing is a request for a person.
    pub fn runs(&self) -> bool {
        ["command", "tool", "skill", "simulate"].iter().any(|key| self.node.get(key).is_some())
    }
}

impl StateFile {
    /// The steps and their sub tasks.
    pub fn all(&self) -> impl Iterator<Item = &StateStep> {
        self.steps.iter().flat_map(|step| std::iter::once(step).chain(&step.sub_tasks))
    }
}
