//! How a session was started: kept with it, so that whoever resumes it goes on in the same way.

use serde::{Deserialize, Serialize};

use bcc_llm::providers::replay::recording::ReplayMatching;

/// The options of `run` that outlive it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSettings {
    pub project: Option<String>,
    /// The model that was asked for on the command line or in the environment.
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay_by: Option<ReplayMatching>,
    pub scheme: Option<String>,
    pub seed: Option<u64>,
    /// Where the clock started, when it was told to (RFC 3339).
    pub clock: Option<String>,
    /// Whether commands were allowed when it began, and so the kinds of the project that it is pinned to were trusted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub commands: bool,
}
