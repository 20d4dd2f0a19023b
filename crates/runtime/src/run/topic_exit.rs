//! Where a session continues after a topic whose `finally` runs, as its frame stores it.

use serde::{Deserialize, Serialize};

/// Where the session continues after a topic, while its `finally` runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TopicExit {
    /// After the topic, or with its next element.
    Leave,
    /// After the topic, without its further elements.
    LeaveAll,
    SkipPhase,
    /// At the topic or phase with this id.
    Goto(String),
    /// At the end of the script.
    End,
    /// The session fails or is cancelled.
    SessionEnds,
}
