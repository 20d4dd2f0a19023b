//! The chat completions of OpenAI: every script is a model (docs/server.md).

pub(crate) mod branches;
pub(crate) mod completions;
pub(crate) mod conversation;
pub(crate) mod error;
pub(crate) mod models;
pub(crate) mod place;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod stream;
pub(crate) mod transcript;
