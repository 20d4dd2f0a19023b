//! What goes to standard error: notes, errors and diagnostics.

use bcc_lang::message::ToMessage;
use bcc_lang::message::msg;
use std::io::{IsTerminal, Write};

use crate::cli::exit::Exit;
use crate::cli::language::{Translate, chosen, said};
use crate::cli::terminal::plain;
use bcc_engine::error::EngineError;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::render::human;

/// More warnings than these are counted, not shown.
const MOST_SHOWN: usize = 100;

pub fn color() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// One line of standard error, without what would move a cursor: names and messages may come from anywhere. That nobody
/// reads it is no reason to end a conversation. It is said in the language of the person.
pub fn note<T: Translate + ?Sized>(text: &T) {
    note_as_it_is(&said(text));
}

/// A note that is in the language of the person already, or holds the words of others.
pub fn note_as_it_is(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", plain(text));
}

pub fn quiet<T: Translate + ?Sized>(text: &T) {
    quiet_as_it_is(&said(text));
}

fn quiet_as_it_is(text: &str) {
    if color() {
        let _ = writeln!(std::io::stderr().lock(), "\u{1b}[2m{}\u{1b}[0m", plain(text));
    } else {
        note_as_it_is(text);
    }
}

pub fn error(error: &EngineError) {
    note(&msg!("error: {error}", error = error.to_message()));
    if let Some(help) = error.help() {
        note(&msg!("help: {help}"));
    }
}

/// Tells what failed, and gives the exit code for it.
pub fn failed(failure: &EngineError) -> Exit {
    match failure {
        EngineError::Usage { .. } => {
            error(failure);
            Exit::Usage
        }
        EngineError::Invalid(found) => {
            diagnostics(found);
            Exit::Usage
        }
        EngineError::Failed { .. } => {
            error(failure);
            Exit::Failed
        }
    }
}

/// Warnings of a script that runs all the same: a line each, so that they do not bury the conversation.
pub fn warnings(found: &[Diagnostic]) {
    for diagnostic in found.iter().take(MOST_SHOWN) {
        let (line, column) = diagnostic.file.line_column(diagnostic.span.start);
        let place = format!("{}:{line}:{column}", diagnostic.file.name());
        let help = diagnostic.help.as_ref().map(|help| format!(" ({})", said(help))).unwrap_or_default();
        let severity = said(diagnostic.severity.name());
        quiet_as_it_is(&format!("{place}: {severity}[{}]: {}{help}", diagnostic.rule, said(&diagnostic.message)));
    }
    if found.len() > MOST_SHOWN {
        quiet(&msg!("{} more warnings", found.len() - MOST_SHOWN));
    }
}

/// Diagnostics, as many as somebody reads, and how many there are.
pub fn diagnostics(found: &[Diagnostic]) {
    if found.is_empty() {
        return;
    }
    let shown = human::report(found, &human::Options { color: color(), all: false, language: chosen() });
    let _ = write!(std::io::stderr().lock(), "{shown}");
    note(&human::counts(found));
}
