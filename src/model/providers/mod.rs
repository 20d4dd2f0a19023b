//! The providers: each turns a request into a reply in its own way.

pub mod offline;
pub mod openai;
pub mod replay;
pub mod retry;
pub mod sse;
