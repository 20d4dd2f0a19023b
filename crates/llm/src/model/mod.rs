//! Models: what they are asked, what they answer, and the providers that ask them (docs/models.md).

pub mod error;
pub mod message;
pub mod provider;
pub mod reply;
pub mod request;
pub mod tokens;
