//! `on_interrupted` of an action: how to handle an external effect that was interrupted (docs/sessions.md).

use crate::script::fields::Fields;

/// What to do if the process died, or was stopped, during an external effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnInterrupted {
    /// `ask`: the session waits until a person decides.
    #[default]
    Ask,
    /// `retry`: the effect is repeated.
    Retry,
    /// `skip`: the action continues without the effect.
    Skip,
    /// `fail`: the action fails.
    Fail,
}

/// The choices as written in scripts.
const CHOICES: [(&str, OnInterrupted); 4] = [
    ("ask", OnInterrupted::Ask),
    ("retry", OnInterrupted::Retry),
    ("skip", OnInterrupted::Skip),
    ("fail", OnInterrupted::Fail),
];

/// Reads `on_interrupted` of an action. An invalid value is reported.
pub fn on_interrupted(fields: &Fields<'_>) -> OnInterrupted {
    let written = fields.choice("on_interrupted", &CHOICES.map(|(name, _)| name));
    CHOICES.iter().find(|(name, _)| Some(*name) == written).map(|(_, choice)| *choice).unwrap_or_default()
}
