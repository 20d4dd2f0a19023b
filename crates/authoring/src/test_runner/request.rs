//! What `test` is asked for.

use std::path::PathBuf;
use std::time::Duration;

/// How long one conversation may take when only written replies answer, and when a real model does.
pub const USUAL_LIMIT: Duration = Duration::from_secs(60);
/// See [`USUAL_LIMIT`].
pub const LIMIT_OF_REAL_MODELS: Duration = Duration::from_secs(900);

#[derive(Clone, Debug, Default)]
pub struct TestRequest {
    /// Files and folders; none for `tests/` of the project around the current directory.
    pub paths: Vec<PathBuf>,
    /// `--project`: the project of all scripts; without one, each script belongs to the nearest above it.
    pub project: Option<PathBuf>,
    /// `--filter`: only tests whose name, case or file has this in it, in any case of letters.
    pub filter: Option<String>,
    /// `--model`: the model of tests that do not write out what it says.
    pub model: Option<String>,
    /// `--jobs`: how many conversations are held at the same time; without it, one for each processor.
    pub jobs: Option<usize>,
    /// `--fail-fast`: after the first failure no other conversation begins.
    pub fail_fast: bool,
    pub trust: bool,
    pub update: bool,
}
