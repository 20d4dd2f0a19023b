//! The `Recheck` trait: checks a script again with other actions in one topic, before a plan of the orchestrator is applied.

use serde_json::Value;

use crate::program::program::Program;

/// The script that a session is pinned to, for changes to the session's copy of one topic (docs/monitors.md, "Path 2"). The
/// script itself is never changed.
pub trait Recheck: Send + Sync {
    /// The actions of the topic `topic` as its author wrote them, in the order of `Topic::steps`, with the current names of the
    /// fields of each action and of its config, and `action_id` as text. `None` if the script has no such topic.
    fn actions(&self, topic: &str) -> Option<Vec<Value>>;

    /// The complete program with `actions` in place of those of `topic`, checked like a script.
    /// Errors: The errors of the check, each as a sentence with its rule and its help; never empty.
    fn recheck(&self, topic: &str, actions: &[Value]) -> Result<Program, Vec<String>>;
}
