//! What is wrong with an action on the notebook, and why one is refused.

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ActionFault {
    /// The field, where it is one.
    pub field: Option<&'static str>,
    /// What is wrong. Holds nothing that a model said beyond names of fields and kinds.
    pub message: String,
}

pub(crate) fn fault(field: &'static str, message: String) -> ActionFault {
    ActionFault { field: Some(field), message }
}

/// Why an action was refused. It changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ActionRefusal {
    /// A stable slug: `no-such-cell`, `not-a-code-cell`, `unknown-step`, …
    pub code: &'static str,
    /// What is wrong. Holds nothing that anybody sent.
    pub message: String,
}

impl ActionRefusal {
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}
