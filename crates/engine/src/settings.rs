//! The settings that a session was started with. They are stored with it, and used again when it is resumed.

use serde::{Deserialize, Serialize};

use bcc_llm::providers::replay::recording::ReplayMatching;

/// The options of `run` that are stored with the session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSettings {
    pub project: Option<String>,
    /// The model that was set on the command line or in the environment.
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay_by: Option<ReplayMatching>,
    pub scheme: Option<String>,
    pub seed: Option<u64>,
    /// The start of the clock, if it was set (RFC 3339).
    pub clock: Option<String>,
    /// Whether commands were allowed at the start, which means that the pinned kinds of the project were trusted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub commands: bool,
}
