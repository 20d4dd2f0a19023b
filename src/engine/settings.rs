//! How a session was started: kept with it, so that whoever resumes it goes on in the same way.

use serde::{Deserialize, Serialize};

/// The options of `run` that outlive it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The project directory.
    pub project: Option<String>,
    /// The model that was asked for on the command line or in the environment.
    pub model: Option<String>,
    /// The template scheme.
    pub scheme: Option<String>,
    /// The seed of everything random.
    pub seed: Option<u64>,
    /// Where the clock started, when it was told to (RFC 3339).
    pub clock: Option<String>,
}
