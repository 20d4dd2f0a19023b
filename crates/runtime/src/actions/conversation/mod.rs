//! Shared code of the conversation kinds: their configuration, the rounds of a conversation, and the evaluation of replies.

pub mod config;
pub mod decision;
pub mod outputs;
pub mod reading;
pub mod rounds;
pub(crate) mod substitute;
