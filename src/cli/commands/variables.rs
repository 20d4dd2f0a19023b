//! `/vars`: the variables that are visible where the session stands.

use std::fmt::Write;

use crate::run::session::Session;
use crate::value::mask::MASK;

/// Each with its scope, its value and who set it. Sensitive values are masked.
pub fn variables(session: &Session) -> String {
    let mut text = String::new();
    for layer in session.scopes().layers() {
        for (name, stored) in layer.values() {
            let sensitive = layer.declaration(name).is_some_and(|declaration| declaration.sensitive);
            let value = if sensitive { MASK.to_owned() } else { stored.value.to_string() };
            let round = stored.round.map(|round| format!(", round {round}")).unwrap_or_default();
            let _ = writeln!(text, "{:7} {name} = {value}   ({}{round})", layer.scope, stored.source);
        }
    }
    if session.scopes().is_isolated() {
        let _ = writeln!(
            text,
            "this is inside of a skill, which sees no variables of the script; /where tells what waits outside"
        );
    }
    if text.is_empty() { "no variable has a value yet".into() } else { text.trim_end().to_owned() }
}
