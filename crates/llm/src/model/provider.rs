//! The interface between the interpreter and models: send a request and receive the reply as it is streamed.

use async_trait::async_trait;

use crate::model::error::ModelError;
use crate::model::reply::ModelReply;
use crate::model::request::{ModelRequest, Purpose, Task};

/// Something that answers requests: a model's server, written replies, or the offline responder.
#[async_trait]
pub trait Provider: Send + Sync {
    /// The name shown in events as `model`: `offline`, `openai:qwen3`, `replay`.
    fn name(&self) -> &str;

    /// Whether it can answer calls of this purpose for this action. Providers that are not models may answer only some.
    fn answers(&self, purpose: Purpose, action_id: &str) -> bool {
        let _ = (purpose, action_id);
        true
    }

    /// How replies of this model are parsed if the action does not specify it.
    fn reply_policy(&self) -> ReplyPolicy {
        ReplyPolicy::default()
    }

    /// The same for one call. A replay parses each reply with the policy with which it was recorded.
    fn reply_policy_for(&self, task: &Task) -> ReplyPolicy {
        let _ = task;
        self.reply_policy()
    }

    /// Sends the request and returns the complete reply. `live` receives each piece of the reply's text as it arrives; the
    /// pieces together are the reply's `text`. [`LiveObserver::restart`] is called before each further attempt.
    ///
    /// Dropping the future cancels the call.
    async fn complete(&self, request: &ModelRequest, live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError>;

    /// The same, with every request after the first one admitted by `limiter`. Providers that send only one request ignore it.
    async fn complete_with_retries(
        &self,
        request: &ModelRequest,
        live: &mut dyn LiveObserver,
        limiter: &dyn RetryLimiter,
    ) -> Result<ModelReply, ModelError> {
        let _ = limiter;
        self.complete(request, live).await
    }
}

/// Limits the requests of a call after the first one.
#[async_trait]
pub trait RetryLimiter: Send + Sync {
    /// Waits until one more request may be sent, and counts it. Dropping the future leaves the queue.
    async fn admit_retry(&self);
}

/// Admits every request.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnlimitedRetries;

#[async_trait]
impl RetryLimiter for UnlimitedRetries {
    async fn admit_retry(&self) {}
}

/// How the replies of a model are parsed (docs/replies.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplyPolicy {
    /// `repair`: whether near-JSON is repaired, as a fourth strategy.
    pub repair: bool,
    /// `reask`: how many times the model is asked again, with the problems of its reply.
    pub reask: u32,
}

/// Receives the text of a reply while it is streamed.
pub trait LiveObserver: Send {
    /// The next piece of the reply's text, never empty.
    fn text(&mut self, piece: &str);

    /// Discards the pieces received so far, if any: the model is asked again, or the text so far does not belong to the
    /// reply.
    fn restart(&mut self);
}

#[derive(Clone, Copy, Debug, Default)]
pub struct NoLiveOutput;

impl LiveObserver for NoLiveOutput {
    fn text(&mut self, _piece: &str) {}

    fn restart(&mut self) {}
}
