//! What `templates render` is asked for.

use std::path::PathBuf;

#[derive(Clone, Debug, Default)]
pub struct RenderRequest {
    /// The template, as `ai_ask`, `ai_ask_v2` or `ai_ask_v2.md`; without one, that of the action.
    pub name: Option<String>,
    pub scheme: Option<String>,
    /// `--script`, with an `action`; without one, the template gets nothing but `variables` and `variables_file`.
    pub script: Option<PathBuf>,
    pub action: Option<String>,
    pub variables: Vec<String>,
    pub variables_file: Option<PathBuf>,
    /// `--round`: 1 is the opening, unless there is an answer to it.
    pub round: u32,
    /// `--answer`, each: what the person said, the last one to the wanted round, the one before it to the round before.
    pub answers: Vec<String>,
    /// `--clock`, RFC 3339.
    pub clock: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub struct SentRequest {
    pub session: String,
    pub action: String,
    /// Its instance path, where only one visit of the action is meant.
    pub path: Option<String>,
    /// Its round; without one, the last.
    pub round: Option<u32>,
    /// Which of the calls of that round, from 1; without one, the last.
    pub call: Option<usize>,
    /// The scheme whose templates count now; without one, that of the session.
    pub scheme: Option<String>,
    /// Whether the templates of the given project count, and not those of the project that the session was run in.
    pub here: bool,
}
