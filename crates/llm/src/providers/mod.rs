//! The implementations of `Provider`, and the code that the HTTP providers share.

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
