//! The one thing that the interpreter knows about models: ask, and hear the answer as it is written.

use async_trait::async_trait;

use crate::model::error::ModelError;
use crate::model::reply::ModelReply;
use crate::model::request::{ModelRequest, Purpose, Task};

/// Something that answers requests: a model's server, written replies, or the offline responder.
#[async_trait]
pub trait Provider: Send + Sync {
    /// The name shown in events as `model`: `offline`, `openai:qwen3`, `replay`.
    fn name(&self) -> &str;

    /// Whether it can answer calls of this purpose about this action at all. What is no model may know only some.
    fn answers(&self, purpose: Purpose, action_id: &str) -> bool {
        let _ = (purpose, action_id);
        true
    }

    /// How replies of this model are read where the action does not say.
    fn manners(&self) -> ReplyPolicy {
        ReplyPolicy::default()
    }

    /// The same for one call. What replays a recording reads each reply as it was read then.
    fn manners_of(&self, task: &Task) -> ReplyPolicy {
        let _ = task;
        self.manners()
    }

    /// Asks, and gives the whole reply. `live` is given each piece of the reply's text as it arrives; the pieces
    /// together are the reply's `text`. An attempt that is made again first calls [`LiveObserver::restart`].
    ///
    /// Dropping the future gives the call up.
    async fn complete(&self, request: &ModelRequest, live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError>;
}

/// How the replies of a model are read (docs/replies.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplyPolicy {
    /// `repair`: whether near-JSON is mended, as a fourth strategy.
    pub repair: bool,
    /// `reask`: how often the model is asked again, with what is wrong with its reply.
    pub reask: u32,
}

/// A listener to a reply that is being written.
pub trait LiveObserver: Send {
    /// The next piece of the reply's text, never empty.
    fn text(&mut self, piece: &str);

    /// The pieces given so far (there may be none) do not count: the model is asked again, or what it said so far turns out
    /// not to belong to the reply.
    fn restart(&mut self);
}

#[derive(Clone, Copy, Debug, Default)]
pub struct NoLiveOutput;

impl LiveObserver for NoLiveOutput {
    fn text(&mut self, _piece: &str) {}

    fn restart(&mut self) {}
}
