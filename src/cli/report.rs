//! Writes to standard error: notes, errors and diagnostics.

use bcc_lang::message::ToMessage;
use bcc_lang::message::msg;
use std::io::{IsTerminal, Write};

use crate::cli::exit::Exit;
use crate::cli::language::{Translate, chosen, translated};
use crate::cli::progress;
use bcc_engine::error::EngineError;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::render::human;
use bcc_lang::source::render::visible::visible;

/// The limit on warnings that are shown; the others are counted.
const MAX_SHOWN: usize = 100;

pub fn color() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Writes one line to standard error, in the language of the person. What a terminal would obey or hide is visible, because
/// names and messages may come from anywhere. A closed standard error is not an error.
pub fn note<T: Translate + ?Sized>(text: &T) {
    note_untranslated(&translated(text));
}

/// Writes a note that is already translated, or contains other text.
pub fn note_untranslated(text: &str) {
    let _ = progress::suspended(|| writeln!(std::io::stderr().lock(), "{}", visible(text)));
}

pub fn quiet<T: Translate + ?Sized>(text: &T) {
    quiet_untranslated(&translated(text));
}

fn quiet_untranslated(text: &str) {
    if color() {
        let _ = progress::suspended(|| writeln!(std::io::stderr().lock(), "\u{1b}[2m{}\u{1b}[0m", visible(text)));
    } else {
        note_untranslated(text);
    }
}

pub fn error(error: &EngineError) {
    note(&msg!("error: {error}", error = error.to_message()));
    if let Some(help) = error.help() {
        note(&msg!("help: {help}"));
    }
}

/// Reports a failure, and returns its exit code.
pub fn failed(failure: &EngineError) -> Exit {
    match failure {
        EngineError::Usage { .. } => {
            error(failure);
            Exit::Usage
        }
        EngineError::Ended { .. } => {
            error(failure);
            Exit::Ended
        }
        EngineError::Invalid(found) => {
            diagnostics(found);
            Exit::Usage
        }
        EngineError::Failed { .. }
        | EngineError::Held { .. }
        | EngineError::StoreUnavailable { .. }
        | EngineError::StoreNewer { .. } => {
            error(failure);
            Exit::Failed
        }
        EngineError::StoreGone { .. } => {
            error(failure);
            Exit::Waiting
        }
    }
}

/// Reports the warnings of a script that runs, one line each, so that they do not hide the conversation.
pub fn warnings(found: &[Diagnostic]) {
    for diagnostic in found.iter().take(MAX_SHOWN) {
        let (line, column) = diagnostic.file.line_column(diagnostic.span.start);
        let place = format!("{}:{line}:{column}", diagnostic.file.name());
        let help = diagnostic.help.as_ref().map(|help| format!(" ({})", translated(help))).unwrap_or_default();
        let severity = translated(diagnostic.severity.name());
        quiet_untranslated(&format!(
            "{place}: {severity}[{}]: {}{help}",
            diagnostic.rule,
            translated(&diagnostic.message)
        ));
    }
    if found.len() > MAX_SHOWN {
        quiet(&msg!("{} more warnings", found.len() - MAX_SHOWN));
    }
}

/// Reports diagnostics up to the limit for people, and their number.
pub fn diagnostics(found: &[Diagnostic]) {
    if found.is_empty() {
        return;
    }
    let shown = human::report(found, &human::Options { color: color(), all: false, language: chosen() });
    let _ = write!(std::io::stderr().lock(), "{shown}");
    note(&human::counts(found));
}
