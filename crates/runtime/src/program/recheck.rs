//! Checking a script again with other actions in one topic: what a plan of the orchestrator must pass before it counts.

use serde_json::Value;

use crate::program::program::Program;

/// The script that a session is pinned to, for whoever wants to change a session's copy of one topic (docs/monitors.md,
/// "Path 2"). The script itself is never changed.
pub trait Recheck: Send + Sync {
    /// The actions of the topic `topic` as its author wrote them, in the order of `Topic::steps`, with today's spelling of
    /// the fields of each action and of its config, and `action_id` as text. `None` when the script has no such topic.
    fn actions(&self, topic: &str) -> Option<Vec<Value>>;

    /// The whole program with `actions` in the place of those of `topic`, checked like a script.
    /// Errors: What the check finds to be wrong, each as a sentence with its rule and its help; never empty.
    fn recheck(&self, topic: &str, actions: &[Value]) -> Result<Program, Vec<String>>;
}
