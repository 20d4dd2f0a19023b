//! The names that a kind or a monitor provides to its prompt templates.

/// The names that a kind provides to its prompt templates, `<kind>_v<N>.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptNames {
    /// The names common to such prompts: those of actions, or those of monitors.
    pub common: &'static [&'static str],
    pub names: &'static [&'static str],
    /// Whether its actions may have `output`.
    pub outputs: bool,
}

impl PromptNames {
    /// All names of such a prompt beyond variables and the engine's names.
    pub fn given(self) -> impl Iterator<Item = &'static str> {
        self.common.iter().chain(self.names).copied()
    }
}
