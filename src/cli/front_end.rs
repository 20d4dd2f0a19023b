//! The three front ends of a session: a terminal, a pipe, and a program.

use crate::cli::language::Translate;
use bcc_lang::message::msg;
use std::io::IsTerminal;
use std::sync::Arc;

use clap::Args;

use crate::cli::exit::Exit;
use crate::cli::input::{InputSource, UnreadLines};
use crate::cli::json::JsonLines;
use crate::cli::language::translated;
use crate::cli::line_editor::LineEditor;
use crate::cli::lines::{InputFormat, InputLines};
use crate::cli::piped::Piped;
use crate::cli::print::print;
use crate::cli::progress;
use crate::cli::report;
use crate::cli::terminal::{Terminal, color, quiet};
use bcc_engine::error::EngineError;
use bcc_engine::last_exchanges::LastExchanges;
use bcc_lang::source::render::visible::visible_line;
use bcc_runtime::program::event::Observer;
use bcc_store::contract::Store;

/// The options that select the front end of `run` and `sessions resume`.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct OutputArgs {
    /// Print each event as one JSON object per line
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// With --json, accept only JSON objects as answers
    #[arg(long, requires = "json", help_heading = "Output")]
    pub json_objects: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrontEnd {
    Terminal,
    /// Lines in, text out.
    Piped,
    /// Lines in, events out.
    Json {
        /// Whether only JSON objects are accepted.
        objects: bool,
    },
}

impl FrontEnd {
    /// `Json` for `--json`; otherwise `Terminal` if both standard input and standard output are terminals.
    pub fn of(output: &OutputArgs) -> Self {
        if output.json {
            Self::Json { objects: output.json_objects }
        } else if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
            Self::Terminal
        } else {
            Self::Piped
        }
    }

    pub fn observer(self) -> Arc<dyn Observer> {
        match self {
            Self::Terminal => {
                progress::start(color());
                Arc::new(Terminal::default())
            }
            Self::Piped => Arc::new(Piped::default()),
            Self::Json { .. } => Arc::new(JsonLines::default()),
        }
    }

    /// The observer for a session that is about to be resumed: a terminal first shows the end of the conversation.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn resuming_observer(self, store: &dyn Store, id: &str) -> Result<Arc<dyn Observer>, EngineError> {
        Ok(match self {
            Self::Terminal => {
                progress::start(color());
                Arc::new(Terminal::resuming(LastExchanges::of_session(store, id).await?))
            }
            Self::Piped | Self::Json { .. } => self.observer(),
        })
    }

    /// The source of answers. If the line editor cannot be started, the terminal is read line by line.
    ///
    /// # Errors
    /// When the thread that reads cannot be started.
    pub fn source(self) -> Result<Box<dyn InputSource>, EngineError> {
        let format = match self {
            Self::Terminal => match LineEditor::new() {
                Some(editor) => return Ok(Box::new(editor)),
                None => InputFormat::Lines,
            },
            Self::Piped => InputFormat::Lines,
            Self::Json { objects: false } => InputFormat::Json,
            Self::Json { objects: true } => InputFormat::JsonObjects,
        };
        Ok(Box::new(InputLines::of_standard_input(format)?))
    }

    /// Returns `result`. With `--json`, writes a failure as an event without a `seq`, because a failed store can commit no event.
    pub fn report_failure(self, result: Result<Exit, EngineError>) -> Result<Exit, EngineError> {
        if let (
            Self::Json { .. },
            Err(
                error @ (EngineError::Failed { message, .. }
                | EngineError::Held { message, .. }
                | EngineError::StoreUnavailable { message }
                | EngineError::StoreNewer { message }
                | EngineError::StoreGone { message }),
            ),
        ) = (self, &result)
        {
            JsonLines::uncommitted_error("store-failed", message, error.help());
        }
        result
    }

    /// Reports lines of input that were sent and that no question asked for. With `--json`, this is a note and no event: the journal
    /// of the session is complete.
    pub fn report_unread(self, unread: UnreadLines) {
        let count = unread.count;
        let message = match unread {
            UnreadLines { count: 0, .. } => return,
            UnreadLines { or_more: false, .. } => {
                msg!("unused lines of input: {count}; the session asked no further question")
            }
            UnreadLines { or_more: true, .. } => {
                msg!("unused lines of input: {count} or more; the session asked no further question")
            }
        };
        self.note(&msg!("warning: {message}", message = message));
    }

    /// Shows an answer that is given without being entered; only a terminal shows answers.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn show_answer(self, text: &str) -> Result<(), EngineError> {
        match self {
            Self::Terminal => print(&format!("> {}", visible_line(text))),
            Self::Piped | Self::Json { .. } => Ok(()),
        }
    }

    /// Prints a note that is not part of the conversation.
    pub fn note<T: Translate + ?Sized>(self, text: &T) {
        match self {
            Self::Terminal => quiet(&translated(text)),
            Self::Piped | Self::Json { .. } => report::note(text),
        }
    }
}
