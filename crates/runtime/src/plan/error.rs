//! Why an operation on a plan is rejected. The texts may be shown to people and to models.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;

use crate::plan::limits::{MAX_DEPENDENCIES, MAX_LEVELS, MAX_TASKS};
use crate::plan::task::{PlanId, TaskId};

/// Why an operation was rejected; the plan is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ToMessage)]
pub enum OperationError {
    #[error("there is no operation `{name}`; {help}")]
    UnknownOperation { name: String, help: Message },
    #[error("`{operation}` needs the parameter `{parameter}`")]
    MissingParameter { operation: String, parameter: String },
    #[error("`{operation}` needs one of the parameters {parameters}")]
    MissingOneOf { operation: String, parameters: Message },
    #[error("`{operation}` has no parameter `{parameter}`; {help}")]
    UnknownParameter { operation: String, parameter: String, help: Message },
    #[error("the parameter `{parameter}` of `{operation}` must be {expected}")]
    WrongParameter { operation: String, parameter: String, expected: Message },
    #[error("`{operation}` cannot have both `{parameter}` and `{other}`")]
    ContradictoryParameters { operation: String, parameter: String, other: String },
    #[error("there is no plan {plan}")]
    UnknownPlan { plan: PlanId },
    #[error("this is plan {bound}, not plan {plan}")]
    OtherPlan { plan: PlanId, bound: PlanId },
    #[error("there is no task {task} in plan {plan}; use only ids that were given to you")]
    UnknownTask { task: TaskId, plan: PlanId },
    #[error("no task of plan {plan} is named {name:?}; {help}")]
    UnknownName { name: String, plan: PlanId, help: Message },
    #[error(
        "{count} tasks of plan {plan} are named {name:?}: {candidates}; ask which one is meant, and give its `task_id`"
    )]
    AmbiguousName { name: String, plan: PlanId, count: usize, candidates: Message },
    #[error("task {dependency}, on which task {task} is to depend, is not in plan {plan}")]
    UnknownDependency { task: TaskId, dependency: TaskId, plan: PlanId },
    #[error("task {task} cannot depend on itself")]
    OwnDependency { task: TaskId },
    #[error("a task can depend on at most {MAX_DEPENDENCIES} tasks")]
    TooManyDependencies,
    /// A task starts after the dependencies of its parents, and ends after its children.
    #[error("the tasks would wait for each other: {circle}")]
    CircularDependency { circle: Message },
    #[error("task {task} cannot be moved into task {parent}, which is part of it")]
    OwnSubtree { task: TaskId, parent: TaskId },
    #[error("a plan can have at most {MAX_TASKS} tasks")]
    TooManyTasks,
    #[error("a plan can have at most {MAX_LEVELS} levels of tasks")]
    TooManyLevels,
    #[error("`{parameter}` can have at most {max} characters")]
    TooLong { parameter: String, max: usize },
    #[error("`{parameter}` can have at most {max} bytes as JSON")]
    TooLarge { parameter: String, max: usize },
    #[error("task {task} is running; wait until it has ended")]
    Running { task: TaskId },
    #[error("task {task} is {status} already")]
    Over { task: TaskId, status: &'static str },
    /// The ids that were reserved for new tasks are used up; the caller reserves more and tries again.
    #[error("no ids for new tasks are reserved")]
    NoIds,
    #[error("the plan cannot be read: {why}")]
    Unreadable { why: Message },
}

impl OperationError {
    /// The stable identifier of the kind of error.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::UnknownOperation { .. } => "unknown-operation",
            Self::MissingParameter { .. } | Self::MissingOneOf { .. } => "missing-parameter",
            Self::UnknownParameter { .. } => "unknown-parameter",
            Self::WrongParameter { .. } => "wrong-parameter",
            Self::ContradictoryParameters { .. } => "contradictory-parameters",
            Self::UnknownPlan { .. } => "unknown-plan",
            Self::OtherPlan { .. } => "other-plan",
            Self::UnknownTask { .. } => "unknown-task",
            Self::UnknownName { .. } => "unknown-task-name",
            Self::AmbiguousName { .. } => "ambiguous-task-name",
            Self::UnknownDependency { .. } => "unknown-dependency",
            Self::OwnDependency { .. } => "own-dependency",
            Self::TooManyDependencies => "too-many-dependencies",
            Self::CircularDependency { .. } => "circular-dependency",
            Self::OwnSubtree { .. } => "own-subtree",
            Self::TooManyTasks => "too-many-tasks",
            Self::TooManyLevels => "too-many-levels",
            Self::TooLong { .. } | Self::TooLarge { .. } => "too-long",
            Self::Running { .. } => "task-running",
            Self::Over { .. } => "task-over",
            Self::NoIds => "no-ids",
            Self::Unreadable { .. } => "plan-unreadable",
        }
    }
}
