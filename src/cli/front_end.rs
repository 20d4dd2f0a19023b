//! The three front ends of a session: a terminal, a pipe, and a program.

use crate::cli::language::Translate;
use std::io::IsTerminal;
use std::sync::Arc;

use crate::cli::exit::Exit;
use crate::cli::input::InputSource;
use crate::cli::json::JsonLines;
use crate::cli::language::translated;
use crate::cli::line_editor::LineEditor;
use crate::cli::lines::InputLines;
use crate::cli::piped::Piped;
use crate::cli::report;
use crate::cli::terminal::{Terminal, quiet};
use bcc_engine::error::EngineError;
use bcc_runtime::program::event::Observer;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrontEnd {
    Terminal,
    /// Lines in, text out.
    Piped,
    /// Lines in, events out.
    Json,
}

impl FrontEnd {
    /// `Json` for `--json`; otherwise `Terminal` if both standard input and standard output are terminals.
    pub fn of(json: bool) -> Self {
        if json {
            Self::Json
        } else if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
            Self::Terminal
        } else {
            Self::Piped
        }
    }

    pub fn observer(self) -> Arc<dyn Observer> {
        match self {
            Self::Terminal => Arc::new(Terminal::default()),
            Self::Piped => Arc::new(Piped::default()),
            Self::Json => Arc::new(JsonLines),
        }
    }

    /// The source of answers. If the line editor cannot be started, the terminal is read line by line.
    pub fn source(self) -> Box<dyn InputSource> {
        match self {
            Self::Terminal => match LineEditor::new() {
                Ok(editor) => Box::new(editor),
                Err(_) => Box::new(InputLines::of_standard_input(false)),
            },
            Self::Piped => Box::new(InputLines::of_standard_input(false)),
            Self::Json => Box::new(InputLines::of_standard_input(true)),
        }
    }

    /// Returns `result`. With `--json`, writes a failure as an event without a `seq`, because a failed store can commit no event.
    pub fn report_failure(self, result: Result<Exit, EngineError>) -> Result<Exit, EngineError> {
        if let (Self::Json, Err(error @ EngineError::Failed { message, .. })) = (self, &result) {
            JsonLines::uncommitted_error(
                "store-failed",
                &message.to_string(),
                error.help().map(ToString::to_string).as_deref(),
            );
        }
        result
    }

    /// Prints a note that is not part of the conversation.
    pub fn note<T: Translate + ?Sized>(self, text: &T) {
        match self {
            Self::Terminal => quiet(&translated(text)),
            Self::Piped | Self::Json => report::note(text),
        }
    }
}
