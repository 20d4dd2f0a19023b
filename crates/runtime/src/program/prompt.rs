//! What a kind or a monitor gives to its prompt templates.

/// What a kind gives to the prompt templates that bear its name, `<kind>_v<N>.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptOf {
    /// The names that such prompts have in common: those of actions, or those of monitors.
    pub common: &'static [&'static str],
    pub names: &'static [&'static str],
    /// Whether its actions may have `output`.
    pub outputs: bool,
}

impl PromptOf {
    /// Every name that such a prompt gets beyond variables and the engine's names.
    pub fn given(self) -> impl Iterator<Item = &'static str> {
        self.common.iter().chain(self.names).copied()
    }
}
