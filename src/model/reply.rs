//! What a provider gives back: the raw text, and what it cost.

/// A model's answer, not yet parsed (LANGUAGE.md section 8 says how it becomes a value).
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// How many requests were sent until one succeeded; 1 when the first did.
    pub attempts: u32,
}
