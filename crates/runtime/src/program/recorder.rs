//! What a recording of a session is made of, and who writes it down.

use std::sync::Arc;

use crate::program::event::ModelCall;
use crate::program::location::EventLocation;
use bcc_lang::value::mask::Masker;
use bcc_llm::model::message::ChatMessage;
use bcc_llm::model::provider::ReplyPolicy;
use bcc_llm::model::request::Task;

/// What was sent to a model and what came back, beside what [`ModelCall`] tells of the call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedExchange {
    pub action_id: String,
    pub path: String,
    pub round: u32,
    /// How many calls of its purpose were made for it before.
    pub call: u32,
    pub messages: Vec<ChatMessage>,
    /// What came; `None` when nothing did. Values of sensitive outputs do not stand in it.
    pub text: Option<String>,
    /// Names of outputs in it in whose place something stands in already.
    pub hidden: Vec<String>,
    /// Why nothing came, as [`bcc_llm::model::error::ModelError::in_short`] has it.
    pub fault: String,
    /// Whether nothing came and the turn went on with an earlier reply.
    pub went_on: bool,
    pub manners: ReplyPolicy,
}

impl RecordedExchange {
    /// What was sent for `task`, and what came.
    pub fn new(task: &Task, messages: Vec<ChatMessage>, text: Option<String>, manners: ReplyPolicy) -> Self {
        let Task { action_id, path, round, call, .. } = task;
        let (action_id, path) = (action_id.clone(), path.clone());
        let (round, call) = (*round, *call);
        Self { action_id, path, round, call, messages, text, manners, ..Self::default() }
    }
}

/// A call that is about to be committed.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub seq: u64,
    /// When it was, as its event tells.
    pub at: String,
    pub place: Arc<EventLocation>,
    pub call: Box<ModelCall>,
}

/// Writes down what a session says to models.
///
/// A commit comes after its exchanges are written: so a recording lacks nothing that was committed, however the process
/// ends. What it holds of a commit that did not come about is taken back ([`Recorder::take_back`]), or else left out when the
/// recording is gone on with.
pub trait Recorder: Send + Sync {
    /// Writes down the calls of one commit, which may be none, without anything that `masker` finds. What was written before
    /// is masked again when the masker has learned something since.
    /// Errors: A sentence: what is wrong and what to do. Then nothing must be committed.
    fn record(&self, calls: &[Recorded], masker: &Masker) -> Result<(), bcc_lang::message::message::Message>;

    /// The commit of the last [`Recorder::record`] did not come about.
    fn take_back(&self);
}
