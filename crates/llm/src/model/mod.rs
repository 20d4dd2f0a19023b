//! Models: what they are asked, what they answer, and the providers that ask them (LANGUAGE.md sections 5 and 8).

pub mod error;
pub mod message;
pub mod provider;
pub mod reply;
pub mod request;
pub mod tokens;
