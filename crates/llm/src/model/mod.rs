//! Model requests, replies, errors, and the provider interface (docs/models.md).

pub mod call_span;
pub mod error;
pub mod message;
pub mod provider;
pub mod reply;
pub mod request;
pub mod tokens;
