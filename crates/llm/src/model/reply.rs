//! The reply of a provider: the raw text and its cost.

use bcc_lang::message::message::Message;
use serde::Serialize;

/// The unparsed reply of a model. docs/replies.md describes how it is parsed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelReply {
    /// The text exactly as received; may be empty.
    pub text: String,
    /// The model named in the response, or else the requested model.
    pub model: String,
    /// Tokens of the prompt: the server's count, or else an estimate ([`crate::model::tokens`]). `None` if no model was
    /// involved.
    pub tokens_in: Option<u64>,
    /// Tokens of the reply, counted in the same way.
    pub tokens_out: Option<u64>,
    /// How many of `tokens_in` were cached by the server and cost less; `None` if the server does not report it.
    pub tokens_cached: Option<u64>,
    /// Whether the server counted the tokens; otherwise they are estimates.
    pub counted: bool,
    /// The number of requests sent, including the successful one.
    pub attempts: u32,
    /// Whether the reply was truncated at the token limit (`max_tokens`).
    pub cut_off: bool,
    /// Why the reply ended, in the words of the server, if it says so.
    pub finish_reason: Option<String>,
    /// Whether the model refused to answer, or a content filter removed the answer.
    pub refused: bool,
    pub cost: Option<Cost>,
    /// The provider that answered, if it is not the requested one.
    pub answered_by: Option<String>,
    /// The models that failed before it, in order.
    pub skipped_models: Vec<SkippedModel>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// The amount in whole units of the currency.
    pub amount: f64,
    /// The currency from the configuration: `USD`, `CNY`.
    pub currency: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SkippedModel {
    pub model: String,
    pub error: Message,
    pub attempts: u32,
}
