//! The request of `test`.

use std::path::PathBuf;
use std::time::Duration;

/// The time limit of a conversation with scripted replies only, and of one with a real model.
pub(crate) const USUAL_LIMIT: Duration = Duration::from_secs(60);
/// See [`USUAL_LIMIT`].
pub(crate) const LIMIT_OF_REAL_MODELS: Duration = Duration::from_secs(900);

#[derive(Clone, Debug, Default)]
pub struct TestRequest {
    /// Files and folders; empty for `tests/` of the project around the current directory.
    pub paths: Vec<PathBuf>,
    /// `--project`: the project of all scripts; by default, the nearest ancestor of each script.
    pub project: Option<PathBuf>,
    /// The directory to which the names of files in reports are relative; by default, the current one.
    pub named_from: Option<PathBuf>,
    /// `--filter`: only tests whose name, case or file contains this, ignoring case.
    pub filter: Option<String>,
    /// `--model`: the model of tests without scripted replies.
    pub model: Option<String>,
    /// `--scheme`: the template scheme of all conversations.
    pub scheme: Option<String>,
    /// `--jobs`: the number of conversations that run in parallel; by default, one per processor.
    pub jobs: Option<usize>,
    /// `--fail-fast`: no further conversation starts after the first failure.
    pub fail_fast: bool,
    pub trust: bool,
    pub update: bool,
}
