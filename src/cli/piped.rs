//! The front end for pipes: only the messages of the AI and the cells of a notebook go to standard output; warnings without which they
//! would be unclear, and errors, go to standard error.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::{Mutex, PoisonError};

use crate::cli::cells::{CellView, SHOWN_WARNINGS};
use crate::cli::cells_again::rerun_lines;
use crate::cli::language::chosen;
use crate::cli::output;
use crate::cli::report;
use bcc_lang::source::render::visible::{visible, visible_line};
use bcc_runtime::program::cell_rerun::CellRerunPiece;
use bcc_runtime::program::event::{Committed, Delta, Event, Observer, Speaker};
use bcc_runtime::program::location::EventLocation;

/// Writes the messages of the AI, and the cells of a notebook.
#[derive(Debug, Default)]
pub struct Piped {
    cells: Mutex<CellView>,
}

impl Observer for Piped {
    fn committed(&self, committed: &Committed<'_>) {
        match committed.event {
            Event::Message { role: Speaker::Ai, text, .. } => write(text),
            // A question about an external effect, or to whoever decides, is not a message.
            Event::Waiting { r#for: "interrupted_effect" | "approval", prompt, .. } => write(prompt),
            event @ (Event::Cell(_) | Event::NotebookAction { .. } | Event::TakenBack { .. }) => {
                let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(lines) = cells.lines((committed.seq, event), "", chosen()) else { return };
                output::write(&lines.iter().map(|(_, line)| format!("{}\n", visible(line))).collect::<String>());
            }
            Event::Warning { code, message, help } if SHOWN_WARNINGS.contains(code) => {
                report::note(&msg!("warning: {message}", message = message.clone()));
                if let Some(help) = help {
                    report::note(&msg!("help: {help}", help = help.clone()));
                }
            }
            Event::Error { code, message, help } => {
                let message = error_message(code, message, committed.place);
                report::note(&msg!("error: {message}"));
                if let Some(help) = help {
                    report::note(&msg!("help: {help}", help = help.clone()));
                }
            }
            _ => {}
        }
    }

    fn delta(&self, _delta: &Delta<'_>) {}

    fn cell_rerun(&self, piece: &CellRerunPiece<'_>) {
        rerun_lines(piece).iter().for_each(|line| report::note(&visible_line(line)));
    }
}

/// The codes of errors about a value, whose messages do not say which action it is of.
const ERRORS_OF_VALUES: [&str; 3] = ["expression-failed", "mistaken-expression", "type-misfit"];

/// The errors about conditions and lists, which name what they belong to. It may be a later action than the one that has just ended.
const WITH_NAME: [&str; 3] = [
    "the condition of `{name}`, `{}`, cannot be evaluated: {}",
    "the list of `{}`, `{}`, cannot be evaluated: {}",
    "`for_each` of `{}` needs a list, but `{}` is not a list",
];

/// The message of an error. One about a value says in which action it occurred, unless it names the action anyway.
pub(crate) fn error_message(code: &str, message: &Message, place: &EventLocation) -> Message {
    let names_place = WITH_NAME.iter().any(|literal| message.is(literal));
    let is_named = |action: &str| names_place || message.to_string().contains(&format!("`{action}`"));
    match &place.action_id {
        Some(action) if ERRORS_OF_VALUES.contains(&code) && !is_named(action) => {
            msg!("{message} (action `{action}`)", message = message.clone())
        }
        _ => message.clone(),
    }
}

fn write(text: &str) {
    // The output may end on a terminal, even if it goes through another program.
    output::write(&format!("{}\n", visible(text)));
}
