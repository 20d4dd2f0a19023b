//! `on_interrupted` of an action: what becomes of an outside effect that nobody saw come to its end (docs/sessions.md).

use crate::script::fields::Fields;

/// What an author wants when the process died, or was stopped, in the middle of an outside effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnInterrupted {
    /// `ask`: the session waits, and a person says what becomes of it.
    #[default]
    Ask,
    /// `retry`: it is done again.
    Retry,
    /// `skip`: the action goes on without it.
    Skip,
    /// `fail`: the action fails.
    Fail,
}

/// Every choice, as an author writes it.
const CHOICES: [(&str, OnInterrupted); 4] = [
    ("ask", OnInterrupted::Ask),
    ("retry", OnInterrupted::Retry),
    ("skip", OnInterrupted::Skip),
    ("fail", OnInterrupted::Fail),
];

/// Reads `on_interrupted` of the action whose fields these are. What is wrong is reported.
pub fn on_interrupted(fields: &Fields<'_>) -> OnInterrupted {
    let written = fields.choice("on_interrupted", &CHOICES.map(|(name, _)| name));
    CHOICES.iter().find(|(name, _)| Some(*name) == written).map(|(_, choice)| *choice).unwrap_or_default()
}
