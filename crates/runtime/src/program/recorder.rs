//! The content of a session's recording, and the `Recorder` trait that writes it.

use std::sync::Arc;

use crate::program::event::ModelCall;
use crate::program::location::EventLocation;
use bcc_lang::value::mask::Masker;
use bcc_llm::model::message::ChatMessage;
use bcc_llm::model::provider::ReplyPolicy;
use bcc_llm::model::request::Task;

/// The request to a model and its response, in addition to what [`ModelCall`] reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedExchange {
    pub action_id: String,
    pub path: String,
    pub round: u32,
    /// The number of calls of its purpose that the action made before.
    pub call: u32,
    pub messages: Vec<ChatMessage>,
    /// The response; `None` if there was none. Values of sensitive outputs are replaced.
    pub text: Option<String>,
    /// Names of the outputs whose values are already replaced.
    pub hidden: Vec<String>,
    /// Why there was no response, as in [`bcc_llm::model::error::ModelError::summary`].
    pub error: String,
    /// Whether there was no response and the turn continued with an earlier reply.
    pub used_earlier_reply: bool,
    pub policy: ReplyPolicy,
}

impl RecordedExchange {
    /// The exchange for `task`.
    pub fn new(task: &Task, messages: Vec<ChatMessage>, text: Option<String>, manners: ReplyPolicy) -> Self {
        let Task { action_id, path, round, call, .. } = task;
        let (action_id, path) = (action_id.clone(), path.clone());
        let (round, call) = (*round, *call);
        Self { action_id, path, round, call, messages, text, policy: manners, ..Self::default() }
    }
}

/// A call that is about to be committed.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub seq: u64,
    /// The time of its event.
    pub at: String,
    pub place: Arc<EventLocation>,
    pub call: Box<ModelCall>,
}

/// The events that no longer count, because the answer before them was taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedRange {
    pub from_seq: u64,
    pub to_seq: u64,
}

/// Records a session's exchanges with models.
///
/// A commit is made after its exchanges are written, so a recording contains everything that was committed, even if the process
/// dies. Exchanges of a failed commit are removed by [`Recorder::take_back`], or ignored when the recording is continued.
pub trait Recorder: Send + Sync {
    /// Writes the calls of one commit, which may be empty, masked with `masker`, and what the commit takes back. Earlier content is
    /// masked again if the masker has learned values since.
    /// Errors: A message with the problem and its fix. The commit must then not be made.
    fn record(
        &self,
        calls: &[Recorded],
        taken_back: Option<RecordedRange>,
        masker: &Masker,
    ) -> Result<(), bcc_lang::message::message::Message>;

    /// Reverts the last [`Recorder::record`], because its commit failed.
    fn take_back(&self);
}
