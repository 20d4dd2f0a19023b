//! The providers: each turns a request into a reply in its own way; and what those that use the network share.

pub mod anthropic;
pub mod configured;
pub mod fallback;
pub mod http;
pub mod limit;
pub mod offline;
pub mod openai;
pub mod rate_limiter;
pub mod replay;
pub mod scripted;
