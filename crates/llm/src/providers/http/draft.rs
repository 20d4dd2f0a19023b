//! Assembles a reply from the parts of a response.

use crate::model::call_span::ReportedUsage;
use crate::model::provider::LiveObserver;
use crate::providers::http::chunk::{Chunk, ServerRejection};
use crate::providers::http::halves::HalfJoiner;

/// The maximum length of a model name that is taken from a server.
pub(crate) const MAX_MODEL_NAME_CHARS: usize = 200;

#[derive(Debug, Default, PartialEq)]
pub(crate) struct HttpAnswer {
    pub(crate) text: String,
    pub(crate) model: Option<String>,
    pub(crate) tokens_in: Option<u64>,
    pub(crate) tokens_cached: Option<u64>,
    pub(crate) tokens_out: Option<u64>,
    pub(crate) cut_off: bool,
    pub(crate) finish_reason: Option<String>,
    pub(crate) refused: bool,
}

impl HttpAnswer {
    /// What the server said about the reply, for traces: no estimates.
    pub(crate) fn reported(&self) -> ReportedUsage<'_> {
        ReportedUsage {
            model: self.model.as_deref().filter(|model| model.len() <= MAX_MODEL_NAME_CHARS),
            tokens_in: self.tokens_in,
            tokens_cached: self.tokens_cached,
            tokens_out: self.tokens_out,
            finish_reason: self.finish_reason.as_deref(),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) answer: HttpAnswer,
    /// Whether a valid part was received.
    pub(crate) started: bool,
    pub(crate) finished: bool,
    /// Whether the reply was requested as a tool call.
    expects_tool_call: bool,
    has_tool_call: bool,
    /// Set when the server cut a character in halves.
    halves: Option<HalfJoiner>,
}

impl Draft {
    /// An empty draft; `expects_tool_call` means that the reply was requested as a tool call.
    pub(crate) fn new(expects_tool_call: bool) -> Self {
        Self { expects_tool_call, ..Self::default() }
    }

    /// Adds a part and passes new text to `live`.
    pub(crate) fn add(&mut self, chunk: Chunk, live: &mut dyn LiveObserver) -> Result<(), ServerRejection> {
        if let Some(rejection) = chunk.error {
            return Err(rejection);
        }
        self.started |= chunk.known;
        self.finished |= chunk.finished;
        self.answer.cut_off |= chunk.cut_off;
        self.answer.refused |= chunk.refused;
        self.answer.finish_reason = chunk.finish_reason.or(self.answer.finish_reason.take());
        if self.answer.model.is_none() {
            self.answer.model = chunk.model;
        }
        // The last counts are used: some servers send cumulative counts.
        self.answer.tokens_in = chunk.tokens_in.or(self.answer.tokens_in);
        self.answer.tokens_cached = chunk.tokens_cached.or(self.answer.tokens_cached);
        self.answer.tokens_out = chunk.tokens_out.or(self.answer.tokens_out);
        if !self.has_tool_call {
            self.append(&chunk.text, live);
        }
        if self.expects_tool_call && !chunk.arguments.is_empty() {
            // The arguments are the reply. Text before them is discarded.
            if !self.has_tool_call && !self.answer.text.is_empty() {
                self.answer.text.clear();
                self.halves = self.halves.take().map(|_| HalfJoiner::default());
                live.restart();
            }
            self.has_tool_call = true;
            self.append(&chunk.arguments, live);
        }
        if self.finished || chunk.done {
            self.end_text(live);
        }
        Ok(())
    }

    /// From now on, the texts may have characters that stand for halves.
    pub(crate) fn expect_halves(&mut self) {
        self.halves.get_or_insert_default();
    }

    /// Ends the text. Only a half that was not followed by the other one is added.
    pub(crate) fn end_text(&mut self, live: &mut dyn LiveObserver) {
        if let Some(half) = self.halves.as_mut().and_then(HalfJoiner::end) {
            self.push(half.encode_utf8(&mut [0; 4]), live);
        }
    }

    fn append(&mut self, piece: &str, live: &mut dyn LiveObserver) {
        match &mut self.halves {
            Some(halves) => {
                let joined = halves.join(piece);
                self.push(&joined, live);
            }
            None => self.push(piece, live),
        }
    }

    fn push(&mut self, piece: &str, live: &mut dyn LiveObserver) {
        if !piece.is_empty() {
            live.text(piece);
            self.answer.text.push_str(piece);
        }
    }
}
