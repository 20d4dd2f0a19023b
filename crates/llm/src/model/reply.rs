//! What a provider gives back: the raw text, and what it cost.

use bcc_lang::message::message::Message;
use serde::Serialize;

/// A model's answer, not yet parsed (docs/replies.md says how it becomes a value).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelReply {
    /// The text exactly as the model wrote it; may be empty.
    pub text: String,
    /// The model that says it answered, else the one that was asked for.
    pub model: String,
    /// Tokens of the prompt: the server's count, else an estimate ([`crate::model::tokens`]). `None` where no model
    /// was involved.
    pub tokens_in: Option<u64>,
    /// Tokens of the reply, counted likewise.
    pub tokens_out: Option<u64>,
    /// How many of `tokens_in` the server had kept from an earlier call, which cost less; `None` where it does not say.
    pub tokens_cached: Option<u64>,
    /// Whether the server counted the tokens itself; else they are estimates.
    pub counted: bool,
    /// How many requests were sent until one succeeded; 1 when the first did.
    pub attempts: u32,
    /// Whether the reply ends because it had as many tokens as it may have (`max_tokens`).
    pub cut_off: bool,
    pub cost: Option<Cost>,
    /// The provider that answered, where it is not the one that was asked.
    pub answered_by: Option<String>,
    /// The models that were asked before it in vain, in order.
    pub passed_over: Vec<PassedOver>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// How much, in whole units of the currency.
    pub amount: f64,
    /// The currency as the configuration names it: `USD`, `CNY`.
    pub currency: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PassedOver {
    pub model: String,
    pub error: Message,
    pub attempts: u32,
}
