//! The statuses and types of a state file.

/// The status of a step or sub task, as the file says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StateStatus {
    #[default]
    Pending,
    Running,
    /// It waits for a person or a time.
    Waiting,
    /// It waits for a decision.
    WaitingApproval,
    Completed,
    Failed,
    Skipped,
}

impl StateStatus {
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Running,
        Self::Waiting,
        Self::WaitingApproval,
        Self::Completed,
        Self::Failed,
        Self::Skipped,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::WaitingApproval => "waiting_approval",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether the step does not run again.
    pub const fn is_done(self) -> bool {
        matches!(self, Self::Completed | Self::Skipped)
    }
}

/// The statuses of a whole workflow. `cancelled` is written when its session is cancelled.
pub const WORKFLOW_STATUSES: [&str; 7] =
    ["pending", "running", "waiting", "waiting_approval", "completed", "failed", "cancelled"];

/// The type of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepType {
    Action,
    Approval,
    Condition,
    Parallel,
}

impl StepType {
    pub const ALL: [Self; 4] = [Self::Action, Self::Approval, Self::Condition, Self::Parallel];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Action => "action",
            Self::Approval => "approval",
            Self::Condition => "condition",
            Self::Parallel => "parallel",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}
