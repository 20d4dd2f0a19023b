//! The state of a client's workflow: `state.FSM.state`.

/// The states of the protocol in which a client asks the server something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkflowState {
    Idle,
    StageRunning,
    StepRunning,
    BehaviorRunning,
    BehaviorCompleted,
    StepCompleted,
    StageCompleted,
    WorkflowCompleted,
}

impl WorkflowState {
    const ALL: [Self; 8] = [
        Self::Idle,
        Self::StageRunning,
        Self::StepRunning,
        Self::BehaviorRunning,
        Self::BehaviorCompleted,
        Self::StepCompleted,
        Self::StageCompleted,
        Self::WorkflowCompleted,
    ];

    /// Its name in requests and answers.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Idle => "IDLE",
            Self::StageRunning => "STAGE_RUNNING",
            Self::StepRunning => "STEP_RUNNING",
            Self::BehaviorRunning => "BEHAVIOR_RUNNING",
            Self::BehaviorCompleted => "BEHAVIOR_COMPLETED",
            Self::StepCompleted => "STEP_COMPLETED",
            Self::StageCompleted => "STAGE_COMPLETED",
            Self::WorkflowCompleted => "WORKFLOW_COMPLETED",
        }
    }

    /// Reads a name in any case, with `*_COMPLETE` for `*_COMPLETED`. None for another name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let mut name = name.trim().to_ascii_uppercase().replace(['-', ' '], "_");
        if name.ends_with("_COMPLETE") {
            name.push('D');
        }
        let name = name.strip_prefix("STATE_").unwrap_or(&name);
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_in_each_spelling_of_its_name() {
        for state in WorkflowState::ALL {
            let name = state.name();
            for spelling in [name.to_owned(), name.to_lowercase(), format!(" STATE_{name}"), name.replace('_', "-")] {
                assert_eq!(WorkflowState::parse(&spelling), Some(state), "{spelling}");
            }
        }
        for (spelling, state) in [
            ("BEHAVIOR_COMPLETE", Some(WorkflowState::BehaviorCompleted)),
            ("step_complete", Some(WorkflowState::StepCompleted)),
            ("STAGE_COMPLETE", Some(WorkflowState::StageCompleted)),
            ("STATE_Step_Running", Some(WorkflowState::StepRunning)),
            ("COMPLETED", None),
            ("", None),
        ] {
            assert_eq!(WorkflowState::parse(spelling), state, "{spelling}");
        }
    }
}
