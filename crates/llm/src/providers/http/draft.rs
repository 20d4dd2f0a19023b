//! A reply that is being put together from the pieces of an answer.

use crate::model::provider::LiveObserver;
use crate::providers::http::chunk::{Chunk, ServerRejection};

#[derive(Debug, Default, PartialEq)]
pub(crate) struct HttpAnswer {
    pub(crate) text: String,
    pub(crate) model: Option<String>,
    pub(crate) tokens_in: Option<u64>,
    pub(crate) tokens_cached: Option<u64>,
    pub(crate) tokens_out: Option<u64>,
    pub(crate) cut_off: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) answer: HttpAnswer,
    /// Whether anything came that the protocol knows.
    pub(crate) begun: bool,
    pub(crate) finished: bool,
    /// Whether the reply was asked for as a call of a tool.
    tool: bool,
    called: bool,
}

impl Draft {
    /// An empty one; `tool` says that the reply was asked for as a call of a tool.
    pub(crate) fn new(tool: bool) -> Self {
        Self { tool, ..Self::default() }
    }

    /// Adds a piece, and gives what is new of the text to `live`.
    pub(crate) fn add(&mut self, chunk: Chunk, live: &mut dyn LiveObserver) -> Result<(), ServerRejection> {
        if let Some(refusal) = chunk.error {
            return Err(refusal);
        }
        self.begun |= chunk.known;
        self.finished |= chunk.finished;
        self.answer.cut_off |= chunk.cut_off;
        if self.answer.model.is_none() {
            self.answer.model = chunk.model;
        }
        // The last figures win: some servers count along.
        self.answer.tokens_in = chunk.tokens_in.or(self.answer.tokens_in);
        self.answer.tokens_cached = chunk.tokens_cached.or(self.answer.tokens_cached);
        self.answer.tokens_out = chunk.tokens_out.or(self.answer.tokens_out);
        if !self.called {
            self.write(&chunk.text, live);
        }
        if self.tool && !chunk.arguments.is_empty() {
            // The arguments are the reply. What was said before them counts for nothing.
            if !self.called && !self.answer.text.is_empty() {
                self.answer.text.clear();
                live.restart();
            }
            self.called = true;
            self.write(&chunk.arguments, live);
        }
        Ok(())
    }

    fn write(&mut self, piece: &str, live: &mut dyn LiveObserver) {
        if !piece.is_empty() {
            live.text(piece);
            self.answer.text.push_str(piece);
        }
    }
}
