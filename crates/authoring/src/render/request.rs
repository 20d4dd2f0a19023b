//! The requests of `templates render`.

use std::path::PathBuf;

#[derive(Clone, Debug, Default)]
pub struct RenderRequest {
    /// The template, such as `ai_ask`, `ai_ask_v2` or `ai_ask_v2.md`; by default, that of the action.
    pub name: Option<String>,
    pub scheme: Option<String>,
    /// `--script`, with an `action`; without a script, the template gets only `variables` and `variables_file`.
    pub script: Option<PathBuf>,
    pub action: Option<String>,
    pub variables: Vec<String>,
    pub variables_file: Option<PathBuf>,
    /// `--round`: 1 is the opening, unless it has an answer.
    pub round: u32,
    /// `--answer`, repeatable: the last one belongs to the requested round, the one before it to the previous round.
    pub answers: Vec<String>,
    /// `--clock`, RFC 3339.
    pub clock: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub struct SentRequest {
    pub session: String,
    pub action: String,
    /// Its instance path, to select a single visit of the action.
    pub path: Option<String>,
    /// The round; by default, the last one.
    pub round: Option<u32>,
    /// The number of the call in that round, from 1; by default, the last one.
    pub call: Option<usize>,
    /// The scheme of the current templates; by default, that of the session.
    pub scheme: Option<String>,
    /// Whether to use the templates of the given project instead of those of the session's project.
    pub use_given_project: bool,
}
