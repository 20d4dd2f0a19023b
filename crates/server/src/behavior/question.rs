//! What is asked of a model or a script for a client.

use bcc_runtime::actions::behaviors::config::{BEHAVIOR, REFLECTION, WORKFLOW_PLAN};

use crate::behavior::goal::GoalLevel;
use crate::behavior::plan::PlanLevel;

/// What a client asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// The next actions.
    Actions,
    /// Whether the target is achieved.
    Judgement,
    Plan(PlanLevel),
}

impl Question {
    /// Its name for scripts: `request.kind`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Actions => "actions",
            Self::Judgement => "reflection",
            Self::Plan(level) => level.name(),
        }
    }

    /// The template that asks a model, which is also the name of the schema of its reply.
    pub(crate) const fn template(self) -> &'static str {
        match self {
            Self::Actions => BEHAVIOR,
            Self::Judgement => REFLECTION,
            Self::Plan(_) => WORKFLOW_PLAN,
        }
    }

    /// The level of the goal that it is about.
    pub(crate) const fn goal_level(self) -> GoalLevel {
        match self {
            Self::Actions => GoalLevel::Behavior,
            Self::Judgement => GoalLevel::Step,
            Self::Plan(level) => level.goal_level(),
        }
    }
}
