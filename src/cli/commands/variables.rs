//! `/vars`: the variables that are visible at the current location of the session.

use std::fmt::Write;

use crate::cli::language::{filled, translated};
use bcc_lang::value::exact::ExactValue;
use bcc_lang::value::mask::{MASK, Masker};
use bcc_runtime::run::session::Session;

/// The value of a variable that is not sensitive itself, but may contain a value that is.
fn masked(value: &ExactValue, masker: &Masker) -> String {
    let mut value = value.clone();
    masker.exact_data(&mut value);
    value.to_string()
}

/// The variables, each with its scope, value and source. Sensitive values are masked.
pub fn variables(session: &Session) -> String {
    let mut text = String::new();
    for layer in session.scopes().layers() {
        for (name, stored) in layer.values() {
            let value = match session.scopes().is_sensitive(name) {
                true => MASK.to_owned(),
                false => masked(&stored.value, &session.masker),
            };
            let round = stored.round.map(|round| filled(", round {round}", &[("round", &round.to_string())]));
            let (round, source) = (round.unwrap_or_default(), stored.source.to_string());
            let _ = writeln!(text, "{:7} {name} = {value}   ({}{round})", layer.scope, translated(&source));
        }
    }
    if session.scopes().is_isolated() {
        let notice = "the session is inside a skill, which cannot access the variables of the script; /where shows what is waiting outside";
        let _ = writeln!(text, "{}", translated(notice));
    }
    if text.is_empty() { translated("no variable has a value yet").into_owned() } else { text.trim_end().to_owned() }
}
