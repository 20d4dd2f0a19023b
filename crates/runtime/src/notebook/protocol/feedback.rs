//! The feedback on a behavior (docs/protocol.md).

use serde::{Deserialize, Serialize};

use crate::notebook::protocol::brief::{MAX_NAME_BYTES, MAX_OUTPUT_BYTES, cut};

/// The maximum number of failures that feedback describes; `actions_failed` counts all of them. The first ones are described,
/// because later ones often follow from them.
pub(crate) const MAX_FAILURES: usize = 8;

/// The maximum size of the message of a failure, in bytes.
pub(crate) const MAX_FAILURE_BYTES: usize = 300;

/// The maximum number of parts of an answer that feedback names because they were not understood.
pub(crate) const MAX_NOT_UNDERSTOOD: usize = 10;

/// The measured counts and times of one behavior.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Feedback {
    pub behavior_id: String,
    /// The number of performed actions, successful or not.
    pub actions_executed: u32,
    /// The number of successful actions.
    pub actions_succeeded: u32,
    /// The number of failed actions.
    pub actions_failed: u32,
    /// `success`, or the error of the last action.
    pub last_action_result: String,
    /// The total time of the actions, in milliseconds.
    pub execution_time_ms: u64,
    pub sections_added: u32,
    pub cells_added: u32,
    pub code_cells_executed: u32,
    /// The first failures, in order; at most `MAX_FAILURES`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailedAction>,
    /// What was not understood in the last answers of the source; at most `MAX_NOT_UNDERSTOOD`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_understood: Vec<String>,
}

/// Why an action failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FailedAction {
    /// Its number in the behavior, from 1.
    pub number: u32,
    /// The name of the action.
    pub action: String,
    /// A stable slug: `no-such-cell`, `code-failed`, …
    pub code: String,
    /// The id that it named, or that of the cell that it ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The line of the cell that failed, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    pub message: String,
}

impl Feedback {
    /// Adds what was not understood, without what is there already.
    pub(crate) fn add_not_understood(&mut self, notes: impl IntoIterator<Item = String>) {
        for note in notes {
            let note = cut(&note, MAX_FAILURE_BYTES);
            if self.not_understood.len() < MAX_NOT_UNDERSTOOD && !self.not_understood.contains(&note) {
                self.not_understood.push(note);
            }
        }
    }

    /// What the judge of the behavior sees: its source alone is told what was not understood, and only once.
    #[must_use]
    pub(crate) fn for_judge(&self) -> Self {
        Self { not_understood: vec![], ..self.clone() }
    }

    /// The feedback in a prompt, as JSON: without the time, which would make the prompts of the same session differ each time.
    pub(crate) fn for_model(&self) -> Option<String> {
        let mut feedback = serde_json::to_value(self).ok()?;
        feedback.as_object_mut()?.shift_remove("execution_time_ms");
        Some(feedback.to_string())
    }

    /// The same feedback with a limited size, because clients of the server send any.
    #[must_use]
    pub fn limited(mut self) -> Self {
        self.behavior_id = cut(&self.behavior_id, MAX_NAME_BYTES);
        self.last_action_result = cut(&self.last_action_result, MAX_OUTPUT_BYTES);
        self.failures.truncate(MAX_FAILURES);
        for failure in &mut self.failures {
            failure.action = cut(&failure.action, MAX_NAME_BYTES);
            failure.code = cut(&failure.code, MAX_NAME_BYTES);
            failure.id = failure.id.as_deref().map(|id| cut(id, MAX_NAME_BYTES));
            failure.message = cut(&failure.message, MAX_FAILURE_BYTES);
        }
        let not_understood = std::mem::take(&mut self.not_understood);
        self.add_not_understood(not_understood);
        self
    }
}
