//! The three ways to talk to a session: a terminal, a pipe, a program.

use crate::cli::language::Translate;
use std::io::IsTerminal;
use std::sync::Arc;

use crate::cli::exit::Exit;
use crate::cli::input::InputSource;
use crate::cli::json::JsonLines;
use crate::cli::language::said;
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
    /// Lines in, words out.
    Piped,
    /// Lines in, events out.
    Json,
}

impl FrontEnd {
    /// `--json` makes it a program; else a terminal at both ends makes it a person.
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

    /// The source of answers. A terminal that cannot be edited on is read line by line.
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

    /// Gives `result` on; a failure that no event could tell, because the store itself is the trouble, is told to a program
    /// as an event without a `seq`.
    pub fn told(self, result: Result<Exit, EngineError>) -> Result<Exit, EngineError> {
        if let (Self::Json, Err(error @ EngineError::Failed { message, .. })) = (self, &result) {
            JsonLines::uncommitted_error(
                "store-failed",
                &message.to_string(),
                error.help().map(ToString::to_string).as_deref(),
            );
        }
        result
    }

    /// Tells the driver something that is no part of the conversation.
    pub fn note<T: Translate + ?Sized>(self, text: &T) {
        match self {
            Self::Terminal => quiet(&said(text)),
            Self::Piped | Self::Json => report::note(text),
        }
    }
}
